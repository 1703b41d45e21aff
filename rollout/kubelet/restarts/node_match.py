"""Whether a node still is where a pod may be: labels by nodeSelector and required node affinity, and ``NoExecute`` taints.

As component-helpers' ``scheduling/corev1/nodeaffinity`` and ``helpers.go`` have it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from rollout.core.model.live import LiveNode
from rollout.core.model.placed import PlacedPod, Requirement, Toleration

CHECKS_TAINTS = 24
"""The first minor whose kubelet looks at taints when it admits a pod (kubernetes #101218; not in 1.23, in 1.24)."""


def selected(pod: PlacedPod, node: LiveNode) -> bool:
    """Do the node's labels satisfy the pod?"""
    if any(node.labels.get(key) != value for key, value in pod.selector):
        return False
    return pod.terms is None or any(_term(term, node) for term in pod.terms)


def tolerated(pod: PlacedPod, node: LiveNode) -> bool:
    """Does the pod tolerate every ``NoExecute`` taint of the node?"""
    harsh = [taint.removesuffix(":NoExecute") for taint in node.taints if taint.endswith(":NoExecute")]
    return all(any(_tolerates(each, taint) for each in pod.tolerations) for taint in harsh)


def _term(term: tuple[Requirement, ...], node: LiveNode) -> bool:
    """An empty term matches nothing."""
    return bool(term) and all(_holds(each, node) for each in term)


def _holds(wanted: Requirement, node: LiveNode) -> bool:
    labels: Mapping[str, str] = {"metadata.name": node.name} if wanted.of_field else node.labels
    found = labels.get(wanted.key)
    test = _OPERATORS.get(wanted.operator)
    return test is not None and test(found, wanted.values)


def _compared(found: str | None, values: tuple[str, ...], test: Callable[[int, int], bool]) -> bool:
    try:
        return found is not None and len(values) == 1 and test(int(found), int(values[0]))
    except ValueError:
        return False


_OPERATORS: Mapping[str, Callable[[str | None, tuple[str, ...]], bool]] = {
    "In": lambda found, values: found in values,
    "NotIn": lambda found, values: found not in values,
    "Exists": lambda found, _values: found is not None,
    "DoesNotExist": lambda found, _values: found is None,
    "Gt": lambda found, values: _compared(found, values, int.__gt__),
    "Lt": lambda found, values: _compared(found, values, int.__lt__),
}


def _tolerates(toleration: Toleration, taint: str) -> bool:
    key, _, value = taint.partition("=")
    if toleration.effect not in ("", "NoExecute") or toleration.key not in ("", key):
        return False
    if toleration.operator == "Exists":
        return True
    return toleration.key == key and toleration.value == value
