"""What the agent on a node is told, and what it answers."""
