"""The driver with an unreachable journal: nothing is started, answers are kept, and the wait has a computed end."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from rollout.app.driver import Driver
from rollout.app.journal_away import AWAY_SECONDS, _given_up, waits_until
from rollout.app.ports import Worker
from rollout.core.model.regions import RegionStanding
from rollout.core.presentation.summary import RunSummary
from rollout.core.run.commands import Ask, Command
from rollout.core.run.events import Event, Request
from rollout.core.run.journal_codec import decode_event
from rollout.core.run.machine import opening, step
from rollout.core.run.state import Ending, Goal, NodeState, Order, RunState, Verb
from rollout.errors import StateError
from tests.app.test_driver import Log, unasked
from tests.orders import CURRENT, make_order


class AwayLog(Log):
    """Its writes fail from the ``after``-th on, until the clock reaches ``back`` (then with ``then``, if it is given)."""

    def __init__(self, order: Order, after: int, lasts: float, then: StateError | None = None) -> None:
        super().__init__(order)
        self.after = after
        self.lasts = lasts
        self.then = then
        self.began = float("inf")
        self.told: list[str] = []
        self.applied: list[float] = []

    def append(self, run: str, events: Sequence[str], ended: RunSummary | None = None) -> None:
        if self.entries.count("write") >= self.after and self.began == float("inf"):
            self.began = self.play.now
        if self.began <= self.play.now < self.began + self.lasts:
            self.entries.append("away")
            raise StateError("journal-away", "an event could not be recorded: no space left on device")
        if self.began < float("inf") and self.then is not None:
            raise self.then
        super().append(run, events, ended)

    def renew(self, cluster: str, run: str, regions: Sequence[RegionStanding] = ()) -> None:
        if self.began <= self.play.now < self.began + self.lasts:
            raise StateError("journal-away", "the lease could not be renewed")
        super().renew(cluster, run, regions)

    def requests(self, run: str, after: int) -> tuple[Request, ...]:
        if self.began <= self.play.now < self.began + self.lasts:
            raise StateError("journal-away", "the journal cannot be read")
        return super().requests(run, after)

    def submit(self, worker: Worker, command: Command) -> None:
        if isinstance(command, Ask) and command.verb is Verb.APPLY:
            self.applied.append(self.play.now)
        super().submit(worker, command)

    def run(self, order: Order, *, interrupted_at: float = float("inf")) -> RunState:
        state, commands = opening(order, 1, 0.0)
        asked = lambda: self.play.now >= interrupted_at  # noqa: E731
        return Driver(self, self, unasked, self, (), asked, self.told.append).run(state, commands)


def test_a_run_continues_when_its_journal_is_back() -> None:
    order = make_order({"a": 6})
    log = AwayLog(order, after=3, lasts=20)
    end = log.run(order)
    assert end.ending is Ending.DONE
    assert {record.state for record in end.nodes.values()} == {NodeState.CONFIRMED}
    first, last = log.entries.index("away"), len(log.entries) - log.entries[::-1].index("away")
    assert set(log.entries[first:last]) == {"away"}, "only journaled commands are started"
    assert log.entries[last] == "write"
    assert "nothing is started until it is back" in log.told[0]
    assert "the journal is back after" in log.told[1]


def test_an_unreachable_journal_does_not_end_a_run_that_has_nothing_to_write() -> None:
    """Requests of other terminals are read every second. During an outage no terminal can record one either."""
    order = make_order({"a": 6})
    log = AwayLog(order, after=0, lasts=0.5)
    log.began = 3.4  # between two writes, when requests are read
    log.lasts = 1.0
    assert log.run(order).ending is Ending.DONE


def test_the_journal_after_an_outage_replays_to_the_same_run() -> None:
    order = make_order({"a": 6})
    log = AwayLog(order, after=4, lasts=20)
    end = log.run(order)
    state, _ = opening(order, 1, 0.0)
    for line in log.lines:
        state, _ = step(state, decode_event(line))
    assert state.nodes == end.nodes
    assert len(log.lines) == len({*enumerate(log.lines)})


def test_answers_during_an_outage_are_not_lost() -> None:
    """The verb was sent before. Its answer is collected during the outage and handled afterwards."""
    order = make_order({"a": 4})
    log = AwayLog(order, after=2, lasts=5)
    collected: list[Event] = []
    collect = log.collect

    def watched(timeout: float) -> tuple[Event, ...]:
        found = collect(timeout)
        if log.began <= log.play.now < log.began + log.lasts:
            collected.extend(found)
        return found

    log.collect = watched  # type: ignore[method-assign]
    assert log.run(order).ending is Ending.DONE
    assert all(event in [decode_event(line) for line in log.lines] for event in collected)


@pytest.mark.parametrize(("guard", "least"), [(10.0, AWAY_SECONDS), (200.0, AWAY_SECONDS)])
def test_the_wait_ends_when_no_guard_can_be_armed_and_not_before_a_minute(guard: float, least: float) -> None:
    order = replace(make_order({"a": 4}), guard=guard)
    log = AwayLog(order, after=3, lasts=float("inf"))
    with pytest.raises(StateError, match="nothing was started meanwhile") as raised:
        log.run(order)
    assert (raised.value.reference, raised.value.exit_code) == ("journal-away", 5)
    assert f"rollout resume {order.run}" in raised.value.hint
    waited = log.play.now - log.began
    assert least <= waited <= max(least, guard) + 2
    assert set(log.entries[log.entries.index("away") :]) == {"away"}, "nothing was started or confirmed"


def test_the_wait_is_the_remaining_time_of_the_last_guard() -> None:
    order = replace(make_order({"a": 2}), guard=120.0)
    state, _ = opening(order, 1, 0.0)
    first, second = state.nodes
    armed = replace(state.nodes[first], current=CURRENT[NodeState.APPLIED], since=1000.0)
    assert waits_until(state, 1010.0) == 1010.0 + AWAY_SECONDS, "no node is armed"
    held = replace(state, nodes={**state.nodes, first: armed})
    assert waits_until(held, 1010.0) == 1000.0 + 120.0
    assert waits_until(held, 1090.0) == 1090.0 + AWAY_SECONDS
    later = replace(armed, since=1020.0)
    assert waits_until(replace(held, nodes={first: armed, second: later}), 1030.0) == 1020.0 + 120.0


def test_a_rollback_gets_the_hint_that_it_works_without_a_journal() -> None:
    order = make_order({"a": 1})
    state = replace(opening(order, 1, 0.0)[0], order=replace(order, goal=Goal.REVERT))
    away = StateError("journal-away", "it does not answer")
    assert "at once: `rollout rollback --emergency --cluster" in _given_up(away, state, 60.0).hint
    assert "--emergency" not in _given_up(away, opening(order, 1, 0.0)[0], 60.0).hint, (
        "an apply continues only from its journal"
    )


def test_a_lost_lease_ends_the_wait_at_once() -> None:
    order = make_order({"a": 4})
    lost = StateError("lease-lost", "another controller has taken this run over; this one stops")
    log = AwayLog(order, after=3, lasts=10, then=lost)
    with pytest.raises(StateError, match="this one stops"):
        log.run(order)
    assert log.play.now < log.began + 15
    assert log.entries[-1] == "away", "nothing was started after it"


def test_ctrl_c_ends_the_wait() -> None:
    order = make_order({"a": 4})
    log = AwayLog(order, after=3, lasts=float("inf"))
    with pytest.raises(StateError, match="tried for"):
        log.run(order, interrupted_at=12.0)
    assert log.play.now < 20


def test_other_errors_of_a_journal_are_not_waited_for() -> None:
    order = make_order({"a": 4})
    log = AwayLog(order, after=3, lasts=0, then=StateError("journal-broken", "not the one that was written"))
    log.began = -1.0
    with pytest.raises(StateError, match="not the one"):
        log.run(order)
    assert log.told == []


@pytest.mark.parametrize("after", range(1, 8))
def test_restarts_that_were_journaled_late_keep_the_pace(after: int) -> None:
    order = make_order(dict.fromkeys("abcd", 4))
    order = replace(order, limits=replace(order.limits, pace=0.25))
    log = AwayLog(order, after=after, lasts=10)
    assert log.run(order).ending is Ending.DONE
    gaps = [later - earlier for earlier, later in zip(log.applied, log.applied[1:], strict=False)]
    assert min(gaps) >= 1 / 0.25 - 1e-6, gaps
