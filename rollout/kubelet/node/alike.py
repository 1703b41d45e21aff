"""Nodes that are alike: 2,000 nodes have only a few versions, units and files.

The values that distinguish one node from another (its name, ids, processes, receipts, room) are removed before something is
computed for all nodes of a kind, so they cannot get into it. What was computed is therefore valid for every node that is alike.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import replace

from rollout.core.model.inventory import Node
from rollout.core.model.snapshot import Measurement, Process, Service, Snapshot, Stale, Token, UnitState
from rollout.core.model.surroundings import Listing, NodeSurroundings
from rollout.kubelet.node import managers
from rollout.kubelet.node.layout import HOSTNAME

_UNIT = ("FragmentPath", "DropInPaths", "NeedDaemonReload", "LoadState", "ActiveState", "UnitFileState", "KillMode")
_FACTS = frozenset({"cgroup", "config-dir-alpha"}) | managers.RENDERED_BY
NOBODY = Node("", "", "", "")
"""The node of the inventory to go with ``kind_only``."""


def kind_of(snapshot: Snapshot) -> Hashable:
    """The same for nodes that are alike: everything of them that a change depends on."""
    measured = snapshot.measurement
    return (
        snapshot.kubelet_version,
        frozenset(snapshot.runtimes.items()),
        frozenset(snapshot.files.values()),
        frozenset(_facts(snapshot).items()),
        _unit_properties(measured.unit),
        _command_line(measured.process),
        frozenset(
            (name, _unit_properties(each.unit), _command_line(each.process)) for name, each in measured.services.items()
        ),
        _edits(snapshot),
        snapshot.running,
        _identity(snapshot),
        _devices(snapshot),
    )


def _devices(snapshot: Snapshot) -> Listing | None:
    """Whether it has GPUs, whichever: a home of flags that needs a daemon-reload is then the last resort."""
    listed = snapshot.surroundings.devices if snapshot.surroundings is not None else None
    return Listing(("/dev/nvidia*",)) if listed is not None and listed.names else None


def _identity(snapshot: Snapshot) -> tuple[str, str, str]:
    """The node's name and ids, if its units have specifiers that may stand for them; else they are not looked at."""
    texts = (state.content or b"" for path, state in snapshot.files.items() if "/systemd/" in path)
    if not any(b"%" in text.replace(b"%%", b"") for text in texts):
        return "", "", ""
    return snapshot.facts.get(HOSTNAME, ""), snapshot.machine_id, snapshot.boot_id


def _command_line(process: Process | None) -> tuple[str, ...] | None:
    return process.command_line if process else None


def _edits(snapshot: Snapshot) -> tuple[Stale, ...]:
    """The edits without their age."""
    return tuple(replace(entry, seconds=0) for entry in snapshot.stale)


def _unit_properties(unit: UnitState | None) -> tuple[str | None, ...] | None:
    return (unit.name, *(unit.properties.get(name) for name in _UNIT)) if unit else None


def _facts(snapshot: Snapshot) -> dict[str, str]:
    """The facts that a change depends on. A fact that the agent could not report completely is always kept."""
    return {name: text for name, text in snapshot.facts.items() if name in _FACTS or name.endswith("-truncated")}


def kind_only(snapshot: Snapshot) -> Snapshot:
    """The node with nothing except what the key contains."""
    measured = snapshot.measurement
    name, machine_id, boot_id = _identity(snapshot)
    return replace(
        snapshot,
        node="",
        machine_id=machine_id,
        boot_id=boot_id,
        measurement=Measurement(
            unit=_unit(measured.unit) if measured.unit else None,
            process=_process(measured.process),
            services={
                name: Service(_unit(each.unit), _process(each.process)) for name, each in measured.services.items()
            },
        ),
        token=Token(),
        receipts=(),
        stale=_edits(snapshot),
        facts={**_facts(snapshot), HOSTNAME: name},
        surroundings=NodeSurroundings(devices=gpus) if (gpus := _devices(snapshot)) else None,
    )


def _unit(unit: UnitState) -> UnitState:
    return UnitState(unit.name, {name: unit.properties[name] for name in _UNIT if name in unit.properties})


def _process(process: Process | None) -> Process | None:
    return replace(process, pid=0) if process else None
