"""What the agent measures on each node, in one measurement."""
