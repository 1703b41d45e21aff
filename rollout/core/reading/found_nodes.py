"""Nodes from another source, such as the API server, in the shape in which an inventory lists its own."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from typing import Any

from pydantic import ValidationError

from rollout.core.model.areas import AreaKind
from rollout.core.model.frozen import dataclass
from rollout.core.model.live import LiveNode
from rollout.core.reading import label_selectors
from rollout.core.reading.inventory_schema import ListedNode
from rollout.core.reading.node_sources import FromKubernetes
from rollout.core.reading.validation import explain
from rollout.core.text.nodesets import EVERYTHING, fold, is_name
from rollout.core.text.terminal import counted, printable
from rollout.core.text.yaml_source import Entry, Item
from rollout.errors import InputError, Problem

MOST_PROBLEMS = 20
_PIECE = 500
_DIGITS = re.compile(r"(\d+)")


@dataclass(frozen=True, slots=True)
class FoundNode:
    """A node as its source gives it, unchecked. ``None``: the source does not give it."""

    name: str
    address: object = None
    rack: object = None
    zone: object = None
    labels: object = None
    user: object = None
    port: object = None
    registry: object = None
    become: object = None


@dataclass(frozen=True, slots=True)
class FoundNodes:
    """``groups`` contains the nodes of each of the source's groups; ``where`` is the source's name for messages.

    ``machines`` is node → machine-id, as far as the source reports it. ``left_out``: what the source has and was not chosen.
    """

    where: str
    nodes: tuple[FoundNode, ...]
    groups: Mapping[str, Sequence[str]] = field(default_factory=dict)
    machines: Mapping[str, str] = field(default_factory=dict)
    left_out: frozenset[str] = frozenset()


def refuse(problems: Sequence[Problem]) -> None:
    """Raise the problems, if any; at most ``MOST_PROBLEMS`` in full, the others as a count."""
    if problems:
        more = len(problems) - MOST_PROBLEMS
        rest = (Problem("more-mistakes", f"… and {counted(more, 'more mistake')}"),) if more > 0 else ()
        raise InputError((*problems[:MOST_PROBLEMS], *rest))


def listed(found: FoundNodes, item: Item) -> tuple[Item, dict[str, Item]]:
    """The nodes as a list of an inventory file, and the groups as its ``groups``; all of it at the place of ``item``.

    Raises ``InputError`` that names the nodes with mistakes. Nodes are sorted by name, with the numbers in it as numbers,
    whatever the source's order is. A group is left out if its name is not allowed here.
    """
    written = [_written(node) for node in sorted(found.nodes, key=lambda node: _natural(node.name))]
    if not written:
        refuse([Problem("no-nodes", f"{found.where}: there are no nodes in it")])
    refuse([problem for node in written for problem in _problems(found.where, node)])
    nodes = _item([*written], item)
    told = {str(node[key]) for node in written for key in AreaKind if key in node}
    groups = {
        name: _item({"nodes": [fold(part) for part in _pieces(members)]}, item)
        for name, members in found.groups.items()
        if members and is_name(name) and name != EVERYTHING and name not in told
    }
    return nodes, groups


def _pieces(names: Sequence[str]) -> Iterator[Sequence[str]]:
    """Names in pieces: names that do not fold make long texts, and a nodeset's text is bounded."""
    return (names[at : at + _PIECE] for at in range(0, len(names), _PIECE))


def _natural(name: str) -> list[tuple[int, int, str]]:
    return [(1, int(part), "") if part.isdecimal() else (0, 0, part) for part in _DIGITS.split(name)]


def _written(node: FoundNode) -> dict[str, Any]:
    attributes = {
        "name": node.name,
        "address": node.address,
        "rack": node.rack,
        "zone": node.zone,
        "labels": node.labels,
        "user": node.user,
        "port": node.port,
        "registry": node.registry,
        "become": node.become,
    }
    return {key: value for key, value in attributes.items() if value is not None}


def _problems(where: str, node: dict[str, Any]) -> Iterator[Problem]:
    try:
        ListedNode.model_validate(node)
    except ValidationError as error:
        for details in error.errors(include_url=False):
            reference, message, hint = explain(details, ListedNode)
            if reference == "bad-name" and details["loc"][0] in set(AreaKind):
                message = f"its {details['loc'][0]} {message}"  # it has no place in a file that would show this
            yield Problem(reference, f"{where}: {printable(str(node['name']), 60)}: {message}", hint=hint)


def _item(value: Any, place: Item) -> Item:
    if isinstance(value, dict):
        entries = {key: Entry(_item(inner, place), place.line, place.column) for key, inner in value.items()}
        return Item(entries, place.line, place.column)
    inside = [_item(inner, place) for inner in value] if isinstance(value, list) else value
    return Item(inside, place.line, place.column)


def nowhere(where: str, kind: AreaKind, text: str, nodes: Sequence[FoundNode]) -> tuple[Problem, ...]:
    """A problem if no node has the name that was given for racks (or zones): a typing mistake, not a fleet without racks."""
    if any(kind in _written(node) for node in nodes):
        return ()
    message = f"{where}: no node has a {kind}: none has `{printable(text, 60)}`"
    return (Problem(f"no-{kind}", message),)


WHERE = "nodes from the Kubernetes API"


def nodes_from_api(live: Iterable[LiveNode], source: FromKubernetes) -> FoundNodes:
    """The Nodes that the selector matches. Raises ``InputError`` if there are none, or if one has no such address."""
    nodes = tuple(live)
    terms = label_selectors.parse(source.selector)
    chosen = [node for node in nodes if label_selectors.matches(terms, node.labels)]
    if not chosen:
        message = f"none of {counted(len(nodes), 'node')} matches `{source.selector}`" if nodes else "it has no nodes"
        refuse([Problem("no-nodes", f"{WHERE}: {printable(message, 200)}")])
    refuse([problem for node in chosen for problem in _without_address(node, source.address)])
    found = tuple(_found(node, source) for node in chosen)
    refuse(nowhere(WHERE, AreaKind.RACK, source.rack_label, found) if source.rack_label else ())
    machines = {node.name: node.machine_id for node in chosen if node.machine_id}
    left_out = frozenset(node.name for node in nodes).difference(node.name for node in chosen)
    return FoundNodes(WHERE, found, machines=machines, left_out=left_out)


def _without_address(node: LiveNode, kind: str) -> tuple[Problem, ...]:
    if any(address_kind == kind for address_kind, _ in node.addresses):
        return ()
    kinds = ", ".join(dict.fromkeys(address_kind for address_kind, _ in node.addresses)) or "none"
    message = f"{WHERE}: {printable(node.name, 60)} has no {kind} among its addresses ({printable(kinds, 80)})"
    return (Problem("no-address", message, hint="choose another with `address:`"),)


def _found(node: LiveNode, source: FromKubernetes) -> FoundNode:
    # Version and runtime under the names that the shipped inventories use.
    runtime, _, version = node.runtime.partition("://")
    versions = {"kubeletVersion": node.kubelet_version, "containerRuntime": runtime, "containerRuntimeVersion": version}
    return FoundNode(
        name=node.name,
        address=next(address for kind, address in node.addresses if kind == source.address),
        rack=(node.labels.get(source.rack_label) or None) if source.rack_label else None,  # a label may be empty
        zone=node.labels.get(source.zone_label) or None,
        labels={**node.labels, **{key: value for key, value in versions.items() if value}},
        registry=node.labels.get(source.registry_label) if source.registry_label else None,
    )
