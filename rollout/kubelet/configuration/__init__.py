"""Computes a kubelet's configuration, per version, from its files, drop-ins and flags.

The result: whether it starts, which fields it ignores, and which values are in force. A copy of the kubelet's own
decoding, merging, defaulting and validation.
"""
