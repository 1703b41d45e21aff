"""Which node goes in which wave. Deterministic: the same changes in the same inventory give the same waves.

Inside a wave, nodes are taken round-robin over the racks, so that no rack is completed early.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from rollout.core.model.inventory import Role
from rollout.core.model.plan import Wave
from rollout.core.model.playbook import WaveKind, WaveRule


@dataclass(frozen=True, slots=True)
class Candidate:
    """A node that will be changed. ``kind`` is what a canary represents: every kind gets a canary."""

    name: str
    rack: str
    kind: str
    role: Role = Role.WORKER


def round_robin(candidates: Iterable[Candidate]) -> tuple[Candidate, ...]:
    """The first of each rack, then the second of each, …: racks in the order of their first node."""
    racks: dict[str, list[Candidate]] = {}
    for candidate in candidates:
        racks.setdefault(candidate.rack, []).append(candidate)
    deepest = max(map(len, racks.values()), default=0)
    return tuple(members[turn] for turn in range(deepest) for members in racks.values() if turn < len(members))


def waves(candidates: Sequence[Candidate], rules: Sequence[WaveRule], soak: float) -> tuple[Wave, ...]:
    """Puts every candidate in exactly one wave. Those that no rule takes form a last wave. Empty waves are dropped.

    Nodes with devices are in the canary like any kind of node, else in a wave of their own after all others. The
    control plane comes last, one at a time.
    """
    workers = [entry for entry in candidates if entry.role is Role.WORKER]
    devices = [entry for entry in candidates if entry.role is Role.DEVICES]
    made: list[Wave] = []
    left = list(round_robin(workers))
    for rule in (*rules, WaveRule(WaveKind.REST)):
        picked = _canaries([*left, *devices]) if rule.kind is WaveKind.CANARY else _pick(rule, left, len(workers))
        taken = {candidate.name for candidate in picked}
        left = [candidate for candidate in left if candidate.name not in taken]
        devices = [candidate for candidate in devices if candidate.name not in taken]
        made.append(_wave(name_of(rule), picked, soak if rule.soak is None else rule.soak, hold=rule.hold))
    made.append(_wave("devices", round_robin(devices), soak))
    controllers = [entry for entry in candidates if entry.role is Role.CONTROL_PLANE]
    made.append(_wave("control plane", round_robin(controllers), soak, at_once=1))
    return tuple(wave for wave in made if wave.nodes)


def _wave(name: str, picked: Iterable[Candidate], soak: float, *, hold: bool = False, at_once: int = 0) -> Wave:
    return Wave(name, tuple(candidate.name for candidate in picked), soak, hold, at_once)


def name_of(rule: WaveRule) -> str:
    """The wave's name."""
    if rule.kind is WaveKind.PER_RACK:
        return f"{rule.count} per rack"
    return f"{rule.percent:g} %" if rule.kind is WaveKind.UP_TO else rule.kind.value


def _pick(rule: WaveRule, left: Sequence[Candidate], total: int) -> tuple[Candidate, ...]:
    if rule.kind is WaveKind.PER_RACK:
        return _per_rack(left, rule.count)
    if rule.kind is WaveKind.UP_TO:
        done = total - len(left)
        return tuple(left[: max(0, max(1, int(total * rule.percent / 100)) - done)])
    return tuple(left)


def _canaries(left: Sequence[Candidate]) -> tuple[Candidate, ...]:
    """One node of each kind, in a rack that has no canary yet if possible."""
    by_kind: dict[str, list[Candidate]] = {}
    for candidate in left:
        by_kind.setdefault(candidate.kind, []).append(candidate)
    picked: list[Candidate] = []
    racks: set[str] = set()
    for members in by_kind.values():
        chosen = next((member for member in members if member.rack not in racks), members[0])
        picked.append(chosen)
        racks.add(chosen.rack)
    return tuple(picked)


def _per_rack(left: Sequence[Candidate], count: int) -> tuple[Candidate, ...]:
    taken: dict[str, int] = {}
    picked: list[Candidate] = []
    for candidate in left:
        if taken.get(candidate.rack, 0) < count:
            taken[candidate.rack] = taken.get(candidate.rack, 0) + 1
            picked.append(candidate)
    return tuple(picked)


def positions(made: Sequence[Wave]) -> Mapping[str, int]:
    """Node → index of its wave."""
    return {name: index for index, wave in enumerate(made) for name in wave.nodes}
