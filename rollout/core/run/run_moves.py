"""How a run moves from phase to phase, how it halts, and which wave it works on.

A run halts by a budget, an operator, or another run that has its nodes. Nodes to revert are marked.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rollout.core.model.playbook import RevertScope
from rollout.core.run.facts import Count, NodeList
from rollout.core.run.layout import place_of
from rollout.core.run.state import Ending, Goal, Halt, NodeState, Phase, Rehearsal
from rollout.core.run.state_builder import StateBuilder, transition
from rollout.core.run.transitions import Decision, IllegalMoveError, fenced

RUN_MOVES: Mapping[tuple[Phase, Phase], str] = {
    (Phase.OPENING, Phase.RUNNING): "the nodes have taken the claim",
    (Phase.OPENING, Phase.HALTING): "too many nodes are not claimed, an interrupt, or nodes to revert",
    (Phase.RUNNING, Phase.SOAKING): "the nodes of the wave are at rest, those of the first one rehearsed",
    (Phase.SOAKING, Phase.RUNNING): "the gates passed often enough: the next wave",
    (Phase.RUNNING, Phase.HALTING): "a budget is spent, no room is left, no baseline, an interrupt or abort",
    (Phase.SOAKING, Phase.HALTING): "a budget is spent, a gate did not pass, too little data, an interrupt or abort",
    (Phase.RUNNING, Phase.CLOSING): "every wave has passed",
    (Phase.HALTING, Phase.CLOSING): "what is in flight has finished, and so have the reverts",
    (Phase.HALTING, Phase.HALTING): "another run has its nodes",
    (Phase.CLOSING, Phase.HALTING): "another run has its nodes",
    (Phase.CLOSING, Phase.ENDED): "the clean-up of nodes, silences and cordons has ended",
    **{(phase, Phase.OPENING): "a new controller" for phase in Phase},
}
"""Each move of a run, and what leads to it."""


def enter(builder: StateBuilder, phase: Phase, **changes: Any) -> None:
    """The run is in this phase from now on. ``IllegalMoveError``: it cannot be, after the one before."""
    if (builder.state.phase, phase) not in RUN_MOVES:
        raise IllegalMoveError(f"a run that is {builder.state.phase} cannot be {phase} next")
    builder.set(phase=phase, **changes)


def halt(
    builder: StateBuilder, ending: Ending, reference: str, message: str, revert: RevertScope | None = None
) -> None:
    """Release nothing more; mark the nodes to revert: by ``revert``, or as set in the playbook.

    A takeover by another run ends a halting run, too. A rehearsal in progress becomes a plain revert.
    """
    if builder.state.halt is not None and (ending is not Ending.CLAIMED or builder.state.halt.ending is Ending.CLAIMED):
        return
    stop = Halt(ending, reference, message, builder.now)
    enter(builder, Phase.HALTING, halt=stop, paused=None, closed=None)
    end_rehearsals(builder)
    if ending is Ending.HALTED and builder.state.order.goal is Goal.APPLY:
        _mark_for_revert(builder, revert or builder.state.order.on_failure)


def end_rehearsals(builder: StateBuilder) -> None:
    """Confirmed nodes that were to be rehearsed keep their change. Nodes that are reverting stay reverted: a resume
    changes them again.
    """
    for name, record in builder.nodes.those(builder.nodes.listed(NodeList.REHEARSING)):
        stays = record.state is NodeState.CONFIRMED
        builder.put(name, rehearsal=Rehearsal.NONE, to_revert=record.to_revert and not stays)


def _mark_for_revert(builder: StateBuilder, scope: RevertScope) -> None:
    if scope is RevertScope.NODE:
        return
    for name, record in tuple(builder.nodes.items()):
        here = builder.state.order.nodes[name].wave == builder.state.wave or scope is RevertScope.RUN
        if here and record.state in _TOUCHED:
            builder.put(name, to_revert=True, reference="taken-back-with-others", message="the run halted")


def held_by_another_run(builder: StateBuilder, name: str, reference: str, message: str) -> None:
    """The node reports that another run has it. While opening, a higher token may still win; later a change must stop.

    A rollback continues without the node unless most nodes report this. One false report must not keep the change on
    all others. A node that another run does have refuses us by itself.
    """
    builder.keep(name, fenced(builder.record(name), reference, message))
    if builder.state.phase is Phase.OPENING:
        return
    if builder.state.order.goal is Goal.APPLY or is_taken_over(builder):
        halt(builder, Ending.CLAIMED, reference, f"{name}: {message}")
    else:
        transition(builder, name, Decision.LEAVE_TO_OTHERS, reference, message)


def is_taken_over(builder: StateBuilder) -> bool:
    """Whether most nodes of the run report that another one has them."""
    return 2 * builder.nodes.count(Count.FENCED) > len(builder.nodes)


_TOUCHED = frozenset({NodeState.APPLYING, NodeState.APPLIED, NodeState.CONFIRMED, NodeState.UNKNOWN})


# Which wave is worked on.


def following_wave(builder: StateBuilder) -> int:
    """The next wave that has not passed yet, or has work again."""
    following = builder.state.wave + 1
    while following < builder.state.reached and not _has_open(builder, following):
        following += 1
    return following


def next_wave(builder: StateBuilder) -> None:
    following = following_wave(builder)
    reached = max(builder.state.reached, following)
    enter(builder, Phase.RUNNING, wave=following, reached=reached, round=0, gate_passes=0)


def first_open_wave(builder: StateBuilder) -> None:
    """After a resume: the first wave with work left, at most the current one, which has not passed yet."""
    first = next((index for index in range(builder.state.wave) if _has_open(builder, index)), builder.state.wave)
    builder.set(wave=first, round=0, gate_passes=0)


def _has_open(builder: StateBuilder, wave: int) -> bool:
    return builder.nodes.count(Count.OPEN, place_of(wave)) > 0
