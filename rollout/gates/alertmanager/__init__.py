"""No alert starts to fire; silences for the nodes of a wave."""
