"""Clusters in sequence that are rolled back, or have nodes that are pending recovery."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from dataclasses import replace

import pytest

from rollout.app.runs import resumable, resume, start_apply, with_pending_recovery
from rollout.core.run.state import Verb
from rollout.features.sequence.rules import ClusterProgress, Turn
from rollout.features.sequence.words import sequence_document, sequence_exit, sequence_lines
from tests.app.agents import SILENT
from tests.app.site import ACCESS, SMALL, at_work
from tests.features.sequence.test_sequences import FIRST, SEQUENCE, Both, both, dies, hint

__all__ = ["both"]


def test_a_rollback_in_the_soak_halts_the_sequence(both: Both) -> None:
    both.stop_after = 1
    both.go()
    both.sites[FIRST.cluster].roll_back(f"run-{FIRST.cluster}")
    both.stop_after = 99
    turn, found = both.go()
    assert (turn.turn, sequence_exit(found, turn), both.begun) == (Turn.HALT, 3, [FIRST.cluster])
    assert "was rolled back by" in turn.why
    first = next(iter(sequence_document(SEQUENCE, found, turn).stages)).clusters[0]
    assert (first.hint or "").endswith(
        f"replace its plan {FIRST.cluster}.json by `rollout plan --cluster {FIRST.cluster} --playbook playbooks/base.yaml "
        "--limit @rack01 --out FILE`, with the same --set options (if any); then repeat the sequence"
    )
    assert "resume" not in (first.hint or "")


def _silent(both: Both, *names: str) -> None:
    says = both.sites[FIRST.cluster].nodes.says
    says |= {(name, verb): SILENT for name in names for verb in ("status", "revert")}


@pytest.mark.parametrize(
    ("away", "progress", "why"),
    [
        (("n3",), ClusterProgress.ROLLED_BACK, "run run-c was rolled back by r1 on 2 nodes; pending recovery: n3"),
        (
            ("n1", "n2", "n3"),
            ClusterProgress.HALTED,
            "the rollback r1 of run run-c reverted no node; pending recovery: n[1-3]",
        ),
    ],
)
def test_a_rollback_that_did_not_reach_nodes_names_them_and_the_recovery(
    both: Both, away: tuple[str, ...], progress: ClusterProgress, why: str
) -> None:
    both.stop_after = 1
    both.go()
    _silent(both, *away)
    both.sites[FIRST.cluster].roll_back(f"run-{FIRST.cluster}")
    both.stop_after = 99
    turn, found = both.go()
    assert (turn.turn, found[FIRST.cluster].progress, turn.why) == (Turn.HALT, progress, f"c: {why}")
    assert "; `rollout resume --recover-only r1` and replace its plan c.json" in hint(both, found, turn)
    assert with_pending_recovery(both.journal, "r1"), "the command that it names is accepted"


def test_a_done_cluster_with_pending_recoveries_names_the_command_that_does_them(both: Both) -> None:
    _silent(both, "n3")
    turn, found = both.go()
    *_, first, _, _, _, last = ("", *sequence_lines(sequence_document(SEQUENCE, found, turn)))
    assert first == "  c: done, 3 nodes, 1 failed, pending recovery: n3, run run-c"
    assert last == "c: once n3 answers: `rollout resume --recover-only run-c`"
    assert with_pending_recovery(both.journal, "run-c"), "the command that it names is accepted"
    both.sites[FIRST.cluster].nodes.says.clear()
    resume(with_pending_recovery(both.journal, "run-c"), ACCESS, both.sites[FIRST.cluster].tools())
    turn, found = both.go()
    assert sequence_document(SEQUENCE, found, turn).exit_code == 0


def test_the_recovery_of_a_run_that_another_one_followed_is_not_offered(both: Both) -> None:
    _silent(both, "n3")
    both.go()
    start_apply(replace(SMALL, passes=2), ACCESS, both.sites[FIRST.cluster].tools())
    turn, found = both.go()
    assert "`rollout resume --recover-only" not in "\n".join(sequence_lines(sequence_document(SEQUENCE, found, turn)))


def test_a_rollback_of_another_version_that_has_not_ended_is_found_by_its_transactions(both: Both) -> None:
    both.stop_after = 1
    both.go()
    dies(both, "n1", Verb.READ, lambda: both.sites[FIRST.cluster].roll_back("run-c"))
    order = json.loads(both.journal.header("r1").order)
    for transactions, expected in (
        (order["transactions"], ClusterProgress.HALTED),
        ({"n1": "run-c-1-1"}, ClusterProgress.DONE),
        ({"run-c-1": "other-1"}, ClusterProgress.DONE),
    ):
        with closing(sqlite3.connect(both.folder / "journal.db")) as database:
            written = json.dumps(order | {"rules": 1, "transactions": transactions})
            database.execute("UPDATE runs SET \"order\" = ? WHERE run = 'r1'", (written,))
            database.commit()
        assert both.states()["c"].progress is expected


def test_a_rollback_that_lost_its_controller_halts_the_sequence(both: Both) -> None:
    run = f"run-{FIRST.cluster}"
    both.stop_after = 1
    both.go()
    dies(both, "n1", Verb.REVERT, lambda: both.sites[FIRST.cluster].roll_back(run))
    both.stop_after = 99
    turn, found = both.go()
    assert (turn.turn, both.begun) == (Turn.HALT, [FIRST.cluster])
    assert turn.why.endswith(f"run {run} is being rolled back by r1, which has no controller")
    assert "`rollout resume r1` and replace its plan" in hint(both, found, turn)
    assert resumable(both.journal, "r1"), "the command that it names is accepted"


def test_a_rollback_at_work_is_waited_for(both: Both) -> None:
    run = f"run-{FIRST.cluster}"
    both.stop_after = 1
    both.go()
    dies(both, "n1", Verb.REVERT, lambda: both.sites[FIRST.cluster].roll_back(run))
    at_work(both.journal, "r1")
    both.stop_after = 99
    turn, found = both.go()
    assert (turn.turn, both.begun) == (Turn.HALT, [FIRST.cluster])
    assert f"; wait for the end of run r1 and replace its plan {FIRST.cluster}.json" in hint(both, found, turn)


def test_a_run_that_was_rolled_back_before_it_changed_a_node_is_not_resumed(both: Both) -> None:
    dies(both, "n1", Verb.READ, both.go)
    both.sites[FIRST.cluster].roll_back(f"run-{FIRST.cluster}")
    both.begun.clear()
    turn, found = both.go()
    assert (turn.turn, both.begun, found[FIRST.cluster].progress) == (Turn.HALT, [], ClusterProgress.ROLLED_BACK)
    assert "`rollout resume" not in hint(both, found, turn), "another run followed it"
