"""Nodes are reached through the workers of regions, on Dask."""
