"""A second machine beside a run, that is told nothing but the journal's own text (law 10)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields

from rollout.core.run.journal_codec import decode_event, decode_order
from rollout.core.run.machine import opening, replayed
from rollout.core.run.state import RunState
from rollout.core.run.transitions import IllegalMoveError


class Shadow:
    """Steps on each line of the journal. What differs from the live state is told at the event that made it differ."""

    def __init__(self, order: str, counter: int, at: float) -> None:
        self.state, _ = opening(decode_order(order), counter, at)

    def step(self, line: str) -> None:
        self.state = replayed(self.state, decode_event(line))

    def follow(self, line: str, before: RunState, after: RunState) -> str:
        """Where the replay differs after this line from the live state; "" if nowhere. Only what the event touched is compared."""
        try:
            self.step(line)
        except IllegalMoveError as error:
            return f"a replay stops at {line:.200}: {error}"
        touched = [name for name, record in after.nodes.items() if record is not before.nodes[name]]
        return self._difference(after, touched)

    def difference(self, live: RunState) -> str:
        """The same over everything."""
        order = "" if list(self.state.nodes) == list(live.nodes) else "the nodes stand in another order"
        return order or self._difference(live, live.nodes)

    def _difference(self, live: RunState, names: Iterable[str]) -> str:
        for name in names:
            if self.state.nodes[name] != live.nodes[name]:
                return f"the run has {live.nodes[name]}, a replay of its journal {self.state.nodes[name]}"
        for field in _COMPARED:
            here, there = getattr(live, field), getattr(self.state, field)
            if here != there:
                return f"{field} is {here!r} in the run, {there!r} in a replay of its journal"
        return ""


_COMPARED = tuple(field.name for field in fields(RunState) if field.name not in ("order", "nodes"))
