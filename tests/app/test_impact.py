"""The side effects of a plan: affected pods, pulls in progress, registries, caps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from rollout.app.plan import build_plan
from rollout.core.model.inventory import Inventory
from rollout.core.model.live import LiveNode
from rollout.core.model.plan import Plan, PlannedDrain, Standing
from rollout.core.model.playbook import Disruption, Drain, EvictToo, Policy, RegistryCap
from rollout.core.model.pods import ContainerEnd, ContainerRequest, LeavingPod, PlacedPod
from rollout.core.model.settings import Value
from rollout.core.model.snapshot import Snapshot
from rollout.core.plans import estimate
from rollout.core.plans.history import Around
from rollout.core.plans.plan_json import PlanDocument
from rollout.core.plans.plan_text import plan_text
from rollout.core.run.order import apply_order
from rollout.core.text.terminal import seconds_text
from rollout.errors import InputError
from rollout.kubelet.restarts.termination import budget
from tests.documents import as_printed
from tests.kubelet.nodes import POLICY, fleet, inventory, kubeadm, settings
from tests.sampling import examples

ROOM = (("cpu", "8"), ("memory", "32Gi"), ("ephemeral-storage", "100Gi"), ("pods", "110"))
FOUND = inventory(4, per_rack=2)
NAMES = tuple(FOUND.nodes)


def node(name: str, version: str = "1.30.4", **labels: str) -> LiveNode:
    return LiveNode(
        name=name, uid=name, created="", addresses=(), labels=labels, unschedulable=False, taints=(), kubelet_version=f"v{version}",
        runtime="", os_image="", ready="True", capacity=ROOM, allocatable=ROOM,
    )  # fmt: skip


def pods(name: str, count: int, *, probed: bool = False) -> tuple[PlacedPod, ...]:
    ask = (ContainerRequest((("cpu", "100m"),)),)
    return tuple(
        PlacedPod(name, f"shop/{name}-{at}", f"2026-11-20T10:00:{at:02d}Z", ask, probed=probed) for at in range(count)
    )


def around(*there: PlacedPod, version: str = "1.30.4") -> Around:
    return Around(live=tuple(node(name, version) for name in NAMES), pods=there, pods_not_asked="")


def plan(
    around: Around,
    *,
    policy: Policy = POLICY,
    version: str = "1.30.4",
    found: Inventory = FOUND,
    snapshots: Mapping[str, Snapshot] | None = None,
    **wanted: Value,
) -> Plan:
    nodes = snapshots or {name: kubeadm(name, version, "containerd") for name in NAMES}
    asked = settings(skip=(), **(wanted or {"maxPods": 50}))
    return build_plan(found, policy, fleet(found, dict(nodes)), dict.fromkeys(NAMES, asked), NAMES, "", around=around)


def references(made: Plan) -> Sequence[str]:
    return [each.reference for each in made.consequences]


def test_a_node_that_would_lose_pods_is_refused_and_the_rest_of_the_plan_stands() -> None:
    made = plan(around(*pods(NAMES[0], 52), *pods(NAMES[1], 50)))
    (left,) = made.left
    assert (left.name, left.standing, left.reference) == (NAMES[0], Standing.REFUSED, "pods-would-be-rejected")
    assert left.reason == (
        f"2 pods would be rejected after the change: shop/{NAMES[0]}-50 (OutOfpods), shop/{NAMES[0]}-51 (OutOfpods);"
        " drain it first, or set `disruption: drain-and-restart`"
    )
    assert tuple(made.nodes) == NAMES[1:]


LET = replace(POLICY, disruption=Disruption.DRAIN_AND_RESTART, drain=Drain(120.0))


def ending(pod: PlacedPod, **how: object) -> PlacedPod:
    """The same pod, with how it would end."""
    return replace(pod, ends=replace(LeavingPod(pod.name, pod.name), **how))  # type: ignore[arg-type]


def test_with_drain_and_restart_the_plan_names_drained_nodes_their_pods_and_the_time() -> None:
    there = [ending(pod) for pod in pods(NAMES[0], 55)]
    there[7] = ending(there[7], grace=60, containers=(ContainerEnd("web", hook=True),))
    made = plan(around(*there, *pods(NAMES[1], 50)), policy=LET)
    (lost,) = [each for each in made.consequences if each.reference == "pods-rejected"]
    assert lost.nodes == (NAMES[0],)
    assert lost.text.startswith("5 pods would be rejected after the change: ")
    assert lost.text.endswith(f"shop/{NAMES[0]}-52 (OutOfpods) and 2 more; so their nodes are drained first")
    assert not made.left
    drain = made.nodes[NAMES[0]].drain
    assert drain is not None
    found = budget(there[7].ends, 30)  # type: ignore[arg-type]
    assert drain == PlannedDrain(55, f"shop/{NAMES[0]}-7", found.seconds, found.text, 30)
    assert [node.drain for name, node in made.nodes.items() if name != NAMES[0]] == [None] * 3
    text = plan_text(made)
    assert f"1 node, 55 pods to evict: {NAMES[0]}; each node has {seconds_text(120.0)}, else it is left alone" in text
    assert f"pod shop/{NAMES[0]}-7: {found.text} (kubelet 1.30)" in text
    (told,) = as_printed(PlanDocument("f", made))["drained"]
    assert (told["node"], told["pods"], told["seconds"]) == (NAMES[0], 55, found.seconds)
    assert {name: node.drain for name, node in apply_order("r1", made).nodes.items()} == {
        name: 120.0 if name == NAMES[0] else 0.0 for name in NAMES
    }


def test_a_pod_without_a_bound_is_named_with_a_warning() -> None:
    made = plan(around(*(ending(pod) for pod in pods(NAMES[0], 55))), policy=LET, version="1.20.15")
    assert "WITHOUT A BOUND" not in plan_text(made)
    endless = replace(made.nodes[NAMES[0]], drain=PlannedDrain(55, "shop/x", None, "docker then waits for ever", 20))
    text = plan_text(replace(made, nodes={**made.nodes, NAMES[0]: endless}))
    assert f"WITHOUT A BOUND on 1 node  {NAMES[0]}: pod shop/x: docker then waits for ever (kubelet 1.20)" in text


def test_the_expected_time_includes_slow_pods_up_to_the_drain_timeout() -> None:
    def made(grace: int) -> Plan:
        return plan(around(*(ending(pod, grace=grace) for pod in pods(NAMES[0], 55))), policy=LET)

    def seconds(grace: int) -> float:
        return estimate.total(made(grace))

    assert seconds(60) - seconds(30) == 30.0
    assert seconds(3600) == seconds(120)
    staying = {name: replace(node, drain=None) for name, node in made(30).nodes.items()}
    assert estimate.total(replace(made(30), nodes=staying)) < seconds(30)


def test_pods_that_a_drain_leaves_are_no_reason_to_drain() -> None:
    there = [ending(pod, stays="daemon-set") for pod in pods(NAMES[0], 51)]
    (left,) = plan(around(*there), policy=LET).left
    assert (left.name, left.reference) == (NAMES[0], "pods-would-be-rejected")
    assert left.reason.endswith("; a drain does not evict them")
    some = [ending(pod, stays="daemon-set" if at < 3 else "") for at, pod in enumerate(pods(NAMES[0], 51))]
    drain = plan(around(*some), policy=LET).nodes[NAMES[0]].drain
    assert drain is not None
    assert drain.pods == 48


@pytest.mark.parametrize(
    ("how", "why", "word"),
    [
        (
            {"controlled": False},
            "nothing recreates pod shop/{}-4; `drain: {{evictToo: [bare]}}` allows its eviction",
            "bare",
        ),
        ({"local": True}, "pod shop/{}-4 has an emptyDir; `drain: {{evictToo: [local]}}` allows its eviction", "local"),
    ],
)
def test_pods_that_are_lost_for_good_are_not_evicted_unless_the_playbook_names_them(
    how: dict[str, object], why: str, word: str
) -> None:
    there = [ending(pod, **(how if at == 4 else {})) for at, pod in enumerate(pods(NAMES[0], 51))]
    (left,) = plan(around(*there), policy=LET).left
    assert (left.standing, left.reference) == (Standing.REFUSED, "not-drainable")
    assert left.reason == f"it cannot be drained: {why.format(NAMES[0])}"
    made = plan(around(*there), policy=replace(LET, drain=Drain(120.0, frozenset({EvictToo(word)}))))
    assert made.nodes[NAMES[0]].drain is not None


def test_a_node_that_a_run_left_cordoned_is_reported_with_the_run() -> None:
    live = tuple(replace(node(name), unschedulable=True, cordoned_by="r7" * (name == NAMES[0])) for name in NAMES[:2])
    left = plan(replace(around(), live=live)).left
    assert [entry.reference for entry in left] == ["cordoned", "cordoned"]
    assert left[0].reason.startswith("run r7 cordoned it and has not lifted that: ")
    assert left[1].reason.startswith("cordoned by others; ")


def test_drained_nodes_are_a_kind_of_their_own_so_that_a_canary_has_one() -> None:
    made = plan(around(*(ending(pod) for pod in pods(NAMES[2], 55))), policy=LET)
    assert NAMES[2] in made.waves[0].nodes
    assert len(made.waves[0].nodes) == 2


def test_pods_that_any_restart_would_reject_are_reported_separately() -> None:
    lost = replace(pods(NAMES[0], 1)[0], selector=(("disk", "ssd"),))
    (left,) = plan(around(lost), serializeImagePulls=False).left
    assert left.reason.startswith(f"1 pod would be rejected by any restart: shop/{NAMES[0]}-0 (NodeAffinity);")


def test_a_node_with_devices_is_asked_again_before_its_change() -> None:
    """A pod with a device in an init container may arrive, which any restart would reject."""
    live = tuple(replace(node(name), capacity=(*ROOM, ("nvidia.com/gpu", "8"))) for name in NAMES[:1])
    made = plan(replace(around(), live=(*live, *around().live[1:])), serializeImagePulls=False)  # type: ignore[index]
    assert [each.less_room is not None for each in made.nodes.values()] == [True, False, False, False]


@pytest.mark.parametrize("listed", [len(NAMES), 2])
def test_the_pods_of_a_node_that_the_api_server_does_not_have_are_not_known(listed: int) -> None:
    seen = around(version="1.34.2")
    assert seen.live is not None
    made = plan(
        replace(seen, live=seen.live[:listed]), version="1.34.2",
        userNamespaces={"idsPerPod": 131072}, featureGates={"UserNamespacesSupport": True},
    )  # fmt: skip
    unknown = [each.nodes for each in made.consequences if "user namespaces is not known" in str(each)]
    assert [name for names in unknown for name in names] == list(NAMES[listed:])


def test_what_was_not_checked_is_reported() -> None:
    made = plan(Around())
    said = {each.reference: each.text for each in made.remarks}
    assert said["pods-not-foreseen"] == ("pod re-admission not checked: no kubeconfig is named")
    silent = replace(around(), live=tuple(replace(node(name), allocatable=()) for name in NAMES))
    (remark,) = [each for each in plan(silent).remarks if each.reference == "pods-not-foreseen"]
    assert remark.nodes == NAMES


@pytest.mark.parametrize(
    ("version", "flaps"),
    [("1.30.4", ["readiness-flap", "not-ready-flip"]), ("1.34.1", ["readiness-flap"]), ("1.35.0", [])],
)
def test_what_a_restart_does_by_version(version: str, flaps: list[str]) -> None:
    made = plan(around(*pods(NAMES[0], 1, probed=True), version=version), version=version)
    assert [each for each in references(made) if each.endswith(("-flap", "-flip"))] == flaps
    assert {"back-offs-emptied", "sessions-break"} <= set(references(made))


def test_a_node_without_probed_pods_does_not_flap() -> None:
    made = plan(around(*pods(NAMES[0], 1, probed=True)))
    (flap,) = [each for each in made.consequences if each.reference == "readiness-flap"]
    assert flap.nodes == (NAMES[0],)


def test_pulls_in_progress_are_named() -> None:
    nodes = {name: kubeadm(name, "1.30.4", "containerd") for name in NAMES}
    for name, image in ((NAMES[0], "registry/a:1"), (NAMES[2], "registry/b:2")):
        nodes[name] = replace(nodes[name], measurement=replace(nodes[name].measurement, pulls=(image,)))
    (pulling,) = [each for each in plan(around(), snapshots=nodes).consequences if each.reference == "pulls-cancelled"]
    assert pulling.nodes == (NAMES[0], NAMES[2])
    assert pulling.text == (
        "2 images on 2 nodes were being pulled when read; a restart cancels pulls: registry/a:1, registry/b:2"
    )


@pytest.mark.parametrize(
    ("runs", "on_disk", "what"),
    [
        ("1.30.4", "1.31.2", "and every container is restarted (kubernetes #129385)"),
        ("1.31.2", "1.30.4", "and every container is restarted (kubernetes #129385)"),
        ("1.29.1", "1.30.4", "and containers with definitions that it reads differently are restarted"),
        ("1.33.1", "1.34.1", "drain the node first, as for a minor upgrade"),
        ("1.30.4", "1.30.9", ""),
    ],
)
def test_a_kubelet_that_was_upgraded_and_not_restarted(runs: str, on_disk: str, what: str) -> None:
    made = plan(around(version=runs), version=on_disk)
    texts = [each.text for each in made.consequences if each.reference == "containers-restart"]
    assert [text for text in texts if not text.endswith(what)] == []
    assert bool(texts) is bool(what)


def test_device_plugins_register_again() -> None:
    gpu = tuple(replace(node(name), capacity=(*ROOM, ("nvidia.com/gpu", "8"))) for name in NAMES[:1])
    made = plan(replace(around(), live=(*gpu, *map(node, NAMES[1:]))))
    (devices,) = [each for each in made.consequences if each.reference == "devices-register-again"]
    assert devices.nodes == NAMES[:1]


def test_pulls_that_would_fail_rather_than_wait() -> None:
    more_than_burst = plan(around(), serializeImagePulls=False, maxParallelImagePulls=12)
    assert "pull-qps" in references(more_than_burst)
    within = plan(around(), serializeImagePulls=False, maxParallelImagePulls=10)
    without_limit = plan(around(), serializeImagePulls=False, maxParallelImagePulls=12, registryPullQPS=0)
    assert "pull-qps" not in {*references(within), *references(without_limit)}


def test_the_load_on_registries_before_and_after() -> None:
    made = plan(around(), serializeImagePulls=False, maxParallelImagePulls=5)
    fleet_ = made.loads[0]
    assert (fleet_.parallel_before.total, fleet_.parallel_after.total, fleet_.nodes) == (4, 20, 4)
    assert "  all registries: pulls at once 4 → 20; pulls a second 20 (4 nodes)\n" in plan_text(made)
    assert as_printed(PlanDocument("f", made))["registries"][0] == {
        "registry": None,
        "zone": None,
        "nodes": 4,
        "unknown": 0,
        "parallelPulls": {"before": {"total": 4, "unbounded": 0}, "after": {"total": 20, "unbounded": 0}},
        "qps": {"before": {"total": 20, "unbounded": 0}, "after": {"total": 20, "unbounded": 0}},
    }


def test_unchanged_nodes_count_for_the_registry_load() -> None:
    nodes = {name: kubeadm(name, "1.30.4", "containerd") for name in NAMES}
    nodes[NAMES[3]] = replace(nodes[NAMES[3]], kubelet_version="1.99.0")
    made = plan(around(), snapshots=nodes, serializeImagePulls=False, maxParallelImagePulls=5)
    assert [entry.name for entry in made.left] == [NAMES[3]]
    assert (made.loads[0].nodes, made.loads[0].unknown) == (3, 1)


def test_a_plan_beyond_a_cap_is_refused_as_a_whole() -> None:
    capped = replace(POLICY, caps=(RegistryCap(parallel_pulls=19),))
    with pytest.raises(InputError, match=r"could ask for 20 pulls at once \(4 before\); the cap is 19") as error:
        plan(around(), policy=capped, serializeImagePulls=False, maxParallelImagePulls=5)
    assert error.value.reference == "registry-cap"
    assert plan(
        around(),
        policy=replace(POLICY, caps=(RegistryCap(parallel_pulls=20),)),
        serializeImagePulls=False,
        maxParallelImagePulls=5,
    ).nodes


def test_json_tells_each_groups_consequences() -> None:
    (group,) = as_printed(PlanDocument("f", plan(around())))["groups"]
    assert {each["reference"] for each in group["consequences"]} >= {"not-ready-flip", "sessions-break"}
    assert all(each["count"] == 4 for each in group["consequences"])


MACHINES = tuple(f"{at:032x}" for at in range(1, 5))


@given(st.permutations(MACHINES), st.sets(st.sampled_from(MACHINES)))
@hypothesis_settings(max_examples=examples(12))
def test_a_node_behind_the_address_of_another_is_refused(behind: list[str], told: set[str]) -> None:
    """Drains and gates act on the Node of a name, the change on the machine behind its address. ``told``: by the API."""
    registered = dict(zip(NAMES, MACHINES, strict=True))
    live = tuple(replace(node(name), machine_id=mine if mine in told else "") for name, mine in registered.items())
    snapshots = {
        name: replace(kubeadm(name, "1.30.4", "containerd"), machine_id=found)
        for name, found in zip(NAMES, behind, strict=True)
    }
    made = plan(replace(around(), live=live), snapshots=snapshots)
    wrong = {name for name, mine in registered.items() if mine in told and snapshots[name].machine_id != mine}
    assert {(left.name, left.reference) for left in made.left} == {(name, "another-machine") for name in wrong}
    assert made.nodes.keys() == registered.keys() - wrong
