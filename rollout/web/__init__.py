"""The page that a browser shows: ``rollout serve``. It reads the journal through its port and needs no controller."""
