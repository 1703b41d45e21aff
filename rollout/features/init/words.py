"""The files of a new project, as texts: an inventory of nodes that were found, a first playbook, ``rollout.toml``."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rollout.core.reading.found_nodes import FoundNode, FoundNodes
from rollout.core.text.nodesets import EVERYTHING, fold, is_name

_PIECE = 500  # names in one nodeset
_LONGEST = 4096  # characters of one nodeset

PLAYBOOK = """\
name: parallel-pulls
settings:
  serializeImagePulls: false
"""


@dataclass(frozen=True, slots=True)
class NewProject:
    """What a project is made of. ``kubeconfig`` and ``ssh_config`` are ``""`` if there is none."""

    cluster: str
    api_server: str
    found: FoundNodes
    kubeconfig: str = ""
    ssh_config: str = ""


def project_texts(project: NewProject) -> dict[str, str]:
    """Each file's text by its path. ``rollout.toml`` is last: with it the folder is a project."""
    keys = (("cluster", project.cluster), ("kubeconfig", project.kubeconfig), ("ssh_config", project.ssh_config))
    return {
        f"inventories/{project.cluster}.yaml": "".join(f"{line}\n" for line in _inventory(project)),
        "playbooks/parallel-pulls.yaml": PLAYBOOK,
        "rollout.toml": "".join(f"{key} = {json.dumps(value)}\n" for key, value in keys if value),
    }


def _inventory(project: NewProject) -> Iterator[str]:
    yield f"cluster: {json.dumps(project.cluster)}"
    yield f"apiServer: {json.dumps(project.api_server)}"
    nodes = sorted(project.found.nodes, key=lambda node: node.name)
    yield "nodes:"
    if any(_attributes(node) for node in nodes):
        yield from (f"  - {{{_pairs([('name', node.name), *_attributes(node)])}}}" for node in nodes)
    else:
        yield from (f"  {json.dumps(text)}: {{}}" for text in _nodesets([node.name for node in nodes]))
    places = {str(place) for node in nodes for place in (node.rack, node.zone) if place}
    groups = {
        name: members
        for name, members in project.found.groups.items()
        if members and is_name(name) and name != EVERYTHING and name not in places
    }
    if groups:
        yield "groups:"
    for name, members in groups.items():
        yield f"  {json.dumps(name)}: {{nodes: {json.dumps(list(_nodesets(members)))}}}"


def _nodesets(names: Sequence[str]) -> Iterator[str]:
    """One nodeset if its text is short; names that do not fold come in pieces, because a nodeset's text is bounded."""
    whole = fold(names)
    return (
        iter([whole])
        if len(whole) <= _LONGEST
        else (fold(names[at : at + _PIECE]) for at in range(0, len(names), _PIECE))
    )


def _attributes(node: FoundNode) -> list[tuple[str, object]]:
    attributes = (
        ("address", node.address),
        ("user", node.user),
        ("port", node.port),
        ("become", node.become),
        ("rack", node.rack),
        ("zone", node.zone),
        ("labels", node.labels),
    )
    return [(key, value) for key, value in attributes if value]


def _pairs(pairs: Sequence[tuple[str, object]]) -> str:
    """JSON values are YAML, and quoted text stays text."""
    return ", ".join(f"{key}: {json.dumps(value)}" for key, value in pairs)
