"""Which nodes of a run without its change a resume tries again, and which need a new plan."""

from __future__ import annotations

from rollout.core.run import postponed, shown
from rollout.core.run.facts import OPEN
from rollout.core.run.state import Ending, Goal, NodeRecord, NodeState, Phase, RunState

_RESUMABLE = frozenset({Ending.HALTED, Ending.INTERRUPTED})
_WITHOUT = frozenset({NodeState.FAILED, NodeState.REVERTED, NodeState.REFUSED})


def resume_tries_again(record: NodeRecord) -> bool:
    """Whether a resumed run changes a node again that it has left: it did not fail itself, or nothing was tried yet."""
    return (
        (record.state is NodeState.REVERTED and record.cause is None)
        or postponed.skipped_for_pulls(record)
        or postponed.skipped_without_baseline(record)
        or shown.was_skipped(record)
        or shown.was_frozen(record)
    )


def resume_has_work(state: RunState) -> bool:
    """Whether a resume of the run would do anything, if no other run has followed it.

    Nodes with the change are soaked again. Nodes that failed are left as they are.
    """
    if state.phase is not Phase.ENDED:
        return True
    if state.ending not in (*_RESUMABLE, Ending.CLAIMED):
        return False
    restores = state.order.goal is Goal.REVERT and state.owes_config_map  # that of a halted apply, a rollback restores
    return restores or any(
        record.state in OPEN
        or record.state is NodeState.CONFIRMED
        or record.owed
        or record.cordoned
        or resume_tries_again(record)
        for record in state.nodes.values()
    )


def need_a_plan(state: RunState) -> tuple[str, ...]:
    """The nodes that an ended run left without its change and never changes again, repaired or not.

    A node that failed keeps its old files: somebody has repaired it since, so its files and version are read anew.
    """
    if state.phase is not Phase.ENDED or state.order.goal is not Goal.APPLY:
        return ()
    resumable = state.ending in _RESUMABLE
    if not resumable and state.ending is not Ending.DONE:
        return ()
    return tuple(
        name
        for name, record in state.nodes.items()
        if record.state in _WITHOUT and not record.owed and not (resumable and resume_tries_again(record))
    )
