"""What people are told of a run while they do not watch it: a title and two lines that matter, without any secret."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from rollout.core.run.state import RunState
from rollout.core.text.terminal import printable

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
    OWNED_LACKING = "owned-lacking"


@dataclass(frozen=True, slots=True)
class Notice:
    """``lines``: what happened, and the command that shows or continues it."""

    kind: NoticeKind
    title: str
    lines: tuple[str, str]

    def body(self, page: str) -> str:
        """``page``: the address of `rollout serve`; ``""``: not known."""
        return "\n".join((*self.lines, *((page,) if page else ())))


def lost(state: RunState, why: str) -> Notice:
    """Its controller stops before the run has ended."""
    return notice_of(NoticeKind.CONTROLLER_LOST, state, "has no controller", why, f"rollout resume {state.order.run}")


def notice_of(kind: NoticeKind, state: RunState, what: str, said: str, command: str = "") -> Notice:
    """``what``: what the run does; ``said``: why. ``command``: what goes on with it; ``""``: what shows it."""
    cluster, run = state.order.cluster, state.order.run
    title = printable(f"{cluster}: run {run} {what}", _LONGEST)
    return Notice(kind, title, (printable(said, _LONGEST), command or f"rollout status {run}"))
