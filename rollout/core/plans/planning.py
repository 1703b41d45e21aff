"""Builds frozen plans from the decision for each node: groups, waves, nodes left alone, and the preflight's numbers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from rollout.core.model.areas import AreaKind, sizes
from rollout.core.model.inventory import Inventory, Node, role_of
from rollout.core.model.plan import (
    Change,
    ChangeGroup,
    ExcludedNode,
    LessRoom,
    Plan,
    PlannedDrain,
    PlannedNode,
    Remark,
    Standing,
)
from rollout.core.model.playbook import Policy
from rollout.core.model.rollback_timing import WayBack
from rollout.core.model.snapshot import FleetSnapshot, Receipt, Snapshot, Token, highest_believed
from rollout.core.plans.waves import Candidate, positions, waves


@dataclass(frozen=True, slots=True)
class Decided:
    """The change for one node, what kind of node it is (version × runtime × layout), and its machine-id."""

    node: Node
    machine_id: str
    change: Change
    label: str
    drain: PlannedDrain | None = None
    less_room: LessRoom | None = None


@dataclass(frozen=True, slots=True)
class Preflight:
    """How many selected nodes were unhealthy before the run: ``sick`` of ``selected``, of which ``most`` are allowed."""

    selected: int
    sick: tuple[str, ...]
    most: int

    @property
    def refused(self) -> bool:
        """More nodes are unhealthy or unreadable than the playbook's preflight share."""
        return len(self.sick) > self.most


def kind_of(label: str, change: Change) -> str:
    """What a canary represents: nodes are of one kind if their changes differ only in bytes that rollout does not change."""
    files = ((file.path, file.before == "", file.reasons) for file in change.files)
    return repr((label, tuple(files), change.units, change.notes))


def groups(decided: Iterable[Decided]) -> tuple[tuple[ChangeGroup, ...], Mapping[str, str]]:
    """The distinct (label, change) pairs, largest first, and node → group name."""
    members: dict[tuple[str, Change], list[str]] = {}
    for entry in decided:
        members.setdefault((entry.label, entry.change), []).append(entry.node.name)
    ordered = sorted(members.items(), key=lambda item: (-len(item[1]), item[0][0], repr(item[0][1])))
    found = tuple(ChangeGroup(f"g{at}", label, change) for at, ((label, change), _) in enumerate(ordered, 1))
    names = {name: group.name for group, (_, nodes) in zip(found, ordered, strict=True) for name in nodes}
    return found, names


def highest_counter(fleet: FleetSnapshot) -> int:
    """The highest believable token counter in the nodes' tokens and receipts."""
    read = [node for node in fleet.nodes.values() if isinstance(node, Snapshot)]
    held: list[Token | Receipt] = [node.token for node in read]
    held += [receipt for node in read for receipt in node.receipts]
    return highest_believed(entry.counter for entry in held)


def plan_of(
    inventory: Inventory,
    policy: Policy,
    fleet: FleetSnapshot,
    limit: str,
    decided: Iterable[Decided],
    left: Iterable[ExcludedNode],
    blobs: Mapping[str, bytes],
    remarks: Iterable[Remark] = (),
    way_back: WayBack | None = None,
) -> Plan:
    """The plan with everything that apply needs, so that apply asks for nothing again."""
    order = {name: at for at, name in enumerate(inventory.nodes)}
    entries = sorted(decided, key=lambda entry: order[entry.node.name])
    found, group_of = groups(entries)
    candidates = [_candidate(entry) for entry in entries]
    released = waves(candidates, policy.waves, policy.soak)
    wave_of = positions(released)
    return Plan(
        cluster=inventory.cluster,
        playbook=policy.name,
        inventory_digest=inventory.digest,
        playbook_digest=policy.digest,
        taken=fleet.taken,
        counter=highest_counter(fleet),
        limit=limit,
        groups=found,
        nodes={
            entry.node.name: _planned(entry, group_of[entry.node.name], wave_of[entry.node.name]) for entry in entries
        },
        left=tuple(sorted(left, key=lambda entry: order[entry.name])),
        waves=released,
        racks=sizes(inventory.nodes.values(), AreaKind.RACK),
        limits=policy.limits,
        budgets=policy.budgets,
        gates=policy.gates,
        on_failure=policy.on_failure,
        passes=policy.passes,
        guard=policy.guard,
        keep=policy.keep,
        pulls=policy.pulls,
        drain=policy.drain,
        cordoned=policy.cordoned,
        blobs={name: blobs[name] for name in sorted(blobs)},
        rehearsal=policy.rehearsal,
        zones=sizes(inventory.nodes.values(), AreaKind.ZONE),
        remarks=tuple(remarks),
        way_back=way_back,
    )


def _candidate(entry: Decided) -> Candidate:
    """A drained node is of another kind, so that a canary tests the drain, too."""
    role = role_of(entry.node.labels)
    drained = " drained" if entry.drain else ""
    return Candidate(entry.node.name, entry.node.rack, f"{role} {kind_of(entry.label, entry.change)}{drained}", role)


def _planned(entry: Decided, group: str, wave: int) -> PlannedNode:
    node = entry.node
    return PlannedNode(
        node.name,
        node.address,
        node.rack,
        node.zone,
        group,
        wave,
        entry.machine_id,
        node.user,
        node.port,
        entry.drain,
        entry.less_room,
    )


def preflight(plan: Plan, sick_references: frozenset[str]) -> Preflight:
    """Compares nodes unreachable, or refused for one of ``sick_references``, with the playbook's preflight share."""
    sick = tuple(
        entry.name
        for entry in plan.left
        if entry.standing is Standing.UNREACHABLE or entry.reference in sick_references
    )
    selected = len(plan.nodes) + len(plan.left)
    return Preflight(selected, sick, plan.limits.preflight.of(selected))
