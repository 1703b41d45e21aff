"""What a restart does to a node besides what it is for: pods, pulls, registries."""
