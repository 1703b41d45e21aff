"""The status of a run that has ended: from the state that its controller kept it is what it is from the events, to the byte."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from rollout.adapters.journal import SqlJournal
from rollout.app import following
from rollout.app.following import replay
from rollout.app.ports import RunHeader
from rollout.app.status import Replayed, status_document, status_of
from rollout.cli.status import status_lines
from rollout.core.model.plan import Plan
from rollout.core.plans import plan_codec
from rollout.core.presentation.summary import run_summary
from rollout.core.run.journal_codec import encode_event, encode_order
from rollout.core.run.state import Ending, Goal, NodeState, RunState, Verb, altered
from rollout.core.text import documents
from rollout.errors import StateError
from tests.adapters.journal.test_sqlite_file import _changed
from tests.app.site import SMALL, Site
from tests.core.presentation import journals
from tests.plays import Drive

Story = Callable[[SqlJournal], None]
"""What was done with a journal."""


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[SqlJournal]:
    made = SqlJournal(tmp_path)
    yield made
    made.close()


def shown(journal: SqlJournal, run: str) -> tuple[str, str]:
    """For people, and for programs."""
    status = status_of(journal, run, journals.BEGAN + 86_400.0)
    assert isinstance(status.run, Replayed)
    return "\n".join(status_lines(status)), documents.page(status_document(status))


def kept(folder: Path) -> set[str]:
    return {file.name for file in (folder / "ends").glob("*")}


# Runs of the driver, with agents as nodes.


def finished(journal: SqlJournal) -> None:
    Site(journal).apply()


def rolled_back(journal: SqlJournal) -> None:
    site = Site(journal)
    site.apply()
    site.roll_back("r1", ("n1", "n3"))


def applied_twice(journal: SqlJournal) -> None:
    site = Site(journal)
    site.apply()
    site.roll_back("r1")
    site.apply()


def resumed(journal: SqlJournal) -> None:
    site = Site(journal)
    site.killed("n2", Verb.APPLY)
    site.resume("r1")


# Runs of the machine, with simulated nodes.


def played(plan: Plan, play: Drive) -> Story:
    def write(journal: SqlJournal) -> None:
        run = play.order.run
        content, order = plan_codec.encode(plan), encode_order(play.order)
        journal.begin(RunHeader(run, plan.cluster, "apply", order, 1, content, play.began, "ann@ops", "pulls time out"))
        journal.acquire(plan.cluster, run)
        journal.append(run, [encode_event(event) for event in play.journal], run_summary(play.state))
        journal.keep_end(altered(play.state, {"now": replay(journal, run).now}))
        journal.release(plan.cluster, run)

    return write


def halted() -> Story:
    return played(*journals.halted())


def halted_by_a_gate() -> Story:
    return played(*journals.gate_failed())


def done() -> Story:
    return played(*journals.done())


def with_words(*words: str) -> Story:
    plan = journals.plan_of(120)
    play = journals.play_of(plan, rehearsal=True)
    play.words = [(60 + 20 * at, word) for at, word in enumerate(words)]
    play.cut_off(*tuple(plan.nodes)[5:7])
    play.run()
    return played(plan, play)


STORIES: dict[str, Callable[[], Story]] = {
    "finished": lambda: finished,
    "rolled back": lambda: rolled_back,
    "applied twice": lambda: applied_twice,
    "resumed": lambda: resumed,
    "done": done,
    "halted": halted,
    "halted by a gate": halted_by_a_gate,
    "interrupted": lambda: with_words("interrupt"),
    "aborted": lambda: with_words("pause", "continue", "abort"),
}


@pytest.mark.parametrize("story", STORIES.values(), ids=STORIES)
def test_it_is_the_same_with_what_was_kept_and_without(
    journal: SqlJournal, tmp_path: Path, story: Callable[[], Story]
) -> None:
    story()(journal)
    runs = [header.run for header in journal.listed()]
    assert kept(tmp_path) == set(runs)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(following, "replay", None)
        patch.setattr(following, "decode_events", None)
        quick = {run: shown(journal, run) for run in runs}
    shutil.rmtree(tmp_path / "ends")
    assert quick == {run: shown(journal, run) for run in runs}


def test_the_stories_differ(tmp_path: Path) -> None:
    """Else their comparison would prove little."""
    ends: dict[str, set[object]] = {"ending": set(), "goal": set(), "state": set()}
    for name, story in STORIES.items():
        with closing(SqlJournal(tmp_path / name.replace(" ", "-"))) as journal:
            story()(journal)
            for header in journal.listed():
                state = replay(journal, header.run)
                ends["ending"].add(state.ending)
                ends["goal"].add(state.order.goal)
                ends["state"] |= {record.state for record in state.nodes.values()}
    assert ends["ending"] == {Ending.DONE, Ending.HALTED, Ending.INTERRUPTED}
    assert ends["goal"] == set(Goal)
    assert ends["state"] >= {NodeState.CONFIRMED, NodeState.REVERTED, NodeState.PENDING, NodeState.UNREACHABLE}


def test_no_event_is_decoded_and_each_is_checked(
    journal: SqlJournal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    finished(journal)
    monkeypatch.setattr(following, "decode_events", None)
    shown(journal, "r1")
    _changed(tmp_path, "UPDATE events SET body = body || ' ' WHERE number = 2")
    with pytest.raises(StateError, match="event 2 of r1 is not the one that was written"):
        shown(journal, "r1")


def replays(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The runs that are replayed from now on."""
    found: list[str] = []
    alone = following.replay

    def counted(journal: SqlJournal, run: str) -> RunState:
        found.append(run)
        return alone(journal, run)

    monkeypatch.setattr(following, "replay", counted)
    return found


def test_a_run_that_has_not_ended_is_replayed(
    journal: SqlJournal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Site(journal).killed("n2", Verb.APPLY)
    assert kept(tmp_path) == set()
    found = replays(monkeypatch)
    shown(journal, "r1")
    assert found == ["r1"]


def test_a_run_that_goes_on_after_its_end_is_replayed(journal: SqlJournal, monkeypatch: pytest.MonkeyPatch) -> None:
    """As long as it has events that the state which was kept does not know."""
    finished(journal)
    found = replays(monkeypatch)
    journal.acquire(SMALL.cluster, "r1")
    journal.append("r1", [journal.events("r1")[-1].replace('"serial": ', '"serial": 9')])
    with pytest.raises(StateError, match="cannot be followed"):
        shown(journal, "r1")
    assert found == ["r1"]


def test_a_state_of_another_form_is_not_shown(journal: SqlJournal, monkeypatch: pytest.MonkeyPatch) -> None:
    finished(journal)
    before = shown(journal, "r1")
    monkeypatch.setattr(SqlJournal, "kept_end", lambda _journal, _run: "{}")
    found = replays(monkeypatch)
    assert shown(journal, "r1") == before
    assert found == ["r1"]
