"""How long the end of a pod may take."""
