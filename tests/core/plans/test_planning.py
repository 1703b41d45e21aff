"""Groups, counters, preflight: a plan made from the decision for each node."""

from __future__ import annotations

from dataclasses import replace

from rollout.core.model.plan import Change, ExcludedNode, FileChange, Standing
from rollout.core.model.playbook import Disruption, Limits, Share
from rollout.core.model.snapshot import Receipt, ReceiptState, Snapshot, Token, Unread
from rollout.core.plans.planning import Decided, groups, kind_of, plan_of, preflight
from tests.kubelet.nodes import POLICY, fleet, inventory, kubeadm

CHANGE = Change(
    files=(FileChange("/c", "b" * 64, "a" * 64, "644", ("x: 1 → 2",)),),
    units=("kubelet.service",),
    reload=False,
    disruption=Disruption.RESTART_KUBELET,
    arguments=(),
    config_path="/c",
    healthz_port=10248,
    settle=20.0,
)
OTHER_BYTES = replace(CHANGE, files=(replace(CHANGE.files[0], before="c" * 64),))
FOUND = inventory(6, per_rack=3)
NODES = tuple(FOUND.nodes.values())


def decided(at: int, change: Change = CHANGE, label: str = "a") -> Decided:
    return Decided(NODES[at], f"m{at}", change, label)


def test_groups_are_named_by_size_then_label() -> None:
    found, names = groups([decided(0, label="z"), decided(1, label="b"), decided(2, label="z"), decided(3, label="a")])
    assert [(group.name, group.label) for group in found] == [("g1", "z"), ("g2", "a"), ("g3", "b")]
    assert names[NODES[2].name] == "g1"


def test_other_bytes_are_another_group_but_the_same_kind() -> None:
    found, _ = groups([decided(0), decided(1, OTHER_BYTES)])
    assert len(found) == 2
    assert kind_of("a", CHANGE) == kind_of("a", OTHER_BYTES) != kind_of("b", CHANGE)
    assert kind_of("a", CHANGE) != kind_of("a", replace(CHANGE, files=(replace(CHANGE.files[0], before=""),)))


def test_a_plan() -> None:
    snapshots: dict[str, Snapshot | Unread] = {
        NODES[0].name: replace(kubeadm(), token=Token(3, "r", live=True)),
        NODES[1].name: replace(kubeadm(), receipts=(Receipt("t", "r", 7, ReceiptState.CONFIRMED),)),
        NODES[2].name: Unread(NODES[2].name, "ssh-timeout", "late"),
    }
    lefts = [
        ExcludedNode(NODES[5].name, "rack02", Standing.REFUSED, "kubelet-not-running", "sick"),
        ExcludedNode(NODES[2].name, "rack01", Standing.UNREACHABLE, "ssh-timeout", "late"),
        ExcludedNode(NODES[4].name, "rack02", Standing.REFUSED, "layout-drifted", "edited"),
    ]
    blobs = {"b": b"2", "a": b"1"}
    plan = plan_of(
        FOUND,
        POLICY,
        fleet(FOUND, snapshots),
        "@rack01",
        [decided(3), decided(0), decided(1, OTHER_BYTES)],
        lefts,
        blobs,
    )
    assert plan.counter == 7
    assert list(plan.nodes) == [NODES[0].name, NODES[1].name, NODES[3].name]
    assert [wave.nodes for wave in plan.waves] == [(NODES[0].name,), (NODES[3].name, NODES[1].name)]
    assert plan.nodes[NODES[3].name].wave == 1
    assert plan.racks == {"rack01": 3, "rack02": 3}
    assert [entry.name for entry in plan.left] == [NODES[2].name, NODES[4].name, NODES[5].name]
    assert list(plan.blobs) == ["a", "b"]

    found = preflight(plan, frozenset({"kubelet-not-running"}))
    assert (found.selected, found.unhealthy, found.most) == (6, (NODES[2].name, NODES[5].name), 1)
    assert found.refused
    assert not preflight(
        replace(plan, limits=Limits(preflight=Share(count=2))), frozenset({"kubelet-not-running"})
    ).refused


def test_without_a_read_node_the_counter_is_zero() -> None:
    assert plan_of(FOUND, POLICY, fleet(FOUND, {}), "", [], [], {}).counter == 0
