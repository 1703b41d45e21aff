"""A program on a node, or where the controller runs."""
