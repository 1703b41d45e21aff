"""The watch after a run: a real journal and real gates over a fake Prometheus; each process may be the last one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta, tzinfo
from pathlib import Path

import pytest

from rollout.adapters.journal import SqlJournal
from rollout.app.after_run import afterwards
from rollout.app.backends import Backends, NoCluster
from rollout.app.following import NOT_LATE, late_of, replay
from rollout.app.node_gates import NodeGates
from rollout.app.runs import start_apply
from rollout.app.wave_gates import WaveGates
from rollout.core.model.gates import Gate, GateScope
from rollout.core.model.live import Lease, Sight
from rollout.core.model.plan import Plan
from rollout.core.model.playbook import Budget, Cause, LateWatch, OnLateHarm, Scope, Share
from rollout.core.model.verdict import Verdict
from rollout.core.plans import plan_codec
from rollout.core.presentation.summary import summarize
from rollout.core.presentation.summary_text import afterwards_lines
from rollout.core.run.late_watch import LateWord
from rollout.core.run.state import Ending
from rollout.errors import RemoteError, StateError
from rollout.features.late_watch.asking import LateRound, LateWatcher, watched_run, watching
from rollout.gates.api_checks.query import ApiCheck
from rollout.gates.prometheus.judging import Samples
from rollout.gates.table import DEFAULT_GATES
from tests.app.site import ACCESS, SMALL, Site
from tests.app.test_node_gates import NODE
from tests.app.test_wave_gates import AWAY, BELOW_TEN, Around, metric, samples
from tests.gates.askers import askers

WATCHED = replace(SMALL, gates=(*DEFAULT_GATES, metric(BELOW_TEN)), late=LateWatch(3600.0), passes=2)
PASS, FAIL, UNKNOWN = Verdict.PASS, Verdict.FAIL, Verdict.UNKNOWN


@dataclass
class Api(NoCluster):
    """Nodes that renew their leases; those in ``sick`` are not Ready."""

    sick: set[str] = field(default_factory=set)
    renewals: int = 0

    def look(self, node: str, timeout: float, newer_than: int | None = None) -> Sight:
        self.renewals += 1
        ready = "False" if node in self.sick else "True"
        renewed = (datetime(2026, 11, 20, 19, tzinfo=UTC) + timedelta(seconds=10 * self.renewals)).isoformat()
        return Sight(replace(NODE, name=node, ready=ready), Lease(str(self.renewals), renewed), ())


@dataclass
class World:
    """One done run, and what its gates see after it. Each watcher is a new process."""

    journal: SqlJournal
    plan: Plan = WATCHED
    around: Around = field(default_factory=Around)
    api: Api = field(default_factory=Api)
    wall: float = 0.0

    def __post_init__(self) -> None:
        self.site = Site(self.journal)
        tools = replace(self.site.tools(), backends=self.backends())
        state = start_apply(self.plan, ACCESS, tools)
        assert state.ending is Ending.DONE
        self.wall = replay(self.journal, "r1").now + 60.0

    def backends(self) -> Backends:
        around = self.around
        return Backends(cluster=self.api, askers=askers(around), wait=around.clock.wait)

    def shows(self, answer: Samples | RemoteError) -> None:
        self.around.metrics = lambda _query: answer

    def watcher(self) -> LateWatcher:
        _, plan, watch = watched_run(self.journal, "r1")
        clock, backends = self.around.clock, self.backends()
        waves = WaveGates("r1", plan, self.around, clock, backends)
        gates = NodeGates(plan, clock, backends)
        return LateWatcher(self.journal, clock, "r1", plan, watch, waves, gates, self, self.wait, "me@here")

    def round(self) -> LateRound:
        with watching(self.journal, "r1"):
            return self.watcher().round()

    def lines(self) -> str:
        state = replay(self.journal, "r1")
        return "\n".join(afterwards_lines(summarize(state), afterwards(self.journal, state, self.wall)))

    def notes(self) -> list[str]:
        return [note.text for note in self.journal.notes(SMALL.cluster)]

    # The wall clock.
    def wait(self, seconds: float) -> None:
        self.wall += seconds
        self.around.clock.wait(seconds)

    def wall_seconds(self) -> float:
        return self.wall

    def zone(self, name: str) -> tzinfo:
        assert name
        return UTC


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[SqlJournal]:
    made = SqlJournal(tmp_path)
    yield made
    made.close()


def test_without_anything_to_measure_the_verdict_is_unknown(journal: SqlJournal) -> None:
    world = World(journal, replace(WATCHED, gates=()))
    measured = world.round()
    assert (measured.verdict, measured.evidence.startswith("nothing to measure")) == (UNKNOWN, True)


def test_failures_in_a_row_are_harm_also_across_processes(
    journal: SqlJournal,
) -> None:
    world = World(journal)
    assert world.round().verdict is PASS
    world.shows(samples(99.0))
    assert (world.round().verdict, world.round().harm != "") == (FAIL, True)
    assert [text.split(": ")[1] for text in world.notes()] == ["passed", "failed", "failed", "harm"]


def test_a_pass_ends_the_row_and_an_unknown_does_not(journal: SqlJournal) -> None:
    world = World(journal)
    found = []
    for answer in (samples(99.0), samples(1.0), samples(99.0), AWAY, AWAY):
        world.shows(answer)
        found.append(world.round())
    assert [(each.verdict, each.harm) for each in found] == [
        (each, "") for each in (FAIL, PASS, FAIL, UNKNOWN, UNKNOWN)
    ]
    assert [each.changed for each in found] == [True, True, True, True, False]
    world.shows(samples(99.0))
    assert world.round().harm.startswith("2 failures in a row; wave canary: gate 'rate'")


def test_harm_that_nobody_acted_on_is_harm_for_the_next_process_and_an_ended_watch_stays_ended(
    journal: SqlJournal,
) -> None:
    world = World(journal, replace(WATCHED, passes=1))
    world.shows(samples(99.0))
    first = world.round()
    world.shows(samples(1.0))
    assert world.round().harm == first.harm != ""
    with watching(journal, "r1"):
        world.watcher().end("late harm; people were told")
    assert world.round().ended == "late harm; people were told"
    assert "its watch has ended: late harm; people were told" in world.lines()


def test_the_end_is_a_time_of_the_wall_clock_and_says_the_newest_verdict(journal: SqlJournal) -> None:
    world = World(journal)
    assert "late gates: not measured yet: `rollout watch --late r1`" in world.lines()
    world.shows(AWAY)
    world.round()
    assert "late gates: unknown since" in world.lines()
    world.wall += 3600.0
    assert "`rollout watch --late r1 --once` records how it ended" in world.lines()
    assert "the newest verdict is unknown" in world.round().ended
    found = late_of(journal, replay(journal, "r1"))
    assert found is not None
    assert (found.verdict, "unknown" in found.ended) == (LateWord.UNKNOWN, True)


def test_a_pause_ends_with_the_watch_and_keeps_the_lease_alive(journal: SqlJournal) -> None:
    world = World(journal)
    before = world.wall
    with watching(journal, "r1"):
        world.watcher().pause(300.0)
        assert world.wall - before == 300.0
        world.watcher().pause(10_000.0)
        assert world.wall - before == 3600.0 - 60.0


def test_of_two_processes_one_watches_and_the_cluster_stays_free(journal: SqlJournal, tmp_path: Path) -> None:
    world = World(journal)
    second = SqlJournal(tmp_path)
    second._leases.me = "elsewhere:b.1:1:1"  # noqa: SLF001 - two machines in one process
    with watching(journal, "r1"):
        with pytest.raises(StateError) as raised, watching(second, "r1"):
            raise AssertionError("two watch it")
        assert raised.value.reference == "watched-already"
        second.acquire(SMALL.cluster, "r2")
    second.release(SMALL.cluster, "r2")
    second.close()
    assert world.round().verdict is PASS


def test_a_later_run_ends_the_watch(journal: SqlJournal) -> None:
    world = World(journal)
    world.site.roll_back("r1")
    assert world.round().ended == "run r2 followed, and its nodes are no longer only of this run"


def test_a_run_without_watch_is_not_watched(journal: SqlJournal) -> None:
    Site(journal).apply()
    with pytest.raises(StateError) as raised:
        watched_run(journal, "r1")
    assert raised.value.reference == "not-watched"
    assert late_of(journal, replay(journal, "r1")) is None


def test_sick_nodes_are_harm_when_a_budget_of_the_run_is_used_up(journal: SqlJournal) -> None:
    ready = Gate(ApiCheck("nodeReady"), GateScope.NODE, "node-ready")
    budgets = (Budget(Scope.FLEET, frozenset({Cause.UNHEALTHY}), Share(count=2)),)
    plan = replace(WATCHED, gates=(*DEFAULT_GATES, ready), budgets=budgets, late=LateWatch(3600.0, OnLateHarm.ROLLBACK))
    world = World(journal, plan)
    assert world.round().verdict is PASS
    world.api.sick = {"n1"}
    found = world.round()
    assert (found.verdict, "1 node within the budgets: n1: node-ready" in found.evidence) == (PASS, True)
    world.api.sick = {"n1", "n3"}
    found = world.round()
    assert found.verdict is FAIL
    assert "2 of 3 nodes of the fleet failed (unhealthy); its budget is 2" in found.evidence


def test_the_bytes_of_a_plan_show_whether_it_has_a_watch() -> None:
    """So ``status`` need not read a whole plan for that."""
    assert NOT_LATE in plan_codec.encode(SMALL)
    assert NOT_LATE not in plan_codec.encode(WATCHED)


def test_a_process_that_died_in_its_rollback_leaves_no_quiet_end(journal: SqlJournal) -> None:
    world = World(journal)
    world.shows(samples(99.0))
    assert (world.round().harm, world.round().harm != "") == ("", True)
    world.site.roll_back("r1")  # by the process that died after its first node
    found = world.round()
    assert found.verdict is FAIL
    assert found.ended == "late harm was found, and run r2 followed: `rollout status r2` shows how it ended"


# ------------------------------------------------------------------------------------------ nobody asks, or no journal


def test_hours_without_a_question_are_a_gap_and_a_quiet_watch_is_none(journal: SqlJournal) -> None:
    world = World(journal, replace(WATCHED, late=LateWatch(72 * 3600.0)))
    for _ in range(5):
        world.round()
        world.wait(3600.0)
    assert [text.split(": ")[1] for text in world.notes()] == ["passed"] * 5
    state = replay(journal, "r1")
    late = late_of(journal, state)
    assert late is not None
    assert (late.gaps, late.since) == ((), state.now + 60.0), "it passes since the first of these notes"
    world.wait(3 * 3600.0)
    world.round()
    late = late_of(journal, state)
    assert late is not None
    assert len(late.gaps) == 1
    assert f"  late gates: {late.gaps[0]}" in world.lines()
    assert [text.split(": ")[1] for text in world.notes()][-2:] == ["gap", "passed"]


def test_a_watch_that_begins_long_after_the_run_has_a_gap(journal: SqlJournal) -> None:
    world = World(journal, replace(WATCHED, late=LateWatch(72 * 3600.0)))
    world.wait(9 * 3600.0)
    world.round()
    assert world.notes()[0].startswith("late watch of r1: gap: not asked from ")


@dataclass
class Leaving:
    """A journal that is away for some of its calls."""

    journal: SqlJournal
    fails: list[bool]

    def __getattr__(self, name: str) -> object:
        if self.fails and self.fails.pop(0):
            raise StateError("journal-away", "the journal cannot be read")
        return getattr(self.journal, name)


def test_a_watch_outlives_a_journal_that_is_away(journal: SqlJournal) -> None:
    world = World(journal)
    seen: list[LateRound] = []
    said: list[str] = []

    def act(found: LateRound) -> int:
        seen.append(found)
        if len(seen) == 1:
            away.fails = [False, True, True, True]
        return 0

    with watching(journal, "r1"):
        watcher = world.watcher()
        away = Leaving(journal, [True, True])
        watcher.journal = away  # type: ignore[assignment]  # the same journal behind it
        assert watcher.rounds(600.0, act, lambda error: said.append(error.reference)) == 0
    assert set(said) == {"journal-away"}
    assert 3 <= len(said) <= 5
    assert seen[-1].ended.startswith("its time was over at ")
    assert {found.verdict for found in seen[:-1]} == {PASS}


def test_a_wave_whose_gates_cannot_be_late_is_not_said_to_pass(journal: SqlJournal) -> None:
    world = World(journal)
    with watching(world.journal, "r1"):
        watcher = world.watcher()
        watcher.wave_gates = replace(watcher.wave_gates, plan=replace(world.plan, gates=()))
        measured = watcher.round()
    assert (measured.verdict, measured.evidence.partition(":")[0]) == (UNKNOWN, "nothing to measure")
