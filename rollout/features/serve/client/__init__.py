"""The server of ``rollout serve``: it reads the journal through its port and needs no controller."""
