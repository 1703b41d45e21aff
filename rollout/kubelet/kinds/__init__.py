"""The kinds of nodes that an inventory can contain, before any node was read."""
