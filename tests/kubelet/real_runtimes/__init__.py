"""Our edits of a container runtime's configuration, as real runtimes read them."""
