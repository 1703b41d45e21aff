"""Kinds of nodes: which are possible, their model nodes, and their descriptions."""

from __future__ import annotations

import pytest

from rollout.core.model.inventory import Node
from rollout.core.model.plan import Standing
from rollout.kubelet import fields
from rollout.kubelet.changes.changes import LeftAlone, Proposal, proposal, unfit
from rollout.kubelet.kinds import Installed, NodeKind, kinds, kinds_told, model_node
from rollout.kubelet.runtimes.description import Runtime
from tests.kubelet import nodes


def node(**labels: str) -> Node:
    return Node("n", "n", "r", "z", labels)


def said(api_server: str, *others: Node, **labels: str) -> list[tuple[int, str, str]]:
    found = kinds(api_server, [node(**labels), *others]).of(node(**labels))
    return [(kind.minor, kind.runtime.value, kind.installed.value) for kind in found]


def test_minors_are_those_of_the_version_skew_that_we_know() -> None:
    def minors(api_server: str) -> list[int]:
        return [minor for minor, _, installed in said(api_server) if installed == "plain"]

    assert minors("v1.36.1") == [33, 34, 35, 36]
    assert minors("v1.28.0") == [25, 26, 27, 28]
    assert minors("v1.27.9") == [25, 26, 27]
    assert minors("v1.21.14") == [20, 21]


def test_labels_of_a_node_decide_its_kind() -> None:
    labels = {"kubeletVersion": "v1.33.5", "containerRuntime": "cri-o", "layout": "kubeadm-rpm"}
    assert said("v1.36.1", **labels) == [(33, "CRI-O", "kubeadm-rpm")]
    assert said("v1.23.1", kubeletVersion="v1.19.2") == []  # nothing is known of such kubelets


def test_without_labels_a_kubelet_may_be_installed_in_any_way() -> None:
    version = {"kubeletVersion": "v1.33.5"}
    assert [installed for _, _, installed in said("v1.36.1", **version)] == ["kubeadm-deb", "plain"]
    rpm = node(layout="kubeadm-rpm")
    assert [installed for _, _, installed in said("v1.36.1", rpm, **version)] == ["kubeadm-deb"]


def test_docker_is_dockershim_up_to_1_23() -> None:
    assert said("v1.24.1", kubeletVersion="1.23.1", containerRuntime="docker", layout="plain") == [
        (23, "dockershim", "plain")
    ]
    for name in ("docker", "dockershim", "cri-dockerd"):
        assert said("v1.24.1", kubeletVersion="1.24.1", containerRuntime=name, layout="plain") == [
            (24, "cri-dockerd", "plain")
        ]


EVERY = [
    NodeKind(minor, f"1.{minor}.0", runtime, "1.7.28", installed)
    for minor in fields.known_minors()
    for runtime in Runtime
    for installed in Installed
    if runtime is not Runtime.UNKNOWN and (runtime is not Runtime.DOCKERSHIM or minor < 24)
]


@pytest.mark.parametrize("kind", EVERY, ids=lambda kind: f"{kind.version}-{kind.runtime.name}-{kind.installed.name}")
def test_a_model_is_a_fit_node_that_the_planner_changes(kind: NodeKind) -> None:
    found = model_node(kind)
    settings = nodes.settings(maxPods=40, __v=4)
    assert unfit(found, nodes.POLICY, None) is None
    made = proposal(found, settings, nodes.POLICY, node(), None)
    assert isinstance(made, Proposal), made
    assert kind.runtime.value in made.label
    after = nodes.applied(found, made.change)
    again = proposal(after, settings, nodes.POLICY, node(), None)
    assert isinstance(again, LeftAlone)
    assert again.standing is Standing.AS_WANTED


def test_kinds_are_described_by_their_common_properties() -> None:
    def some(*minors: int, runtime: Runtime | None = None, installed: Installed | None = None) -> list[NodeKind]:
        chosen = [kind for kind in EVERY if kind.minor in minors and runtime in (None, kind.runtime)]
        return [kind for kind in chosen if installed in (None, kind.installed)]

    assert kinds_told(EVERY, EVERY) == "every kind of node"
    assert kinds_told(some(33), EVERY) == "kubelet 1.33"
    assert kinds_told(some(33, 34, 36, runtime=Runtime.CRIO), EVERY) == "kubelets 1.33, 1.34 and 1.36 over CRI-O"
    assert kinds_told(some(30, installed=Installed.PLAIN), EVERY) == "kubelet 1.30 (plain)"
