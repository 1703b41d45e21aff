"""Which pods a kubelet would reject when it starts again: the rules of its admission, one by one, then together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rollout.core.model.live import LiveNode
from rollout.core.model.pods import ContainerRequest, HostPort, PlacedPod, Requirement, Toleration
from rollout.core.model.settings import Value
from rollout.kubelet.configuration.quantities import milli, whole
from rollout.kubelet.restarts import readmission
from rollout.kubelet.restarts.readmission import Rejected, rejected

CAPACITY = (("cpu", "4"), ("memory", "8Gi"), ("ephemeral-storage", "100Gi"), ("pods", "110"))
NODE = LiveNode(
    name="tess-node-0001", uid="u", created="", addresses=(), labels={"zone": "a"}, unschedulable=False, taints=(),
    kubelet_version="v1.30.4", runtime="containerd://1.7.24", os_image="", ready="True", capacity=CAPACITY, allocatable=CAPACITY,
)  # fmt: skip


def pod(at: int, **asked: str) -> PlacedPod:
    requests = tuple((name.replace("_", "-"), text) for name, text in asked.items())
    return PlacedPod(NODE.name, f"default/p{at}", f"2026-11-20T10:00:{at:02d}Z", (ContainerRequest(requests),))


def reasons_of(pods: Sequence[PlacedPod], after: Mapping[str, Value]) -> dict[str, str]:
    found = rejected(NODE, pods, 30, {"maxPods": 110}, {"maxPods": 110, **after})
    assert found is not None
    return {entry.pod.removeprefix("default/"): entry.reason for entry in found}


def reasons(*pods: PlacedPod, node: LiveNode = NODE, minor: int = 30, **after: Value) -> dict[str, str]:
    found = rejected(node, pods, minor, {"maxPods": 110}, {"maxPods": 110, **after})
    assert found is not None
    return {entry.pod.removeprefix("default/"): entry.reason for entry in found}


def test_quantities_are_rounded_up() -> None:
    assert (milli("1"), milli("0.0001"), milli("100m"), whole("1.5Ki"), whole("1m")) == (1000, 1, 100, 1536, 1)
    with pytest.raises(ValueError, match="quantities must match"):
        whole("1 Gi")


@pytest.mark.parametrize("text", ["9" * 5000, "9" * 5000 + "Ki", "1e" + "9" * 5000, "1E9999999"])
def test_a_quantity_of_any_length_is_a_large_one(text: str) -> None:
    assert whole(text) > 2**63
    assert whole("1e-" + "9" * 5000) == whole("0." + "0" * 5000 + "1") == 1


def test_a_restart_alone_rejects_no_pod() -> None:
    assert reasons(pod(1, cpu="2"), pod(2, cpu="2"), pod(3)) == {}


def test_fewer_pods_than_run_reject_the_newest() -> None:
    assert reasons(*map(pod, (3, 1, 2)), maxPods=2) == {"p3": "OutOfpods"}


def test_pods_per_core_limit_where_they_are_fewer() -> None:
    assert reasons(*map(pod, range(5)), podsPerCore=1) == {"p4": "OutOfpods"}
    assert reasons(*map(pod, range(5)), podsPerCore=1000) == {}


@pytest.mark.parametrize(
    ("after", "reason"),
    [
        ({"kubeReserved": {"cpu": "100m"}}, "OutOfcpu"),
        ({"systemReserved": {"cpu": "1"}}, "OutOfcpu"),
        ({"reservedSystemCPUs": "0,2"}, "OutOfcpu"),
        ({"evictionHard": {"memory.available": "10%"}}, "OutOfmemory"),
        ({"evictionHard": {"memory.available": "1Mi"}}, "OutOfmemory"),
        ({"kubeReserved": {"ephemeral-storage": "1Gi"}}, "OutOfephemeral-storage"),
        ({"evictionHard": {"nodefs.available": "1%"}}, "OutOfephemeral-storage"),
        ({"evictionHard": {"imagefs.available": "15%"}}, ""),
    ],
)
def test_reservations_reject_the_newest_pod(after: dict[str, Value], reason: str) -> None:
    full = (
        pod(1, cpu="2", memory="4Gi", ephemeral_storage="50Gi"),
        pod(2, cpu="2", memory="4Gi", ephemeral_storage="50Gi"),
    )
    assert reasons_of(full, after) == ({"p2": reason} if reason else {})


def test_reserved_cpus_replace_reserved_cpu() -> None:
    before: dict[str, Value] = {"kubeReserved": {"cpu": "1"}, "systemReserved": {"cpu": "1"}}
    node = replace(NODE, allocatable=(("cpu", "2"), *CAPACITY[1:]))
    assert rejected(node, [pod(1, cpu="2")], 30, before, {**before, "reservedSystemCPUs": "0-1"}) == ()


@pytest.mark.parametrize(
    "after",
    [
        {"reservedSystemCPUs": "0-9999999999"},
        {"reservedSystemCPUs": ",".join(f"{at}00000-{at}99999" for at in range(20_000))},
        {"reservedSystemCPUs": f"0-{'9' * 5000}"},
        {"evictionHard": {"memory.available": f"{'9' * 400}%"}},
        {"evictionHard": {"memory.available": "1e9999"}, "kubeReserved": {"cpu": "1e9999"}},
    ],
)
def test_no_amount_in_a_nodes_file_ends_the_plan(after: dict[str, Value]) -> None:
    """``None`` is a prediction that could not be made; else every pod that asks for this resource is rejected."""
    found = rejected(NODE, [pod(1, cpu="2", memory="1Gi")], 30, {}, after)
    assert found is None or [each.pod for each in found] == ["default/p1"]


def test_a_rejected_pod_leaves_room_for_the_next() -> None:
    assert reasons(pod(1, cpu="1"), pod(2, cpu="3"), pod(3, cpu="1"), kubeReserved={"cpu": "1"}) == {"p2": "OutOfcpu"}


def test_a_pod_without_requests_needs_only_a_free_slot() -> None:
    assert reasons(pod(1, cpu="4"), pod(2), kubeReserved={"cpu": "2"}) == {"p1": "OutOfcpu"}


def test_a_removed_label_rejects_a_pod_even_without_the_change() -> None:
    lost = replace(pod(1), selector=(("zone", "b"),))
    assert rejected(NODE, [lost], 30, {}, {}) == (Rejected("default/p1", "NodeAffinity", by_change=False),)


@pytest.mark.parametrize(
    ("wanted", "fits"),
    [
        (Requirement("zone", "In", ("a", "b")), True),
        (Requirement("zone", "NotIn", ("a",)), False),
        (Requirement("gpu", "NotIn", ("a",)), True),
        (Requirement("gpu", "Exists"), False),
        (Requirement("gpu", "DoesNotExist"), True),
        (Requirement("zone", "Gt", ("1",)), False),
        (Requirement("metadata.name", "In", (NODE.name,), of_field=True), True),
        (Requirement("zone", "Like", ("a",)), False),
    ],
)
def test_required_node_affinity(wanted: Requirement, fits: bool) -> None:
    assert (reasons(replace(pod(1), terms=((wanted,),))) == {}) is fits


def test_one_term_is_enough_and_none_match_nothing() -> None:
    no, yes = Requirement("zone", "In", ("b",)), Requirement("zone", "Exists")
    assert reasons(replace(pod(1), terms=((no,), (yes,)))) == {}
    assert reasons(replace(pod(1), terms=())) == {"p1": "NodeAffinity"}
    assert reasons(replace(pod(1), terms=((),))) == {"p1": "NodeAffinity"}


def test_taints_count_from_1_24_on_when_they_are_no_execute() -> None:
    node = replace(NODE, taints=("gpu=yes:NoExecute", "x:NoSchedule"))
    assert reasons(pod(1), node=node, minor=23) == {}
    assert reasons(pod(1), node=node, minor=24) == {"p1": "TaintToleration"}
    for good in (Toleration("gpu", "Equal", "yes"), Toleration("gpu", "Exists"), Toleration(operator="Exists")):
        assert reasons(replace(pod(1), tolerations=(good,)), node=node) == {}
    for bad in (Toleration("gpu", "Equal", "no"), Toleration("gpu", "Exists", effect="NoSchedule")):
        assert reasons(replace(pod(1), tolerations=(bad,)), node=node) == {"p1": "TaintToleration"}


def test_two_pods_cannot_use_one_port() -> None:
    first, second = (replace(pod(at), asks=(ContainerRequest((), ports=(HostPort("", "TCP", 80),)),)) for at in (1, 2))
    assert reasons(first, second) == {"p2": "NodePorts"}
    apart = replace(second, asks=(ContainerRequest((), ports=(HostPort("", "UDP", 80),)),))
    assert reasons(first, apart) == {}


def test_room_for_a_critical_pod_is_made_by_killing_others() -> None:
    critical = replace(pod(2, cpu="3"), critical=True)
    assert reasons(pod(1, cpu="1"), critical, kubeReserved={"cpu": "1"}) == {"p2": "Preempting"}


def test_static_pods_come_first() -> None:
    static = replace(pod(9, cpu="4"), static=True, critical=True)
    assert reasons(pod(1, cpu="1"), static) == {"p1": "OutOfcpu"}


def test_a_pod_that_is_being_deleted_is_not_counted() -> None:
    assert reasons(pod(1), replace(pod(2), deleting=True), maxPods=1) == {}


def test_init_containers_sidecars_overhead_and_pod_level_requests() -> None:
    small, large = ContainerRequest((("cpu", "100m"),)), (("cpu", "1"),)

    def cpu(made: PlacedPod, minor: int = 30) -> int:
        return readmission.taken(made, minor)[0]

    assert cpu(replace(pod(1), asks=(small, ContainerRequest(large, init=True)))) == 1000
    assert cpu(replace(pod(1), asks=(small, ContainerRequest(large, init=True, stays=True)))) == 1100
    assert cpu(replace(pod(1), asks=(small, ContainerRequest(large, init=True, stays=True))), 27) == 1000
    assert (
        cpu(
            replace(
                pod(1), asks=(small, ContainerRequest(large, init=True, stays=True), ContainerRequest(large, init=True))
            )
        )
        == 2000
    )
    assert cpu(replace(pod(1), asks=(small, small), overhead=large)) == 1200
    assert cpu(replace(pod(1), asks=(small,), requests=large)) == 1000


def test_nodes_and_pods_with_incomplete_data_are_not_judged() -> None:
    assert rejected(replace(NODE, allocatable=()), [pod(1)], 30, {}, {"maxPods": 1}) is None
    assert rejected(NODE, [pod(1, cpu="many")], 30, {}, {}) is None


@given(st.lists(st.integers(0, 4000), max_size=12), st.integers(0, 4000), st.integers(1, 14))
def test_kept_pods_fit_and_rejected_pods_would_not_have(asked: list[int], reserved: int, most: int) -> None:
    pods = [pod(at, cpu=f"{each}m") for at, each in enumerate(asked)]
    gone = reasons(*pods, kubeReserved={"cpu": f"{reserved}m"}, maxPods=most)
    stay: list[int] = []
    for at, each in enumerate(asked):
        fits = len(stay) < most and (each == 0 or sum(stay) + each <= 4000 - reserved)
        assert fits is (f"p{at}" not in gone)
        stay += [each] * fits


# Devices: a container that does not run when the kubelet starts gets none until its plugin has registered again.


def gpu(*containers: ContainerRequest, critical: bool = False) -> PlacedPod:
    return PlacedPod(NODE.name, "default/gpu", "2026-11-20T10:00:00Z", containers, critical=critical)


ONE_GPU = (("nvidia.com/gpu", "1"),)
MAIN, INIT, SIDECAR = (
    ContainerRequest(ONE_GPU),
    ContainerRequest(ONE_GPU, init=True),
    ContainerRequest(ONE_GPU, init=True, stays=True),
)
UNHEALTHY = {"gpu": "UnexpectedAdmissionError"}


@pytest.mark.parametrize(
    ("found", "minor", "lost"),
    [
        (gpu(INIT, MAIN), 28, UNHEALTHY),
        (gpu(INIT, MAIN), 36, UNHEALTHY),
        (gpu(INIT), 30, UNHEALTHY),
        (gpu(INIT, MAIN, critical=True), 30, UNHEALTHY),
        (gpu(INIT, MAIN), 27, {}),
        (gpu(MAIN), 30, {}),
        (gpu(SIDECAR, MAIN), 30, {}),
        (gpu(replace(INIT, requests=(("cpu", "1"),)), MAIN), 30, {}),
        (gpu(replace(INIT, requests=(("vpc.amazonaws.com/pod-eni", "1"),)), MAIN), 30, {}),
    ],
)
def test_a_pod_with_a_device_in_an_init_container_that_ended_is_rejected_by_any_restart(
    found: PlacedPod, minor: int, lost: dict[str, str]
) -> None:
    """kubernetes #138446: the container that runs is skipped, the one that has ended asks for a healthy device."""
    assert reasons(found, minor=minor) == lost
    by_change = rejected(NODE, [found], minor, {}, {})
    assert [each.by_change for each in by_change or ()] == [False] * len(lost)


def test_it_is_told_with_its_cause() -> None:
    lost = rejected(NODE, [gpu(INIT, MAIN)], 30, {}, {})
    assert readmission.lost_text(lost or ()) == (
        "1 pod would be rejected by any restart: default/gpu (UnexpectedAdmissionError: an init container has a device,"
        " kubernetes#138446)"
    )
