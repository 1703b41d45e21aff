"""Fleet configuration rollout for kubelets."""

__version__ = "0.1.0"
