"""``--node-labels``: in the namespaces of Kubernetes only what a kubelet may say about itself.

Source: ``ValidateKubeletFlags`` (``cmd/kubelet/app/options/options.go``) and ``pkg/kubelet/apis/well_known_labels.go``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

_OURS = ("kubernetes.io", "k8s.io")
_NAMESPACES = ("kubelet.kubernetes.io", "node.kubernetes.io")
_LABELS = (
    "beta.kubernetes.io/arch",
    "beta.kubernetes.io/instance-type",
    "beta.kubernetes.io/os",
    "failure-domain.beta.kubernetes.io/region",
    "failure-domain.beta.kubernetes.io/zone",
    "kubernetes.io/arch",
    "kubernetes.io/hostname",
    "kubernetes.io/os",
    "node.kubernetes.io/instance-type",
    "topology.kubernetes.io/region",
    "topology.kubernetes.io/zone",
)
_CHECKED_SINCE = 25
_NAME = re.compile(r"[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?", re.ASCII)
_PREFIX = re.compile(r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?(?:\.[a-z0-9](?:[-a-z0-9]*[a-z0-9])?)*", re.ASCII)
_LONGEST_PREFIX = 253


def mistake(labels: Mapping[str, str], minor: int) -> str:
    """What the kubelet says of its labels, or ``""``."""
    unknown = sorted(key for key in labels if _of_kubernetes(key) and not _allowed(key))
    if unknown:
        return (
            f"unknown 'kubernetes.io' or 'k8s.io' labels specified with --node-labels: [{' '.join(unknown)}]\n"
            "--node-labels in the 'kubernetes.io' namespace must begin with an allowed prefix "
            f"({', '.join(_NAMESPACES)}) or be in the specifically allowed set ({', '.join(_LABELS)})"
        )
    if minor < _CHECKED_SINCE:
        return ""
    bad = [key for key in labels if not _is_qualified(key)]
    bad += [value for value in labels.values() if value and not _NAME.fullmatch(value)]
    return f"invalid node labels: {'; '.join(repr(text) for text in bad)}" if bad else ""


def _namespace(key: str) -> str:
    namespace, separated, _ = key.partition("/")
    return namespace if separated else ""


def _within(namespace: str, parents: tuple[str, ...]) -> bool:
    return any(namespace == parent or namespace.endswith("." + parent) for parent in parents)


def _of_kubernetes(key: str) -> bool:
    return _within(_namespace(key), _OURS)


def _allowed(key: str) -> bool:
    return key in _LABELS or _within(_namespace(key), _NAMESPACES)


def _is_qualified(key: str) -> bool:
    prefix, separated, name = key.rpartition("/")
    if separated and not (_PREFIX.fullmatch(prefix) and len(prefix) <= _LONGEST_PREFIX):
        return False
    return bool(_NAME.fullmatch(name))
