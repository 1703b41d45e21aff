"""dockershim, the part of older kubelets that uses dockerd: all that rollout knows of it."""
