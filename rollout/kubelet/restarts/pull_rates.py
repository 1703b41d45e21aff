"""The limit of one kubelet on its pulls from registries, by its values in force.

Source: pkg/kubelet/images/image_manager.go, puller.go and helpers.go. An empty token bucket refuses at once
(``TryAccept``): a pull over ``registryPullQPS`` fails, it does not wait.
"""

from __future__ import annotations

from collections.abc import Mapping

from rollout.core.model.inventory import Node
from rollout.core.model.plan import PullRate
from rollout.core.model.settings import Value
from rollout.core.model.snapshot import Snapshot
from rollout.kubelet import fields, versions
from rollout.kubelet.in_force import number
from rollout.kubelet.node import sources
from rollout.kubelet.node.layout import LayoutError

DEFAULT_QPS = 5
DEFAULT_BURST = 10


def rate_of(effective: Mapping[str, Value]) -> PullRate | None:
    """``effective`` is field → value in force; ``None``: it is empty, because the kubelet would not start."""
    if not effective:
        return None
    serial = effective.get("serializeImagePulls", True) is not False
    qps = number(effective, "registryPullQPS", DEFAULT_QPS)
    burst = number(effective, "registryBurst", DEFAULT_BURST)
    parallel = effective.get("maxParallelImagePulls")
    return PullRate(
        parallel=1 if serial else parallel if isinstance(parallel, int) and parallel > 0 else None,
        qps=qps if qps > 0 else None,
        burst=burst,
    )


def rate_now(snapshot: Snapshot, node: Node, assumed: int | None = None) -> PullRate | None:
    """A node's limit on pulls today; ``None``: its version or its files are not understood."""
    version = versions.parse(snapshot.kubelet_version)
    if version is None:
        return None
    taken = versions.taken_for(snapshot.kubelet_version, assumed)
    if taken.minor not in fields.known_minors():
        return None
    try:
        return rate_of(sources.find(snapshot, taken, node).outcome.effective)
    except LayoutError:
        return None


def newly_failing(before: Mapping[str, Value], after: Mapping[str, Value]) -> str:
    """Why pulls can fail by the limit after a change; ``""``: they cannot, or the limit is the same as before."""
    was, will = rate_of(before), rate_of(after)
    return would_fail(will) if will is not None and will != was else ""


def would_fail(rate: PullRate) -> str:
    """Why pulls of one node may fail by its own limit, or ``""``."""
    if rate.qps is None or (rate.parallel is not None and rate.parallel <= rate.burst):
        return ""
    many = "any number of pulls" if rate.parallel is None else f"{rate.parallel} pulls"
    return (
        f"{many} may start at once on a node, and registryBurst is {rate.burst}: pulls beyond it and {rate.qps} a second"
        " fail at once with `pull QPS exceeded`; they do not wait"
    )
