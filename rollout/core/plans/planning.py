"""Builds frozen plans from the decision for each node: groups, waves, nodes left alone, and the preflight's numbers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from rollout.core.model.areas import AreaKind, sizes
from rollout.core.model.conditions import in_order
from rollout.core.model.fleet_changes import UNCHANGED, FleetChanges
from rollout.core.model.frozen import dataclass
from rollout.core.model.inventory import Inventory, Node, Role, role_of
from rollout.core.model.plan import (
    CONTROL_PLANE_WAVE,
    Change,
    ChangeGroup,
    ExcludedNode,
    LessRoom,
    Plan,
    PlannedDrain,
    PlannedNode,
    Remark,
    Standing,
    WantedSetting,
    Wave,
    kind_of,
)
from rollout.core.model.playbook import Policy, RevertTimes, SoakData, WaveKind, WaveRule
from rollout.core.model.snapshot import FleetSnapshot, Receipt, Snapshot, Token, highest_believed
from rollout.core.plans.fleet_comparison import inventory_settings

# Which node goes in which wave. Deterministic: the same changes in the same inventory give the same waves.
#
# Inside a wave, nodes are taken round-robin over the racks, so that no rack is completed early.


@dataclass(frozen=True, slots=True)
class Candidate:
    """A node that will be changed. ``kind`` is what a canary represents: every kind gets a canary."""

    name: str
    rack: str
    kind: str
    role: Role = Role.WORKER
    takes_devices: bool = False  # the change itself may take devices from running containers


def round_robin(candidates: Iterable[Candidate]) -> tuple[Candidate, ...]:
    """The first of each rack, then the second of each, …: racks in the order of their first node."""
    racks: dict[str, list[Candidate]] = {}
    for candidate in candidates:
        racks.setdefault(candidate.rack, []).append(candidate)
    deepest = max(map(len, racks.values()), default=0)
    return tuple(members[turn] for turn in range(deepest) for members in racks.values() if turn < len(members))


def waves(
    candidates: Sequence[Candidate], rules: Sequence[WaveRule], soak: float, data: SoakData | None = None
) -> tuple[Wave, ...]:
    """Puts every candidate in exactly one wave. Those that no rule takes form a last wave. Empty waves are dropped.

    Nodes with devices are in the canary like any kind of node, else in a wave of their own after all others. Where the
    change itself may take the devices, the nodes come after these: one of each kind first, then the others. The
    control plane comes last, one at a time.
    """
    taken_from = [entry for entry in candidates if entry.takes_devices and entry.role is not Role.CONTROL_PLANE]
    others = [entry for entry in candidates if not entry.takes_devices]
    workers = [entry for entry in others if entry.role is Role.WORKER]
    devices = [entry for entry in others if entry.role is Role.DEVICES]
    made: list[Wave] = []
    remaining = list(round_robin(workers))
    for rule in (*rules, WaveRule(WaveKind.REST)):
        picked = (
            _canaries([*remaining, *devices]) if rule.kind is WaveKind.CANARY else _pick(rule, remaining, len(workers))
        )
        taken = {candidate.name for candidate in picked}
        remaining = [candidate for candidate in remaining if candidate.name not in taken]
        devices = [candidate for candidate in devices if candidate.name not in taken]
        own = soak if rule.soak is None else rule.soak
        made.append(_wave(name_of(rule), picked, own, hold=rule.hold, data=rule.data or data))
    made.append(_wave("devices", round_robin(devices), soak, data=data))
    first = _canaries(round_robin(taken_from))
    made.append(_wave("devices at risk, canary", first, soak, data=data))
    rest = [candidate for candidate in taken_from if candidate not in first]
    made.append(_wave("devices at risk", round_robin(rest), soak, data=data))
    controllers = [entry for entry in candidates if entry.role is Role.CONTROL_PLANE]
    made.append(_wave(CONTROL_PLANE_WAVE, round_robin(controllers), soak, at_once=1))
    return tuple(wave for wave in made if wave.nodes)


def _wave(
    name: str,
    picked: Iterable[Candidate],
    soak: float,
    *,
    hold: bool = False,
    at_once: int = 0,
    data: SoakData | None = None,
) -> Wave:
    return Wave(name, tuple(candidate.name for candidate in picked), soak, hold, at_once, data)


def name_of(rule: WaveRule) -> str:
    """The wave's name."""
    if rule.kind is WaveKind.PER_RACK:
        return f"{rule.count} per rack"
    return f"{rule.percent:g} %" if rule.kind is WaveKind.UP_TO else rule.kind.value


def _pick(rule: WaveRule, remaining: Sequence[Candidate], total: int) -> tuple[Candidate, ...]:
    if rule.kind is WaveKind.PER_RACK:
        return _per_rack(remaining, rule.count)
    if rule.kind is WaveKind.UP_TO:
        done = total - len(remaining)
        return tuple(remaining[: max(0, max(1, int(total * rule.percent / 100)) - done)])
    return tuple(remaining)


