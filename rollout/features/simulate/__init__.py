"""A plan is rehearsed offline. The model nodes and the virtual time are ``rollout.simulator``."""
