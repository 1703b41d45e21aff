"""A freeze in the journal and on nodes: who is refused, with what reason, and that a run is not charged for it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from rollout.adapters.journal import SqlJournal
from rollout.app.apply import look_before
from rollout.app.freezes import check_not_frozen, freeze_in
from rollout.app.ports import Note, Target
from rollout.core.model.freeze import NodeFreeze, encoded, of_fact
from rollout.core.model.report import Outcome, RemoteAnswer, RemoteCommand, Report
from rollout.core.model.snapshot import Token
from rollout.core.model.verdict import Verdict
from rollout.core.presentation.drift_text import NotAsked
from rollout.core.presentation.freeze_text import (
    FreezeNoted,
    frozen_lines,
    frozen_note,
    marked_note,
    missed_note,
    noted_line,
    unfreezing_note,
    unfrozen_note,
)
from rollout.core.run.state import Ending, NodeState, Verb
from rollout.errors import StateError
from rollout.features.doctor.asking import of_snapshot
from rollout.features.freeze.asking import TRIES, freeze_cluster, mark_fleet, next_token, unfreeze_cluster
from rollout.features.freeze.words import FreezeDocument, freeze_lines
from rollout.kubelet.kinds import kinds, model_node
from tests.app.agents import SILENT, Agents, access_to, answer, holds, well
from tests.app.call import FakeCall, FakeOperator, elsewhere
from tests.app.site import ACCESS, NAMES, SMALL, Site
from tests.app.test_node_worker import OLD
from tests.kubelet.nodes import inventory

YEAR_END = NodeFreeze(7, "f-1", "ann@desk", "year end: no changes")
FACT = f"fact frozen 7 f-1 {encoded('ann@desk')} {encoded('year end: no changes')}"
REFUSED = answer("apply", FACT, "refused frozen since token 7 of f-1")


@pytest.fixture
def journal(tmp_path: Path) -> SqlJournal:
    return SqlJournal(tmp_path)


def write(journal: SqlJournal, text: str, cluster: str = "c") -> None:
    journal.note(cluster, Note(1000.0, "ann@desk", text))


# ----------------------------------------------------------------------------------------------------- the journal


def test_the_newest_note_counts(journal: SqlJournal) -> None:
    assert freeze_in(journal, "c") is None
    write(journal, frozen_note(YEAR_END))
    write(journal, "unlocked: frozen as f-9 with token 9: by hand")
    write(journal, missed_note(YEAR_END, ["n2", "n1"], on=True))
    assert freeze_in(journal, "c") == FreezeNoted("f-1", 7, 1000.0, "ann@desk", "year end: no changes", "n[1-2]")
    write(journal, marked_note(YEAR_END, "n3"))
    known = FreezeNoted("f-1", 7, 1000.0, "ann@desk", "year end: no changes", "n[1-2]", "n3")
    assert freeze_in(journal, "c") == known
    assert freeze_in(journal, "other") is None
    with pytest.raises(
        StateError, match=r"nothing was touched: c is frozen by ann@desk since .*: year end: no changes"
    ) as error:
        check_not_frozen(journal, "c")
    assert (error.value.reference, error.value.exit_code) == ("frozen", 5)
    over = NodeFreeze(8, "f-2", "bob@desk", "over")
    write(journal, unfreezing_note(over))
    assert freeze_in(journal, "c") == known, "no node has answered yet"
    write(journal, unfrozen_note(over))
    assert freeze_in(journal, "c") is None
    check_not_frozen(journal, "c")


def test_nodes_that_missed_an_unfreeze_are_shown_and_do_not_keep_the_cluster_frozen(journal: SqlJournal) -> None:
    write(journal, frozen_note(YEAR_END))
    over = NodeFreeze(8, "f-2", "bob@desk", "over")
    write(journal, unfrozen_note(over))
    write(journal, missed_note(over, ["n1", "n2"], on=False))
    still = freeze_in(journal, "c")
    assert still is not None
    assert still.lifted
    assert noted_line(still).endswith(": over; not known to be unfrozen: n[1-2]")
    check_not_frozen(journal, "c")
    write(journal, unfrozen_note(NodeFreeze(9, "f-3", "bob@desk", "again")))
    assert freeze_in(journal, "c") is None


def test_a_freeze_whose_controller_died_before_the_nodes_answered_is_not_known_to_be_on_them(
    journal: SqlJournal,
) -> None:
    write(journal, frozen_note(YEAR_END))
    freeze = freeze_in(journal, "c")
    assert freeze is not None
    assert noted_line(freeze).endswith("; no node is known to be marked: repeat the freeze")
    write(journal, marked_note(YEAR_END, "n[1-3]"))
    freeze = freeze_in(journal, "c")
    assert freeze is not None
    assert noted_line(freeze).endswith(": year end: no changes")


def test_its_token_is_above_those_of_runs_and_freezes_in_the_journal_and_on_nodes(journal: SqlJournal) -> None:
    write(journal, frozen_note(YEAR_END))
    assert next_token(journal, "c", {}) == 8
    write(journal, unfreezing_note(NodeFreeze(9, "f-2", "bob@desk", "over")), cluster="d")
    assert next_token(journal, "d", {}) == 10
    known = Report("n1", "status", Outcome.DONE, token=Token(11, "r", live=True))
    frozen = Report("n2", "status", Outcome.DONE, frozen=NodeFreeze(15, "f-x", "", ""))
    false = Report("n3", "status", Outcome.DONE, frozen=NodeFreeze(10**14, "f-y", "", ""))
    assert next_token(journal, "c", {"n1": known}) == 12
    assert next_token(journal, "c", {"n1": known, "n2": frozen, "n3": false}) == 16


@pytest.fixture
def call(tmp_path: Path) -> FakeCall:
    """During a run; its controller is at work elsewhere, or killed."""
    made = FakeCall(tmp_path).killed("n2", Verb.APPLY)
    made.agents.says |= {(name, verb): answer(verb, FACT) for name in NAMES for verb in ("freeze", "unfreeze")}
    return made


def quickly(_seconds: float) -> None: ...


def test_a_run_that_has_not_handled_its_pause_is_not_reported_as_paused(call: FakeCall) -> None:
    call.held(elsewhere("r1", alive=True))
    marked = freeze_cluster(call, "c", quickly)
    said = "run r1 is not known to be paused: its controller has not handled the request yet"
    assert (marked.not_paused, marked.document.paused) == (said, "")


def test_a_freeze_and_an_unfreeze_are_noted_with_what_the_nodes_answered(call: FakeCall) -> None:
    call.held(elsewhere("r1", alive=False))
    call.agents.says["n2", "freeze"] = SILENT
    assert freeze_cluster(call, "c", quickly).not_paused == ""
    freeze = freeze_in(call.journal(), "c")
    assert freeze is not None
    assert (freeze.marked, freeze.missed) == ("n[1,3]", "n2")
    call.agents.says["n3", "unfreeze"] = SILENT
    unfreeze_cluster(call, FakeOperator(), "c")
    freeze = freeze_in(call.journal(), "c")
    assert freeze is not None
    assert (freeze.lifted, freeze.missed) == (True, "n3")


# ------------------------------------------------------------------------------------------------------ the nodes


@dataclass
class Busy(Agents):
    """The lock of n1 is held for so many answers."""

    held: int = 0
    seen: list[str] = field(default_factory=list)

    def run(self, target: Target, command: RemoteCommand) -> RemoteAnswer:
        self.seen.append(target.name)
        if target.name == "n1" and self.seen.count("n1") <= self.held:
            return answer("freeze", "refused locked another verb is at work")
        return super().run(target, command)


def test_every_node_is_marked_and_a_silent_one_is_reported() -> None:
    nodes = Busy({("n2", "freeze"): SILENT, ("n3", "freeze"): answer("freeze", FACT)}, held=2)
    reports = mark_fleet(access_to("n1", "n2", "n3", sudo=True), nodes, YEAR_END, on=True)
    assert [report.outcome for report in reports.values()] == [Outcome.DONE, Outcome.UNREACHED, Outcome.DONE]
    assert reports["n3"].frozen == YEAR_END
    assert nodes.seen.count("n1") == 3
    said = [words for name, words in nodes.asked if name == "n3"]
    assert said == [{"verb": "freeze", "sudo": "True", "run": "f-1", "counter": "7"}]


def test_a_node_that_stays_locked_is_given_up() -> None:
    nodes = Busy(held=100)
    assert mark_fleet(access_to("n1"), nodes, YEAR_END, on=True)["n1"].reference == "locked"
    assert nodes.seen.count("n1") == TRIES


def test_a_run_that_meets_a_freeze_leaves_the_nodes_alone_and_is_not_charged(journal: SqlJournal) -> None:
    """Another controller froze them. A halt would revert nodes, which is the last thing that a freeze asks for."""
    site = Site(journal)
    site.nodes.says |= {(name, "apply"): REFUSED for name in ("n2", "n3")}
    end = site.apply()
    assert (end.ending, end.halt) == (Ending.DONE, None)
    assert [end.nodes[name].state for name in NAMES] == [NodeState.CONFIRMED, NodeState.REFUSED, NodeState.REFUSED]
    assert {end.nodes[name].cause for name in NAMES} == {None}
    assert end.nodes["n2"].message == "frozen by ann@desk: year end: no changes (token 7 of f-1)"


def test_apply_sees_the_freeze_of_another_journal_before_it_claims_a_node(journal: SqlJournal) -> None:
    site = Site(journal)
    site.nodes.says["n1", "status"] = answer("status", *well(), holds(OLD), FACT)
    found = look_before(SMALL, ACCESS, site.nodes, journal)
    assert found.frozen == {"n1": YEAR_END}
    line = "1 node n1: frozen by ann@desk: year end: no changes (token 7 of f-1)"
    assert list(frozen_lines({**found.frozen, "n2": None})) == [line]


def test_the_doctor_names_a_frozen_node() -> None:
    fleet = inventory(1)
    (node,) = fleet.nodes.values()
    read = model_node(next(iter(kinds(fleet.api_server, (node,)).of(node))))
    read = replace(read, facts={**read.facts, "frozen": FACT.removeprefix("fact frozen ")})
    found = [each for each in of_snapshot(read, 120.0) if each.reference == "frozen"]
    assert [(each.verdict, "year end" in each.message) for each in found] == [(Verdict.FAIL, True)]


# -------------------------------------------------------------------------------------------------------- the texts


def test_a_record_that_no_agent_writes_is_still_a_freeze() -> None:
    assert of_fact({}) is None
    assert of_fact({"frozen": "7 f-1 !! -"}) == NodeFreeze(0, "", "", "")
    assert of_fact({"frozen": "7 f-1 abc -"}) == NodeFreeze(7, "f-1", "", "")
    assert of_fact({"frozen": f"7 f-1 - {encoded(chr(27) + '[31mred')}"}) == NodeFreeze(7, "f-1", "", "?[31mred")


def test_the_result_names_the_nodes_that_are_missing_and_the_command() -> None:
    failed = (NotAsked("n1", "unreachable", "no answer"), NotAsked("n2", "unreachable", "no answer"))
    assert list(
        freeze_lines(FreezeDocument("c", frozen=True, name="f-1", token=7, marked="n3", paused="r1", failed=failed))
    ) == [
        "run r1 is paused; after the unfreeze `rollout continue` continues it",
        "not frozen: 2 nodes n[1-2]: no answer [unreachable]",
        "frozen: 1 node of c",
        "once the other nodes answer, repeat: rollout cluster freeze --cluster c --reason …",
        "to lift the freeze: rollout cluster unfreeze --cluster c --reason …",
    ]
    line = noted_line(FreezeNoted("f-1", 7, 0.0, "ann@desk", "", "n[1-2]"))
    assert line == "frozen by ann@desk since 1970-01-01 00:00:00 UTC: no reason given; not marked: n[1-2]"
