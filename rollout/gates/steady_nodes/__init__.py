"""The Nodes that a run has changed stay Ready, those of earlier waves too."""
