"""The state of a run, its report, requests to it and watching it: from the journal, without a node."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from rollout.app import chosen_run
from rollout.app.control import ask_run
from rollout.app.ports import Note
from rollout.app.report import PastRunReport, RunReport, report_run
from rollout.app.run_documents import PastRunDocument
from rollout.app.status import MOST_OTHERS, Replayed, StatusDocument, run_status, status_document
from rollout.app.watch import no_controller_document, watch_run
from rollout.core.model.freeze import NodeFreeze
from rollout.core.presentation.freeze_text import frozen_note
from rollout.core.presentation.past_run import PastRun
from rollout.core.presentation.waiting_plans import WaitingPlan
from rollout.core.run.events import Event, RequestWord
from rollout.core.run.state import RULES, Ending, RunState, Verb
from rollout.errors import StateError, UsageError
from tests.app.call import CLUSTER, FakeCall, elsewhere

PLAN = WaitingPlan("p.plan.json", CLUSTER, "d" * 64, ("nobody has signed",))


def test_the_newest_run_is_shown_with_what_is_around_it(tmp_path: Path) -> None:
    call = FakeCall(tmp_path, waiting=(PLAN,)).applied()
    call.journal().note(CLUSTER, Note(1.0, "ann@desk", frozen_note(NodeFreeze(1, "f-1", "ann@desk", "year end"))))
    status = run_status(call, "")
    assert isinstance(status.run, Replayed)
    assert (status.run.state.order.run, status.run.state.ending) == ("r1", Ending.DONE)
    assert (status.plans, status.frozen is not None, status.later, status.earlier) == ((PLAN,), True, (), ())
    document = status_document(status)
    assert isinstance(document, StatusDocument)
    assert (document.who, document.reason, document.age) == ("me@here", "slow pulls", call.clock.now() - document.began)
    assert document.recorded.journal.events == len(call.journal().events("r1"))


def test_the_nearest_runs_before_and_after_are_named(tmp_path: Path) -> None:
    call = FakeCall(tmp_path)
    first = call.applied().journal().header("r1")
    for number in range(2, 2 * MOST_OTHERS + 4):
        call.journal().begin(replace(first, run=f"r{number}", at=first.at + number))
    middle = f"r{MOST_OTHERS + 2}"
    status = run_status(call, middle)
    assert status.later[-1].run == f"r{MOST_OTHERS + 3}"
    assert status.earlier[0].run == f"r{MOST_OTHERS + 1}"
    assert (len(status.later), len(status.earlier)) == (MOST_OTHERS, MOST_OTHERS)


def test_a_journal_without_the_run_is_named(tmp_path: Path) -> None:
    call = FakeCall(tmp_path)
    with pytest.raises(UsageError, match=f"the journal in {tmp_path} holds no run yet"):
        run_status(call, "")
    call.applied()
    with pytest.raises(UsageError) as refused:
        run_status(call, "x9")
    assert refused.value.reference == "no-such-run"


def of_another_version(folder: Path) -> FakeCall:
    call = FakeCall(folder)
    header = call.applied().journal().header("r1")
    order = header.order.replace(f'"rules": {RULES}', f'"rules": {RULES - 1}', 1)
    assert order != header.order
    call.journal().begin(replace(header, run="r2", order=order, at=header.at + 1))
    return call


def test_a_run_of_another_version_is_shown_by_what_is_stored_of_it(tmp_path: Path) -> None:
    call = of_another_version(tmp_path)
    status = run_status(call, "")
    assert isinstance(status.run, PastRun)
    assert isinstance(status_document(status), PastRunDocument)
    report = report_run(call, "r2", needs_story=False)
    assert isinstance(report, PastRunReport)
    assert report.recorded == status.recorded
    with pytest.raises(StateError) as refused:
        report_run(call, "r2", needs_story=True)
    assert refused.value.reference == "another-version"


def test_a_report_tells_the_events_of_a_run(tmp_path: Path) -> None:
    call = FakeCall(tmp_path).killed("n2", Verb.APPLY)
    report = report_run(call, "", needs_story=False)
    assert isinstance(report, RunReport)
    assert (report.story.past.order.run, report.after.controller.alive) == ("r1", False)


# ------------------------------------------------------------------------------------------- requests


def test_a_request_goes_to_the_run_in_progress_and_needs_a_controller(tmp_path: Path) -> None:
    call = FakeCall(tmp_path).killed("n1", Verb.APPLY)
    with pytest.raises(StateError) as refused:
        ask_run(call, "", RequestWord.PAUSE, lambda _seconds: None)
    assert refused.value.reference == "no-controller"
    call.held(elsewhere("r1", alive=True))
    status = ask_run(call, "", RequestWord.PAUSE, lambda _seconds: None)
    assert (status.heard, status.exit_code) == (False, 5), "nobody reads it here"
    (request,) = call.journal().requests("r1", 0)
    assert (request.word, request.who, request.reason) == ("pause", "me@here", "slow pulls")


def test_of_several_runs_in_progress_one_must_be_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    call = FakeCall(tmp_path).killed("n1", Verb.APPLY)
    monkeypatch.setattr(chosen_run, "runs_at_work", lambda _journal: ("r2", "r1"))
    with pytest.raises(UsageError, match="several runs are in progress: r1, r2"):
        ask_run(call, "", RequestWord.ABORT, lambda _seconds: None)
    with pytest.raises(StateError, match="no controller"):
        ask_run(call, "r1", RequestWord.ABORT, lambda _seconds: None)


# ------------------------------------------------------------------------------------------- watching


@dataclass
class Screen:
    """An observer that counts."""

    events: int = 0
    ends: list[Ending | None] = field(default_factory=list)

    def on_event(self, _event: Event, _before: RunState, _after: RunState) -> None:
        self.events += 1

    def on_end(self, state: RunState) -> None:
        self.ends.append(state.ending)


def test_a_run_that_has_ended_is_shown_to_its_end(tmp_path: Path) -> None:
    call, screen = FakeCall(tmp_path).applied(), Screen()
    watched = watch_run(call.journal(), "r1", (screen,), None, _no_wait, call.clock.now)
    assert watched is not None
    assert (watched.exit_code, watched.after) == (0, None)
    assert (screen.events, screen.ends) == (len(call.journal().events("r1")), [Ending.DONE])


def test_a_run_without_a_controller_is_no_success(tmp_path: Path) -> None:
    call, screen = FakeCall(tmp_path).killed("n1", Verb.APPLY), Screen()
    watched = watch_run(call.journal(), "r1", (screen,), None, _no_wait, call.clock.now)
    assert watched is not None
    assert watched.after is not None
    assert (watched.exit_code, screen.ends) == (5, [])
    assert no_controller_document(watched.state, watched.after).summary.run == "r1"


class Leaving:
    def wait(self, seconds: float) -> None:
        raise AssertionError(seconds)

    def look(self, state: RunState | None) -> bool:
        return state is not None


def test_the_operator_may_leave_a_run_that_goes_on(tmp_path: Path) -> None:
    call = FakeCall(tmp_path).killed("n1", Verb.APPLY)
    call.held(elsewhere("r1", alive=True))
    assert watch_run(call.journal(), "r1", (), Leaving(), _no_wait, call.clock.now) is None


def _no_wait(seconds: float) -> None:
    raise AssertionError(f"nothing is waited for: {seconds}")
