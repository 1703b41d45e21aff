"""Our edits of a container runtime's configuration, read by real runtimes."""
