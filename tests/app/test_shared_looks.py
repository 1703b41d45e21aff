"""Nodes that are equal are looked at once, and each node has the side effects that it has alone."""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from rollout.app.impact import Foresight, NodeForesight
from rollout.app.plan import build_plan
from rollout.core.model.inventory import Inventory, Node
from rollout.core.model.live import LiveNode
from rollout.core.model.once import Arguments, Once, R
from rollout.core.model.playbook import Disruption, Drain, Policy
from rollout.core.model.pods import ContainerRequest, LeavingPod, PlacedPod
from rollout.core.model.settings import Setting
from rollout.core.model.snapshot import Snapshot
from rollout.core.model.surroundings import Listing, NodeSurroundings, Room, Swap
from rollout.core.plans import plan_codec, snapshot_codec
from rollout.core.plans.history import Around
from rollout.core.plans.registry_load import NodePulls
from rollout.kubelet.changes.changes import Proposal, ProposalCache
from rollout.kubelet.conditions import NodeValues
from rollout.kubelet.effects import needs, rules
from rollout.kubelet.restarts import consequences
from rollout.kubelet.runtimes.description import Runtime
from tests.kubelet.nodes import (
    CONFIG_TEXT,
    IMAGE_PULLS,
    POLICY,
    SURROUNDINGS,
    fleet,
    inventory,
    kubeadm,
    plain,
    regular,
    settings,
)
from tests.kubelet.runtimes import nodes as runtimes
from tests.sampling import examples

STATIC = CONFIG_TEXT + "cpuManagerPolicy: static\nreservedSystemCPUs: 0-1\n"
NODES: tuple[Snapshot, ...] = (
    kubeadm(version="1.20.15"),
    kubeadm(version="1.23.17", runtime="cri-dockerd"),
    kubeadm(version="1.30.4", runtime="containerd"),
    kubeadm(version="1.33.1", runtime="containerd", config=STATIC),
    plain(version="1.22.17"),
    plain(version="1.35.1", runtime="crio"),
    runtimes.node(Runtime.CONTAINERD, "1.7.24", regular(runtimes.CONTAINERD, runtimes.V2)),
    runtimes.node(Runtime.CONTAINERD, "2.1.0", regular(runtimes.CONTAINERD, runtimes.V3)),
)
AROUND_THEM: tuple[NodeSurroundings | None, ...] = (
    None,
    SURROUNDINGS,
    replace(SURROUNDINGS, rooms=(Room("kubelet", "/var/lib/kubelet", "xfs", 1000, 40, 1000, 10),)),
    replace(SURROUNDINGS, devices=Listing(("/dev/nvidia0",)), swaps=(Swap("/dev/sda2", "partition", 1, 0),)),
    replace(SURROUNDINGS, cgroups=None, sysctls={}, processes=None, inhibit_delay=None, swaps=None),
)
WANTED: tuple[Mapping[str, Setting], ...] = (
    *(
        settings((), **each)
        for each in (
            {"serializeImagePulls": False},
            {"evictionHard": {"nodefs.available": "10%", "memory.available": "200Mi"}},
            {"maxPods": 2, "imageGCHighThresholdPercent": 50, "imageGCLowThresholdPercent": 40},
            {"protectKernelDefaults": True, "failSwapOn": True, "shutdownGracePeriod": "60s"},
            {"reservedSystemCPUs": "0-3"},
            {"userNamespaces": {"idsPerPod": 131072}},
            {"tlsCertFile": "/etc/kubernetes/kubelet.crt", "kubeReserved": {"cpu": "200"}},
            {"__registry_qps": 3},
        )
    ),
    IMAGE_PULLS,
)
ROOM = (("cpu", "8"), ("memory", "32Gi"), ("ephemeral-storage", "100Gi"), ("pods", "110"))
GPU = (*ROOM, ("nvidia.com/gpu", "4"))


