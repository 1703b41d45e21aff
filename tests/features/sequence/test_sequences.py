"""Clusters in sequence over real runs and a real journal, with agents in memory."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

import pytest

from rollout.adapters.journal import SqlJournal
from rollout.app.following import AWAY_SECONDS
from rollout.app.journal_away import AWAY
from rollout.app.ports import Note
from rollout.app.runs import resumable, resume, start_apply
from rollout.core.model.plan import ExcludedNode, Plan, Standing, Wave
from rollout.core.model.playbook import ALL_CAUSES, Budget, LateWatch, RevertScope, Scope, Share
from rollout.core.run.late_watch import LateNote, LateWord
from rollout.core.run.state import NodeState, Verb
from rollout.errors import Place, RolloutError, StateError
from rollout.features.sequence.asking import SequenceTools, carry_out, cluster_states
from rollout.features.sequence.rules import (
    ClusterProgress,
    ClusterSequence,
    ClusterStage,
    NextTurn,
    SequencedCluster,
    StagedCluster,
    Turn,
)
from rollout.features.sequence.words import sequence_document, sequence_exit, sequence_lines
from tests.app.agents import SILENT, answer
from tests.app.site import ACCESS, SMALL, KilledError, Site, held_by_another_process

FIRST = replace(SMALL, playbook="playbooks/base.yaml", limit="@rack01")
SECOND = replace(SMALL, cluster="second")
SOAK = 300.0


def _stage(*names: str) -> ClusterStage:
    return ClusterStage(names[0], tuple(StagedCluster(each, f"{each}.json", Place("s", 1, 1)) for each in names), SOAK)


SEQUENCE = ClusterSequence("both", (_stage(FIRST.cluster), _stage(SECOND.cluster)), Share(count=3))


@dataclass
class Both:
    """Two clusters with one journal. ``said``: the turns, as told to the operator."""

    journal: SqlJournal
    folder: Path
    said: list[NextTurn] = field(default_factory=list)
    begun: list[str] = field(default_factory=list)
    stop_after: int = 99  # the operator interrupts after so many clusters
    plans: dict[str, Plan] = field(default_factory=lambda: {plan.cluster: plan for plan in (FIRST, SECOND)})
    sequence: ClusterSequence = SEQUENCE
    away: int = 0  # so many looks fail
    away_to_ask: int = 0
    late: list[bool] = field(default_factory=list)  # what the late gates say, each time that they are asked

    def __post_init__(self) -> None:
        self.sites = {cluster: Site(self.journal) for cluster in self.plans}
        self.at = 5000.0

    def now(self) -> float:
        return self.at

    def wall(self) -> str:
        return ""

    def wait(self, seconds: float) -> None:
        self.at += seconds

    def states(self) -> Mapping[str, SequencedCluster]:
        if self.away:
            self.away -= 1
            raise StateError(AWAY, "away")
        return cluster_states(self.journal, self.plans)

    def act(self, clusters: tuple[str, ...]) -> Mapping[str, RolloutError]:
        refused: dict[str, RolloutError] = {}
        for cluster in clusters:
            self.begun.append(cluster)
            try:
                self._one(cluster)
            except RolloutError as error:
                refused[cluster] = error
        return refused

    def _one(self, cluster: str) -> None:
        site, run = self.sites[cluster], self.states()[cluster].run
        site.at = self.at
        tools = replace(site.tools(), new_run_id=partial("run-{}".format, cluster))
        if run:
            resume(resumable(self.journal, run), ACCESS, tools)
        else:
            start_apply(self.plans[cluster], ACCESS, tools)
        self.at = site.at

    def late_pass(self, cluster: str) -> bool:
        assert self.plans[cluster].late
        if self.away_to_ask:
            self.away_to_ask -= 1
            raise StateError(AWAY, "away")
        return self.late.pop(0)

    def go(self) -> tuple[NextTurn, Mapping[str, SequencedCluster]]:
        tools = SequenceTools(
            self, lambda: len(self.begun) >= self.stop_after, self.wait, self.said.append, self.late_pass
        )
        return carry_out(self.sequence, self.states, self.act, tools)


@pytest.fixture
def both(tmp_path: Path) -> Both:
    return Both(SqlJournal(tmp_path), tmp_path)


def test_the_second_cluster_begins_after_the_soak_of_the_first(both: Both) -> None:
    turn, found = both.go()
    assert (turn.turn, sequence_exit(found, turn)) == (Turn.END, 0)
    assert [said.turn for said in both.said] == [Turn.BEGIN, Turn.SOAK, Turn.BEGIN]
    first, second = (both.journal.header(f"run-{plan.cluster}") for plan in (FIRST, SECOND))
    assert second.at >= found[FIRST.cluster].ended + SOAK > first.at + SOAK
    assert list(sequence_lines(sequence_document(SEQUENCE, found, turn))) == [
        f"stage {FIRST.cluster}:",
        f"  {FIRST.cluster}: done, 3 nodes, run run-{FIRST.cluster}",
        "stage second:",
        "  second: done, 3 nodes, run run-second",
        "sequence both: done, 0 nodes failed; the budget is 3 nodes",
    ]
    both.begun.clear()
    assert both.go()[0].turn is Turn.END
    assert both.begun == [], "repeating a sequence that is done begins nothing"


def test_a_killed_controller_is_resumed_by_the_same_command(both: Both) -> None:
    both.sites[FIRST.cluster].dies_at = ("n2", Verb.APPLY)
    with pytest.raises(KilledError):
        both.go()
    both.sites[FIRST.cluster].dies_at, both.sites[FIRST.cluster].answers = None, []
    assert both.states()[FIRST.cluster].progress is ClusterProgress.UNFINISHED
    turn, found = both.go()
    assert (turn.turn, found[FIRST.cluster].run) == (Turn.END, f"run-{FIRST.cluster}")
    assert both.begun == [FIRST.cluster, FIRST.cluster, "second"]


@pytest.mark.parametrize("back", [True, False])
def test_a_journal_that_is_away_in_a_soak_is_looked_into_again(both: Both, *, back: bool) -> None:
    both.stop_after = 1
    both.go()
    both.stop_after, began = 99, both.at
    both.away = 4 if back else 10**9
    if back:
        assert both.go()[0].turn is Turn.END
    else:
        with pytest.raises(StateError, match="away"):
            both.go()
        assert AWAY_SECONDS <= both.at - began <= AWAY_SECONDS + 10


def test_a_journal_that_is_away_while_late_gates_are_asked_is_asked_again(tmp_path: Path) -> None:
    both = Both(SqlJournal(tmp_path), tmp_path, plans=WATCHED, late=[True])
    both.away_to_ask = 2
    assert both.go()[0].turn is Turn.END


def test_a_cluster_that_another_controller_holds_stops_the_sequence_without_a_halt(both: Both, tmp_path: Path) -> None:
    run = f"run-{FIRST.cluster}"
    dies(both, "n2", Verb.APPLY, both.go)
    both.journal.release(FIRST.cluster, run)
    held_by_another_process(tmp_path, FIRST.cluster, run)
    turn, found = both.go()
    assert (turn.turn, turn.clusters, sequence_exit(found, turn)) == (Turn.STOP, (FIRST.cluster,), 5)
    assert found[FIRST.cluster].progress is ClusterProgress.UNFINISHED
    *_, last = sequence_lines(sequence_document(SEQUENCE, found, turn))
    assert last.startswith(
        f"sequence both: stopped; no cluster is halted. {FIRST.cluster}: run {run} holds {FIRST.cluster}: "
    )
    assert "(wait for it, see `rollout status`; " in last
    assert both.begun[-1] == FIRST.cluster, "the second does not begin"


def test_a_held_cluster_does_not_keep_the_others_of_its_stage_from_their_end(tmp_path: Path) -> None:
    plans = {name: replace(SMALL, cluster=name) for name in ("one", "two", "last")}
    sequence = ClusterSequence("all", (_stage("one", "two"), _stage("last")), Share(count=9))
    both = Both(SqlJournal(tmp_path), tmp_path, plans=plans, sequence=sequence)
    held_by_another_process(tmp_path, "one", "r9")
    turn, found = both.go()
    assert (turn.turn, turn.clusters, sequence_exit(found, turn)) == (Turn.STOP, ("one",), 5)
    assert [found[name].progress for name in plans] == ["not-begun", "done", "not-begun"]


def test_a_cluster_whose_plan_changes_nothing_but_left_nodes_out_says_so(tmp_path: Path) -> None:
    empty = replace(
        FIRST, nodes={}, waves=(), left=(ExcludedNode("n9", "r1", Standing.UNREACHABLE, "unreachable", "no answer"),)
    )
    both = Both(SqlJournal(tmp_path), tmp_path, plans={FIRST.cluster: empty, SECOND.cluster: SECOND})
    turn, found = both.go()
    document = sequence_document(SEQUENCE, found, turn)
    assert (turn.turn, document.exit_code) == (Turn.END, 4)
    said = f"  {FIRST.cluster}: done, 0 nodes, others left unchanged, no run: by its plan there was nothing to do"
    assert said in list(sequence_lines(document))


def test_an_interrupted_sequence_soaks_only_what_is_left(both: Both) -> None:
    both.stop_after = 1
    assert both.go()[0].turn is Turn.SOAK
    both.stop_after, began = 99, both.at
    both.wait(SOAK / 2)
    assert both.go()[0].turn is Turn.END
    assert both.journal.header("run-second").at - began <= SOAK + 1


def dies(both: Both, node: str, verb: Verb, act: Callable[[], object]) -> None:
    """The controller of the first cluster is killed in ``act``."""
    site = both.sites[FIRST.cluster]
    site.dies_at = (node, verb)
    with pytest.raises(KilledError):
        act()
    site.dies_at, site.answers = None, []


def hint(both: Both, found: Mapping[str, SequencedCluster], turn: NextTurn) -> str:
    return sequence_document(both.sequence, found, turn).stages[0].clusters[0].hint or ""


def test_a_run_that_was_turned_away_by_a_claim_leaves_nothing_to_roll_back(both: Both) -> None:
    both.sites[FIRST.cluster].nodes.says[("n1", "status")] = answer("status", "refused claimed 9 other live")
    turn, found = both.go()
    assert turn.turn is Turn.HALT
    assert f"`rollout resume run-{FIRST.cluster}`, or replace its plan" in hint(both, found, turn)


def test_failed_nodes_of_all_clusters_count_against_one_budget(both: Both) -> None:
    both.sites[FIRST.cluster].nodes.says[("n3", "status")] = SILENT
    turn, found = both.go()
    assert found[FIRST.cluster].failed == 1
    assert (turn.turn, sequence_exit(found, turn)) == (Turn.END, 4), "one failed node is below the budget of 3"


def test_a_budget_that_is_reached_names_the_reports_and_what_to_do(tmp_path: Path) -> None:
    both = Both(SqlJournal(tmp_path), tmp_path, sequence=replace(SEQUENCE, budget=Share(count=1)))
    both.sites[FIRST.cluster].nodes.says[("n3", "status")] = SILENT
    turn, found = both.go()
    assert (turn.turn, both.begun) == (Turn.HALT, [FIRST.cluster])
    *_, last = sequence_lines(sequence_document(both.sequence, found, turn))
    assert last.startswith(
        f"see `rollout report run-{FIRST.cluster}`; correct these nodes and plan again, or raise `budget`"
    )


WATCHED = {FIRST.cluster: replace(FIRST, late=LateWatch(3600.0)), SECOND.cluster: SECOND}


def test_the_second_cluster_waits_until_the_late_gates_of_the_first_pass(tmp_path: Path) -> None:
    both = Both(SqlJournal(tmp_path), tmp_path, plans=WATCHED, late=[False, False, True])
    turn, found = both.go()
    assert (turn.turn, both.late) == (Turn.END, [])
    assert [said.turn for said in both.said] == [Turn.BEGIN, Turn.SOAK, Turn.ASK, Turn.BEGIN]
    waited = both.journal.header("run-second").at - found[FIRST.cluster].ended
    assert SOAK + 60 <= waited <= SOAK + 90
    both.go()  # nothing is left to begin, so nothing is asked


@pytest.mark.parametrize("word", [LateWord.HARM, LateWord.ENDED])
def test_late_harm_and_a_watch_without_a_pass_halt_the_sequence(tmp_path: Path, word: LateWord) -> None:
    both = Both(SqlJournal(tmp_path), tmp_path, plans=WATCHED, stop_after=1)
    both.go()
    both.stop_after = 99
    note = LateNote(both.at, word, "3 failures in a row").text(f"run-{FIRST.cluster}")
    both.journal.note(FIRST.cluster, Note(both.at, "timer", note))
    turn, found = both.go()
    assert (turn.turn, both.begun) == (Turn.HALT, [FIRST.cluster])
    assert "3 failures in a row" in turn.why
    said = "\n".join(sequence_lines(sequence_document(SEQUENCE, found, turn)))
    assert "`rollout resume" not in said, "a run that is done cannot be resumed"
    assert (f"`rollout rollback run-{FIRST.cluster}` and replace its plan" in said) == (word is LateWord.HARM)
    ended = f"{FIRST.cluster}: see `rollout report run-{FIRST.cluster}`; if the cluster is healthy, remove it from the sequence"
    assert (f"{ended} file; then repeat the sequence" in said) == (word is LateWord.ENDED)


def test_a_halt_in_a_stage_of_two_clusters_stops_the_next_stage_only(tmp_path: Path) -> None:
    plans = {name: replace(SMALL, cluster=name) for name in ("canary", "one", "two", "last")}
    sequence = ClusterSequence("all", (_stage("canary"), _stage("one", "two"), _stage("last")), Share(count=9))
    both = Both(SqlJournal(tmp_path), tmp_path, plans=plans, sequence=sequence)
    for node in ACCESS.targets:
        both.sites["one"].nodes.says[(node, "status")] = SILENT
    turn, found = both.go()
    assert [said.clusters for said in both.said if said.turn is Turn.BEGIN] == [("canary",), ("one", "two")]
    assert (turn.turn, both.begun) == (Turn.HALT, ["canary", "one", "two"])
    assert turn.why.startswith("one: ")
    assert found["two"].progress is ClusterProgress.DONE


def test_nodes_reverted_with_others_do_not_count_as_failed(tmp_path: Path) -> None:
    """One node failed, and its wave was reverted: its cluster halts, and the budget of the others is charged with one."""
    together = {name: replace(node, wave=0) for name, node in SMALL.nodes.items()}
    once = (Budget(Scope.FLEET, ALL_CAUSES, Share(count=1)),)
    halts = replace(
        SMALL, nodes=together, waves=(Wave("all", tuple(together), 1.0),), budgets=once, on_failure=RevertScope.WAVE
    )
    both = Both(SqlJournal(tmp_path), tmp_path, plans={FIRST.cluster: halts, SECOND.cluster: SECOND})
    both.sites[FIRST.cluster].nodes.says[("n3", "apply")] = SILENT
    turn, found = both.go()
    records = both.journal.summary(f"run-{FIRST.cluster}")
    assert records is not None
    assert records.nodes[NodeState.REVERTED].count == 2
    assert found[FIRST.cluster].failed == 1
    assert sequence_document(SEQUENCE, found, turn).failed == 1
