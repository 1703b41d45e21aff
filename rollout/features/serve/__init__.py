"""Runs in a browser: the command, and who is told of a controller that died. The pages themselves are ``rollout.web``."""
