"""The driver: an event is durable before anything that follows from it is started."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from rollout.app.driver import Driver
from rollout.app.ports import Holder, Note, RunHeader, Worker
from rollout.core.model.regions import RegionStanding
from rollout.core.model.snapshot import ReceiptState
from rollout.core.presentation.summary import RunSummary, run_summary
from rollout.core.run.commands import Command
from rollout.core.run.events import Event, Request
from rollout.core.run.journal_codec import decode_event
from rollout.core.run.machine import opening, replayed, step
from rollout.core.run.state import Ending, NodeState, Order, RunState
from rollout.errors import StateError
from tests.orders import make_order
from tests.plays import Play

REGIONS = (RegionStanding("eu", ("eu-1",), 1, 2),)


class Log:
    """A journal and an engine in one, so that the order of writes and acts shows."""

    def __init__(self, order: Order, fail_at: int = 0) -> None:
        self.lines: list[str] = []
        self.ended: list[RunSummary] = []
        self.kept: list[RunState] = []
        self.entries: list[str] = []
        self.asked: list[Request] = []
        self.fail_at = fail_at
        self.play = Play(order)
        self.answers: list[Event] = []
        self.renewed = 0
        self.regions: Sequence[RegionStanding] = ()

    # Journal
    def append(self, run: str, events: Sequence[str], ended: RunSummary | None = None) -> None:
        if self.fail_at and len(self.entries) >= self.fail_at:
            raise StateError("journal-away", "no space left on device")
        self.lines += events
        self.ended += [ended] if ended is not None else []
        self.entries.append("write")

    def summary(self, run: str) -> RunSummary | None:
        return self.ended[-1] if self.ended else None

    def keep_end(self, state: RunState) -> None:
        self.entries.append("keep")
        self.kept.append(state)

    def kept_end(self, run: str) -> str | None:
        return None

    def renew(self, cluster: str, run: str, regions: Sequence[RegionStanding] = ()) -> None:
        self.renewed += 1
        self.regions = regions

    def begin(self, header: RunHeader) -> None: ...
    def header(self, run: str) -> RunHeader:
        raise NotImplementedError

    def events(self, run: str, after: int = 0) -> tuple[str, ...]:
        return tuple(self.lines[after:])

    def head(self, run: str) -> tuple[int, str]:
        return len(self.lines), ""

    def runs(self, cluster: str = "") -> tuple[RunHeader, ...]:
        return ()

    def listed(self) -> tuple[RunHeader, ...]:
        return ()

    def highest_counter(self, cluster: str) -> int:
        return 0

    def acquire(self, cluster: str, run: str) -> None: ...
    def release(self, cluster: str, run: str) -> None: ...
    def holder(self, cluster: str) -> Holder | None: ...
    def unlock(self, cluster: str, note: Note) -> None: ...
    def note(self, cluster: str, note: Note) -> None: ...
    def notes(self, cluster: str) -> tuple[Note, ...]:
        return ()

    def ask(self, run: str, word: str, who: str, reason: str, revert: str) -> int:
        self.asked.append(Request(len(self.asked) + 1, word, who, reason, revert))
        return len(self.asked)

    def requests(self, run: str, after: int) -> tuple[Request, ...]:
        return tuple(self.asked[after:])

    def withdraw(self, request: int) -> None: ...

    # Engine: the simulated nodes are the workers
    def submit(self, worker: Worker, command: Command) -> None:
        self.entries.append("act")
        self.play.begin(command, self.answers.append)

    def collect(self, timeout: float) -> tuple[Event, ...]:
        self.play.stand_still(1.0)
        found = tuple(self.answers)
        self.answers.clear()
        return found

    def close(self) -> None: ...

    # Clock
    def now(self) -> float:
        return self.play.now

    def wall(self) -> str:
        return ""


def unasked(command: Command) -> Event:
    raise LookupError(f"the simulated nodes do {command}")


class Watcher:
    def __init__(self) -> None:
        self.seen: list[Event] = []
        self.ends: list[RunState] = []

    def on_event(self, event: Event, before: RunState, after: RunState) -> None:
        self.seen.append(event)

    def on_end(self, state: RunState) -> None:
        self.ends.append(state)


def run(log: Log, order: Order, watcher: Watcher | None = None, *, interrupted: bool = False) -> RunState:
    state, commands = opening(order, 1, 0.0)
    driver = Driver(log, log, unasked, log, (watcher,) if watcher else (), lambda: interrupted, regions=lambda: REGIONS)
    return driver.run(state, commands)


def test_a_run_ends_and_its_journal_replays_to_the_same_state() -> None:
    order = make_order({"a": 6, "b": 6})
    log, watcher = Log(order), Watcher()
    end = run(log, order, watcher)
    assert end.ending is Ending.DONE
    again, _ = opening(order, 1, 0.0)
    for line in log.lines:
        again, _ = step(again, decode_event(line))
    assert (again.nodes, again.phase, again.ending) == (end.nodes, end.phase, end.ending)
    assert len(watcher.seen) == len(log.lines)
    assert watcher.ends == [end]
    assert (log.renewed > 0, log.regions) == (True, REGIONS)


def test_a_run_that_ends_leaves_what_its_events_say_and_no_later_time() -> None:
    """The clock was looked at again after the answer that ended the run: its summary named that time, which no event has."""
    order = make_order({"a": 3})
    log = Log(order)
    end = run(log, order)
    state, _ = opening(order, 1, 0.0)
    state = replayed(state, map(decode_event, log.lines))
    assert state.now < end.now
    assert (log.ended, log.kept) == ([run_summary(state)], [state])
    assert log.entries[-2:] == ["write", "keep"], "what is kept belongs to events that are durable"


def test_nothing_is_started_before_its_event_is_durable() -> None:
    order = make_order({"a": 3})
    log = Log(order)
    run(log, order)
    first = log.entries.index("write")
    assert log.entries[:first] == ["act"] * 3, "the opening claims follow from the run's header"
    assert "act" in log.entries[first:]
    for at, entry in enumerate(log.entries[first:], start=first):
        if entry == "act":
            assert "write" in log.entries[first:at]


def test_with_an_unreachable_journal_the_driver_stops_and_confirms_nothing() -> None:
    order = make_order({"a": 3})
    log = Log(order, fail_at=3)
    with pytest.raises(StateError, match="no space left"):
        run(log, order)
    receipts = [found for node in log.play.nodes.values() for found in node.transactions.values()]
    assert not [found for found in receipts if found.state is ReceiptState.CONFIRMED]


def test_ticks_that_change_nothing_are_not_journaled() -> None:
    order = make_order({"a": 1})
    log = Log(order)
    end = run(log, order)
    assert sum('"Ticked"' in line for line in log.lines) < 12 < end.now


def test_an_interrupt_is_an_event_like_any_other() -> None:
    order = make_order({"a": 6})
    log = Log(order)
    end = run(log, order, interrupted=True)
    assert end.ending is Ending.INTERRUPTED
    assert {record.state for record in end.nodes.values()} == {NodeState.PENDING}
    assert sum('"InterruptAsked"' in line for line in log.lines) == 1


def test_a_request_of_another_terminal_is_handled_once_and_journaled() -> None:
    order = make_order({"a": 10})
    log = Log(order)
    log.ask(order.run, "pause", "ops@desk", "lunch", "")
    driver = Driver(log, log, unasked, log)
    log.ask(order.run, "continue", "ops@desk", "", "")
    state, commands = opening(order, 1, 0.0)
    end = driver.run(state, commands)
    words = [type(decode_event(line)).__name__ for line in log.lines]
    assert [word for word in words if word.endswith("Asked")] == ["PauseAsked", "ContinueAsked"]
    assert (end.ending, end.heard) == (Ending.DONE, 2)


def test_a_request_of_a_newer_version_does_not_end_a_run() -> None:
    order = make_order({"a": 2})
    log = Log(order)
    log.ask("r1", "hasten", "me@here", "", "")
    log.ask("r1", "abort", "me@here", "", "everything")
    assert run(log, order).ending is Ending.DONE
