"""What the API server reports about each node, in one look."""
