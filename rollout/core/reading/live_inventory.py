"""Node objects as an inventory's nodes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from rollout.core.model.areas import AreaKind
from rollout.core.model.live import LiveNode
from rollout.core.reading import label_selectors
from rollout.core.reading.found_nodes import FoundNode, FoundNodes, nowhere, refuse
from rollout.core.reading.node_sources import FromKubernetes
from rollout.core.text.terminal import counted, printable
from rollout.errors import Problem

WHERE = "nodes from the Kubernetes API"


def found_nodes(live: Iterable[LiveNode], source: FromKubernetes) -> FoundNodes:
    """The Nodes that the selector matches. Raises ``InputError`` if there are none, or if one has no such address."""
    nodes = tuple(live)
    terms = label_selectors.parse(source.selector)
    chosen = [node for node in nodes if label_selectors.matches(terms, node.labels)]
    if not chosen:
        said = f"none of {counted(len(nodes), 'node')} matches `{source.selector}`" if nodes else "it has no nodes"
        refuse([Problem("no-nodes", f"{WHERE}: {printable(said, 200)}")])
    refuse([problem for node in chosen for problem in _without_address(node, source.address)])
    found = tuple(_found(node, source) for node in chosen)
    refuse(nowhere(WHERE, AreaKind.RACK, source.rack_label, found) if source.rack_label else ())
    return FoundNodes(WHERE, found)


def _without_address(node: LiveNode, kind: str) -> tuple[Problem, ...]:
    if any(said == kind for said, _ in node.addresses):
        return ()
    kinds = ", ".join(dict.fromkeys(said for said, _ in node.addresses)) or "none"
    message = f"{WHERE}: {printable(node.name, 60)} has no {kind} among its addresses ({printable(kinds, 80)})"
    return (Problem("no-address", message, hint="choose another with `address:`"),)


def _found(node: LiveNode, source: FromKubernetes) -> FoundNode:
    return FoundNode(
        name=node.name,
        address=next(address for kind, address in node.addresses if kind == source.address),
        rack=node.labels.get(source.rack_label) if source.rack_label else None,
        zone=node.labels.get(source.zone_label),
        labels={**node.labels, **_facts(node)},
        registry=node.labels.get(source.registry_label) if source.registry_label else None,
    )


def _facts(node: LiveNode) -> Mapping[str, str]:
    """Version and runtime under the names that the shipped inventories use."""
    runtime, _, version = node.runtime.partition("://")
    said = {"kubeletVersion": node.kubelet_version, "containerRuntime": runtime, "containerRuntimeVersion": version}
    return {key: value for key, value in said.items() if value}
