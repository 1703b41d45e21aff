"""What ``rollout explain`` prints."""
