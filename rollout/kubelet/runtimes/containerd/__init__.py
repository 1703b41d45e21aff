"""containerd: all that rollout knows of it."""
