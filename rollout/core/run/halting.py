"""A run halts: by a budget, an operator, or another run that has its nodes. Nodes to revert are marked."""

from __future__ import annotations

from rollout.core.model.playbook import RevertScope
from rollout.core.run.events import FENCES
from rollout.core.run.moving import transition
from rollout.core.run.state import Ending, Goal, Halt, NodeState, Phase, Rehearsal
from rollout.core.run.state_builder import StateBuilder
from rollout.core.run.transitions import ResolvedTrigger


def halt(
    builder: StateBuilder, ending: Ending, reference: str, message: str, revert: RevertScope | None = None
) -> None:
    """Release nothing more; mark the nodes to revert: by ``revert``, or as set in the playbook.

    A takeover by another run ends a halting run, too. A rehearsal in progress becomes a plain revert.
    """
    if builder.state.halt is not None and (ending is not Ending.CLAIMED or builder.state.halt.ending is Ending.CLAIMED):
        return
    builder.set(halt=Halt(ending, reference, message, builder.now), phase=Phase.HALTING, paused=None)
    end_rehearsals(builder)
    if ending is Ending.HALTED and builder.state.order.goal is Goal.APPLY:
        _mark_for_return(builder, revert or builder.state.order.on_failure)


def end_rehearsals(builder: StateBuilder) -> None:
    """Confirmed nodes that were to be rehearsed keep their change. Nodes that are reverting stay reverted: a resume
    changes them again.
    """
    for name, record in tuple(builder.nodes.items()):
        if record.rehearsal is Rehearsal.BACK:
            stays = record.state is NodeState.CONFIRMED
            builder.put(name, rehearsal=Rehearsal.NONE, want_back=record.want_back and not stays)


def _mark_for_return(builder: StateBuilder, scope: RevertScope) -> None:
    if scope is RevertScope.NODE:
        return
    for name, record in tuple(builder.nodes.items()):
        here = builder.state.order.nodes[name].wave == builder.state.wave or scope is RevertScope.RUN
        if here and record.state in _TOUCHED:
            builder.put(name, want_back=True, reference="taken-back-with-others", message="the run halted")


def fenced(builder: StateBuilder, name: str, reference: str, message: str) -> None:
    """The node reports that another run has it. While opening, a higher token may still win; later a change must stop.

    A rollback continues without the node unless most nodes report this. One false report must not keep the change on
    all others. A node that another run does have refuses us by itself.
    """
    builder.put(name, reference=reference, message=message)
    if builder.state.phase is Phase.OPENING:
        return
    if builder.state.order.goal is Goal.APPLY or is_taken_over(builder):
        halt(builder, Ending.CLAIMED, reference, f"{name}: {message}")
    else:
        transition(builder, name, ResolvedTrigger.LEFT_TO_OTHERS, reference, message)


def is_taken_over(builder: StateBuilder) -> bool:
    """Whether most nodes of the run report that another one has them."""
    return 2 * sum(record.reference in FENCES for record in builder.nodes.values()) > len(builder.nodes)


_TOUCHED = frozenset({NodeState.APPLYING, NodeState.APPLIED, NodeState.CONFIRMED, NodeState.UNKNOWN})
