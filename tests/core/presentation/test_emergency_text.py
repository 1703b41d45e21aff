"""What an emergency says while it waits, and what it leaves behind it: folded for people, whole for programs."""

from __future__ import annotations

from rollout.core.model.snapshot import Receipt, ReceiptState
from rollout.core.plans.receipt_history import OnNodes, RunOnNodes
from rollout.core.presentation.emergency_text import (
    MOST_RUNS,
    PULLS,
    left_lines,
    nodes_document,
    predicted_document,
    predicted_lines,
    seen_document,
    seen_lines,
    unfinished_lines,
    waiting_lines,
)
from rollout.core.presentation.rollback_time import NodeTime, TimeBack

SILENT = {
    "n1": "no banner within 10 s [no-banner]",
    "n2": "no banner within 10 s [no-banner]",
    "n3": "n3 is off [no-route]",
}
TIME = TimeBack(40, 33.04, 20.0, NodeTime(4.06, "never rehearsed"), 10.0)


def seen(*runs: RunOnNodes) -> OnNodes:
    newest = {
        name: Receipt(f"{run.run}-1", run.run, run.counter, ReceiptState.CONFIRMED)
        for run in runs
        for name in run.holding
    }
    return OnNodes(runs, newest, SILENT)


def held(number: int, *names: str) -> RunOnNodes:
    return RunOnNodes(f"r{number}", number, names, (), ())


def test_who_is_owed_is_folded_by_why_and_told_when_it_is_asked_again_and_how_to_end_that() -> None:
    assert list(waiting_lines(SILENT, 30)) == [
        "pending recovery (2) n[1-2]: no banner within 10 s [no-banner]",
        "pending recovery (1) n3: n3 is off [no-route]",
        "next attempt in 30 s; Ctrl-C stops this, and the same command continues it",
    ]


def test_whoever_goes_on_from_another_machine_is_given_the_command() -> None:
    command = "To continue, from any machine: rollout rollback r9 r3 --cluster rno --emergency --until-done"
    assert list(unfinished_lines("rno", ("r9", "r3"), SILENT)) == ["still pending recovery: n[1-3]", command]
    assert list(unfinished_lines("rno", ("r9", "r3"), {})) == [command]


def test_what_others_have_taken_meanwhile_is_left_to_them() -> None:
    assert list(left_lines({"n7": "claimed by run r10", "n8": "claimed by run r10"})) == [
        "left to another run (2) n[7-8]: claimed by run r10"
    ]


def test_the_time_is_said_before_anything_is_touched_with_what_becomes_of_pulls() -> None:
    assert list(predicted_lines(TIME)) == [
        "40 nodes to revert, about 33 s at 10 nodes/s (4 s per node, never rehearsed)",
        PULLS,
    ]
    nothing = TimeBack(0, 0.0, 0.0, TIME.each, 10.0)
    assert list(predicted_lines(nothing)) == ["nothing to revert"]
    document = predicted_document(TIME)
    assert (document["event"], document["nodes"], document["seconds"], document["perNode"]) == (
        "Predicted",
        40,
        33.0,
        4.1,
    )


def test_of_many_other_runs_the_newest_are_named_and_the_rest_counted() -> None:
    runs = tuple(held(20 - at, f"n{10 + at}") for at in range(MOST_RUNS + 3))
    lines = list(seen_lines(seen(*runs), ("r20",), (), "rno"))
    assert [line.split()[3] for line in lines if line.startswith("  not reverted: ")] == [
        f"r{20 - at}" for at in range(1, MOST_RUNS + 1)
    ]
    assert "  and 2 older runs" in lines


def test_programs_are_told_every_run_and_everybody_who_did_not_answer() -> None:
    document = seen_document(seen(held(9, "n4", "n5"), held(3, "n6")), ("r9",), ("n8", "n7"))
    assert (document["event"], document["picked"], document["back"]) == ("OnNodes", ["r9"], ["n7", "n8"])
    assert [(run["run"], run["holding"], run["doubted"]) for run in document["runs"]] == [
        ("r9", "n[4-5]", False),
        ("r3", "n6", False),
    ]
    assert document["silent"] == SILENT


def test_what_a_node_says_reaches_no_screen_unprinted() -> None:
    odd = {"n1": "gone\x1b[2J"}
    assert nodes_document("Owed", odd, seconds=30) == {
        "version": 1,
        "event": "Owed",
        "nodes": {"n1": "gone"},
        "seconds": 30,
    }
    assert not any("\x1b" in line for line in (*waiting_lines(odd, 1), *left_lines(odd)))
