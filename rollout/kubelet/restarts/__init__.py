"""The side effects of a restart on a node: pods, pulls, registries."""
