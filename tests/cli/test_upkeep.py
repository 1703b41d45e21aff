"""What the commands of upkeep say."""

from __future__ import annotations

from rollout.cli.upkeep import UnlockDocument, released, unlocked_lines
from rollout.core.presentation.drift_text import NotAsked


def test_a_cluster_without_any_claim_is_unlocked_too() -> None:
    nobody, still = released([])
    (line,) = unlocked_lines(UnlockDocument("rno", nobody, still, ()))
    assert line == "unlocked: 0 nodes released, 0 not released, 0 did not answer"


def test_nodes_without_an_answer_are_named() -> None:
    silent = NotAsked("n2", "unreachable", "no route")
    lines = list(unlocked_lines(UnlockDocument("rno", "n1", {"n3": "it is armed"}, (silent,))))
    assert lines[0] == "n3: it is armed"
    assert lines[1] == "unlocked: 1 node released, 1 not released, 1 did not answer"
    assert "n2" in lines[2]
    assert "[unreachable]" in lines[2]
