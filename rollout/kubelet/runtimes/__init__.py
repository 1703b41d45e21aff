"""The files of container runtimes: which keys set what; every other byte is kept."""
