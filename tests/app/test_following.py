"""Following a run; and requests that no controller could handle: each is refused with a hint."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from rollout import __version__
from rollout.adapters.journal import SqlJournal
from rollout.app.after_run import afterwards
from rollout.app.claims import held_by, set_free
from rollout.app.control import ask
from rollout.app.following import AWAY_SECONDS, EndedRuns, attendance, follow, replay
from rollout.app.ports import Holder, Target
from rollout.app.reading import read_receipts
from rollout.app.runs import highest_counter, leased
from rollout.core.model.report import RemoteAnswer, RemoteCommand
from rollout.core.presentation.pages.sections import next_steps
from rollout.core.presentation.summary import RunSummary, run_summary, summarize
from rollout.core.presentation.summary_text import (
    Afterwards,
    afterwards_lines,
    attendance_lines,
    since_then,
    summary_lines,
)
from rollout.core.run.events import RequestWord, request_event
from rollout.core.run.journal_codec import encode_event
from rollout.core.run.state import RULES, Ending, NodeState, Phase, Verb
from rollout.errors import StateError
from tests.app.agents import SILENT, Agents
from tests.app.site import ACCESS, NAMES, SMALL, Site, at_work


@pytest.fixture
def journal(tmp_path: Path) -> SqlJournal:
    return SqlJournal(tmp_path)


def nobody_waits(_seconds: float) -> None:
    raise AssertionError("there is nothing to wait for")


def test_a_run_that_has_ended_is_followed_to_its_end_at_once(journal: SqlJournal) -> None:
    end = Site(journal).apply()
    (batch,) = follow(journal, "r1", nobody_waits)
    assert batch[-1][2] == replace(end, now=batch[-1][2].now), "the passing of time is not journaled"
    assert all(before == earlier for (_, _, earlier), (_, before, _) in itertools.pairwise(batch))


def test_a_run_without_a_controller_is_not_waited_for(journal: SqlJournal) -> None:
    state = Site(journal).killed("n2", Verb.APPLY)
    (batch,) = follow(journal, "r1", nobody_waits)
    assert batch[-1][2] == state
    assert state.phase is not Phase.ENDED


def test_a_run_with_a_controller_is_followed_until_it_has_ended(journal: SqlJournal) -> None:
    site = Site(journal)
    killed = site.killed("n2", Verb.APPLY)
    at_work(journal, "r1")
    waits: list[float] = []

    def wait(seconds: float) -> None:
        waits.append(seconds)
        if len(waits) == 2:
            journal.release(SMALL.cluster, "r1")
            site.resume("r1")

    batches = list(follow(journal, "r1", wait))
    assert [len(batch) > 0 for batch in batches] == [True, False, True], "an empty batch means that time has passed"
    assert (batches[0][-1][2], batches[2][-1][2]) == (killed, replay(journal, "r1"))
    assert batches[2][-1][2].ending is Ending.DONE


def at_work_on(journal: SqlJournal, *words: RequestWord) -> None:
    """A run in progress with a live controller that has handled these requests and handles no more for now."""
    Site(journal).killed("n2", Verb.APPLY)
    at_work(journal, "r1")
    for word in words:
        journal.ask("r1", word, "anna@laptop", "a look at it", "")
    heard = journal.requests("r1", 0)
    for request in heard:
        journal.append("r1", [encode_event(request_event(request, 1100.0))])


def nobody_at_work(journal: SqlJournal) -> None:
    Site(journal).killed("n2", Verb.APPLY)


def ended(journal: SqlJournal) -> None:
    Site(journal).apply()


@pytest.mark.parametrize(
    ("given", "word", "reference", "hint"),
    [
        (ended, RequestWord.PAUSE, "run-ended", "`rollout report r1`"),
        (nobody_at_work, RequestWord.ABORT, "no-controller", "`rollout resume r1` or `rollout rollback r1`"),
        (
            nobody_at_work,
            RequestWord.CONTINUE,
            "no-controller",
            "`rollout resume r1 --promote` or `rollout rollback r1`",
        ),
        (at_work_on, RequestWord.CONTINUE, "not-paused", ""),
        (lambda it: at_work_on(it, RequestWord.PAUSE), RequestWord.PAUSE, "paused-already", ""),
        (lambda it: at_work_on(it, RequestWord.ABORT), RequestWord.ABORT, "halting-already", ""),
        (lambda it: at_work_on(it, RequestWord.ABORT), RequestWord.PAUSE, "halting-already", ""),
    ],
)
def test_an_impossible_request_is_refused_and_not_recorded(
    journal: SqlJournal,
    given: Callable[[SqlJournal], None],
    word: RequestWord,
    reference: str,
    hint: str,
) -> None:
    given(journal)
    before = journal.requests("r1", 0)
    with pytest.raises(StateError) as raised:
        ask(journal, "r1", word, "me@here", "", "", nobody_waits)
    assert (raised.value.reference, raised.value.hint) == (reference, hint)
    assert journal.requests("r1", 0) == before


def test_a_run_may_be_paused_again_after_a_pause(journal: SqlJournal) -> None:
    at_work_on(journal, RequestWord.PAUSE, RequestWord.CONTINUE)
    assert not ask(journal, "r1", RequestWord.PAUSE, "me@here", "", "", lambda _: None).heard
    assert [request.word for request in journal.requests("r1", 2)] == ["pause"], "it waits for the controller"


class Restarting(SqlJournal):
    """Its database is unreachable for some reads."""

    away = 0

    def holder(self, cluster: str) -> Holder | None:
        if self.away:
            self.away -= 1
            raise StateError("journal-away", "the server is starting up")
        return super().holder(cluster)


def test_an_unreachable_journal_is_retried(tmp_path: Path) -> None:
    journal = Restarting(tmp_path)
    end = Site(journal).apply()
    journal.away = 3
    waits: list[float] = []
    *empty, last = follow(journal, "r1", waits.append)
    assert (empty, len(waits)) == ([(), (), ()], 3)
    assert last[-1][2] == replace(end, now=last[-1][2].now)


def test_a_journal_that_stays_unreachable_is_reported(tmp_path: Path) -> None:
    journal = Restarting(tmp_path)
    Site(journal).apply()
    journal.away = 10**6
    waits: list[float] = []
    with pytest.raises(StateError, match="starting up"):
        list(follow(journal, "r1", waits.append))
    assert sum(waits) == AWAY_SECONDS


def test_a_request_to_a_dead_controller_reports_its_last_heartbeat(journal: SqlJournal) -> None:
    state = Site(journal).killed("n2", Verb.APPLY)
    with pytest.raises(StateError) as raised:
        ask(journal, "r1", RequestWord.PAUSE, "me@here", "", "", nobody_waits)
    assert raised.value.reference == "no-controller"
    found = attendance(journal, SMALL.cluster, "r1")
    assert not found.alive
    lines = list(attendance_lines(summarize(state), Afterwards(controller=found)))
    assert lines[-1] == "  To continue: rollout resume r1"


@pytest.mark.parametrize("is_reverted", [True, False])
def test_no_text_proposes_to_resume_a_run_that_another_one_followed(journal: SqlJournal, is_reverted: bool) -> None:
    """Its controller was killed, and its nodes were rolled back, or some of them: a resume is refused."""
    site = Site(journal)
    site.killed("n2", Verb.CONFIRM)
    later = site.roll_back("r1", NAMES if is_reverted else NAMES[2:]).order.run
    with pytest.raises(StateError) as refused:
        site.resume("r1")
    assert refused.value.reference == "superseded"
    state, after = replay(journal, "r1"), afterwards(journal, replay(journal, "r1"), 0.0)
    lines = [*summary_lines(summarize(state), after), *afterwards_lines(summarize(state), after)]
    assert f"  It cannot be continued: run {later} followed it" in lines
    steps = [command for command, _ in next_steps(state, after)]
    assert not any("rollout resume" in each or "rollout watch" in each for each in (*lines, *steps))
    assert any("rollout rollback r1" in each for each in lines) is not is_reverted
    assert since_then(summarize(state), after).followed_by == later


# A claim of a run that has ended, according to this journal, is taken over. Every other claim stays.


LOST = RemoteAnswer(
    None, b"", b"", started=True, reference="connection-lost", message="the bastion ended the connection"
)


@dataclass
class BehindABastion(Agents):
    """Requests arrive; while ``lost`` is set, their answers do not."""

    lost: bool = False
    out_of_reach: set[str] = field(default_factory=set)

    def run(self, target: Target, command: RemoteCommand) -> RemoteAnswer:
        if target.name in self.out_of_reach:
            return SILENT
        said = super().run(target, command)
        return LOST if self.lost else said


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(SqlJournal(tmp_path), BehindABastion())


def turned_away(site: Site) -> BehindABastion:
    """A run with claims that arrived and answers that did not."""
    nodes = site.nodes
    assert isinstance(nodes, BehindABastion)
    nodes.lost = True
    end = site.apply()
    nodes.lost = False
    assert end.ending is Ending.PREFLIGHT
    assert {agent.claim for agent in nodes.agents.values()} == {"1 r1 live"}
    return nodes


def test_the_next_run_takes_over_claims_of_a_refused_run(site: Site) -> None:
    turned_away(site)
    end = site.apply()
    assert end.ending is Ending.DONE
    assert {record.state for record in end.nodes.values()} == {NodeState.CONFIRMED}
    assert {agent.claim.split(" ")[1:] == ["r2", "ended"] for agent in site.nodes.agents.values()} == {True}


def test_a_refused_run_has_no_pending_recovery(site: Site) -> None:
    turned_away(site)
    assert summarize(replay(site.journal, "r1")).pending_recovery.nodes == ""


def test_its_claims_can_be_ended_without_another_run(site: Site) -> None:
    nodes = turned_away(site)
    reports = read_receipts(ACCESS, nodes)
    held = held_by(reports, "r1")
    assert sorted(held) == sorted(NAMES)
    assert [entry.still for entry in set_free(ACCESS, nodes, held, {"r1"}, "r1", 2)] == ["", "", ""]
    assert held_by(read_receipts(ACCESS, nodes), "r1") == {}


@pytest.mark.parametrize("state", ["armed", "reverting"])
def test_the_claim_stays_while_a_change_is_armed(site: Site, state: str) -> None:
    nodes = turned_away(site)
    nodes.agents["n2"].tx, nodes.agents["n2"].state = "r1-1", state
    end = site.apply()
    assert (end.ending, end.halt and end.halt.reference) == (Ending.CLAIMED, "claimed")


def test_a_run_of_another_journal_keeps_its_claim(site: Site, tmp_path: Path) -> None:
    nodes = turned_away(site)
    other = Site(SqlJournal(tmp_path / "other"), nodes, runs=6)
    assert other.apply().ending is Ending.CLAIMED


def test_a_run_that_has_not_ended_keeps_its_claim(site: Site) -> None:
    site.killed("n1", Verb.APPLY)
    assert not EndedRuns(site.journal, SMALL.cluster)("r1")
    assert not EndedRuns(site.journal, SMALL.cluster)("r9")
    site.resume("r1")
    assert EndedRuns(site.journal, SMALL.cluster)("r1")
    assert not EndedRuns(site.journal, "another")("r1")


def of_another_version(site: Site, summary: RunSummary | None) -> None:
    """A version with other rules did the work of ``r1``; it is stored as ``r0``."""
    header = site.journal.header("r1")
    order = json.dumps(json.loads(header.order) | {"run": "r0", "rules": RULES - 1})
    site.journal.begin(replace(header, run="r0", order=order))
    with leased(site.journal, SMALL.cluster, "r0"):
        site.journal.append("r0", site.journal.events("r1"), summary)


@pytest.mark.parametrize("kept", [True, False], ids=["a summary", "no summary"])
def test_a_run_of_another_version_has_ended_if_it_has_a_summary(site: Site, kept: bool) -> None:
    end = replace(run_summary(site.apply()), counter=17)
    of_another_version(site, end if kept else None)
    assert EndedRuns(site.journal, SMALL.cluster)("r0") == kept
    assert (highest_counter(site.journal, SMALL.cluster) == 17) == kept


def test_a_run_stores_its_summary_and_its_version(site: Site) -> None:
    site.apply()
    assert site.journal.summary("r1") == run_summary(replay(site.journal, "r1"))
    assert site.journal.header("r1").version == __version__
