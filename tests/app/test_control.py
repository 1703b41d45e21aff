"""A request to a run from another terminal: its result is reported correctly, also when it is too late."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from rollout.adapters.journal import SqlJournal
from rollout.app.control import ask
from rollout.app.following import last_revert_times, replay, runs_at_work
from rollout.app.ports import RunHeader
from rollout.app.runs import highest_counter
from rollout.app.verify import last_confirmed
from rollout.core.run.events import Answered, RequestWord, Trigger, request_event
from rollout.core.run.journal_codec import encode_event, encode_order
from rollout.core.run.state import Phase, RunState, Verb
from rollout.errors import StateError
from tests.orders import make_order
from tests.plays import Play


class Controller:
    """A run on simulated nodes with a real journal. ``hears``: what it does while a request waits."""

    def __init__(self, folder: Path, run: str = "r1", cluster: str = "test") -> None:
        self.journal = SqlJournal(folder)
        self.order = replace(make_order({"a": 3}), run=run, cluster=cluster)
        self.play = Play(self.order)
        plain = encode_order(self.order)
        self.journal.acquire(cluster, run)
        self.journal.begin(RunHeader(run, cluster, "apply", plain, 1, b"", 0.0, "me", ""))
        self.play.run(until=lambda _: True)
        self.written = 0

    def until(self, condition: Callable[[RunState], bool]) -> None:
        self.play.go_on(until=condition)
        self.write()

    def write(self) -> None:
        new = self.play.journal[self.written :]
        self.written += len(new)
        self.journal.append(self.order.run, [encode_event(event) for event in new])

    def hears(self, _seconds: float) -> None:
        for request in self.journal.requests(self.order.run, self.play.state.heard):
            self.play.feed(request_event(request, self.play.now))
        self.write()

    def word(self, word: RequestWord, wait: Callable[[float], None] | None = None) -> RunState:
        return ask(self.journal, self.order.run, word, "me@here", "", "", wait or self.hears).state


def test_a_handled_request_is_in_force(tmp_path: Path) -> None:
    at_work = Controller(tmp_path)
    at_work.until(lambda s: s.phase is Phase.RUNNING)
    assert at_work.word(RequestWord.PAUSE).paused is not None
    assert at_work.word(RequestWord.CONTINUE).paused is None
    assert at_work.word(RequestWord.ABORT).halt is not None


@pytest.mark.parametrize("word", [RequestWord.ABORT, RequestWord.PAUSE])
def test_a_request_to_a_closing_run_is_not_reported_as_done(tmp_path: Path, word: RequestWord) -> None:
    at_work = Controller(tmp_path)
    at_work.until(lambda s: s.phase is Phase.CLOSING)
    with pytest.raises(StateError) as raised:
        at_work.word(word)
    assert raised.value.reference == "too-late"
    assert raised.value.message.startswith("run r1 was already ending when it got the request: ")


def test_a_run_that_ends_before_it_handles_a_request_is_not_waited_for(tmp_path: Path) -> None:
    at_work = Controller(tmp_path)
    at_work.until(lambda s: s.phase is Phase.RUNNING)
    waited: list[float] = []

    def ends(seconds: float) -> None:
        waited.append(seconds)
        at_work.until(lambda _: False)

    with pytest.raises(StateError) as raised:
        at_work.word(RequestWord.ABORT, ends)
    assert (raised.value.reference, len(waited)) == ("too-late", 1)
    assert at_work.journal.requests("r1", 0) == (), "no later controller must handle it"


def test_a_request_that_is_recorded_after_the_runs_end_is_too_late(tmp_path: Path) -> None:
    """The run was in progress at the check, but had no controller any more when the request was recorded."""
    at_work = Controller(tmp_path)
    at_work.until(lambda s: s.phase is Phase.RUNNING)

    class Slow(SqlJournal):
        def ask(self, run: str, word: str, who: str, reason: str, revert: str) -> int:
            at_work.until(lambda _: False)
            at_work.journal.release("test", "r1")
            return super().ask(run, word, who, reason, revert)

    with pytest.raises(StateError) as raised:
        ask(Slow(tmp_path), "r1", RequestWord.ABORT, "me@here", "", "", lambda _: None)
    assert raised.value.reference == "too-late"
    assert at_work.journal.requests("r1", 0) == ()


@pytest.mark.parametrize(
    ("first", "word", "others", "reference"),
    [
        ((), RequestWord.ABORT, RequestWord.ABORT, "halting-already"),
        ((), RequestWord.PAUSE, RequestWord.PAUSE, "paused-already"),
        ((), RequestWord.PAUSE, RequestWord.ABORT, "halting-already"),
        ((RequestWord.PAUSE,), RequestWord.CONTINUE, RequestWord.CONTINUE, "not-paused"),
        ((RequestWord.PAUSE,), RequestWord.CONTINUE, RequestWord.ABORT, "halting-already"),
    ],
)
def test_of_two_requests_at_once_only_the_one_that_took_effect_is_reported_as_done(
    tmp_path: Path, first: tuple[RequestWord, ...], word: RequestWord, others: RequestWord, reference: str
) -> None:
    """Somebody else's is recorded after our check and before ours. An abort of another scope would not be ours."""
    at_work = Controller(tmp_path)
    at_work.until(lambda s: s.phase is Phase.RUNNING)
    for each in first:
        at_work.word(each)

    class Raced(SqlJournal):
        def ask(self, run: str, word: str, who: str, reason: str, revert: str) -> int:
            super().ask(run, others.value, "ann@there", "", "")
            return super().ask(run, word, who, reason, revert)

    with pytest.raises(StateError) as raised:
        ask(Raced(tmp_path), "r1", word, "me@here", "", "run" if word is RequestWord.ABORT else "", at_work.hears)
    assert raised.value.reference == reference
    said = {"halting-already": "run r1 is already halting: ", "paused-already": "run r1 is already paused: "}
    assert raised.value.message.startswith(said.get(reference, ""))


