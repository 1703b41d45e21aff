"""From plans and transactions to orders."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rollout.core.model.fleet_changes import FewerNodes, FleetChanges, Leaver
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
from rollout.core.run.order import apply_order, predicted_seconds, promoted, revert_order
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
    on_failure=RevertScope.NODE, passes=3, guard=30.0, keep=3, pulls=PullsInFlight(30.0, Busy.OVERRIDE),
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


# A plan and a fleet that has shrunk since.


def planned(groups: dict[str, str], waves: dict[str, str]) -> Plan:
    """``groups``: node → its group; ``waves``: wave → its nodes, in words."""
    made = {name: tuple(words.split()) for name, words in waves.items()}
    wave_of = {name: at for at, names in enumerate(made.values()) for name in names}
    return replace(
        PLAN,
        groups=tuple(ChangeGroup(name, f"kind of {name}", CHANGE) for name in sorted(set(groups.values()))),
        nodes={name: PlannedNode(name, name, "r", "z", groups[name], wave_of[name], "0" * 32) for name in wave_of},
        waves=tuple(Wave(name, names, 1.0, at_once=int(name == "control plane")) for name, names in made.items()),
        racks={"r": len(groups)},
        zones={"z": len(groups)},
    )


def without(*names: str, racks: int = 9) -> FleetChanges:
    leaver = Leaver("gone", "it left")
    return FleetChanges(dict.fromkeys(names, leaver), sizes=FewerNodes({"r": racks}, {}))


FOUR = planned({"a1": "g1", "a2": "g1", "b1": "g2", "b2": "g2"}, {"canary": "a1 b1", "half": "b2", "rest": "a2"})


def test_a_node_that_left_is_left_out_of_its_run_and_of_the_size_of_its_rack() -> None:
    order = apply_order("r1", FOUR, without("b2", racks=3))
    assert [wave.nodes for wave in order.waves] == [("a1", "b1"), (), ("a2",)], "waves keep their places"
    assert order.racks == {"r": 3}
    assert [(left.what, left.nodes, left.count) for left in order.left_out] == [("gone", "b2", 1)]
    assert order.nodes.keys() == {"a1", "a2", "b1"}


def test_the_place_of_a_canary_that_left_is_taken_by_a_node_of_its_kind() -> None:
    order = apply_order("r1", FOUR, without("a1"))
    assert [wave.nodes for wave in order.waves] == [("b1", "a2"), ("b2",), ()]
    assert {name: node.wave for name, node in order.nodes.items()} == {"b1": 0, "a2": 0, "b2": 1}
    assert promoted(FOUR, without("a1")) == ("a2",)


def test_no_other_node_moves_where_a_canary_of_the_kind_is_left_or_no_node_is() -> None:
    assert promoted(FOUR, without("a1", "a2")) == ()
    two = planned({"a1": "g1", "a2": "g1", "a3": "g1"}, {"canary": "a1 a2", "rest": "a3"})
    assert promoted(two, without("a1")) == ()
    controllers = planned({"a1": "g1", "a2": "g1"}, {"canary": "a1", "control plane": "a2"})
    assert promoted(controllers, without("a1")) == (), "the control plane stays last"
