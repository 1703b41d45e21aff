"""What is sent to the agent on a node, and what it answers."""
