"""The change that puts a node's settings in force: homes, exact bytes, and the proof of their effect."""
