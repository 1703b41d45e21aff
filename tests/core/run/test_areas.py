"""Limits beyond a rack: per zone, and a wave of one node at a time; and the waves of nodes that are not workers."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rollout.core.model.inventory import Role, role_of
from rollout.core.model.playbook import Limits, Share, WaveKind, WaveRule
from rollout.core.plans.planning import Candidate, waves
from rollout.core.run.state import Ending, NodeRecord, NodeState, Order
from tests.orders import in_state, make_order, to_change, to_revert
from tests.plays import Play

GPU = {"nvidia.com/gpu.present": "true"}
CONTROL_PLANE = {"node-role.kubernetes.io/control-plane": ""}


def zoned(limits: Limits) -> Order:
    """Three racks of four; ``a`` and ``b`` are in zone z1, ``c`` is in z2."""
    order = make_order({"a": 4, "b": 4, "c": 4}, limits=limits, budgets=())
    zone_of = {"a": "z1", "b": "z1", "c": "z2"}
    nodes = {name: replace(node, zone=zone_of[node.rack]) for name, node in order.nodes.items()}
    return replace(order, nodes=nodes, zones={"z1": 8, "z2": 4})


def pending(order: Order) -> dict[str, NodeRecord]:
    return dict.fromkeys(order.nodes, NodeRecord())


def test_a_zone_has_no_limit_unless_one_is_set() -> None:
    order = zoned(Limits(per_rack=Share(count=4)))
    assert len(to_change(order, pending(order), order.nodes, now=0.0)[0]) == 12


def test_a_zone_is_filled_over_its_racks_and_no_further() -> None:
    order = zoned(Limits(per_rack=Share(count=2), per_zone=Share(count=3)))
    going, _ = to_change(order, pending(order), order.nodes, now=0.0)
    assert going == ("a-1", "a-2", "b-1", "c-1", "c-2")


def test_unavailable_nodes_count_in_their_zone_too() -> None:
    order = zoned(Limits(per_rack=Share(count=2), per_zone=Share(count=3)))
    nodes = {**pending(order), "a-1": in_state(NodeState.APPLYING), "b-1": in_state(NodeState.FAILED)}
    going, _ = to_change(order, nodes, ["a-2", "a-3", "b-2", "c-1"], now=0.0)
    assert going == ("a-2", "c-1")


def test_a_broken_zone_can_still_be_reverted_one_at_a_time() -> None:
    order = zoned(Limits(per_rack=Share(count=2), per_zone=Share(count=1)))
    nodes = {**pending(order), "a-1": in_state(NodeState.FAILED), "b-1": in_state(NodeState.CONFIRMED)}
    assert to_revert(order, nodes, ["b-1"], now=0.0)[0] == ("b-1",)
    nodes["b-2"] = in_state(NodeState.REVERTING)
    assert to_revert(order, nodes, ["b-1"], now=0.0)[0] == ()


def test_a_run_keeps_its_zones_limit_to_its_end() -> None:
    play = Play(zoned(Limits(per_rack=Share(count=4), per_zone=Share(count=2), pace=100.0)))
    most = 0

    def look(_: object) -> bool:
        nonlocal most
        moving = (NodeState.APPLYING, NodeState.APPLIED)
        records = play.state.nodes.items()
        most = max(most, sum(r.state in moving and play.order.nodes[n].zone == "z1" for n, r in records))
        return False

    assert play.run(until=look).ending is Ending.DONE
    assert most == 2


def test_a_wave_with_a_limit_of_one_changes_one_node_at_a_time() -> None:
    order = make_order({"a": 3, "b": 3}, limits=Limits(per_rack=Share(count=3)), budgets=())
    order = replace(order, waves=tuple(replace(wave, at_once=1) for wave in order.waves))
    going, _ = to_change(order, pending(order), order.nodes, now=0.0)
    assert going == ("a-1",)
    nodes = {**pending(order), "b-3": in_state(NodeState.CONFIRMED, busy_until=9.0)}
    assert to_change(order, nodes, order.nodes, now=5.0)[0] == (), "also while the last one settles"


@pytest.mark.parametrize(
    ("labels", "role"),
    [
        ({}, Role.WORKER),
        ({"nvidia.com/gpu.present": "false"}, Role.WORKER),
        ({"nvidia.com/gpu.count": "0"}, Role.WORKER),
        (GPU, Role.DEVICES),
        ({"feature.node.kubernetes.io/network-sriov.capable": "true"}, Role.DEVICES),
        (CONTROL_PLANE, Role.CONTROL_PLANE),
        ({"node-role.kubernetes.io/master": "true"}, Role.CONTROL_PLANE),
        ({**GPU, **CONTROL_PLANE}, Role.CONTROL_PLANE),
    ],
)
def test_a_nodes_role_comes_from_its_labels(labels: dict[str, str], role: Role) -> None:
    assert role_of(labels) is role


def test_devices_come_after_the_workers_and_the_control_plane_last_one_at_a_time() -> None:
    workers = [Candidate(f"w{n}", "r1", "k") for n in range(4)]
    devices = [Candidate(f"g{n}", "r2", "k gpu", Role.DEVICES) for n in range(3)]
    controllers = [Candidate(f"c{n}", "r1", "k cp", Role.CONTROL_PLANE) for n in range(2)]
    rules = (WaveRule(WaveKind.CANARY), WaveRule(WaveKind.UP_TO, percent=50), WaveRule(WaveKind.REST))
    made = waves([*controllers, *devices, *workers], rules, 5.0)
    assert [(wave.name, wave.nodes, wave.at_once) for wave in made] == [
        ("canary", ("w0", "g0"), 0),
        ("50 %", ("w1",), 0),
        ("rest", ("w2", "w3"), 0),
        ("devices", ("g1", "g2"), 0),
        ("control plane", ("c0", "c1"), 1),
    ]


def test_a_wave_keeps_its_hold() -> None:
    made = waves([Candidate("w0", "r1", "k")], (WaveRule(WaveKind.CANARY, hold=True),), 5.0)
    assert [(wave.name, wave.hold) for wave in made] == [("canary", True)]
