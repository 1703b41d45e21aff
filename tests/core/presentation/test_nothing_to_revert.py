"""What ``rollback RUN`` prints of nodes that it does not revert."""

from __future__ import annotations

from rollout.core.presentation.nothing_to_revert import ANOTHER_RUN, not_reverted_lines, nothing_to_revert
from rollout.core.run.state import LeftOut

BACK = {"r2": ("n1", "n2")}
BELOW = LeftOut("below a newer run", "newer runs changed its files; first `rollout rollback r3`", "n[3-5]", 3)


def test_each_node_that_is_not_reverted_is_told_with_its_reason() -> None:
    elsewhere = {"r8": ("n6",), ANOTHER_RUN: ("n7", "n8")}
    assert list(not_reverted_lines(BACK, elsewhere, (BELOW,))) == [
        "already rolled back by run r2 on 2 nodes: n[1-2]",
        "already reverted by a run of another journal on 1 node: n6; run r8 claimed it last",
        "already reverted by a run of another journal on 2 nodes: n[7-8]",
        f"not reverted, below a newer run: 3 nodes n[3-5]: {BELOW.reason}",
    ]
    assert list(not_reverted_lines({}, {}, ())) == []


def test_only_nodes_that_are_left_out_make_it_incomplete() -> None:
    assert nothing_to_revert("r1", BACK, {}, ()).exit_code == 0
    assert nothing_to_revert("r1", BACK, {}, (BELOW,)).exit_code == 4
