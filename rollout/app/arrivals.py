"""Looks right before a node's change for pods that arrived since it was planned, or since it was drained.

A drained node's pods move to other nodes, and the plan of those nodes may not expect them. So the pods are
counted again.
"""

from __future__ import annotations

from collections.abc import Callable

from rollout.app.node_drains import NodeDrains
from rollout.app.patience import patiently
from rollout.app.ports import Clock, Cluster
from rollout.core.model.plan import LessRoom, PlannedNode
from rollout.errors import RemoteError
from rollout.kubelet.restarts.readmission import UNHEALTHY, lost_text, rejected_with

ASK_SECONDS = 10.0
"""Seconds for one request."""


def why_not_now(
    node: PlannedNode, drains: NodeDrains, cluster: Cluster, clock: Clock, wait: Callable[[float], None]
) -> str:
    """Why the node is not changed now; ``""``: no pod on it would be lost. A missing answer is also a reason."""
    drained, less = node.drain is not None, node.less_room

    def look(seconds_left: float) -> str:
        if drained:
            return drains.came_back(node.name, seconds_left)
        return _do_not_fit(cluster, node.name, less, seconds_left) if less is not None else ""

    if not drained and less is None:
        return ""
    try:
        return patiently(look, ASK_SECONDS, clock.now, wait)
    except RemoteError as error:
        return f"its pods could not be listed: {error.message} [{error.reference}]"


def _do_not_fit(cluster: Cluster, node: str, less: LessRoom, seconds_left: float) -> str:
    live, pods = cluster.placed(node, seconds_left)
    lost = rejected_with(live, pods, less)
    if lost is None:
        return "the API server reports too little about it to know whether its pods would be admitted again"
    arrived = [each for each in lost if each.by_change or each.reason == UNHEALTHY]
    return f"pods arrived after the plan was made: {lost_text(arrived)}; plan again" if arrived else ""
