"""Each law is given a state that breaks it, because a law that no test can break proves nothing."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rollout.core.model.playbook import Cause, Limits, Share
from rollout.core.run.laws import broken_laws
from rollout.core.run.machine import opening
from rollout.core.run.state import (
    Draining,
    Ending,
    Goal,
    Halt,
    NodeRecord,
    NodeState,
    Pending,
    Phase,
    Postponed,
    PostponedFor,
    Refused,
    RunState,
    Verb,
)
from tests.orders import in_state, make_order

S = NodeState


def fresh(goal: Goal = Goal.APPLY) -> RunState:
    limits = Limits(per_rack=Share(count=2), in_flight=3, pace=2.0)
    waves = (("first", lambda n: n == "a-1"), ("rest", lambda _: True))
    state, _ = opening(make_order({"a": 6, "b": 6}, waves, limits=limits, goal=goal), 1, 0.0)
    return replace(state, phase=Phase.RUNNING, nodes={name: NodeRecord() for name in state.nodes}, wave=1)


def given(**records: NodeRecord) -> RunState:
    state = fresh()
    return replace(state, nodes={**state.nodes, **{name.replace("_", "-"): record for name, record in records.items()}})


def to_drain(state: RunState) -> RunState:
    nodes = {name: replace(node, drain=60.0) for name, node in state.order.nodes.items()}
    return replace(state, order=replace(state.order, nodes=nodes))


def ended(state: RunState, ending: Ending = Ending.HALTED) -> RunState:
    return replace(state, phase=Phase.ENDED, ending=ending)


SICK = in_state(S.REVERTED, cause=Cause.UNHEALTHY)
APPLYING = in_state(S.APPLYING)
WAIT = Postponed(PostponedFor.PULLS, 15.0, {PostponedFor.PULLS: 0.0}, ("redis",))
CORDONED = in_state(S.CONFIRMED, cordoned=True)
HALTED = Halt(Ending.HALTED, "x", "x", 1.0)

BROKEN = [
    ("law 1: the nodes of the state", replace(fresh(), nodes={})),
    ("law 4: 3 nodes of rack a unavailable", given(a_2=APPLYING, a_3=APPLYING, a_4=APPLYING)),
    ("law 4: 4 nodes in flight", given(a_2=APPLYING, a_3=APPLYING, b_2=APPLYING, b_3=APPLYING)),
    ("law 4: more than 2 restarts", replace(fresh(), started=(1.0, 1.1, 1.2))),
    ("law 4: 3 nodes of a failed", given(a_2=SICK, a_3=SICK, a_4=SICK)),
    ("law 5: a-2 was released", replace(given(a_2=replace(APPLYING, since=2.0)), halt=HALTED)),
    ("waves: a-2 of wave 1 is in flight", replace(given(a_2=APPLYING), wave=0)),
    ("postponed: a-2 waits for its pulls while", replace(given(a_2=NodeRecord(Pending(WAIT))), phase=Phase.SOAKING)),
    ("postponed: a-2 waits for its pulls, and is charged", given(a_2=NodeRecord(Refused(WAIT), cause=Cause.FAILED))),
    ("drains: a-2 is cordoned, but needs no drain", given(a_2=CORDONED)),
    ("drains: a-2 is being drained, but has no cordon", to_drain(given(a_2=NodeRecord(Draining(0.0, 0.0))))),
    ("drains: a-2 is changed before", to_drain(given(a_2=replace(APPLYING, asked=Verb.APPLY)))),
    ("law 4: 3 nodes of rack a unavailable", to_drain(given(a_2=CORDONED, a_3=CORDONED, a_4=CORDONED))),
    ("law 8: the run ended, but a-2 may still be cordoned", ended(to_drain(given(a_2=CORDONED)))),
    ("law 1: the run ended with a-2 unknown", ended(given(a_2=in_state(S.UNKNOWN)))),
    ("law 1: the run is done but", ended(fresh(), Ending.DONE)),
    ("law 8: the run ended before a-2", ended(given(a_2=in_state(S.CONFIRMED, asked=Verb.CLEAN)))),
]


@pytest.mark.parametrize(("says", "state"), BROKEN, ids=[says for says, _ in BROKEN])
def test_a_broken_law_is_named(says: str, state: RunState) -> None:
    found = broken_laws(state)
    assert any(problem.startswith(says) for problem in found), found


def test_a_fresh_run_keeps_the_laws() -> None:
    assert broken_laws(fresh()) == ()
    assert broken_laws(fresh(Goal.REVERT)) == ()
    assert broken_laws(ended(given(a_2=APPLYING), Ending.CLAIMED)) == ()
