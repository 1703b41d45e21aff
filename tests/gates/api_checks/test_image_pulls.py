"""The verdicts of API gates on what was read of a node."""

from __future__ import annotations

from dataclasses import replace

from rollout.core.model.live import Container, LiveNode, Pod, Sight
from rollout.core.model.verdict import Verdict
from rollout.gates.api_checks.query import ApiCheck
from rollout.kubelet.node_baseline import Since, baseline_of, read_baseline

NODE = LiveNode(
    "n1", "u", "", (), {}, unschedulable=False, taints=(), kubelet_version="", runtime="", os_image="", ready="True"
)


def test_a_pull_that_failed_before_is_counted_apart() -> None:
    waits = Container("app", "", 0, "waiting", "ImagePullBackOff", "not found")
    sight = Sight(NODE, None, (Pod("uid-1", "default/typo", "Pending", containers=(waits,)),))
    before = read_baseline(baseline_of(sight))
    said = ApiCheck("imagePulls").judge(sight, before, Since(None, renewed=False, seconds=10.0, settle=0.0))
    assert said == (Verdict.PASS, "no new pull failure; 1 already failed before")


def test_a_new_pod_is_not_told_as_one_that_could_pull_before() -> None:
    """Its image may never have existed: the message must not say what nothing has shown."""
    runs = Container("app", "containerd://aaaa", 0, "running")
    waits = Container("app", "", 1, "waiting", "ImagePullBackOff", "not found")
    old, new = Pod("uid-1", "shop/web", "Running", containers=(runs,)), Pod("uid-2", "shop/new", "Pending")
    before = read_baseline(baseline_of(Sight(NODE, None, (old,))))
    failing = tuple(replace(pod, containers=(waits,)) for pod in (old, new))
    since = Since(None, renewed=False, seconds=10.0, settle=0.0)
    verdict, said = ApiCheck("imagePulls").judge(Sight(NODE, None, failing), before, since)
    assert verdict is Verdict.FAIL
    assert said == (
        "1 container cannot pull an image that it could pull before: shop/web app (ImagePullBackOff: not found); "
        "1 container of new pods cannot pull an image: shop/new app (ImagePullBackOff: not found)"
    )
    assert (
        ApiCheck("imagePulls").judge(Sight(NODE, None, failing[1:]), before, since)[1].startswith("1 container of new")
    )
