"""Samples of Prometheus within thresholds, or changed nodes compared with others."""
