"""Faults of the model: each is scheduled before the play and strikes at its time.

``play`` has the faults of controllers (killed, frozen, interrupted, their clocks), because it starts controllers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from rollout.core.model.verdict import Verdict
from rollout.simulator.fleet import ModelFleet, ModelLink, Spell
from rollout.simulator.journal import ModelJournal
from rollout.simulator.machine import FOREIGN, MIXED, NEW, OLD
from rollout.simulator.node import ModelNode
from rollout.simulator.scenario import Fault, FaultKind
from rollout.simulator.timeline import Timeline


@dataclass(frozen=True)
class World:
    """The targets of faults. ``ask`` is a request from another terminal, ``emergency`` an operator on another machine."""

    timeline: Timeline
    fleet: ModelFleet
    journal: ModelJournal
    tell: Callable[[str, str], None]
    ask: Callable[[str, str], None]
    emergency: Callable[[], None]


def set_up(fault: Fault, world: World) -> None:
    """Schedule a fault."""
    if fault.node and fault.kind in _OF_LINKS:
        _OF_LINKS[fault.kind](world.fleet.links[fault.node], fault)
    elif fault.node and fault.kind in _OF_NODES:
        strike, node = _OF_NODES[fault.kind], world.fleet.nodes[fault.node]
        world.timeline.at(fault.at, lambda: strike(node, fault))
    elif fault.kind in _OF_GATES:
        of, before = _OF_GATES[fault.kind]
        end = fault.at + fault.lasting
        world.fleet.spells.append(Spell(fault.node if of else "", Verdict(fault.words), fault.at, end, before))
    elif fault.kind in _OF_THE_WORLD:
        strike_all = _OF_THE_WORLD[fault.kind]
        world.timeline.at(fault.at, lambda: strike_all(world, fault))


def _cut(link: ModelLink, fault: Fault) -> None:
    link.cuts.append((fault.at, fault.at + fault.lasting))


def _latent(link: ModelLink, fault: Fault) -> None:
    link.latency *= fault.amount


def _lose_answer(link: ModelLink, fault: Fault) -> None:
    link.lost_answers.add(int(fault.at))


def _answers_late(link: ModelLink, fault: Fault) -> None:
    link.queue = fault.amount


def _lose_command(link: ModelLink, fault: Fault) -> None:
    link.lost_commands.add(int(fault.at))


def _lose_applies(link: ModelLink, fault: Fault) -> None:
    link.lost_applies = int(fault.amount)


def _delay_applies(link: ModelLink, fault: Fault) -> None:
    link.late_applies.append(fault.amount)


_OF_LINKS: Mapping[FaultKind, Callable[[ModelLink, Fault], None]] = {
    FaultKind.CUT: _cut,
    FaultKind.LATENT: _latent,
    FaultKind.ANSWER_LOST: _lose_answer,
    FaultKind.COMMAND_LOST: _lose_command,
    FaultKind.APPLY_LOST: _lose_applies,
    FaultKind.APPLY_LATE: _delay_applies,
    FaultKind.ANSWER_LATE: _answers_late,
}


def _die(node: ModelNode, _fault: Fault) -> None:
    node.lose_power(float("inf"))


def _reboot(node: ModelNode, fault: Fault) -> None:
    node.lose_power(fault.lasting)


def _freeze(node: ModelNode, fault: Fault) -> None:
    node.freeze(fault.lasting)


def _kill_agent(node: ModelNode, _fault: Fault) -> None:
    node.kill_next()


def _keep_process(node: ModelNode, fault: Fault) -> None:
    node.kubelet.stays_until = fault.at + fault.lasting


def _slow(node: ModelNode, fault: Fault) -> None:
    node.pace = fault.amount


def _sick_with_new(node: ModelNode, _fault: Fault) -> None:
    node.kubelet.sick_with = frozenset({NEW, MIXED})


def _sick_with_both(node: ModelNode, _fault: Fault) -> None:
    """Healthy until its first restart."""
    node.kubelet.sick_with = frozenset({NEW, MIXED})
    node.kubelet.sick_once_restarted = True


def _falls_sick(node: ModelNode, fault: Fault) -> None:
    node.kubelet.falls_sick, node.kubelet.heals = fault.at, fault.at + fault.lasting


def _drift(node: ModelNode, _fault: Fault) -> None:
    if node.files in (OLD, NEW) and node.under_way is None:
        node.files = FOREIGN
        node.told("another program changes its files")


def _pull(node: ModelNode, fault: Fault) -> None:
    node.pulls, node.pulls_until = ("redis",), fault.at + fault.lasting


def _keep_pods(node: ModelNode, fault: Fault) -> None:
    node.evictions_from = fault.at + fault.lasting


def _clock(node: ModelNode, fault: Fault) -> None:
    node.rate = fault.amount


_OF_NODES: Mapping[FaultKind, Callable[[ModelNode, Fault], None]] = {
    FaultKind.DIES: _die,
    FaultKind.REBOOTS: _reboot,
    FaultKind.FREEZES: _freeze,
    FaultKind.AGENT_KILLED: _kill_agent,
    FaultKind.RESTART_FAILS: _keep_process,
    FaultKind.SLOW: _slow,
    FaultKind.SICK_AFTER_CHANGE: _sick_with_new,
    FaultKind.SICK_EITHER_WAY: _sick_with_both,
    FaultKind.FALLS_SICK: _falls_sick,
    FaultKind.DRIFTS: _drift,
    FaultKind.PULLS: _pull,
    FaultKind.PODS_KEPT: _keep_pods,
    FaultKind.NODE_CLOCK: _clock,
}

_OF_GATES: Mapping[FaultKind, tuple[bool, bool]] = {  # of one node; before its change
    FaultKind.NODE_GATE: (True, False),
    FaultKind.NODE_BASELINE: (True, True),
    FaultKind.WAVE_GATE: (False, False),
    FaultKind.WAVE_BASELINE: (False, True),
}


def _write_fails(world: World, fault: Fault) -> None:
    world.journal.fails = int(fault.amount)
    world.tell("store", "the next write fails")


def _write_unsure(world: World, _fault: Fault) -> None:
    world.journal.swallows = 1
    world.tell("store", "the next write is kept, and its answer lost")


def _store_slow(world: World, fault: Fault) -> None:
    world.journal.slow_until, world.journal.slow_by = fault.at + fault.lasting, fault.amount


def _store_away(world: World, fault: Fault) -> None:
    world.journal.away_until = fault.at + fault.lasting
    world.tell("store", f"is away for {fault.lasting:g} s")


def _api_away(world: World, fault: Fault) -> None:
    world.fleet.api_away.append((fault.at, fault.at + fault.lasting))


def _engine_away(world: World, fault: Fault) -> None:
    world.fleet.engine_away.append((fault.at, fault.at + fault.lasting))
    world.tell("engine", f"is away for {fault.lasting:g} s")


def _lease_clock(world: World, fault: Fault) -> None:
    world.journal.clock_ahead += fault.amount
    world.tell("store", f"its clock steps by {fault.amount:g} s")


_OF_THE_WORLD: Mapping[FaultKind, Callable[[World, Fault], None]] = {
    FaultKind.WRITE_FAILS: _write_fails,
    FaultKind.WRITE_UNSURE: _write_unsure,
    FaultKind.STORE_SLOW: _store_slow,
    FaultKind.STORE_AWAY: _store_away,
    FaultKind.API_AWAY: _api_away,
    FaultKind.ENGINE_AWAY: _engine_away,
    FaultKind.LEASE_CLOCK: _lease_clock,
    FaultKind.PAUSED: lambda world, _: world.ask("pause", ""),
    FaultKind.ABORTED: lambda world, fault: world.ask("abort", fault.words),
    FaultKind.EMERGENCY: lambda world, _: world.emergency(),
}
