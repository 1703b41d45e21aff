"""Nodes without a network for pods: the kubelet's lines of minutes, and its Node's condition of a moment."""

from __future__ import annotations

import json

import pytest

from rollout.features.diagnose.rules.finding import Confidence
from tests.features.diagnose.rules.logs import found, klog, lines

ID = "network-not-ready"
TOLD = (
    "Network plugin returns error: cni plugin not initialized",
    "docker: network plugin is not ready: cni config uninitialized",
    "Network plugin returns error: No CNI configuration file in /etc/cni/net.d/. Has your network provider started?",
)
WORDS = "NetworkReady=false reason:NetworkPluginNotReady message:"


def node(message: str, reason: str = "KubeletNotReady") -> str:
    ready = {
        "type": "Ready",
        "status": "False",
        "reason": reason,
        "message": message,
        "lastHeartbeatTime": "2026-11-20T09:00:00Z",
    }
    return json.dumps(
        {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": "n-1"},
            "status": {"conditions": [ready], "nodeInfo": {}},
        }
    )


@pytest.mark.parametrize("told", TOLD)
@pytest.mark.parametrize(
    "begin", ['"Container runtime network not ready" networkReady="{}"', "Container runtime network not ready: {}"]
)
def test_what_the_kubelet_prints_for_minutes_is_certain(told: str, begin: str) -> None:
    line = begin.format(WORDS + told)
    (finding,) = found(lines(*(klog(at, line, "E") for at in range(0, 180, 5)))).values()
    assert (finding.id, finding.confidence, f"`{told}`" in finding.cause) == (ID, Confidence.CERTAIN, True)
    boots = [klog(at, line, "E") for at in range(0, 90, 5)]
    (unsure,) = found(lines(*boots)).values()
    assert unsure.confidence is Confidence.LIKELY, "the log ends while it is so, and a node that boots looks the same"
    later = klog(120, '"Observed pod startup duration" pod="shop/web"')
    assert not found(lines(*boots, later)), "the kubelet would have said so again"
    again = [klog(at, line, "E") for at in range(125, 200, 5)]
    assert not found(lines(*boots, *again, klog(260, "x"))), "two boots are not one time of three minutes"


@pytest.mark.parametrize("told", TOLD)
def test_a_condition_of_a_node_is_of_one_moment(told: str) -> None:
    for message in (
        f"container runtime network not ready: {WORDS}{told}",
        f"runtime network not ready: {WORDS}{told}",
        f"[container runtime network not ready: {WORDS}{told}, CSINode is not yet initialized]",
    ):
        (finding,) = found(node(message)).values()
        assert (finding.id, finding.confidence, finding.nodes, f"`{told}`" in finding.cause) == (
            ID,
            Confidence.LIKELY,
            ("n-1",),
            True,
        )
        assert not found(node(message, "NodeStatusUnknown"))


@pytest.mark.parametrize(
    "line",
    [
        f'"Probe failed" err="container runtime network not ready: {WORDS}x"',
        '"Container runtime network not ready" networkReady="x"',
        f"Container runtime network not ready: x {WORDS}x",
    ],
)
def test_the_words_elsewhere_mean_nothing(line: str) -> None:
    assert not found(lines(*(klog(at, line, "E") for at in range(0, 180, 5))))
