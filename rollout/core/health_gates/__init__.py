"""What gates that look beyond a node need and mean: thresholds, control groups, patterns of names."""
