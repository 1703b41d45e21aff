"""A run of a list, for tests: halted on one of three nodes, with what a test changes of it."""

from __future__ import annotations

from dataclasses import replace

from rollout.core.presentation.headline import ChangedSetting, NodesDone, WhatChanged
from rollout.core.presentation.past_run import PendingNodes
from rollout.core.presentation.run_list import ListedRun, RunStanding
from tests.core.presentation.journals import BEGAN

CHANGE = WhatChanged("image-pulls", (ChangedSetting("serializeImagePulls", "true", "false"),))
LISTED = ListedRun(
    change=CHANGE,
    progress=NodesDone(2, 3),
    run="r1",
    cluster="rno",
    goal="apply",
    began=BEGAN,
    ended=BEGAN + 95,
    who="ann@ops",
    reason="pulls time out",
    state=RunStanding.HALTED,
    why="2 of 3 nodes of rack01 failed [budget-rack]",
    exit_code=3,
    pending_recovery=PendingNodes(""),
    rolled_back=(),
    on_top=(),
)


def listed(**changes: object) -> ListedRun:
    return replace(LISTED, **changes)  # type: ignore[arg-type]
