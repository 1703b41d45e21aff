"""What a drain asks the API server: the rounds of a node, and the cordons that a run has left."""
