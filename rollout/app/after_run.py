"""What came after a run: its controller, later rollbacks, newer changes on top, the watch for late harm."""

from __future__ import annotations

from collections.abc import Mapping

from rollout.app.following import attendance, followed_by, late_of, playbook_of, rolled_back_directly, silences_left
from rollout.app.node_histories import cluster_history, topmost_above
from rollout.app.ports import PastRuns
from rollout.core.presentation.summary_text import Afterwards
from rollout.core.run.state import Goal, NodeState, Phase, RunState

MAY_HOLD = frozenset(
    {
        NodeState.CONFIRMED, NodeState.APPLIED, NodeState.APPLYING, NodeState.REVERTING, NodeState.UNKNOWN,
        NodeState.UNREACHABLE, NodeState.GONE,
    }
)  # fmt: skip
"""States of nodes that may have a run's change: a rollback reverts them."""


def afterwards(journal: PastRuns, state: RunState, now: float) -> Afterwards:
    """What the events of a run, replayed to this state, do not contain."""
    run, has_ended = state.order.run, state.phase is Phase.ENDED
    controller = attendance(journal, state.order.cluster, run)
    left = silences_left(journal, run, now) if not has_ended and not controller.alive else ()
    back = rolled_back_directly(journal, run)
    on_top: Mapping[str, tuple[str, ...]] = {}
    if has_ended and state.order.goal is Goal.APPLY:
        history = cluster_history(journal, state.order.cluster)
        back, on_top = history.rolled_back(run, back), topmost_above(history.nodes).get(run, {})
    return Afterwards(
        now, controller, left, back, late_of(journal, state), on_top=on_top,
        followed_by=followed_by(journal, run), playbook=playbook_of(journal, run),
        is_rolled_back=_is_rolled_back(state, {name for names in back.values() for name in names}),
    )  # fmt: skip


def _is_rolled_back(state: RunState, back: set[str]) -> bool:
    """Whether later rollbacks reverted every node that may have had the change."""
    held = {name for name, record in state.nodes.items() if record.state in MAY_HOLD or record.owed}
    return bool(back) and held <= back
