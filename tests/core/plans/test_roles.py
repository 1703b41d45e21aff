"""The role of a node as it is seen: static pods, labels and taints count whatever the inventory says."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rollout.core.model.inventory import Node, Role
from rollout.core.model.live import LiveNode
from rollout.core.model.snapshot import Snapshot, UnitState, Unread
from rollout.core.model.surroundings import Listing, Manifests, NodeSurroundings
from rollout.core.plans.roles import SERVERS, SeenRole, seen_role
from rollout.kubelet.node.rancher import EMBEDDINGS
from tests.kubelet.nodes import kubeadm

FOLDER = "/etc/kubernetes/manifests"
WORKER = Node("n1", "n1", "r1", "z1")
LIVE = LiveNode(
    "n1", "u", "", (), {}, unschedulable=False, taints=(), kubelet_version="", runtime="", os_image="", ready="True"
)


def with_files(*names: str, folder: str = FOLDER) -> Snapshot:
    return replace(kubeadm("n1"), surroundings=NodeSurroundings(manifests=(Manifests(folder, Listing(names)),)))


@pytest.mark.parametrize(
    "name",
    ["kube-apiserver.yaml", "etcd.yaml", "kube-apiserver.manifest", "etcd-manager-main.manifest", "kube-apiserver-pod.yaml", "etcd.yml"],
)  # fmt: skip
def test_a_node_with_a_static_pod_of_the_control_plane_is_of_it(name: str) -> None:
    found = seen_role(WORKER, with_files("kube-proxy.yaml", name), None)
    assert found == SeenRole(Role.CONTROL_PLANE, f"it has {name} in {FOLDER}")


@pytest.mark.parametrize(
    "name", ["kube-proxy.yaml", "nginx-proxy.yml", "etcd-backup.yaml", ".etcd.yaml.swp", "kube-apiserver"]
)
def test_other_static_pods_show_no_role(name: str) -> None:
    assert seen_role(WORKER, with_files(name), None) == SeenRole(Role.WORKER)


@pytest.mark.parametrize(
    "read", [None, Unread("n1", "connection-refused", "no"), replace(kubeadm("n1"), surroundings=None)]
)
def test_without_a_reading_the_inventory_counts(read: Snapshot | Unread | None) -> None:
    assert seen_role(WORKER, read, None) == SeenRole(Role.WORKER)


@pytest.mark.parametrize(
    "key", ["node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/master", "node-role.kubernetes.io/etcd"]
)
def test_the_label_or_the_taint_of_its_node_shows_it(key: str) -> None:
    labelled = replace(LIVE, labels={key: ""})
    assert seen_role(WORKER, None, labelled) == SeenRole(Role.CONTROL_PLANE, f"its Node has the label {key}")
    for taint in (f"{key}:NoSchedule", f"{key}=true:NoExecute"):
        found = seen_role(WORKER, None, replace(LIVE, taints=(taint,)))
        assert found == SeenRole(Role.CONTROL_PLANE, f"its Node has the taint {key}")


def test_a_taint_that_only_begins_like_it_shows_nothing() -> None:
    taints = ("node-role.kubernetes.io/control-plane-like:NoSchedule", "dedicated=gpu:NoSchedule")
    assert seen_role(WORKER, None, replace(LIVE, taints=taints)) == SeenRole(Role.WORKER)


@pytest.mark.parametrize(
    ("unit", "role"),
    [
        ("k3s.service", Role.CONTROL_PLANE),
        ("rke2-server.service", Role.CONTROL_PLANE),
        ("k3s-agent.service", Role.WORKER),
        ("rke2-agent.service", Role.WORKER),
        ("kubelet.service", Role.WORKER),
    ],
)
def test_the_unit_of_a_server_of_k3s_or_rke2_shows_it(unit: str, role: Role) -> None:
    found = kubeadm("n1")
    read = replace(found, measurement=replace(found.measurement, unit=UnitState(unit)))
    seen = f"{unit} has its kubelet" if role is Role.CONTROL_PLANE else ""
    assert seen_role(WORKER, read, None) == SeenRole(role, seen)


def test_the_servers_are_units_of_layouts_that_are_known() -> None:
    assert frozenset(EMBEDDINGS) > SERVERS


def test_everything_that_shows_it_is_named() -> None:
    live = replace(LIVE, labels={"node-role.kubernetes.io/control-plane": ""})
    found = seen_role(WORKER, with_files("etcd.yaml", "kube-apiserver.yaml"), live)
    assert found.seen == (
        f"it has etcd.yaml, kube-apiserver.yaml in {FOLDER} and its Node has the label node-role.kubernetes.io/control-plane"
    )


def test_what_the_inventory_says_too_needs_no_proof() -> None:
    node = replace(WORKER, labels={"node-role.kubernetes.io/control-plane": ""})
    assert seen_role(node, with_files("etcd.yaml"), LIVE) == SeenRole(Role.CONTROL_PLANE)


def test_devices_are_seen_by_the_labels_of_the_node_too() -> None:
    assert seen_role(WORKER, None, replace(LIVE, labels={"nvidia.com/gpu.present": "true"})) == SeenRole(Role.DEVICES)
    said = replace(WORKER, labels={"nvidia.com/gpu.present": "false"})
    assert seen_role(said, None, replace(LIVE, labels={"nvidia.com/gpu.present": "true"})) == SeenRole(Role.WORKER)
