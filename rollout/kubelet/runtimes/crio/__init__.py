"""CRI-O: all that rollout knows of it."""
