"""The files of a new project, as texts: an inventory of nodes that were found, a first playbook, ``rollout.toml``."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass

from rollout.core.reading.found_nodes import FoundNode
from rollout.core.text.nodesets import EVERYTHING, fold, is_name
from rollout.features.init.rules.guesses import Guessed
from rollout.kubelet.configuration.yaml_words import resolve

_PIECE = 500  # names in one nodeset
_LONGEST = 4096  # characters of one nodeset
LONGEST_KEY = 900  # YAML takes keys of at most 1,024 characters in one line
_FEW = 50
_TERM = re.compile(r"(?:[^\[\],]|\[[^\[\]]*\])+")
_DIGITS = re.compile(r"(\d+)")

PLAYBOOK = """\
name: parallel-pulls
settings:
  serializeImagePulls: false
"""
IGNORED = """\
# State of this machine, and files with the bytes of nodes' files.
.rollout/
*.plan.json
*.snapshot.json
"""


@dataclass(frozen=True, slots=True)
class NewProject:
    """What a project is made of. ``kubeconfig`` and ``ssh_config`` are ``""`` if there is none."""

    cluster: str
    api_server: str
    guessed: Guessed
    kubeconfig: str = ""
    ssh_config: str = ""


def project_texts(project: NewProject) -> dict[str, str]:
    """Each file's text by its path. ``rollout.toml`` is last: with it the folder is a project."""
    keys = (("cluster", project.cluster), ("kubeconfig", project.kubeconfig), ("ssh_config", project.ssh_config))
    return {
        inventory_path(project.cluster): "".join(f"{line}\n" for line in _inventory(project)),
        "playbooks/parallel-pulls.yaml": PLAYBOOK,
        ".gitignore": IGNORED,
        "rollout.toml": "".join(f"{key} = {json.dumps(value)}\n" for key, value in keys if value),
    }


def inventory_path(cluster: str) -> str:
    """In the project's folder."""
    return f"inventories/{cluster}.yaml"


def ssh_config_path(cluster: str) -> str:
    """Beside the inventory."""
    return f"inventories/{cluster}.ssh_config"


SSH_CONFIGS = ssh_config_path("*")
"""Those of all clusters: what ``rollout.toml`` names, so that a further cluster needs no other line there."""


def _inventory(project: NewProject) -> Iterator[str]:
    found = project.guessed.found
    nodes = sorted(found.nodes, key=lambda node: natural(node.name))
    yield f"cluster: {json.dumps(project.cluster)}"
    yield f"apiServer: {json.dumps(project.api_server)}"
    shared = [(key, value) for key in ("user", "port") if (value := _shared(getattr(node, key) for node in nodes))]
    if shared:
        yield f"ssh: {{{_pairs(shared)}}}"
    racks, zones = _by(nodes, "rack"), _zones(nodes)
    left = {"user", "port", "zone"} - {key for key, _ in shared} - ({"zone"} if zones else set())
    yield "nodes:"
    blocks: dict[str, list[str]] = {}
    for node in nodes:
        blocks.setdefault(_pairs(attributes(node, left)), []).append(node.name)
    yield from (f"  {json.dumps(text)}: {{{pairs}}}" for pairs, names in blocks.items() for text in keys_of(names))
    for title, places in (("racks", racks), ("zones", zones)):
        if places:
            yield f"{title}:"
            yield from (f"  {json.dumps(name)}: {_listed(members)}" for name, members in places.items())
    lines = group_lines(project.guessed, {str(place) for node in nodes for place in (node.rack, node.zone) if place})
    if lines:
        yield "groups:"
        yield from (f"  {line}" for line in lines.values())


