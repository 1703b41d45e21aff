"""From plans and transactions to orders."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rollout.core.model.inventory import Node
from rollout.core.model.plan import Change, ChangeGroup, Plan, PlannedNode, Wave
from rollout.core.model.playbook import (
    EMERGENCY_LIMITS,
    SETTLE,
    Busy,
    Disruption,
    Limits,
    PullsInFlight,
    RevertScope,
    Share,
)
from rollout.core.run.facts import unavailable
from rollout.core.run.order import apply_order, predicted_seconds, revert_order
from rollout.core.run.state import Goal, NodeOrder, NodeState, Phase, RunState
from tests.plays import confirmed_before


def order_of(count: int, limits: Limits = EMERGENCY_LIMITS) -> float:
    names = [f"n-{n}" for n in range(count)]
    every = {f"n-{n}": Node(f"n-{n}", "", f"r{n // 60}", "z") for n in range(2040)}
    made = revert_order("r", "c", dict.fromkeys(names, "r0-1"), every, limits)
    assert made.goal is Goal.REVERT
    return predicted_seconds(made, per_node=20.0)


def test_a_control_plane_is_reverted_one_at_a_time_and_the_rest_meanwhile() -> None:
    names = [f"n-{n}" for n in range(12)]
    one_at_a_time = names[:3]
    every = {name: Node(name, "", name, "z") for name in names}
    made = revert_order("r", "c", dict.fromkeys(names, "r0-1"), every, one_at_a_time=one_at_a_time)
    play = confirmed_before(made)
    most = 0

    def watch(state: RunState) -> bool:
        nonlocal most
        most = max(
            most,
            sum(
                unavailable(state.nodes[name], state.now) for name in one_at_a_time if state.phase is not Phase.OPENING
            ),
        )
        return False

    end = play.run(until=watch)
    assert {record.state for record in end.nodes.values()} == {NodeState.REVERTED}
    assert most == 1
    assert predicted_seconds(made, per_node=20.0) == 3 * 20.0 + 2 * SETTLE


CHANGE = Change(
    files=(), units=("kubelet.service",), reload=False, disruption=Disruption.RESTART_KUBELET, arguments=(),
    config_path="", healthz_port=0, settle=60.0,
)  # fmt: skip
PLAN = Plan(
    cluster="c", playbook="p", inventory_digest="", playbook_digest="", taken="", counter=0, limit="",
    groups=(ChangeGroup("g1", "one kind", CHANGE),),
    nodes={"n1": PlannedNode("n1", "n1", "r", "z", "g1", 0, "0" * 32)},
    left=(), waves=(Wave("canary", ("n1",), 1.0),), racks={"r": 1}, limits=Limits(), budgets=(), gates=(),
    on_failure=RevertScope.NODE, passes=3, guard=30.0, keep=3, blobs={}, pulls=PullsInFlight(30.0, Busy.OVERRIDE),
)  # fmt: skip


@pytest.mark.parametrize("disruption", list(Disruption))
def test_a_node_without_a_restart_has_no_settle_time(disruption: Disruption) -> None:
    restarts = disruption in (Disruption.RESTART_RUNTIME, Disruption.RESTART_KUBELET, Disruption.DRAIN_AND_RESTART)
    group = ChangeGroup("g1", "one kind", replace(CHANGE, disruption=disruption))
    order = apply_order("r1", replace(PLAN, groups=(group,)))
    assert order.nodes["n1"] == NodeOrder("n1", "r", 0, CHANGE.settle if restarts else 0.0, "z", "g1")
    assert order.pulls == PLAN.pulls


@pytest.mark.parametrize(
    ("count", "limits", "seconds"),
    [
        (0, EMERGENCY_LIMITS, 20.0),
        (
            60,
            EMERGENCY_LIMITS,
            2 * 20.0 + SETTLE,
        ),  # half a rack at a time: two rounds, the second after the reverted nodes have settled
        (2040, EMERGENCY_LIMITS, 11 * 20.0 + 10 * SETTLE),  # 200 at once: eleven rounds
        (60, Limits(per_rack=Share(count=60), in_flight=60, pace=0.5), 140.0),  # the pace decides
        (60, Limits(Share(count=60), Share(count=15), 60, 60.0), 4 * 20.0 + 3 * SETTLE),  # the zone decides
    ],
)
def test_how_long_a_rollback_is_predicted_to_take(count: int, limits: Limits, seconds: float) -> None:
    assert order_of(count, limits) == seconds
