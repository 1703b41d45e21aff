"""Clusters in sequence: the plans of several clusters, in stages."""