@st.composite
def fleets(draw: st.DrawFn) -> tuple[Inventory, dict[str, Snapshot], dict[str, Mapping[str, Setting]]]:
    """Nodes of few kinds in different surroundings. They share their values, as in a snapshot that was read from a file."""
    found = inventory(draw(st.integers(1, 9)), per_rack=3)
    kinds = draw(st.lists(st.sampled_from(NODES), min_size=1, max_size=2))
    wanted = draw(st.lists(st.sampled_from(WANTED), min_size=1, max_size=2))
    read, asked = {}, {}
    for name in found.nodes:
        around, number = draw(st.sampled_from(AROUND_THEM)), f"{name:>032}"
        read[name] = replace(draw(st.sampled_from(kinds)), node=name, machine_id=number, surroundings=around)
        asked[name] = draw(st.sampled_from(wanted))
    return found, read, asked


def _live(name: str, capacity: tuple[tuple[str, str], ...]) -> LiveNode:
    return LiveNode(
        name=name, uid=name, created="", addresses=(), labels={}, unschedulable=False, taints=(), kubelet_version="v1.30.4",
        runtime="", os_image="", ready="True", capacity=capacity, allocatable=capacity,
    )  # fmt: skip


def _pods(name: str, count: int, *, own_users: bool) -> Iterator[PlacedPod]:
    for at in range(count):
        ask = ContainerRequest((("cpu", "100m"),))
        pod = f"shop/{name}-{at}"
        yield PlacedPod(
            name,
            pod,
            f"2026-11-20T10:00:{at:02d}Z",
            (ask,),
            probed=at > 0,
            own_users=own_users,
            ends=LeavingPod(pod, pod),
        )


@st.composite
def clusters(draw: st.DrawFn, names: tuple[str, ...]) -> Around:
    """What the API server knows of them: nothing, the Nodes only, or their pods too."""
    if draw(st.booleans()):
        return Around()
    known = [name for name in names if draw(st.integers(0, 4))]
    live = tuple(_live(name, draw(st.sampled_from([ROOM, GPU]))) for name in known)
    if draw(st.booleans()):
        return Around(live=live)
    pods = (_pods(name, draw(st.integers(0, 3)), own_users=draw(st.booleans())) for name in names)
    return Around(live=live, pods=tuple(pod for each in pods for pod in each), pods_not_asked="")


POLICIES = (
    POLICY,
    replace(POLICY, disruption=Disruption.DRAIN_AND_RESTART, drain=Drain(60.0)),
    replace(
        POLICY, accepted={"gpu-lost-at-reload": "tried", "evictionHard": "", "failSwapOn": "", "cpuManagerPolicy": ""}
    ),
)


class NothingShared(Once):
    """Calls the function each time."""

    def __call__(self, function: Callable[[*Arguments], R], *arguments: *Arguments) -> R:
        return function(*arguments)


def _foreseen(known: Foresight, node: Node, proposal: Proposal) -> tuple[object, ...]:
    """Everything that a plan uses."""
    snapshot = known.fleet.nodes[node.name]
    assert isinstance(snapshot, Snapshot)
    look = NodeForesight(known, node, snapshot, proposal)
    return (
        look.for_its_state(), look.for_its_containers(), look.for_its_pods(), look.less_room(), look.role, look.takes_devices,
        look.impact(), look.pulls_anew(),
    )  # fmt: skip


@hypothesis_settings(max_examples=examples(50), deadline=None)
@given(st.data(), fleets(), st.sampled_from(POLICIES))
def test_each_node_has_the_side_effects_that_it_has_alone(
    data: st.DataObject, drawn: tuple[Inventory, dict[str, Snapshot], dict[str, Mapping[str, Setting]]], policy: Policy
) -> None:
    """Alone: of a fleet of one with copies of its values, each looked at each time."""
    found, read, asked = drawn
    around = data.draw(clusters(tuple(found.nodes)))
    together, proposals = (
        Foresight(found, policy, fleet(found, dict(read)), around, tuple(found.nodes)),
        ProposalCache(policy),
    )
    for name, node in found.nodes.items():
        copied = copy.deepcopy(read[name])
        by_itself = Foresight(
            found, policy, fleet(found, {name: copied}), copy.deepcopy(around), (name,), once=NothingShared()
        )
        now = consequences.rate_now(copied, node)
        assert together.pulls_as_before(node) == NodePulls(node, now, now)
        proposed = proposals.change_for(read[name], asked[name], node)
        own = ProposalCache(policy).change_for(copied, copy.deepcopy(asked[name]), node)
        assert own == proposed
        if isinstance(proposed, Proposal) and isinstance(own, Proposal):
            assert _foreseen(together, node, proposed) == _foreseen(by_itself, node, own)


