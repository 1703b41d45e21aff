"""The verdicts of API gates on what was read of a node."""

from __future__ import annotations

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
