"""Planning a fleet: the whole path from inventory, playbook and snapshot to a plan."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from rollout.app.plan import build_plan
from rollout.app.plan_file import check_preflight
from rollout.core.model.inventory import Inventory
from rollout.core.model.plan import Plan, Standing
from rollout.core.model.settings import Setting
from rollout.core.model.snapshot import FleetSnapshot
from rollout.core.plans import plan_codec
from rollout.errors import InputError
from rollout.kubelet.changes import splice
from tests.cost import calls
from tests.kubelet.nodes import CONFIG_TEXT, IMAGE_PULLS, POLICY, applied, fleet, inventory, kubeadm, mixed, settings


def planned(
    found: Inventory,
    snapshot: FleetSnapshot,
    wanted: dict[str, Setting] | None = None,
    selection: tuple[str, ...] | None = None,
) -> Plan:
    mine = IMAGE_PULLS if wanted is None else wanted
    chosen = tuple(found.nodes) if selection is None else selection
    return build_plan(found, POLICY, snapshot, dict.fromkeys(found.nodes, mine), chosen, "")


POISON = CONFIG_TEXT.replace("serializeImagePulls: true", "serializeImagePulls: true\nmaxPods: 0x_")


def test_a_number_without_digits_in_one_nodes_file_refuses_that_node_at_most() -> None:
    found = inventory(3, per_rack=1)
    poisoned, *others = found.nodes
    nodes = {name: kubeadm(name) for name in others} | {poisoned: kubeadm(poisoned, config=POISON)}
    made = planned(found, fleet(found, nodes))
    assert set(made.nodes) == set(others)
    assert [(left.name, left.reference) for left in made.left] == [(poisoned, "config-not-understood")]


@pytest.mark.no_cover
def test_two_thousand_nodes_become_a_few_groups() -> None:
    found = inventory()
    snapshot = mixed(found)
    splice.splice.cache_clear()
    plan = planned(found, snapshot)
    assert [group.label for group in plan.groups] == [
        "kubelet 1.20.15, dockershim, kubeadm layout (deb)",
        "kubelet 1.21.14, dockershim, kubeadm layout (rpm)",
        "kubelet 1.23.17, containerd 1.6, kubeadm layout (deb)",
        "kubelet 1.23.17, cri-dockerd 0.3, kubeadm layout (deb)",
        "kubelet 1.22.17, dockershim, plain unit",
    ]
    assert len(plan.nodes) == 1995
    assert len(plan.waves[0].nodes) == 5
    assert len(json.loads(plan_codec.encode(plan))["blobs"]) == 6
    assert splice.splice.cache_info().misses == 1
    assert plan_codec.encode(plan) == plan_codec.encode(planned(found, snapshot))
    assert not check_preflight(plan).refused


@pytest.mark.no_cover
def test_four_times_the_nodes_cost_four_times_as_much() -> None:
    few, many = inventory(500), inventory(2000)
    planned(few, mixed(few))  # what is read once is read
    cost = calls(lambda: planned(few, mixed(few)))
    assert calls(lambda: planned(many, mixed(many))) < 5 * cost


def test_plan_apply_plan_again_nothing_to_do_then_only_what_changed() -> None:
    found = inventory(12, per_rack=4)
    first = planned(found, fleet(found, {name: kubeadm(name) for name in found.nodes}))
    changes = {group.name: group.change for group in first.groups}
    after = {name: applied(kubeadm(name), changes[node.group]) for name, node in first.nodes.items()}
    again = planned(found, fleet(found, after))
    assert not again.nodes
    assert {entry.standing for entry in again.left} == {Standing.AS_WANTED}
    third = planned(found, fleet(found, after), {**IMAGE_PULLS, **settings(imagePullProgressDeadline="10m")})
    (group,) = third.groups
    assert [file.reasons for file in group.change.files] == [
        ("--image-pull-progress-deadline: 5m → 10m (playbook image-pulls)",)
    ]


def test_nodes_that_differ_only_in_their_own_flags_need_one_canary() -> None:
    found = inventory(6, per_rack=3)
    nodes = {
        name: kubeadm(name, extra=f"KUBELET_EXTRA_ARGS=--node-ip=10.0.0.{at}\n", words=f"--node-ip=10.0.0.{at}")
        for at, name in enumerate(found.nodes)
    }
    plan = planned(found, fleet(found, nodes))
    assert len(plan.groups) == 6
    assert len(plan.waves[0].nodes) == 1


def test_a_node_that_the_snapshot_does_not_contain_is_unreachable() -> None:
    found = inventory(2)
    plan = planned(found, fleet(found, {}))
    assert {(entry.standing, entry.reference) for entry in plan.left} == {(Standing.UNREACHABLE, "not-in-snapshot")}
    assert check_preflight(plan).refused


def test_kubelets_newer_than_the_table_are_treated_as_the_assumed_minor_with_a_remark() -> None:
    found = inventory(3)
    known, *new = found.nodes
    later = {name: replace(kubeadm(name, "1.36.0", "containerd"), kubelet_version="1.99.1") for name in new}
    snapshot = fleet(found, {known: kubeadm(known), **later})
    wanted = dict.fromkeys(found.nodes, settings(serializeImagePulls=False))
    plan = build_plan(found, POLICY, snapshot, wanted, tuple(found.nodes), "")
    assert [entry.reference for entry in plan.left] == ["kubelet-version-unknown"] * 2
    plan = build_plan(found, POLICY, snapshot, wanted, tuple(found.nodes), "", assumed=36)
    assert not plan.left
    said = next(remark for remark in plan.remarks if remark.reference == "kubelet-assumed")
    assert said.nodes == tuple(new)
    assert said.text == "kubelet 1.99.1 is newer than rollout supports; it is treated as 1.36 (--assume-kubelet)"


def test_every_mistake_in_settings_once() -> None:
    found = inventory(3)
    with pytest.raises(InputError) as caught:
        planned(found, fleet(found, {}), settings(serialiseImagePulls=False, registryPullQPS="5"))
    assert [problem.reference for problem in caught.value.problems] == ["setting-unknown", "setting-value"]


@pytest.mark.parametrize(
    ("snapshot", "reference"),
    [
        (FleetSnapshot("other", "i" * 64, "", {}), "snapshot-of-another-cluster"),
        (FleetSnapshot("rno", "x" * 64, "", {}), "snapshot-of-another-inventory"),
    ],
)
def test_a_snapshot_of_another_cluster_or_inventory(snapshot: FleetSnapshot, reference: str) -> None:
    with pytest.raises(InputError) as caught:
        planned(inventory(1), snapshot)
    assert caught.value.reference == reference


def test_a_snapshot_binds_the_nodes_of_its_plan_only() -> None:
    """Of a fleet that breathes: nodes joined and left since it was read, others have another rack, setting or API server."""
    before = inventory(4)
    names = tuple(before.nodes)
    read = fleet(before, {name: kubeadm(name) for name in names})
    read = replace(read, addresses={name: node.reached_at for name, node in before.nodes.items()})
    nodes = {name: replace(node, rack="elsewhere") for name, node in before.nodes.items() if name != names[3]}
    joined = replace(before.nodes[names[0]], name="tess-node-9999", address="tess-node-9999")
    now = replace(before, nodes={**nodes, joined.name: joined}, digest="j" * 64, api_server="1.24.1")
    found = planned(now, read)
    assert set(found.nodes) == set(names[:3])
    assert found.inventory_digest == "j" * 64
    assert {each.name: each.reference for each in found.left} == {joined.name: "not-in-snapshot"}


@pytest.mark.parametrize("change", [{"address": "10.9.9.9"}, {"port": 2222}, {"user": "else"}])
def test_a_snapshot_is_refused_with_the_nodes_that_are_elsewhere_now(change: dict[str, Any]) -> None:
    before = inventory(4)
    names = tuple(before.nodes)
    read = fleet(before, {name: kubeadm(name) for name in names})
    read = replace(read, addresses={name: node.reached_at for name, node in before.nodes.items()})
    moved = {name: replace(before.nodes[name], **change) for name in names[:2]}
    now = replace(before, nodes={**before.nodes, **moved}, digest="j" * 64)
    with pytest.raises(InputError) as caught:
        planned(now, read)
    assert {each.reference for each in caught.value.problems} == {"snapshot-of-another-inventory"}
    told = " ".join(each.message for each in caught.value.problems)
    assert all(name in told or "tess-node-[0001-0002]" in told for name in moved)
    assert str(*change.values()) in told
    assert planned(now, read, selection=names[2:]).nodes.keys() == set(names[2:]), "others are not bound"
