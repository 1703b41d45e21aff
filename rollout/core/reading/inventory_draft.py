"""An inventory file that may take its nodes from another source: read it, find the nodes (not here), then join both.

    nodesFrom: {ansible: {path: hosts, rack: rack_name, zoneGroups: zone_, labels: node_labels}}
    nodesFrom: {kubernetes: {kubeconfig: ~/.kube/config, selector: pool=batch, rackLabel: example.net/rack}}

in the place of ``nodes``. Everything else in the file is unchanged; groups of the source come before the file's own.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from hashlib import sha256

from rollout.core.model.frozen import dataclass
from rollout.core.model.inventory import Endpoints, Inventory, Node
from rollout.core.reading.found_nodes import FoundNodes, listed
from rollout.core.reading.inventory_file import build
from rollout.core.reading.inventory_schema import ElsewhereInventory
from rollout.core.reading.node_sources import FromAnsible, FromKubernetes, NodesFrom
from rollout.core.reading.validation import Mistakes, read_document, validate
from rollout.core.text.yaml_source import Entry, Item


@dataclass(frozen=True, slots=True)
class InventoryDraft:
    """An inventory file that has been read. ``source`` is ``None`` where the file lists its nodes itself."""

    root: Item
    mistakes: Mistakes
    digest: str
    source: FromAnsible | FromKubernetes | None


def draft_of(text: str, file: str) -> InventoryDraft:
    """``text`` is the file's, ``file`` its name for messages. Raises ``InputError`` for mistakes in a file with
    nodes from another source, before that source is queried.
    """
    root, mistakes = read_document(text, file)
    digest = sha256(text.encode()).hexdigest()
    entry = root.entries().get("nodesFrom")
    if entry is None:
        return InventoryDraft(root, mistakes, digest, None)
    if "nodes" in root.entries():
        mistakes.add(
            entry, "two-sources", "nodes are listed here (`nodes`) or come from elsewhere (`nodesFrom`), not both"
        )
        mistakes.raise_any()
    written, _ = validate(ElsewhereInventory, root, mistakes)
    mistakes.raise_any()
    return InventoryDraft(root, mistakes, digest, _source(written.nodes_from, root, entry.item, mistakes))


def _source(source: NodesFrom, root: Item, place: Item, mistakes: Mistakes) -> FromAnsible | FromKubernetes | None:
    """The source, with kubeconfig and context filled in from ``endpoints``: a context belongs to its kubeconfig."""
    if source.kubernetes is None or source.kubernetes.kubeconfig is not None:
        return source.ansible or source.kubernetes
    entry = root.entries().get("endpoints")
    endpoints = {key: inner.item.plain() for key, inner in entry.item.entries().items()} if entry else {}
    if not endpoints.get("kubeconfig"):
        mistakes.add(place, "no-kubeconfig", "neither `nodesFrom` nor `endpoints` has a `kubeconfig`")
        mistakes.raise_any()
    filled = {"kubeconfig": endpoints["kubeconfig"], "context": source.kubernetes.context or endpoints.get("context")}
    return source.kubernetes.model_copy(update=filled)


def finish(draft: InventoryDraft, found: FoundNodes | None = None) -> Inventory:
    """The inventory; call this once. ``found`` are the nodes of ``draft.source``. Raises ``InputError`` with every mistake.

    The digest of an inventory with nodes from another source covers the file and the nodes' addresses, places and
    registries. It tells two states of a fleet apart; what a plan binds is in ``core.plans.fleet_comparison``.
    """
    if found is None:
        return build(draft.root, draft.mistakes, draft.digest)
    entries = draft.root.entries()
    place = entries.pop("nodesFrom").item
    nodes, groups = listed(found, place)
    entries["nodes"] = Entry(nodes, place.line, place.column)
    _add_groups(draft, groups, place)
    inventory = build(draft.root, draft.mistakes, draft.digest)
    return replace(
        inventory,
        digest=_digest(draft.digest, inventory.nodes),
        machines=found.machines,
        left_out=found.left_out,
        endpoints=_endpoints(inventory.endpoints, draft.source),
    )


def _endpoints(endpoints: Endpoints, source: FromAnsible | FromKubernetes | None) -> Endpoints:
    """The inventory's endpoints; without a kubeconfig, those of the API server that is the source of the nodes."""
    if endpoints.kubeconfig or not isinstance(source, FromKubernetes):
        return endpoints
    return replace(endpoints, kubeconfig=source.kubeconfig or "", context=source.context or "")


def _add_groups(draft: InventoryDraft, found: Mapping[str, Item], place: Item) -> None:
    """The source's groups first, so that the file's own groups can refer to them and win over them."""
    entry = draft.root.entries().get("groups")
    own = entry.item.entries() if entry else {}
    for name in own.keys() & found.keys():
        message = f"`@{name}` is already a group of the nodes' source"
        draft.mistakes.add(own[name], "name-taken", message, 'rename this one; it may use `nodes: "@…"`')
    groups = {name: Entry(item, place.line, place.column) for name, item in found.items()}
    if groups or own:
        where = entry or Entry(place, place.line, place.column)
        draft.root.entries()["groups"] = Entry(
            Item({**groups, **own}, place.line, place.column), where.line, where.column
        )


def _digest(file: str, nodes: Mapping[str, Node]) -> str:
    reached = [
        [node.name, node.address, node.rack, node.zone, node.user, node.port, node.registry, sorted(node.groups)]
        for node in nodes.values()
    ]
    return sha256(json.dumps([file, reached], ensure_ascii=True).encode()).hexdigest()
