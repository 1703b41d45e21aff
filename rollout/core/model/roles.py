"""What a node is for, told by the labels Kubernetes and the makers of device plugins give it."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

_CONTROL_PLANE = ("node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/master")
_DEVICES = (
    "nvidia.com/gpu.present",
    "nvidia.com/gpu.count",
    "nvidia.com/gpu.product",
    "amd.com/gpu.product-name",
    "gpu.intel.com/device.count",
    "feature.node.kubernetes.io/pci-10de.present",
    "feature.node.kubernetes.io/network-sriov.capable",
)
_NO = frozenset({"false", "0", "no"})


class Role(StrEnum):
    """Control-plane nodes and nodes with device plugins have waves of their own."""

    WORKER = "worker"
    DEVICES = "devices"  # pods may lose their devices when the kubelet restarts and the plugin registers anew
    CONTROL_PLANE = "control-plane"


def role_of(labels: Mapping[str, str]) -> Role:
    """The control plane first: a label of it counts whatever its value (kubeadm leaves it empty)."""
    if any(key in labels for key in _CONTROL_PLANE):
        return Role.CONTROL_PLANE
    if any(labels.get(key, "no").lower() not in _NO for key in _DEVICES):
        return Role.DEVICES
    return Role.WORKER
