"""Following a run from its journal alone, event by event: what ``status``, ``watch`` and ``resume`` see."""

from __future__ import annotations

from rollout.app.ports import Journal
from rollout.core.events import Event
from rollout.core.journal_codec import decode_event, decode_order
from rollout.core.machine import opening, step
from rollout.core.state import RunState


class Follower:
    """``state`` is where the run stood after the events read so far; the first reading is made at once."""

    def __init__(self, journal: Journal, run: str) -> None:
        header = journal.header(run)
        self._journal = journal
        self._run = run
        self._read = 0
        self.state, _ = opening(decode_order(header.order), header.counter, header.at)
        self.catch_up()

    def catch_up(self) -> tuple[tuple[Event, RunState, RunState], ...]:
        """Read what has been written since: each event with the state before and after it."""
        seen = []
        for text in self._journal.events(self._run, self._read):
            event, before = decode_event(text), self.state
            self.state, _ = step(before, event)
            seen.append((event, before, self.state))
            self._read += 1
        return tuple(seen)


def replay(journal: Journal, run: str) -> RunState:
    """The state of a run from its journal alone."""
    return Follower(journal, run).state
