"""Nodes that are alike get one proposal: 2,000 nodes have only a few versions, units, files and settings.

The values that distinguish one node from another (its name, ids, processes, receipts, room) are removed before a change
is computed, so they cannot get into it. A cached change is therefore valid for every node that is alike.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field, replace

from rollout.core.model.inventory import Node
from rollout.core.model.plan import ExcludedNode
from rollout.core.model.playbook import Policy
from rollout.core.model.settings import Setting
from rollout.core.model.snapshot import Measurement, Process, Service, Snapshot, Stale, Token, UnitState
from rollout.kubelet.changes.changes import LeftAlone, Proposal, proposal, unfit
from rollout.kubelet.changes.templated_config import uses_node

_UNIT = ("FragmentPath", "DropInPaths", "NeedDaemonReload", "LoadState", "ActiveState", "UnitFileState")
_FACTS = frozenset({"cgroup", "config-dir-alpha"})
_NOBODY = Node("", "", "", "")


@dataclass(slots=True)
class Alike:
    """The proposals of one plan, by everything that they depend on. Settings are compared by identity: they live longer
    than the planning.
    """

    policy: Policy
    assumed: int | None = None
    known: dict[Hashable, Proposal | LeftAlone] = field(default_factory=dict)

    def change_for(self, snapshot: Snapshot, settings: Mapping[str, Setting], node: Node) -> Proposal | ExcludedNode:
        """Like ``changes.change_for``."""
        made = self.made_for(snapshot, settings, node)
        return made.of(node) if isinstance(made, LeftAlone) else made

    def made_for(self, snapshot: Snapshot, settings: Mapping[str, Setting], node: Node) -> Proposal | LeftAlone:
        """The same, with the cause if nothing is proposed."""
        return unfit(snapshot, self.policy, self.assumed) or self._proposal(snapshot, settings, node)

    def _proposal(self, snapshot: Snapshot, settings: Mapping[str, Setting], node: Node) -> Proposal | LeftAlone:
        templates = self.policy.templates
        named = any(map(uses_node, (templates.kubelet_config, templates.flags_env, templates.drop_in)))
        key = (_key(snapshot), id(settings), node.name if named else "")
        if key not in self.known:
            somebody = node if named else _NOBODY
            self.known[key] = proposal(_nameless(snapshot), settings, self.policy, somebody, self.assumed)
        return self.known[key]


def _key(snapshot: Snapshot) -> Hashable:
    measured = snapshot.measurement
    return (
        snapshot.kubelet_version,
        frozenset(snapshot.runtimes.items()),
        frozenset(snapshot.files.values()),
        frozenset(_facts(snapshot).items()),
        _said(measured.unit),
        _words(measured.process),
        frozenset((name, _said(each.unit), _words(each.process)) for name, each in measured.services.items()),
        _edits(snapshot),
        snapshot.running,
    )


def _words(process: Process | None) -> tuple[str, ...] | None:
    return process.command_line if process else None


def _edits(snapshot: Snapshot) -> tuple[Stale, ...]:
    """The edits without their age."""
    return tuple(replace(entry, seconds=0) for entry in snapshot.stale)


def _said(unit: UnitState | None) -> tuple[str | None, ...] | None:
    return tuple(unit.properties.get(name) for name in _UNIT) if unit else None


def _facts(snapshot: Snapshot) -> dict[str, str]:
    """The facts that a change depends on. A fact that the agent could not report completely is always kept."""
    return {name: text for name, text in snapshot.facts.items() if name in _FACTS or name.endswith("-truncated")}


def _nameless(snapshot: Snapshot) -> Snapshot:
    """The node with nothing except what the key contains."""
    measured = snapshot.measurement
    return replace(
        snapshot,
        node="",
        machine_id="",
        boot_id="",
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
        facts=_facts(snapshot),
    )


def _unit(unit: UnitState) -> UnitState:
    return UnitState(unit.name, {name: unit.properties[name] for name in _UNIT if name in unit.properties})


def _process(process: Process | None) -> Process | None:
    return replace(process, pid=0) if process else None
