"""What the change of each setting does on a node: when it takes effect, what it needs there, what it breaks, what stays."""
