"""The kinds of nodes that an inventory can have, before any node was read."""
