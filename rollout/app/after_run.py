"""What came after a run: its controller, later rollbacks, newer changes on top, the watch for late harm."""

from __future__ import annotations

from collections.abc import Mapping

from rollout.app.config_map_restores import ReadRuns, restored_by
from rollout.app.following import (
    attendance,
    followed_by,
    late_of,
    playbook_of,
    recovered_since,
    released_since,
    rolled_back_directly,
    silences_left,
)
from rollout.app.node_histories import cluster_history, topmost_above
from rollout.app.ports import PastRuns
from rollout.core.presentation.summary_text import Afterwards
from rollout.core.run.facts import may_hold
from rollout.core.run.state import Goal, Phase, RunState


def afterwards(journal: PastRuns, state: RunState, now: float) -> Afterwards:
    """What the events of a run, replayed to this state, do not contain."""
    run, has_ended = state.order.run, state.phase is Phase.ENDED
    controller = attendance(journal, state.order.cluster, run)
    left = silences_left(journal, run, now) if not has_ended and not controller.alive else ()
    back = rolled_back_directly(journal, run)
    on_top: Mapping[str, tuple[str, ...]] = {}
    spent: frozenset[str] = frozenset()
    if has_ended and state.order.goal is Goal.APPLY:
        history = cluster_history(journal, state.order.cluster)
        back, on_top = history.rolled_back(run, back), topmost_above(history.nodes).get(run, {})
        spent = history.restored.get(run, spent)
    read = ReadRuns(ends={run: state.config_map})
    restored = restored_by(journal, state.order.cluster, run, read) if has_ended and state.order.config_map else ""
    if restored and not state.nodes:
        back = {restored: ()}  # it has changed the ConfigMap alone
    reverted = {name for names in back.values() for name in names}
    settled = reverted | spent | released_since(journal, run)
    return Afterwards(
        now, controller, left, back, late_of(journal, state), on_top=on_top,
        followed_by=followed_by(journal, run), playbook=playbook_of(journal, run),
        recovered=recovered_since(journal, state),
        is_rolled_back=bool(back) and _held(state) <= reverted,
        may_undo=not settled or not _held(state) <= settled,
        config_map_restored_by=restored,
    )  # fmt: skip


def _held(state: RunState) -> frozenset[str]:
    """The nodes that may have had the change when the run ended."""
    return frozenset(name for name, record in state.nodes.items() if may_hold(record))
