"""dockerd: what the runtimes above it, dockershim and cri-dockerd, have in common."""
