"""What people are told of a run while they do not watch it: a title and two lines that matter, without any secret."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from rollout.core.presentation.event_log import has_changed
from rollout.core.presentation.summary import exit_code
from rollout.core.presentation.waiting import waits_for
from rollout.core.run.events import Event, Resumed
from rollout.core.run.state import Goal, NodeState, Phase, RunState
from rollout.core.text.terminal import counted, printable

_LONGEST = 300


class NoticeKind(StrEnum):
    STARTED = "started"
    CANARY_DONE = "canary-done"
    WAITS = "waits"
    HALTED = "halted"
    REVERTS = "reverts"
    ENDED = "ended"
    CONTROLLER_LOST = "controller-lost"
    LATE_HARM = "late-harm"
    LATE_UNKNOWN = "late-unknown"


@dataclass(frozen=True, slots=True)
class Notice:
    """``lines``: what happened, and the command that shows or continues it."""

    kind: NoticeKind
    title: str
    lines: tuple[str, str]

    def body(self, page: str) -> str:
        """``page``: the address of `rollout serve`; ``""``: not known."""
        return "\n".join((*self.lines, *((page,) if page else ())))


def notices_of(event: Event, before: RunState, after: RunState) -> Iterator[Notice]:
    """What an event is worth to people; mostly nothing."""
    run = after.order.run
    if isinstance(event, Resumed):
        yield _notice(NoticeKind.STARTED, after, "resumed", "a new controller took the run over")
    elif before.phase is Phase.OPENING and after.phase in (Phase.RUNNING, Phase.HALTING) and after.halt is None:
        verb = "reverts" if after.order.goal is Goal.REVERT else "changes"
        waves = counted(len(after.order.waves), "wave")
        yield _notice(NoticeKind.STARTED, after, "started", f"it {verb} {counted(len(after.nodes), 'node')} in {waves}")
    if before.reached == 0 < after.reached and has_changed(after, after.order.waves[0]):
        done = f"wave {after.order.waves[0].name} has passed its gates"
        yield _notice(NoticeKind.CANARY_DONE, after, "canary done", done)
    if after.waits and (before.paused, before.closed) != (after.paused, after.closed):
        command = f"rollout continue {run}" if after.paused is not None else ""  # it opens no window
        yield _notice(NoticeKind.WAITS, after, "waits", waits_for(after, after.now), command)
    if after.halt is not None and before.halt is None:
        yield _notice(NoticeKind.HALTED, after, "halted", f"{after.halt.message} [{after.halt.reference}]")
        back = sum(record.to_revert for record in after.nodes.values())
        if back and after.phase is not Phase.ENDED:
            yield _notice(NoticeKind.REVERTS, after, "reverts", f"{counted(back, 'node')} to be reverted")
    if after.phase is Phase.ENDED and before.phase is not Phase.ENDED:
        counts = Counter(record.state for record in after.nodes.values())
        said = ", ".join(f"{counts[state]} {state}" for state in NodeState if counts[state])
        code = exit_code(after)
        yield _notice(
            NoticeKind.ENDED, after, f"ended: {after.ending}", f"{said}; exit code {code}", f"rollout report {run}"
        )


def lost(state: RunState, why: str) -> Notice:
    """Its controller stops before the run has ended."""
    return _notice(NoticeKind.CONTROLLER_LOST, state, "has no controller", why, f"rollout resume {state.order.run}")


def late_harm(state: RunState, said: str, *, rolls_back: bool) -> Notice:
    """Its gates fail after its end."""
    what = "does harm after its end, and is rolled back" if rolls_back else "does harm after its end"
    return _notice(NoticeKind.LATE_HARM, state, what, said, f"rollout rollback {state.order.run}")


def late_unknown(state: RunState, said: str) -> Notice:
    """Its gates cannot be judged after its end, so that harm would not be seen."""
    return _notice(NoticeKind.LATE_UNKNOWN, state, "cannot be watched", said)


def _notice(kind: NoticeKind, state: RunState, what: str, said: str, command: str = "") -> Notice:
    cluster, run = state.order.cluster, state.order.run
    title = printable(f"{cluster}: run {run} {what}", _LONGEST)
    return Notice(kind, title, (printable(said, _LONGEST), command or f"rollout status {run}"))