def test_equal_nodes_with_other_pods_are_not_refused_for_their_pods() -> None:
    found = inventory(3)
    read = {name: kubeadm(name, "1.33.1", "containerd") for name in found.nodes}
    around = Around(
        live=tuple(_live(name, ROOM) for name in found.nodes),
        pods=tuple(pod for at, name in enumerate(found.nodes) for pod in _pods(name, at, own_users=at == 1)),
        pods_not_asked="",
    )
    shared = {name: replace(read[next(iter(read))], node=name, machine_id=f"{name:>032}") for name in read}
    asked = dict.fromkeys(read, settings((), userNamespaces={"idsPerPod": 131072}))
    made = build_plan(found, POLICY, fleet(found, dict(shared)), asked, tuple(found.nodes), "", around=around)
    assert [(left.name, left.reference) for left in made.left] == [(tuple(found.nodes)[1], "needs-of-node")]


@hypothesis_settings(max_examples=examples(15), deadline=None)
@given(st.data(), fleets(), st.sampled_from(POLICIES))
def test_a_plan_is_the_same_whether_nodes_share_values_or_not(
    data: st.DataObject, drawn: tuple[Inventory, dict[str, Snapshot], dict[str, Mapping[str, Setting]]], policy: Policy
) -> None:
    """Nodes that were read just now share nothing; those of a file share what is equal."""
    found, read, asked = drawn
    around = data.draw(clusters(tuple(found.nodes)))
    apart = {name: copy.deepcopy(each) for name, each in read.items()}
    shared = snapshot_codec.decode(snapshot_codec.encode(fleet(found, dict(apart))), "f")
    plans = [
        plan_codec.encode(build_plan(found, policy, each, asked, tuple(found.nodes), "", around=around))
        for each in (fleet(found, dict(apart)), shared)
    ]
    assert plans[0] == plans[1]


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often each rule is asked, by its name."""
    counted: Counter[str] = Counter()

    def counting(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any) -> Any:
            counted[name] += 1
            return function(*arguments)

        return call

    own = [replace(rule, needs=counting(rule.needs.__name__, rule.needs)) for rule in needs.RULES]
    monkeypatch.setattr(needs, "RULES", tuple(own))
    for module, name in (
        (rules, "changed"), (consequences, "newly_failing"), (consequences, "rate_of"), (NodeValues, "at"),
    ):  # fmt: skip
        monkeypatch.setattr(module, name, counting(name, getattr(module, name)))
    return counted


@pytest.mark.parametrize("wanted", WANTED[:4], ids=lambda each: next(iter(each)))
def test_a_fleet_of_equal_nodes_asks_the_rules_as_often_as_one_of_them(
    calls: Counter[str], wanted: Mapping[str, Setting]
) -> None:
    asked: list[Counter[str]] = []
    for count in (1, 12):
        found = inventory(count, per_rack=3)
        kind = replace(kubeadm(version="1.30.4", runtime="containerd"), surroundings=SURROUNDINGS)
        read = {name: replace(kind, node=name, machine_id=f"{name:>032}") for name in found.nodes}
        known = snapshot_codec.decode(snapshot_codec.encode(fleet(found, dict(read))), "f")
        calls.clear()
        made = build_plan(found, POLICY, known, dict.fromkeys(found.nodes, wanted), tuple(found.nodes), "")
        assert len(made.nodes) + len(made.left) == count
        asked.append(Counter(calls))
    assert asked[0]["changed"]
    assert asked[1] == asked[0]
