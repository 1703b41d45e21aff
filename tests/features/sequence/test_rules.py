"""Which clusters of a sequence may begin: a table of cases."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rollout.core.model.playbook import Share
from rollout.errors import Place
from rollout.features.sequence.rules import (
    ClusterProgress,
    ClusterSequence,
    ClusterStage,
    NextTurn,
    SequencedCluster,
    StagedCluster,
    Turn,
    next_turn,
)

SOAK = 600.0
NOW = 10_000.0
WAITING = SequencedCluster(ClusterProgress.NOT_BEGUN, 100)
CANARY, RNO, IAD, LAST = "canary", "rno", "iad", "last"


def stage(name: str, *clusters: str) -> ClusterStage:
    return ClusterStage(name, tuple(StagedCluster(each, f"{each}.json", Place("s", 1, 1)) for each in clusters), SOAK)


SEQUENCE = ClusterSequence("all", (stage("one", CANARY), stage("two", RNO, IAD), stage("three", LAST)), Share(count=5))


def done(ended: float = 0.0, failed: int = 0) -> SequencedCluster:
    return SequencedCluster(ClusterProgress.DONE, 100, "r1", failed, ended=ended)


def state(progress: ClusterProgress) -> SequencedCluster:
    return SequencedCluster(progress, 100, "r1", ended=NOW, why="why")


HALTED, OPEN = state(ClusterProgress.HALTED), state(ClusterProgress.UNFINISHED)
LATE = replace(done(), late_due=True)
CASES = {
    "nothing has begun": ({}, NextTurn(Turn.BEGIN, 0, (CANARY,))),
    "a run without a controller is resumed": ({CANARY: OPEN}, NextTurn(Turn.BEGIN, 0, (CANARY,))),
    "an interrupted run is resumed": (
        {CANARY: state(ClusterProgress.INTERRUPTED)},
        NextTurn(Turn.BEGIN, 0, (CANARY,)),
    ),
    "it soaks": ({CANARY: done(NOW - 1)}, NextTurn(Turn.SOAK, 0, until=NOW - 1 + SOAK)),
    "the soak is over": ({CANARY: done(NOW - SOAK)}, NextTurn(Turn.BEGIN, 1, (RNO, IAD))),
    "nothing was to change": ({CANARY: done()}, NextTurn(Turn.BEGIN, 1, (RNO, IAD))),
    "one of two is done": ({CANARY: done(), RNO: done(NOW)}, NextTurn(Turn.BEGIN, 1, (IAD,))),
    "the soak begins with the last end": (
        {CANARY: done(), RNO: done(NOW - SOAK), IAD: done(NOW - 2)},
        NextTurn(Turn.SOAK, 1, until=NOW - 2 + SOAK),
    ),
    "a halt stops what has not begun": ({CANARY: HALTED}, NextTurn(Turn.HALT, why="canary: why")),
    "a halt beside a run that has not ended": (
        {CANARY: done(), RNO: HALTED, IAD: OPEN},
        NextTurn(Turn.HALT, why="rno: why"),
    ),
    "a rollback in the soak": (
        {CANARY: state(ClusterProgress.ROLLED_BACK)},
        NextTurn(Turn.HALT, why="canary: why"),
    ),
    "a rollback long after its stage": (
        {CANARY: state(ClusterProgress.ROLLED_BACK), RNO: done(), IAD: done()},
        NextTurn(Turn.HALT, why="canary: why"),
    ),
    "the budget over all clusters": (
        {CANARY: done(failed=2), RNO: done(failed=2), IAD: done(failed=1)},
        NextTurn(Turn.HALT, why="5 nodes failed over all clusters; the budget of the sequence is 5"),
    ),
    "below the budget": (
        {CANARY: done(failed=2), RNO: done(failed=2), IAD: done()},
        NextTurn(Turn.BEGIN, 2, (LAST,)),
    ),
    "the budget stops nothing that has begun": (
        {CANARY: done(), RNO: done(), IAD: done(failed=9), LAST: OPEN},
        NextTurn(Turn.BEGIN, 2, (LAST,)),
    ),
    "late gates are asked after the soak": (
        {CANARY: LATE},
        NextTurn(Turn.ASK, 0, (CANARY,)),
    ),
    "late gates of the clusters of a stage that have some": (
        {CANARY: done(), RNO: LATE, IAD: done()},
        NextTurn(Turn.ASK, 1, (RNO,)),
    ),
    "not during the soak": (
        {CANARY: replace(LATE, ended=NOW - 1)},
        NextTurn(Turn.SOAK, 0, until=NOW - 1 + SOAK),
    ),
    "a watch that ended without a pass": (
        {CANARY: replace(LATE, late_over="it ended")},
        NextTurn(Turn.HALT, 0, (CANARY,), why="canary: it ended"),
    ),
    "not when every cluster has begun": (
        {CANARY: LATE, RNO: LATE, IAD: LATE, LAST: done()},
        NextTurn(Turn.END),
    ),
    "no soak after the last stage": (
        {CANARY: done(), RNO: done(), IAD: done(), LAST: done(NOW, failed=9)},
        NextTurn(Turn.END),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_the_next_turn(name: str) -> None:
    given, expected = CASES[name]
    found = {each.cluster: given.get(each.cluster, WAITING) for each in SEQUENCE.clusters}
    assert next_turn(SEQUENCE, found, NOW) == expected
