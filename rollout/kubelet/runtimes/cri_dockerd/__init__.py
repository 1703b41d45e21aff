"""cri-dockerd: all that rollout knows of it."""