def group_lines(guessed: Guessed, taken: Set[str]) -> Mapping[str, str]:
    """Group → its entry. Groups without a usable name, or with one that is ``taken``, have none."""
    lines: dict[str, str] = {}
    for name, members in guessed.found.groups.items():
        if members and is_name(name) and name != EVERYTHING and name not in taken:
            labels = guessed.labels.get(name)
            more = f", labels: {{{_pairs([*labels.items()])}}}" if labels else ""
            lines[name] = f"{json.dumps(name)}: {{nodes: {_listed(members)}{more}}}"
    return lines


def _shared(values: Iterable[object]) -> object:
    """The value of all nodes, if they have the same."""
    found = {json.dumps(value): value for value in values}
    return next(iter(found.values())) if len(found) == 1 else None


def _by(nodes: Sequence[FoundNode], key: str) -> dict[str, list[str]]:
    places: dict[str, list[str]] = {}
    for node in nodes:
        if (place := getattr(node, key)) is not None:
            places.setdefault(str(place), []).append(node.name)
    return dict(sorted(places.items(), key=lambda each: natural(each[0])))


def _zones(nodes: Sequence[FoundNode]) -> dict[str, list[str]]:
    """Zone → its racks; empty if there are no racks, or if one is in two zones."""
    zone_of: dict[str, set[object]] = {}
    for node in nodes:
        zone_of.setdefault(str(node.rack), set()).add(node.zone)
    if any(node.rack is None or node.zone is None for node in nodes) or any(len(each) > 1 for each in zone_of.values()):
        return {}
    zones: dict[str, list[str]] = {}
    for rack, each in sorted(zone_of.items(), key=lambda pair: natural(pair[0])):
        zones.setdefault(str(next(iter(each))), []).append(rack)
    return dict(sorted(zones.items(), key=lambda pair: natural(pair[0])))


def natural(name: str) -> list[tuple[int, int, str]]:
    """The order of names with the numbers in them as numbers."""
    return [(1, int(part), "") if part.isdecimal() else (0, 0, part) for part in _DIGITS.split(name)]


def _listed(names: Sequence[str]) -> str:
    texts = [*nodesets(names)]
    return json.dumps(texts[0] if len(texts) == 1 else texts)


def nodesets(names: Sequence[str]) -> Iterator[str]:
    """One nodeset if its text is short; names that do not fold come in pieces, because a nodeset's text is bounded."""
    whole = fold(names)
    return (
        iter([whole])
        if len(whole) <= _LONGEST
        else (fold(names[at : at + _PIECE]) for at in range(0, len(names), _PIECE))
    )


def keys_of(names: Sequence[str]) -> Iterator[str]:
    """Nodesets that can be keys: one for each kind of name, unless there are many kinds."""
    terms = [term for text in nodesets(names) for term in _TERM.findall(text)]
    line = ""
    for term in terms:
        if line and (len(terms) <= _FEW or len(line) + len(term) > LONGEST_KEY):
            yield line
            line = ""
        line = f"{line},{term}" if line else term
    if line:
        yield line


def attributes(node: FoundNode, keys: Iterable[str]) -> list[tuple[str, object]]:
    """Address and labels, and those of ``keys``. A name inside its address is ``{name}``: nodes that have no other difference are one line."""
    wanted = {"address", "become", "labels", *keys}
    address = node.address
    if isinstance(address, str) and (address == node.name or address.startswith(f"{node.name}.")):
        address = f"{{name}}{address[len(node.name) :]}"
    values = (
        ("address", None if address == "{name}" else address),
        ("user", node.user),
        ("port", node.port),
        ("become", node.become),
        ("rack", node.rack),
        ("zone", node.zone),
        ("labels", node.labels),
    )
    return [(key, value) for key, value in values if value and key in wanted]


def _pairs(pairs: Sequence[tuple[str, object]]) -> str:
    """JSON values are YAML, and quoted text stays text."""
    return ", ".join(f"{_key(key)}: {json.dumps(value)}" for key, value in pairs)


def _key(key: str) -> str:
    """``on``, ``no`` or ``null`` as it stands is no text in YAML."""
    return key if key.isalpha() and resolve("", key) == key else json.dumps(key)
