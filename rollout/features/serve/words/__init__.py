"""The pages of ``rollout serve``, as HTML made from values."""
