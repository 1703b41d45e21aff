"""What people are told when the gates of a run fail after its end."""

from __future__ import annotations

from rollout.core.presentation.notices import Notice, NoticeKind, notice_of
from rollout.core.run.state import RunState


def late_harm(state: RunState, said: str, *, rolls_back: bool) -> Notice:
    """Its gates fail after its end."""
    what = "does harm after its end, and is to be rolled back" if rolls_back else "does harm after its end"
    return notice_of(NoticeKind.LATE_HARM, state, what, said, f"rollout rollback {state.order.run}")


def late_unknown(state: RunState, said: str) -> Notice:
    """Its gates cannot be judged after its end, so that harm would not be seen."""
    return notice_of(NoticeKind.LATE_UNKNOWN, state, "cannot be watched", said)
