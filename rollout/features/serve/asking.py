"""Controllers that died without telling anybody: a reader of the journal finds their late heartbeat and tells people once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress

from rollout.app.following import replay_if_readable
from rollout.app.ports import Holder, Journal, Note
from rollout.core.presentation.notices import Notice, lost
from rollout.core.run.state import Phase, RunState
from rollout.core.text.terminal import printable
from rollout.errors import StateError

EVERY = 10.0
"""Seconds between two looks into the journal."""

Tell = Callable[[Notice, RunState], None]


def watch_controllers(
    journal: Callable[[], Journal], tell: Tell, who: str, now: Callable[[], float], stopped: Callable[[float], bool]
) -> None:
    """Look until ``stopped``, which waits so many seconds. A journal that cannot be read now is read again."""
    while True:
        with suppress(StateError):
            tell_of_lost(journal(), tell, who, now())
        if stopped(EVERY):
            return


def tell_of_lost(journal: Journal, tell: Tell, who: str, now: float) -> None:
    """The note comes first, so that another reader of the journal does not tell the same. ``now``: seconds since the epoch."""
    for holder, state in _newly_lost(journal, now):
        why = f"its last heartbeat came {holder.silent:.0f} s ago from {printable(holder.host)}"
        journal.note(state.order.cluster, Note(now, who, f"{_words(holder.run)}: {why}"))
        tell(lost(state, why), state)


def _newly_lost(journal: Journal, now: float) -> Iterator[tuple[Holder, RunState]]:
    """A controller that ends in order releases its lease, and tells of it itself."""
    for cluster in dict.fromkeys(header.cluster for header in journal.listed()):
        holder = journal.holder(cluster)
        if holder is None or holder.alive or _is_told(journal, cluster, holder, now):
            continue
        state = None if journal.summary(holder.run) else replay_if_readable(journal, holder.run)
        if state is not None and state.phase is not Phase.ENDED:
            yield holder, state


def _is_told(journal: Journal, cluster: str, holder: Holder, now: float) -> bool:
    """Since its last heartbeat: a run may lose one controller after the other."""
    words, died = _words(holder.run), now - holder.silent
    return any(note.at >= died and note.text.startswith(words) for note in journal.notes(cluster))


def _words(run: str) -> str:
    return f"run {run} has no controller"