def _canaries(remaining: Sequence[Candidate]) -> tuple[Candidate, ...]:
    """One node of each kind, in a rack that has no canary yet if possible."""
    by_kind: dict[str, list[Candidate]] = {}
    for candidate in remaining:
        by_kind.setdefault(candidate.kind, []).append(candidate)
    picked: list[Candidate] = []
    racks: set[str] = set()
    for members in by_kind.values():
        chosen = next((member for member in members if member.rack not in racks), members[0])
        picked.append(chosen)
        racks.add(chosen.rack)
    return tuple(picked)


def _per_rack(remaining: Sequence[Candidate], count: int) -> tuple[Candidate, ...]:
    taken: dict[str, int] = {}
    picked: list[Candidate] = []
    for candidate in remaining:
        if taken.get(candidate.rack, 0) < count:
            taken[candidate.rack] = taken.get(candidate.rack, 0) + 1
            picked.append(candidate)
    return tuple(picked)


def positions(made: Sequence[Wave]) -> Mapping[str, int]:
    """Node → index of its wave."""
    return {name: index for index, wave in enumerate(made) for name in wave.nodes}


@dataclass(frozen=True, slots=True)
class Decided:
    """The change for one node, what kind of node it is (version × runtime × layout), and its machine-id.

    ``role``: as it was seen; ``None``: by the inventory.
    """

    node: Node
    machine_id: str
    change: Change
    label: str
    drain: PlannedDrain | None = None
    less_room: LessRoom | None = None
    role: Role | None = None
    takes_devices: bool = False  # from running containers, by the change itself


@dataclass(frozen=True, slots=True)
class Preflight:
    """How many selected nodes were unhealthy before the run: ``unhealthy`` of ``selected``, of which ``most`` are allowed."""

    selected: int
    unhealthy: tuple[str, ...]
    most: int

    @property
    def refused(self) -> bool:
        """More nodes are unhealthy or unreadable than the playbook's preflight share."""
        return len(self.unhealthy) > self.most


def groups(decided: Iterable[Decided]) -> tuple[tuple[ChangeGroup, ...], Mapping[str, str]]:
    """The distinct (label, change) pairs, largest first, and node → group name."""
    members: dict[tuple[str, Change], list[str]] = {}
    for entry in decided:
        members.setdefault((entry.label, entry.change), []).append(entry.node.name)
    ordered = sorted(members.items(), key=lambda item: (-len(item[1]), item[0][0], repr(item[0][1])))
    change_groups = tuple(ChangeGroup(f"g{at}", label, change) for at, ((label, change), _) in enumerate(ordered, 1))
    names = {name: group.name for group, (_, nodes) in zip(change_groups, ordered, strict=True) for name in nodes}
    return change_groups, names


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
    remarks: Iterable[Remark] = (),
    way_back: RevertTimes | None = None,
    wanted: tuple[WantedSetting, ...] = (),
) -> Plan:
    """The plan with everything that apply needs, so that apply asks for nothing again."""
    settings = inventory_settings(inventory)
    order = {name: at for at, name in enumerate(inventory.nodes)}
    entries = sorted(decided, key=lambda entry: order[entry.node.name])
    found, group_of = groups(entries)
    candidates = [_candidate(entry) for entry in entries]
    released = waves(candidates, policy.waves, policy.soak, policy.data)
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
            name: _planned(entry, group_of[name], wave_of[name], fleet.jumps.get(name), settings.get(name, ""))
            for entry in entries
            for name in (entry.node.name,)
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
        rehearsal=policy.rehearsal,
        zones=sizes(inventory.nodes.values(), AreaKind.ZONE),
        remarks=tuple(remarks),
        way_back=way_back,
        late=policy.late,
        conditions=in_order((*policy.conditions, *inventory.conditions)),
        wanted=wanted,
    )


def _candidate(entry: Decided) -> Candidate:
    """A drained node is of another kind, so that a canary tests the drain, too."""
    role = entry.role or role_of(entry.node.labels)
    drained = " drained" if entry.drain else ""
    kind = f"{role} {kind_of(entry.label, entry.change)}{drained}"
    return Candidate(entry.node.name, entry.node.rack, kind, role, entry.takes_devices)


def _planned(entry: Decided, group: str, wave: int, jumps: tuple[str, ...] | None, settings: str) -> PlannedNode:
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
        jumps,
        settings,
    )


def preflight(plan: Plan, sick_references: frozenset[str], changes: FleetChanges = UNCHANGED) -> Preflight:
    """Compares nodes unreachable, or refused for one of ``sick_references``, with the playbook's preflight share."""
    unhealthy = tuple(
        entry.name
        for entry in plan.left
        if entry.name not in changes.unplanned
        and (entry.standing is Standing.UNREACHABLE or entry.reference in sick_references)
    )
    selected = len(plan.nodes) + len(plan.left) - len(changes.left) - len(changes.unplanned)
    return Preflight(selected, unhealthy, plan.limits.preflight.of(selected))
