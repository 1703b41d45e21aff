"""Gates that look beyond a node: their needs, thresholds, control groups and patterns of names."""
