"""The summary of a run: counts, failed nodes folded by message, the exit code."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rollout.core.model.playbook import Cause, Limits, RevertScope, Share
from rollout.core.model.regions import RegionStanding
from rollout.core.presentation.summary import exit_code, summarize
from rollout.core.presentation.summary_text import (
    Afterwards,
    Attendance,
    SummaryDocument,
    attendance_lines,
    summary_lines,
)
from rollout.core.run.shown import REVERTED_BY_OTHERS
from rollout.core.run.state import Ending, Goal, LeftOut, NodeRecord, NodeState, Phase, RunState
from rollout.core.text.documents import instant
from tests.documents import as_printed
from tests.orders import in_state, make_order
from tests.plays import Play

S = NodeState


def finished(ending: Ending | None = Ending.DONE, goal: Goal = Goal.APPLY, **records: NodeRecord) -> RunState:
    state = Play(make_order({"a": 3}, goal=goal)).run(until=lambda _: True)
    nodes = dict.fromkeys(state.nodes, in_state(S.CONFIRMED if goal is Goal.APPLY else S.REVERTED))
    nodes |= {name.replace("_", "-"): record for name, record in records.items()}
    return replace(state, nodes=nodes, ending=ending, phase=Phase.ENDED if ending else Phase.RUNNING)


GONE = in_state(S.UNREACHABLE, cause=Cause.UNREACHABLE, reference="connect-timeout", message="no answer", owed=True)

CODES = [
    ("done", finished(), 0),
    ("not ended", finished(None), None),
    ("a node failed", finished(a_1=GONE), 4),
    ("a node was reverted", finished(a_1=in_state(S.REVERTED)), 4),
    ("halted", finished(Ending.HALTED), 3),
    ("preflight", finished(Ending.PREFLIGHT), 2),
    ("claimed by another run", finished(Ending.CLAIMED), 5),
    ("interrupted", finished(Ending.INTERRUPTED), 130),
    ("leftovers of ours", finished(a_1=in_state(S.CONFIRMED, leftovers=("unit x",))), 4),
    ("rolled back", finished(goal=Goal.REVERT), 0),
    ("rolled back except one", finished(goal=Goal.REVERT, a_1=GONE), 4),
]


@pytest.mark.parametrize(("name", "state", "code"), CODES, ids=[name for name, _, _ in CODES])
def test_the_exit_code(name: str, state: RunState, code: int | None) -> None:
    assert exit_code(state) == code


def test_the_first_line_shows_whether_a_run_that_is_done_is_complete() -> None:
    lines = [next(iter(summary_lines(summarize(state)))) for state in (finished(), finished(a_1=GONE))]
    assert lines == ["run r1 on test: done, exit code 0", "run r1 on test: done, incomplete, exit code 4"]


def test_nodes_left_out_of_the_plan_count() -> None:
    state = finished()
    left = (LeftOut("refused", "no home [setting-unsupported]", "b-[1-9]", 9),)
    state = replace(state, order=replace(state.order, left_out=left))
    assert exit_code(state) == 4
    assert any("not in the run, refused (9) b-[1-9]: no home" in line for line in summary_lines(summarize(state)))


def test_failed_nodes_are_folded_by_message() -> None:
    lines = list(summary_lines(summarize(finished(a_1=GONE, a_2=GONE))))
    assert "  unreachable (2) a-[1-2]: no answer [connect-timeout]" in lines
    assert any(line.startswith("  pending recovery") and line.endswith("a-[1-2]") for line in lines)


def test_messages_that_differ_only_in_the_nodes_own_name_are_one() -> None:
    def gone(name: str) -> NodeRecord:
        return replace(GONE, message=f"{name}.example.net did not resolve in time")

    lines = list(summary_lines(summarize(finished(a_1=gone("a-1"), a_2=gone("a-2")))))
    assert "  unreachable (2) a-[1-2]: NODE.example.net did not resolve in time [connect-timeout]" in lines
    alone = list(summary_lines(summarize(finished(a_1=gone("a-1")))))
    assert "  unreachable (1) a-1: a-1.example.net did not resolve in time [connect-timeout]" in alone


def test_a_halted_run_shows_why() -> None:
    play = Play(make_order({"a": 20}, limits=Limits(per_rack=Share(count=5)), on_failure=RevertScope.WAVE))
    play.sicken("a-3")
    end = play.run()
    text = "\n".join(summary_lines(summarize(end)))
    assert "run r1 on test: halted, exit code 3" in text
    assert "; its budget is " in text
    assert "the run halted [taken-back-with-others]" in text
    document = as_printed(SummaryDocument(summarize(end)))
    assert end.halt is not None
    assert document["halt"] == {
        "reference": end.halt.reference, "message": end.halt.message, "at": instant(end.halt.at),
    }  # fmt: skip


def test_nodes_that_another_run_has_reverted_are_told_from_those_of_this_run() -> None:
    others = in_state(S.REVERTED, cause=Cause.FAILED, reference=REVERTED_BY_OTHERS, message="not by this run")
    summary = summarize(finished(Ending.HALTED, a_1=others, a_2=in_state(S.REVERTED)))
    lines = list(summary_lines(summary))
    assert "  all: 1 confirmed, 2 reverted (reverted by another run: a-1)" in lines
    assert [line for line in lines if line.startswith("  wave") and "another run" in line]
    assert (summary.reverted_by_others, as_printed(SummaryDocument(summary))["revertedByOthers"]) == ("a-1", "a-1")
    assert "another run" not in "\n".join(summary_lines(summarize(finished(a_2=in_state(S.REVERTED)))))


def test_leftovers_are_printed_without_terminal_escapes() -> None:
    state = finished(a_1=in_state(S.CONFIRMED, leftovers=("unit \x1b[31mred",)))
    (line,) = [line for line in summary_lines(summarize(state)) if "left behind" in line]
    assert "\x1b" not in line


def test_a_run_in_progress_shows_its_phase_and_wave() -> None:
    assert next(summary_lines(summarize(finished(None)))) == "run r1 on test: running, wave 'all'"


def test_a_run_in_progress_shows_how_far_it_is_from_halting() -> None:
    unhealthy = in_state(S.REVERTED, cause=Cause.UNHEALTHY)
    (line,) = [
        line for line in summary_lines(summarize(finished(None, a_1=unhealthy))) if line.startswith("  budgets: ")
    ]
    assert (
        line
        == "  budgets: wave 'all' 1 of 1 · the fleet 1 of 1 · rack a 1 of 2: halts at 0 more failed nodes in wave 'all'"
    )
    assert not [line for line in summary_lines(summarize(finished())) if line.startswith("  budgets: ")]
    document = as_printed(SummaryDocument(summarize(finished(None))))
    assert document["budgets"] == [
        {"scope": "wave", "name": "all", "wrong": 0, "limit": 1, "left": 1},
        {"scope": "fleet", "name": "", "wrong": 0, "limit": 1, "left": 1},
        {"scope": "rack", "name": "a", "wrong": 0, "limit": 2, "left": 2},
    ]


def test_a_node_that_only_needs_its_cordon_lifted_is_listed_apart() -> None:
    left = ("its cordon could not be lifted: the API is away",)
    held = in_state(S.CONFIRMED, owed=True, cordoned=True, leftovers=left)
    gone = replace(GONE, cordoned=True, leftovers=left)
    lines = list(summary_lines(summarize(finished(a_1=held, a_2=gone))))
    assert "  pending recovery (only the cordon is still to be lifted there): a-1" in lines
    assert "  pending recovery (the change is still to be applied or reverted there): a-2" in lines
    assert any("rollout resume --recover-only" in line for line in lines)
    document = as_printed(SummaryDocument(summarize(finished(a_1=held, a_2=gone))))
    assert document["pendingRecovery"] == {"nodes": "a-[1-2]", "changes": "a-2", "cordons": "a-1"}
    assert document["leftovers"] == [{"node": name, "text": left[0]} for name in ("a-1", "a-2")]
    alone = list(summary_lines(summarize(finished(a_1=held))))
    assert not any("the change is still" in line for line in alone)


def test_a_run_in_progress_shows_the_regions_of_its_controller() -> None:
    regions = (RegionStanding("eu", ("eu-1", "eu-2"), 3, 40, 0.0204), RegionStanding("us", (), 0, 0))
    state = Play(make_order({"a": 1})).run(until=lambda _: True)
    assert list(attendance_lines(summarize(state), Afterwards(controller=Attendance(alive=True, regions=regions)))) == [
        "  region eu: 2 workers (eu-1, eu-2), 3 calls in progress, 40 nodes connected, round trip 20 ms",
        "  region us: 0 workers, 0 calls in progress, 0 nodes connected",
    ]
