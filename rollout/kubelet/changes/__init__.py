"""What must happen to a node so that its settings are in force: homes, exact bytes, and the proof that they do what they should."""
