"""From a seed to a scenario: a small fleet, the planner's waves for it, and faults."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from random import Random

from rollout.core.model.gates import Gate, GateScope
from rollout.core.model.inventory import Role
from rollout.core.model.plan import Change, ChangeGroup, Plan, PlannedDrain, PlannedNode
from rollout.core.model.playbook import (
    ALL_CAUSES,
    Budget,
    Busy,
    Disruption,
    Drain,
    Limits,
    PullsInFlight,
    RevertScope,
    Scope,
    Share,
    SoakData,
    WaveKind,
    WaveRule,
)
from rollout.core.plans.planning import Candidate, positions, waves
from rollout.core.run.order import apply_order
from rollout.core.run.state import Order
from rollout.gates.page.query import HttpQuery
from rollout.gates.table import DEFAULT_GATES
from rollout.simulator.controller import EPOCH
from rollout.simulator.open_minutes import OpenMinutes
from rollout.simulator.scenario import Fault, FaultKind, Scenario

LONGEST = 150.0
"""Faults strike within this many seconds from the start."""


def scenario(seed: int) -> Scenario:
    """The same seed, the same scenario."""
    dice = dice_of(seed)
    order = with_data(drawn_order(dice), Random(f"{seed} data"))  # noqa: S311 - reproducible
    faults = tuple(drawn_faults(dice, tuple(order.nodes)))
    return Scenario(seed, order, faults, drawn_minutes(Random(f"{seed} calendar")))  # noqa: S311 - reproducible


def with_data(order: Order, dice: Random) -> Order:
    """In one of four, soaks need pod starts, half of them image pulls too: some are quick, some never have them in time."""
    if dice.random() < 0.75:
        return order
    starts, within, pulls = dice.choice((1, 5, 40)), dice.choice((5.0, 60.0, 300.0)), dice.choice((0, 0, 0, 1, 4, 30))
    data = SoakData(starts, within, pulls)
    return replace(order, waves=tuple(replace(wave, data=data) for wave in order.waves))


def drawn_minutes(dice: Random) -> tuple[OpenMinutes, ...]:
    """One in four has windows of a few minutes, from the minute in which a play begins or later."""
    if dice.random() < 0.75:
        return ()
    minute, windows = int(EPOCH % 86_400) // 60 + dice.choice((0, 0, 1, 3)), []
    for _ in range(dice.randint(1, 4)):
        ends = minute + dice.randint(1, 3)
        windows.append((minute, ends))
        minute = ends + dice.randint(1, 4)
    return (OpenMinutes((*windows, (minute, minute + 300))),)  # the last is long enough for every run to end


def dice_of(seed: int) -> Random:
    """Random numbers that are the same for the same seed."""
    return Random(seed)  # noqa: S311 - reproducible on purpose


def drawn_order(dice: Random) -> Order:
    """Through the planner's waves and ``apply_order``, like a real plan."""
    return apply_order("r1", drawn_plan(dice))


def drawn_plan(dice: Random) -> Plan:
    sizes = [dice.randint(1, 5) for _ in range(dice.randint(1, 4))]
    # From 8 on: a10 is after a9 but sorts before a8, so code that relies on the order of names fails (law 10).
    rack_of = {f"{'abcd'[rack]}{n + 8}": f"rack{'abcd'[rack]}" for rack, size in enumerate(sizes) for n in range(size)}
    zone_of = {rack: dice.choice(("za", "zb")) for rack in sorted(set(rack_of.values()))}
    kind_of = {name: dice.choice(("g1", "g1", "g2")) for name in rack_of}
    candidates = [
        Candidate(name, rack, kind_of[name], Role.CONTROL_PLANE if dice.random() < 0.05 else Role.WORKER)
        for name, rack in rack_of.items()
    ]
    soak = dice.choice((0.0, 3.0, 9.0))
    drawn_waves = waves(candidates, _rules(dice), soak)
    wave_of = positions(drawn_waves)
    drained = dice.choice((frozenset(), frozenset(), frozenset({"g1"}), frozenset({"g1", "g2"})))
    within = dice.choice((10.0, 40.0))
    gates = (*DEFAULT_GATES, *((_WAVE_GATE,) if dice.random() < 0.4 else ()))
    return Plan(
        cluster="model",
        playbook="drawn",
        inventory_digest="",
        playbook_digest="",
        taken="",
        counter=0,
        limit="",
        groups=tuple(_group(dice, name) for name in ("g1", "g2")),
        nodes={
            name: PlannedNode(
                name,
                name,
                rack,
                zone_of[rack],
                kind_of[name],
                wave_of[name],
                name,
                drain=PlannedDrain(1, "web", 5.0, "drawn", 27) if kind_of[name] in drained else None,
            )
            for name, rack in rack_of.items()
        },
        left=(),
        waves=drawn_waves,
        racks=Counter(rack_of.values()),
        limits=_limits(dice),
        budgets=tuple(
            Budget(scope, ALL_CAUSES, Share(count=dice.choice((1, 2, 4)))) for scope in Scope if dice.random() < 0.6
        ),
        gates=gates,
        on_failure=dice.choice(tuple(RevertScope)),
        passes=dice.choice((1, 1, 2, 3)),
        guard=dice.choice((15.0, 30.0, 60.0)),
        keep=3,
        drain=Drain(within=within),
        rehearsal=dice.random() < 0.4,
        zones=Counter(zone_of[rack] for rack in rack_of.values()),
        pulls=PullsInFlight(dice.choice((0.0, 20.0, 60.0)), dice.choice(tuple(Busy))),
    )


