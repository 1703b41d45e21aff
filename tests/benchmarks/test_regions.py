"""The simulated fleet in regions: a cut region halts the run, and leaves no node armed."""

from __future__ import annotations

from collections import Counter

from benchmarks.regions import CUT_REGION, page, play

NODES = 2000


def test_a_cut_region_leaves_no_node_armed_and_the_others_end_in_order() -> None:
    whole = play(NODES, cut=False)
    assert (whole.ending, whole.guards) == ("done", 0)
    assert Counter(state for found in whole.states.values() for state in found) == {"confirmed": 20}
    cut = play(NODES, cut=True, cut_after=whole.seconds - 70)  # the last wave has begun
    assert (cut.ending, cut.guards) == ("halted", 0)
    others = {state for region, found in cut.states.items() if region != CUT_REGION for state in found}
    assert others <= {"confirmed", "pending", "reverted", "skipped"}
    assert "unreachable" in cut.states[CUT_REGION]
    lines = list(page(NODES, whole, cut))
    assert any(line.startswith("| calls and answers per node | 16.0") for line in lines)
