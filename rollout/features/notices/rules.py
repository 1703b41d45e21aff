"""Which events of a run people are told of."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from rollout.core.presentation.event_log import has_changed
from rollout.core.presentation.notices import Notice, NoticeKind, notice_of
from rollout.core.presentation.summary import exit_code
from rollout.core.presentation.waiting import waits_for
from rollout.core.run.events import Event, Resumed
from rollout.core.run.state import Goal, NodeState, Phase, RunState
from rollout.core.text.terminal import counted

_LEFT = frozenset({NodeState.SKIPPED, NodeState.REFUSED, NodeState.UNREACHABLE})
"""Nodes that the opening of a run leaves as they are."""


def notices_of(event: Event, before: RunState, after: RunState) -> Iterator[Notice]:
    """What an event is worth to people; mostly nothing."""
    run = after.order.run
    if isinstance(event, Resumed):
        yield notice_of(NoticeKind.STARTED, after, "resumed", "a new controller took the run over")
    elif before.phase is Phase.OPENING and after.phase in (Phase.RUNNING, Phase.HALTING) and after.halt is None:
        verb = "reverts" if after.order.goal is Goal.REVERT else "changes"
        nodes = sum(record.state not in _LEFT for record in after.nodes.values())
        waves = counted(len(after.order.waves), "wave")
        yield notice_of(NoticeKind.STARTED, after, "started", f"it {verb} {counted(nodes, 'node')} in {waves}")
    if before.reached == 0 < after.reached and has_changed(after, after.order.waves[0]):
        done = f"wave {after.order.waves[0].name} has passed its gates"
        yield notice_of(NoticeKind.CANARY_DONE, after, "canary done", done)
    if after.waits and (before.paused, before.closed) != (after.paused, after.closed):
        command = f"rollout continue {run}" if after.paused is not None else ""  # it opens no window
        yield notice_of(NoticeKind.WAITS, after, "waits", waits_for(after, after.now), command)
    if after.halt is not None and before.halt is None:
        yield notice_of(NoticeKind.HALTED, after, "halted", str(after.halt))
        back = sum(record.to_revert for record in after.nodes.values())
        if back and after.phase is not Phase.ENDED:
            yield notice_of(NoticeKind.REVERTS, after, "reverts", f"{counted(back, 'node')} to be reverted")
    if after.phase is Phase.ENDED and before.phase is not Phase.ENDED:
        counts = Counter(record.state for record in after.nodes.values())
        said = ", ".join(f"{counts[state]} {state}" for state in NodeState if counts[state])
        code = exit_code(after)
        yield notice_of(
            NoticeKind.ENDED, after, f"ended: {after.ending}", f"{said}; exit code {code}", f"rollout report {run}"
        )
