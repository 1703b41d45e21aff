"""``make kubelet-tables``: the tables of one kubelet minor, read out of a Kubernetes source tree."""
