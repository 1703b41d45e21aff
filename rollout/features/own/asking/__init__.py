"""Owned settings compared with the live nodes, and settings under a cluster's old name."""
