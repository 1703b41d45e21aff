"""``devicesKept``: extended resources that shrank since the change, and pods with devices that failed or were restarted."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rollout.core.model.live import Container, LiveNode, Pod, Sight
from rollout.core.model.verdict import Judged, Verdict
from rollout.gates.api_checks.query import REGISTERS, ApiCheck
from rollout.kubelet.node_baseline import Since, baseline_of, is_extended, read_baseline

AMOUNTS = (("cpu", "32"), ("hugepages-2Mi", "0"), ("memory", "128Gi"), ("nvidia.com/gpu", "8"), ("pods", "110"))
NODE = LiveNode(
    "n1", "u", "", (), {}, unschedulable=False, taints=(), kubelet_version="", runtime="", os_image="", ready="True",
    capacity=AMOUNTS, allocatable=AMOUNTS,
)  # fmt: skip
RUNS = Container("app", "containerd://aaaa", 0, "running", since="2026-11-20T08:00:00Z")
TRAIN = Pod("uid-1", "ml/train", "Running", forever=False, containers=(RUNS,), devices=("nvidia.com/gpu",))
WEB = Pod("uid-2", "shop/web", "Running", containers=(RUNS,))
BEFORE = Sight(NODE, None, (TRAIN, WEB))


def judged(now: Sight, *, seconds: float = REGISTERS + 1, before: Sight = BEFORE) -> Judged:
    since = Since(None, renewed=True, seconds=seconds, settle=0.0)
    return ApiCheck("devicesKept").judge(now, read_baseline(baseline_of(before)), since)


def with_gpus(capacity: str | None, allocatable: str | None) -> Sight:
    def changed(amount: str | None) -> tuple[tuple[str, str], ...]:
        others = tuple(pair for pair in AMOUNTS if pair[0] != "nvidia.com/gpu")
        return others if amount is None else (*others, ("nvidia.com/gpu", amount))

    return replace(BEFORE, node=replace(NODE, capacity=changed(capacity), allocatable=changed(allocatable)))


def test_devices_that_stay_pass() -> None:
    assert judged(BEFORE) == (Verdict.PASS, "allocatable as before: nvidia.com/gpu 8")
    assert judged(with_gpus("9", "9"))[0] is Verdict.PASS, "more is no harm"


def test_a_node_without_devices_passes() -> None:
    bare = with_gpus(None, None)
    assert judged(bare, before=bare) == (Verdict.PASS, "the Node has no devices")


@pytest.mark.parametrize(
    ("capacity", "allocatable", "said"),
    [
        ("0", "0", "nvidia.com/gpu capacity 8 → 0"),
        ("8", "7", "nvidia.com/gpu allocatable 8 → 7"),
        (None, None, "nvidia.com/gpu capacity 8 → not reported"),
    ],
)
def test_fewer_devices_are_a_failure_once_their_plugin_had_time_to_register(
    capacity: str | None, allocatable: str | None, said: str
) -> None:
    now = with_gpus(capacity, allocatable)
    assert judged(now) == (Verdict.FAIL, f"devices lost: {said}")
    assert judged(now, seconds=5.0) == (Verdict.UNKNOWN, f"{said}; plugins may take 60 s to register after a restart")


def test_less_memory_is_not_a_lost_device() -> None:
    """A change of reservations does that on purpose."""
    less = tuple((name, "64Gi" if name == "memory" else amount) for name, amount in AMOUNTS)
    assert judged(replace(BEFORE, node=replace(NODE, allocatable=less)))[0] is Verdict.PASS


def test_an_amount_that_is_none_is_unknown() -> None:
    assert judged(with_gpus("eight", "8")) == (
        Verdict.UNKNOWN,
        "the Node reports its devices in a form that is not known",
    )


def test_a_pod_with_devices_that_failed_is_a_failure_at_once() -> None:
    """Also one that may end."""
    failed = replace(TRAIN, phase="Failed", reason="UnexpectedAdmissionError", message="no healthy devices present")
    said = (
        "1 pod with devices failed: ml/train with nvidia.com/gpu (UnexpectedAdmissionError: no healthy devices present)"
    )
    assert judged(replace(BEFORE, pods=(failed, WEB)), seconds=5.0) == (Verdict.FAIL, said)
    assert judged(replace(BEFORE, pods=(replace(failed, deleting=True), WEB)))[0] is Verdict.PASS
    assert judged(replace(BEFORE, pods=(TRAIN, replace(WEB, phase="Failed"))))[0] is Verdict.PASS, "it has no devices"


def test_a_pod_with_devices_that_ended_by_itself_does_not_count() -> None:
    """A training job that fails hours later, and a pod that is over a limit of its own."""
    failed = replace(TRAIN, phase="Failed")
    limit = replace(
        TRAIN, phase="Failed", reason="Evicted", message='Usage of EmptyDir volume "c" exceeds the limit "1Gi". '
    )
    for pod in (failed, limit):
        assert judged(replace(BEFORE, pods=(pod, WEB)))[0] is Verdict.PASS


def test_devices_that_are_fewer_later_are_not_known_to_be_lost_by_the_change() -> None:
    assert judged(with_gpus("0", "0"), seconds=301.0) == (
        Verdict.UNKNOWN,
        "nvidia.com/gpu capacity 8 → 0, seen later than 300 s after the change: a plugin may be restarting",
    )


def test_a_restarted_container_counts_only_with_devices() -> None:
    again = replace(RUNS, id="containerd://bbbb", restarts=1, since="2026-11-20T12:00:30Z")
    verdict, said = judged(replace(BEFORE, pods=(replace(TRAIN, containers=(again,)), WEB)))
    assert (verdict, said) == (
        Verdict.FAIL,
        "1 container with devices restarted: ml/train app (running, restarts 0 → 1)",
    )
    assert judged(replace(BEFORE, pods=(TRAIN, replace(WEB, containers=(again,)))))[0] is Verdict.PASS


def test_all_that_was_lost_is_named() -> None:
    pods = tuple(replace(TRAIN, uid=f"uid-{at}", name=f"ml/t{at}", forever=True) for at in range(2))
    before = replace(BEFORE, pods=pods)
    now = replace(with_gpus("0", "0"), pods=tuple(replace(pod, phase="Failed") for pod in pods))
    verdict, said = judged(now, before=before)
    assert verdict is Verdict.FAIL
    assert said == (
        "2 pods with devices failed: ml/t0 with nvidia.com/gpu (no reason: no message), ml/t1 with nvidia.com/gpu (no reason: no message); "
        "devices lost: nvidia.com/gpu capacity 8 → 0"
    )


@pytest.mark.parametrize(
    ("resource", "extended"),
    [
        ("nvidia.com/gpu", True), ("amd.com/gpu", True), ("example.com/dongle", True), ("cpu", False), ("hugepages-2Mi", False),
        ("attachable-volumes-aws-ebs", False), ("node.kubernetes.io/x", False), ("requests.nvidia.com/gpu", False),
    ],
)  # fmt: skip
def test_extended_resources_are_those_of_kubernetes(resource: str, extended: bool) -> None:
    assert is_extended(resource) is extended
