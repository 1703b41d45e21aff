"""Whether this machine can log in to the nodes, whether they could be changed, and what fixes it."""
