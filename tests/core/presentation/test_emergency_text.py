"""The output of an emergency rollback while it waits and at its end: folded for people, complete for programs."""

from __future__ import annotations

from rollout.core.model.snapshot import Receipt, ReceiptState
from rollout.core.plans.receipt_history import OnNodes, RunOnNodes
from rollout.core.presentation.emergency_text import (
    MOST_RUNS,
    PULLS,
    left_document,
    left_lines,
    predicted_document,
    predicted_lines,
    seen_document,
    seen_lines,
    unfinished_document,
    unfinished_lines,
    waiting_document,
    waiting_lines,
    without_lines,
)
from rollout.core.presentation.rollback_time import NodeTime, NoTimeBack, TimeBack
from tests.documents import as_printed

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


def test_nodes_pending_recovery_are_folded_by_reason_with_the_next_attempt_and_how_to_stop_it() -> None:
    assert list(waiting_lines(SILENT, 30)) == [
        "pending recovery (2) n[1-2]: no banner within 10 s [no-banner]",
        "pending recovery (1) n3: n3 is off [no-route]",
        "next attempt in 30 s; Ctrl-C stops this, and the same command continues it",
    ]


def test_the_command_to_continue_from_another_machine_is_printed() -> None:
    command = "To continue, from any machine: rollout rollback r9 r3 --cluster rno --emergency --until-done"
    assert list(unfinished_lines("rno", ("r9", "r3"), SILENT)) == ["still pending recovery: n[1-3]", command]
    assert list(unfinished_lines("rno", ("r9", "r3"), {})) == [command]


def test_nodes_of_another_run_are_left_to_it() -> None:
    assert list(left_lines({"n7": "claimed by run r10", "n8": "claimed by run r10"})) == [
        "left to another run (2) n[7-8]: claimed by run r10"
    ]


def test_the_predicted_time_and_the_effect_on_pulls_are_printed_before_any_change() -> None:
    assert list(predicted_lines(TIME)) == [
        "40 nodes to revert, about 33 s at 10 nodes/s (4 s per node, never rehearsed)",
        PULLS,
    ]
    nothing = TimeBack(0, 0.0, 0.0, TIME.each, 10.0)
    assert list(predicted_lines(nothing)) == ["nothing to revert"]
    document = as_printed(predicted_document(TIME))
    found = (document["kind"], document["count"], document["seconds"], document["nodeSeconds"])
    assert found == ("Predicted", 40, 33.0, 4.1)


def test_an_unknown_time_is_reported_as_unknown() -> None:
    assert list(predicted_lines(NoTimeBack(40))) == ["40 nodes to revert; the time is not known", PULLS]
    document = as_printed(predicted_document(NoTimeBack(40)))
    assert (document["kind"], document["count"]) == ("NotPredicted", 40)


def test_of_many_other_runs_the_newest_are_named_and_the_rest_counted() -> None:
    runs = tuple(held(20 - at, f"n{10 + at}") for at in range(MOST_RUNS + 3))
    lines = list(seen_lines(seen(*runs), ("r20",), (), "rno"))
    assert [line.split()[3] for line in lines if line.startswith("  not reverted: ")] == [
        f"r{20 - at}" for at in range(1, MOST_RUNS + 1)
    ]
    assert "  and 2 older runs" in lines


def test_json_has_every_run_and_every_node_without_an_answer() -> None:
    document = as_printed(seen_document(seen(held(9, "n4", "n5"), held(3, "n6")), ("r9",), ("n8", "n7")))
    assert (document["kind"], document["picked"], document["reverted"]) == ("OnNodes", ["r9"], "n[7-8]")
    assert [(run["run"], run["holding"], run["doubted"]) for run in document["runs"]] == [
        ("r9", "n[4-5]", False),
        ("r3", "n6", False),
    ]
    assert (document["silent"], document["without"]) == (SILENT, "")


def test_texts_from_a_node_are_made_printable() -> None:
    odd = {"n1": "gone\x1b[2J"}
    for document in (waiting_document(odd, 30.0), left_document(odd), unfinished_document(("r9",), odd)):
        assert as_printed(document)["nodes"] == {"n1": "gone"}
    assert not any("\x1b" in line for line in (*waiting_lines(odd, 1), *left_lines(odd)))


def test_nodes_without_any_transaction_are_named() -> None:
    """Otherwise no line is about them, and the proof looks like one of all nodes."""
    assert list(without_lines((), "rno")) == []
    assert list(without_lines(("n1", "n2"), "rno")) == ["no transaction of rno is on 2 nodes that answered: n[1-2]"]