def test_a_request_that_somebody_undoes_at_once_was_done(tmp_path: Path) -> None:
    at_work = Controller(tmp_path)
    at_work.until(lambda s: s.phase is Phase.RUNNING)

    def hears(seconds: float) -> None:
        at_work.journal.ask("r1", "continue", "ann@there", "", "")
        at_work.hears(seconds)

    asked_for = ask(at_work.journal, "r1", RequestWord.PAUSE, "me@here", "", "", hears)
    assert asked_for.heard
    assert asked_for.undone


def test_a_journal_that_is_lost_after_a_request_was_recorded_is_not_reported_as_a_refusal(tmp_path: Path) -> None:
    at_work = Controller(tmp_path)
    at_work.until(lambda s: s.phase is Phase.RUNNING)

    class Lost(SqlJournal):
        away = False

        def events(self, run: str, after: int = 0) -> tuple[str, ...]:
            if self.away:
                raise StateError("journal-away", "the server is starting up")
            return super().events(run, after)

    journal = Lost(tmp_path)

    def goes(_seconds: float) -> None:
        journal.away = True

    assert not ask(journal, "r1", RequestWord.ABORT, "me@here", "", "", goes).heard
    assert [each.word for each in at_work.journal.requests("r1", 0)] == ["abort"]


def test_a_request_that_no_controller_handles_is_reported(tmp_path: Path) -> None:
    at_work = Controller(tmp_path)
    at_work.until(lambda s: s.phase is Phase.RUNNING)
    assert not ask(at_work.journal, "r1", RequestWord.PAUSE, "me@here", "", "", lambda _: None).heard


def test_runs_of_several_clusters_can_be_in_progress(tmp_path: Path) -> None:
    Controller(tmp_path, "r1", "rno")
    second = Controller(tmp_path, "r2", "iad")
    assert set(runs_at_work(second.journal)) == {"r1", "r2"}
    second.journal.release("iad", "r2")
    assert runs_at_work(second.journal) == ("r1",)


def test_a_journal_of_another_version_is_refused_with_a_message(tmp_path: Path) -> None:
    """Its version has other rules: its events lead to node states that this version does not allow."""
    at_work = Controller(tmp_path)
    elsewhere = Answered(1.0, "a-1", 1, Verb.READ, Trigger.GATES_PASSED)
    at_work.journal.append("r1", [encode_event(elsewhere)])
    with pytest.raises(StateError) as raised:
        replay(at_work.journal, "r1")
    assert raised.value.reference == "journal-unreadable"
    assert highest_counter(at_work.journal, "test") == 1, "an optional check does not prevent the report"
    assert last_revert_times(at_work.journal, "test") is None
    assert last_confirmed(at_work.journal, "test") == {}
