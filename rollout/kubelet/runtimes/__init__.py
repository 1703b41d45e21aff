"""The files of container runtimes: what each is set by, edited with every other byte kept."""
