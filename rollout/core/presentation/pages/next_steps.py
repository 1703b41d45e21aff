"""What to do after a run, as commands that work as they are printed, each with what it does."""

from __future__ import annotations

from collections.abc import Iterator

from rollout.core.run.state import Ending, Goal, NodeState, Phase, RunState


def next_steps(state: RunState) -> Iterator[tuple[str, str]]:
    """``(command, what it does)``, the most useful first."""
    run, cluster = state.order.run, state.order.cluster
    if state.phase is not Phase.ENDED:
        yield f"rollout watch {run}", "see it go on, where its controller is at work"
        yield f"rollout resume {run}", "go on with it, where its controller has died"
    if state.ending in (Ending.HALTED, Ending.INTERRUPTED):
        what = "go on after its halt: who went wrong is accepted, every node is read back first"
        yield f"rollout resume {run}", what if state.ending is Ending.HALTED else "go on where it stopped"
    if state.phase is Phase.ENDED and any(record.owed for record in state.nodes.values()):
        yield f"rollout catch-up {run}", "do what is owed to the nodes that could not be reached, once they answer"
    if state.order.goal is Goal.APPLY and _holds(state):
        yield f"rollout rollback {run}", "take it back from every node that has it"
    if state.ending is Ending.PREFLIGHT:
        yield f"rollout plan --cluster {cluster}", "plan again once the sick nodes are mended or left out with --limit"
    if state.ending is Ending.CLAIMED:
        yield (
            f"rollout status --state DIR {run}",
            "another run has nodes of this one: look there, resume it or take it back",
        )
    if state.ending is Ending.DONE and state.order.goal is Goal.APPLY:
        yield f"rollout verify --cluster {cluster}", "see whether the nodes still are as they were left"


def _holds(state: RunState) -> bool:
    held = (NodeState.CONFIRMED, NodeState.APPLIED, NodeState.UNKNOWN, NodeState.UNREACHABLE)
    return any(record.state in held for record in state.nodes.values())
