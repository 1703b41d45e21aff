"""Runs in a browser: the command, and the notice of a controller that died. The pages themselves are ``rollout.web``."""
