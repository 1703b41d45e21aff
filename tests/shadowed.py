"""Law 10 in every run of a forked command: beside its driver a second machine steps on what the journal keeps, and on nothing else.

A run with a replay that differs ends as an internal error, at the event that made the two differ.
"""

from __future__ import annotations

from collections.abc import Sequence

from rollout.adapters.journal import SqlJournal
from rollout.app.driver import Driver
from rollout.core.run.commands import Command
from rollout.core.run.events import Event
from rollout.core.run.journal_codec import encode_event
from rollout.core.run.state import RunState, altered
from rollout.simulator.fleet_laws import ShadowMachine


class Beside:
    """An observer. ``opening`` are the lines that are about to be written, which led to ``state``."""

    def __init__(self, journal: SqlJournal, state: RunState, opening: Sequence[str]) -> None:
        header = journal.header(state.order.run)
        self.shadow = ShadowMachine(header.order, header.counter, header.at)
        for line in (*journal.events(header.run), *opening):
            self.shadow.step(line)
        self.on_end(state)

    def on_event(self, event: Event, before: RunState, after: RunState) -> None:
        _hold(self.shadow.follow(encode_event(event), before, after))

    def on_end(self, state: RunState) -> None:
        _hold(self.shadow.difference(altered(state, {"now": self.shadow.state.now})))


def _hold(difference: str) -> None:
    assert not difference, f"law 10: {difference}"


def install() -> None:
    """From now on in this process and its children."""
    alone = Driver.run

    def run(self: Driver, state: RunState, commands: tuple[Command, ...], events: Sequence[Event] = ()) -> RunState:
        if isinstance(self._journal, SqlJournal):
            beside = Beside(self._journal, state, [encode_event(event) for event in events])
            self._observers = (*self._observers, beside)
        return alone(self, state, commands, events)

    Driver.run = run  # type: ignore[method-assign]
