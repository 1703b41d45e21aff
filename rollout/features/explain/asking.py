"""Explains a setting on one node: from the node as it was read, and from what its running kubelet shows."""

from __future__ import annotations

from collections.abc import Sequence

from rollout.app.isolation import Keep, attempt, keep_nothing
from rollout.app.ports import ApiSources
from rollout.core.model.inventory import Inventory, Node
from rollout.core.model.snapshot import FleetSnapshot, Unread
from rollout.core.plans.history import NO_KUBECONFIG
from rollout.errors import InputError, Problem, RemoteError
from rollout.features.explain.rules import OnNode, agrees, on_node
from rollout.features.explain.words.explanation import ConfigzAnswer
from rollout.kubelet import fields, versions
from rollout.kubelet.defects.rows import Defect
from rollout.kubelet.explained.explanation import Explanation
from rollout.kubelet.node import sources
from rollout.kubelet.node.layout import LayoutError
from rollout.kubelet.values import value_at


def explain_on_node(
    node: Node, fleet: FleetSnapshot, explanation: Explanation, keep: Keep = keep_nothing, own: Sequence[Defect] = ()
) -> OnNode:
    """The setting on a node of ``fleet``. ``InputError`` if the node was not read or not understood.

    ``own``: known defects of the project. ``keep`` stores the trace of what rollout fails on.
    """

    def failed(why: str) -> OnNode:
        raise _error("explaining-failed", f"{node.name}: {why}")

    return attempt(node.name, lambda: _on_node(node, fleet, explanation, own), failed, keep)


def _on_node(node: Node, fleet: FleetSnapshot, explanation: Explanation, own: Sequence[Defect]) -> OnNode:
    snapshot = fleet.nodes.get(node.name)
    if snapshot is None:
        raise _error("not-in-snapshot", f"{node.name}: the snapshot does not contain this node")
    if isinstance(snapshot, Unread):
        raise _error(snapshot.reference, f"{node.name}: {snapshot.message}")
    version = versions.parse(snapshot.kubelet_version)
    if version is None or version.minor not in fields.known_minors():
        said = snapshot.kubelet_version
        words = (
            f"rollout does not know kubelets of version {said!r}" if said else "no kubelet on it reports its version"
        )
        raise _error("kubelet-version-unknown", f"{node.name}: {words}")
    try:
        return on_node(sources.find(snapshot, version, node), explanation, own)
    except LayoutError as error:
        raise _error(error.reference, f"{node.name}: {error}") from None


def shown_by(here: OnNode, inventory: Inventory, sources: ApiSources, kubeconfig: str = "") -> ConfigzAnswer:
    """What is in force according to the running kubelet, if a kubeconfig may read it."""
    if not here.field:
        return ConfigzAnswer()
    endpoints = inventory.endpoints
    which = (kubeconfig, "") if kubeconfig else (endpoints.kubeconfig, endpoints.context)
    if not which[0]:
        return ConfigzAnswer(not_asked=NO_KUBECONFIG)
    try:
        shown = sources.configz(*which, here.node)
    except RemoteError as error:
        return ConfigzAnswer(not_asked=f"{error.message} [{error.reference}]")
    return ConfigzAnswer(value_at(shown, here.field), agrees(here, shown))


def _error(reference: str, message: str) -> InputError:
    return InputError((Problem(reference, message),))
