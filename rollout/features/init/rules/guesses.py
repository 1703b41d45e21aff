"""Guesses about the Nodes of an API server: which label is the rack and the zone. Each guess is reported."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from rollout.core.model.live import LiveNode
from rollout.core.reading.found_nodes import FoundNodes, nodes_from_api
from rollout.core.reading.node_sources import FromKubernetes
from rollout.core.text.nodesets import fold, is_name
from rollout.core.text.terminal import counted, printable

_ZONES = ("topology.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/zone")
_RACK = re.compile(r"(?:^|[/._-])rack$", re.IGNORECASE)
_ADDRESSES = ("InternalIP", "Hostname", "ExternalIP", "InternalDNS", "ExternalDNS")
_NOISE = re.compile(r"(?:beta\.kubernetes\.io/|kubernetes\.io/hostname$)")
_ZEROS = re.compile(r"(?<![0-9])0+(?=[0-9])")
"""A spreadsheet removes them, and people leave them out."""
_VERSION = re.compile(r"v1\.(\d{1,3})\.(\d{1,3})")


SshLines = tuple[tuple[str, str], ...]
"""Keywords of ssh_config with their values."""


@dataclass(frozen=True, slots=True)
class SourceNote:
    """A guess from a source of nodes, or else what the source does not show."""

    text: str
    is_guess: bool = True

    def __str__(self) -> str:
        return f"guessed {self.text}" if self.is_guess else self.text


def not_known(what: str, why: str) -> SourceNote:
    return SourceNote(f"{what}: not known, {why}", is_guess=False)


@dataclass(frozen=True, slots=True)
class Guessed:
    """Nodes, and what was noted of them. ``api_server`` is ``""`` if the source does not show a version.

    ``told``: what was left out or dropped. ``labels`` are of groups. ``ways`` is node → what ssh_config must set for it beyond
    address, user and port, and ``bastions`` the same for the hosts on the way.
    """

    found: FoundNodes
    notes: tuple[SourceNote, ...]
    api_server: str = ""
    told: tuple[str, ...] = ()
    labels: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    ways: Mapping[str, SshLines] = field(default_factory=dict)
    bastions: Mapping[str, SshLines] = field(default_factory=dict)


def from_api(live: Sequence[LiveNode]) -> Guessed:
    """The Nodes of an API server. A Node without a usable address gets its name as address."""
    notes: list[SourceNote] = []
    kinds = Counter(kind for node in live for kind in {kind for kind, _ in node.addresses})
    address = max(_ADDRESSES, key=lambda kind: kinds[kind])
    bare = [node.name for node in live if address not in dict(node.addresses)]
    if bare:
        notes.append(SourceNote(f"address: the name, for {counted(len(bare), 'Node')} without {address}: {some(bare)}"))
    rack = _label(live, "rack", [key for node in live for key in node.labels if _RACK.search(key)], notes)
    zone = _label(live, "zone", [key for node in live for key in node.labels if key in _ZONES], notes)
    source = FromKubernetes.model_validate(
        {"address": address, "rackLabel": rack or None, "zoneLabel": zone or _ZONES[0]}
    )
    nodes = placed(nodes_from_api([_reachable(node, address) for node in live], source), notes)
    version = _newest(node.kubelet_version for node in live)
    if version:
        notes.append(SourceNote(f"apiServer: {version}, the newest kubelet's version"))
    return Guessed(nodes, tuple(notes), version)


def _reachable(node: LiveNode, address: str) -> LiveNode:
    labels = {key: value for key, value in node.labels.items() if not _NOISE.match(key)}
    usable = address in dict(node.addresses)
    return replace(node, labels=labels, addresses=node.addresses if usable else ((address, node.name),))


def _label(live: Sequence[LiveNode], what: str, candidates: Iterable[str], notes: list[SourceNote]) -> str:
    """The label that most nodes have, if its values are names."""
    for key, count in Counter(candidates).most_common():
        if all(is_name(node.labels[key]) for node in live if key in node.labels):
            notes.append(SourceNote(f"{what}: label {printable(key, 80)}, on {count} of {counted(len(live), 'Node')}"))
            return key
    notes.append(not_known(what, "no label shows it"))
    return ""


def _newest(versions: Iterable[str]) -> str:
    versions_seen = [(int(each[1]), int(each[2])) for each in map(_VERSION.match, versions) if each]
    return "v1.{}.{}".format(*max(versions_seen)) if versions_seen else ""


def placed(found: FoundNodes, notes: list[SourceNote]) -> FoundNodes:
    """An inventory has a rack for every node or for none, and zones likewise. Their names differ: both are nodesets."""
    racks = _filled("rack", {node.name: node.rack for node in found.nodes}, notes)
    zones = _filled("zone", {node.name: node.zone for node in found.nodes}, notes)
    nodes = (replace(node, rack=racks[node.name], zone=zones[node.name]) for node in found.nodes)
    return replace(found, nodes=tuple(nodes))


def _filled(what: str, places: Mapping[str, object], notes: list[SourceNote]) -> Mapping[str, object]:
    """Each node's place; ``rackless`` or ``zoneless`` for a node without one, if others have one."""
    alike: dict[str, dict[str, None]] = {}
    for place in places.values():
        if place is not None:
            alike.setdefault(_ZEROS.sub("", str(place)).lower(), {})[str(place)] = None
    notes += [
        SourceNote(
            f"{what}: {printable(', '.join(names), 120)} are {len(names)} {what}s; correct the source if they are one"
        )
        for names in alike.values()
        if len(names) > 1
    ]
    without = [name for name, place in places.items() if place is None]
    if not 0 < len(without) < len(places):
        return places
    notes.append(SourceNote(f"{what}: `{what}less` for {counted(len(without), 'node')} without one: {some(without)}"))
    return {name: f"{what}less" if place is None else place for name, place in places.items()}


def some(names: Iterable[str]) -> str:
    """Names as a short nodeset."""
    valid = [name for name in names if is_name(name)]
    return printable(fold(valid), 120)
