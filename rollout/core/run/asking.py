"""The questions that a step sends: to a node, and to the wave gates."""

from __future__ import annotations

from rollout.core.run import drains, pulls
from rollout.core.run.commands import Ask, JudgeWave, LiftSilences, OpenWave
from rollout.core.run.replace import altered
from rollout.core.run.state import NodeState, Verb
from rollout.core.run.state_builder import StateBuilder

_RESTARTS = frozenset({Verb.APPLY, Verb.REVERT})


def ask(builder: StateBuilder, name: str, verb: Verb) -> None:
    """Send a verb to a node; its answer must carry the new serial."""
    record = builder.nodes[name]
    if verb in _RESTARTS:
        window = max(64, 2 * int(builder.state.order.limits.pace))
        builder.set(started=(*builder.state.started, builder.now)[-window:])
    if verb is Verb.DRAIN:
        builder.put(name, cordoned=True, uncordons=0, draining=record.draining or drains.begun(builder.now))
    builder.put(name, asked=verb, serial=record.serial + 1)
    tx = altered(builder.state, nodes=builder.nodes).transaction(name)
    regardless = verb is Verb.APPLY and pulls.goes_regardless(record, builder.state.order, builder.now)
    left = drains.left(builder.state.order.nodes[name], builder.nodes[name], builder.now) if verb is Verb.DRAIN else 0.0
    builder.commands.append(
        Ask(name, verb, record.serial + 1, tx, builder.state.counter, record.baseline, record.since, regardless, left)
    )


def did_not_restart(builder: StateBuilder, name: str) -> None:
    """An apply that was to restart a node did not change it: it no longer counts in the pace's window."""
    asked_at = builder.nodes[name].since
    if asked_at in builder.state.started:
        at = builder.state.started.index(asked_at)
        builder.set(started=builder.state.started[:at] + builder.state.started[at + 1 :])


def open_wave(builder: StateBuilder) -> None:
    builder.set(gate_asked=True)
    builder.commands.append(OpenWave(builder.state.wave, builder.state.order.waves[builder.state.wave].nodes))


def judge_wave(builder: StateBuilder) -> None:
    """Ask the wave gates; the control group is nodes that are not changed yet."""
    builder.set(gate_asked=True)
    names = builder.state.order.waves[builder.state.wave].nodes
    touched = tuple(name for name in names if builder.nodes[name].state is NodeState.CONFIRMED)
    control = tuple(
        name for name, record in builder.nodes.items() if record.state is NodeState.PENDING and not record.cordoned
    )
    builder.commands.append(
        JudgeWave(builder.state.wave, builder.state.baselines.get(builder.state.wave, ""), touched, control)
    )


def lift_silences(builder: StateBuilder) -> None:
    builder.set(lifting=True)
    builder.commands.append(LiftSilences(builder.state.silences))
