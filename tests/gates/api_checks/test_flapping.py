"""``nodeReady``: a Node that flaps, and a lease that is renewed too late."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rollout.core.model.live import Lease, LiveNode, Sight
from rollout.core.model.verdict import Judged, Verdict
from rollout.gates.api_checks.query import ApiCheck
from rollout.kubelet.node_baseline import Since, baseline_of, read_baseline

NODE = LiveNode(
    "n1", "u", "", (), {}, unschedulable=False, taints=(), kubelet_version="", runtime="", os_image="", ready="True"
)
LEASE = Lease("1", "2026-11-20T12:00:00Z", 40)
SEEN = Sight(NODE, LEASE, ())
LATE = (
    "; its lease lasts 300 s (nodeLeaseDurationSeconds) and is renewed every 75 s, "
    "which is later than the node controller's 40 s (50 s from 1.32 on)"
)


def judged(now: Sight, *, renewed: bool = True, flapped: str = "", seconds: float = 90.0) -> Judged:
    since = Since(LEASE, renewed=renewed, seconds=seconds, settle=0.0, flapped=flapped)
    return ApiCheck("nodeReady").judge(now, read_baseline(baseline_of(SEEN)), since)


def test_a_node_that_was_not_ready_in_between_is_a_failure() -> None:
    assert judged(SEEN, flapped="it flaps") == (Verdict.FAIL, "it flaps")


@pytest.mark.parametrize(("lasts", "said"), [(300, LATE), (0, ""), (40, "")])
def test_the_evidence_names_a_lease_that_is_renewed_too_late(lasts: int, said: str) -> None:
    lease = replace(LEASE, lasts=lasts)
    assert judged(replace(SEEN, lease=lease), flapped="it flaps") == (Verdict.FAIL, f"it flaps{said}")
    assert judged(replace(SEEN, lease=lease), renewed=False) == (
        Verdict.UNKNOWN,
        f"Ready, but its lease was not renewed in 90 s of watching{said}",
    )
    unready = replace(NODE, ready="Unknown", ready_message="NodeStatusUnknown: Kubelet stopped posting node status.")
    assert judged(replace(SEEN, node=unready, lease=lease)) == (
        Verdict.FAIL,
        f"Ready is Unknown: NodeStatusUnknown: Kubelet stopped posting node status.{said}",
    )


def test_a_longer_lease_within_the_grace_is_only_told() -> None:
    found = judged(replace(SEEN, lease=replace(LEASE, lasts=120)), renewed=False)[1]
    assert found.endswith("; its lease lasts 120 s (nodeLeaseDurationSeconds) and is renewed every 30 s")


def test_a_node_with_a_longer_lease_is_watched_for_a_whole_renewal() -> None:
    """The renewal of its start is no proof: until the next one is due, the node controller may take it for dead."""
    slow = replace(SEEN, lease=replace(LEASE, lasts=300))
    said = "Ready, but watched for 30 s only: it may flap before its lease is renewed after 75 s"
    assert judged(slow, seconds=30.0) == (Verdict.UNKNOWN, f"{said}{LATE}")
    assert judged(slow, seconds=76.0)[0] is Verdict.PASS
    assert judged(SEEN, seconds=1.0)[0] is Verdict.PASS, "the usual lease"
