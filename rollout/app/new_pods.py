"""Looks right before a node's change for pods that arrived since it was planned, or since it was drained.

A drained node's pods move to other nodes, and the plan of those nodes may not expect them. So the pods are counted
again.
"""

from __future__ import annotations

from collections.abc import Callable

from rollout.app.backends import patiently
from rollout.app.ports import Clock, Cluster
from rollout.core.model.plan import Change, LessRoom, PlannedNode
from rollout.core.model.playbook import Busy, PullsInFlight
from rollout.core.model.report import Report
from rollout.core.text.terminal import counted, printable
from rollout.errors import RemoteError
from rollout.kubelet.restarts.consequences import lost_text
from rollout.kubelet.restarts.readmission import rejected_with

# What a node pulls right before its change, and whether the node is asked at all.


MOST_IMAGES = 10
"""Most images that are named: each answer goes into the journal."""


def asks_for_pulls(pulls: PullsInFlight, change: Change) -> bool:
    """Only a restart cancels pulls. If the playbook overrides all pulls at once, the node is not asked."""
    return change.disruption.restarts and pulls != PullsInFlight(0.0, Busy.OVERRIDE)


def images_of(report: Report) -> tuple[str, ...] | None:
    """The images being pulled, the first ten by name; ``None``: the node does not know."""
    said = report.measurement.pulls if report.measurement else None
    if said is None:
        return None
    found = tuple("an unnamed image" if image == _UNNAMED else image for image in said)
    more = len(found) - MOST_IMAGES
    return found if more <= 0 else (*found[:MOST_IMAGES], counted(more, "more image"))


_UNNAMED = "(unnamed)"


ASK_SECONDS = 10.0


def why_not_now(node: PlannedNode, cluster: Cluster, clock: Clock, wait: Callable[[float], None]) -> str:
    """Why the node is not changed now; ``""``: no pod on it would be lost. A missing answer is also a reason."""
    if node.drain is None and node.less_room is None:
        return ""
    try:
        if node.drain is not None:
            return patiently(lambda left: _came_back(cluster, node.name, left), ASK_SECONDS, clock.now, wait)
        less = node.less_room
        return patiently(lambda left: _do_not_fit(cluster, node.name, less, left), ASK_SECONDS, clock.now, wait)
    except RemoteError as error:
        return f"its pods could not be listed: {error.message} [{error.reference}]"


def _came_back(cluster: Cluster, node: str, left: float) -> str:
    there = [pod.name for pod in cluster.leaving(node, left) if not pod.stays]
    if not there:
        return ""
    return f"{counted(len(there), 'pod')} arrived since it was drained, such as {printable(there[0], 200)}"


def _do_not_fit(cluster: Cluster, node: str, less: LessRoom | None, left: float) -> str:
    live, pods = cluster.placed(node, left)
    lost = rejected_with(live, pods, less) if less is not None else ()
    if lost is None:
        return "the API server reports too little about it to know whether its pods would be admitted again"
    by_change = [each for each in lost if each.by_change]
    return f"pods arrived after the plan was made: {lost_text(by_change)}; plan again" if by_change else ""
