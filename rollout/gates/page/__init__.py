"""A page over HTTP."""