_WAVE_GATE = Gate(HttpQuery("http://model.example.net"), GateScope.WAVE, "model")


def _rules(dice: Random) -> tuple[WaveRule, ...]:
    canary = WaveRule(WaveKind.CANARY, hold=dice.random() < 0.15)
    return dice.choice(
        ((), (canary,), (canary, WaveRule(WaveKind.UP_TO, percent=50.0)), (canary, WaveRule(WaveKind.PER_RACK)))
    )


def _limits(dice: Random) -> Limits:
    zone = Share(count=dice.randint(1, 3)) if dice.random() < 0.3 else None
    return Limits(
        per_rack=dice.choice((Share(count=1), Share(count=2), Share(percent=50.0))),
        per_zone=zone,
        in_flight=dice.choice((1, 2, 4, 8)),
        pace=dice.choice((0.5, 1.0, 2.0, 10.0)),
        preflight=Share(percent=dice.choice((5.0, 50.0))),
    )


def _group(dice: Random, name: str) -> ChangeGroup:
    change = Change((), ("kubelet.service",), False, Disruption.RESTART_KUBELET, (), "", 10248, dice.choice((0.0, 5.0)))  # noqa: FBT003
    return ChangeGroup(name, name, change)


def drawn_faults(dice: Random, names: tuple[str, ...]) -> list[Fault]:
    """One in eight has none; most have a few; some have many."""
    count = dice.choice((0, 1, 1, 2, 2, 3, 4, 7))
    return [drawn_fault(dice, names) for _ in range(count)]


def drawn_fault(dice: Random, names: tuple[str, ...]) -> Fault:
    kind = dice.choice(_WEIGHTED)
    node = dice.choice(names) if kind in _OF_NODES else ""
    return Fault(kind, node, _when(dice, kind), _lasting(dice, kind), _amount(dice, kind), _words(dice, kind))


def _when(dice: Random, kind: FaultKind) -> float:
    if kind in (FaultKind.KILLED, FaultKind.FROZEN):
        return float(dice.randint(1, dice.choice((20, 100, 400))))
    if kind in (FaultKind.ANSWER_LOST, FaultKind.COMMAND_LOST):
        return float(dice.randint(1, 8))
    if kind in _FROM_THE_START:
        return 0.0
    return round(dice.random() * dice.choice((20.0, LONGEST)), 1)


def _lasting(dice: Random, kind: FaultKind) -> float:
    if kind is FaultKind.KILLED:
        return dice.choice((1.0, 1.0, 10.0, 60.0, 200.0))  # until the next one
    if kind is FaultKind.DIES:
        return 0.0
    if kind is FaultKind.REBOOTS:
        return dice.choice((5.0, 40.0, 120.0))
    return dice.choice((2.0, 8.0, 20.0, 45.0, 100.0, 250.0))


def _amount(dice: Random, kind: FaultKind) -> float:
    if kind in (FaultKind.SLOW, FaultKind.LATENT):
        return dice.choice((2.0, 5.0, 20.0))
    if kind is FaultKind.NODE_CLOCK:
        return dice.choice((0.9, 1.1))
    if kind in (FaultKind.NEXT_CLOCK, FaultKind.LEASE_CLOCK):
        return dice.choice((-86400.0, -60.0, -3.0, 3.0, 60.0, 86400.0))
    if kind is FaultKind.ANSWER_LATE:
        return dice.choice((0.05, 0.3, 2.0))
    if kind is FaultKind.APPLY_LOST:
        return float(dice.choice((1, 1, 2, 5)))
    if kind is FaultKind.APPLY_LATE:
        return dice.choice((16.0, 20.0, 40.0, 90.0, 200.0))
    if kind is FaultKind.STORE_SLOW:
        return dice.choice((0.3, 2.0, 8.0))
    return float(kind is FaultKind.WRITE_FAILS)


def _words(dice: Random, kind: FaultKind) -> str:
    if kind in (FaultKind.NODE_GATE, FaultKind.WAVE_GATE, FaultKind.WAVE_BASELINE, FaultKind.NODE_BASELINE):
        return dice.choice(("fail", "unknown"))
    if kind is FaultKind.ABORTED:
        return str(dice.choice(("", *RevertScope)))
    return ""


_OF_NODES = frozenset(tuple(FaultKind)[: tuple(FaultKind).index(FaultKind.NODE_BASELINE) + 1]) | {FaultKind.NODE_CLOCK}
_FROM_THE_START = frozenset(
    {
        FaultKind.NODE_CLOCK,
        FaultKind.LATENT,
        FaultKind.ANSWER_LATE,
        FaultKind.APPLY_LOST,
        FaultKind.APPLY_LATE,
        FaultKind.RESTART_FAILS,
        FaultKind.SLOW,
        FaultKind.SICK_AFTER_CHANGE,
        FaultKind.SICK_EITHER_WAY,
    }
)
_WEIGHTED = (
    *FaultKind,
    *(FaultKind.KILLED,) * 6,
    FaultKind.UNLOCKED,
    *(FaultKind.CUT,) * 3,
    FaultKind.ANSWER_LOST,
    FaultKind.ANSWER_LOST,
    FaultKind.REBOOTS,
)
