"""A Node that is not ready, by its kubelet's own message: as an object, in ``describe``, and in the kubelet's line about it."""

from __future__ import annotations

import json

import pytest

from rollout.features.diagnose.rules.finding import Confidence
from tests.features.diagnose.rules.logs import NODE, found, klog, lines

DOWN = "[container runtime is down, PLEG is not healthy: pleg was last seen active 17m3.2s ago; threshold is 3m0s]"
HEARTBEAT, SINCE = "2026-11-20T09:00:00Z", "2026-11-20T08:43:00Z"


def node(status: str = "False", reason: str = "KubeletNotReady", message: str = DOWN) -> dict[str, object]:
    pressure = {"type": "DiskPressure", "status": "False", "reason": "KubeletHasNoDiskPressure", "message": DOWN}
    ready = {
        "type": "Ready", "status": status, "reason": reason, "message": message, "lastHeartbeatTime": HEARTBEAT, "lastTransitionTime": SINCE,
    }  # fmt: skip
    of = {"conditions": [pressure, ready], "nodeInfo": {"kubeletVersion": "v1.20.2"}}
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": NODE}, "spec": {}, "status": of}


def as_list(document: dict[str, object]) -> str:
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": [document]}, indent=4)


YAML = f"""\
apiVersion: v1
kind: Node
metadata:
  name: {NODE}
spec: {{}}
status:
  conditions:
  - lastHeartbeatTime: "{HEARTBEAT}"
    lastTransitionTime: "{SINCE}"
    message: '{DOWN}'
    reason: KubeletNotReady
    status: "False"
    type: Ready
  nodeInfo:
    kubeletVersion: v1.20.2
"""
YAML_LIST = "apiVersion: v1\nitems:\n- " + "\n  ".join(YAML.splitlines()) + "\nkind: List\n"
DESCRIBED = f"""\
Name:               {NODE}
Roles:              <none>
Labels:             a=b
CreationTimestamp:  Thu, 25 Oct 2018 14:46:53 +0000
Conditions:
  Type             Status  LastHeartbeatTime                 LastTransitionTime                Reason                       Message
  ----             ------  -----------------                 ------------------                ------                       -------
  DiskPressure     False   Fri, 20 Nov 2026 09:00:00 +0000   Wed, 20 Mar 2019 22:00:39 +0000   KubeletHasNoDiskPressure     kubelet has no disk pressure
  Ready            False   Fri, 20 Nov 2026 09:00:00 +0000   Fri, 20 Nov 2026 08:43:00 +0000   KubeletNotReady              {DOWN}
Addresses:
  InternalIP:  192.0.2.1
"""
REGISTERED = klog(0, f'"Attempting to register node" node="{NODE}"')
_AT = "2026-11-20 09:00:00.1 +0000 UTC"
IN_WORDS = f"Node became not ready: {{Type:Ready Status:False LastHeartbeatTime:{_AT} m=+9.1 LastTransitionTime:{_AT} Reason:KubeletNotReady Message:{DOWN}}}"
_JSON = json.dumps(
    {"type": "Ready", "status": "False", "reason": "KubeletNotReady", "message": DOWN}, separators=(",", ":")
)
KEYED = f'"Node became not ready" node="{NODE}" condition={_JSON}'


@pytest.mark.parametrize(
    "printed",
    [
        json.dumps(node()), as_list(node()), YAML, YAML_LIST, DESCRIBED,
        lines(REGISTERED, klog(0, IN_WORDS, place="setters.go:518")), lines(REGISTERED, klog(0, KEYED, place="setters.go:602")),
    ],
)  # fmt: skip
def test_the_kubelets_own_message_is_read_in_every_form(printed: str) -> None:
    shown = found(printed)
    assert set(shown) == {"runtime-down", "pleg-unhealthy"}
    assert "17 min 3 s" in shown["pleg-unhealthy"].cause
    down = shown["runtime-down"]
    assert (down.nodes, down.confidence) == ((NODE,), Confidence.CERTAIN)


def test_one_report_alone_may_be_of_a_kubelet_that_stood_still() -> None:
    (down,) = found(as_list(node(message="container runtime is down"))).values()
    assert (down.id, down.confidence) == ("runtime-down", Confidence.LIKELY)
    assert "stood still for 30 s" in down.fetch_next


@pytest.mark.parametrize(
    "other",
    [
        node("Unknown", "NodeStatusUnknown", "Kubelet stopped posting node status."),
        node("True", "KubeletReady", "kubelet is posting ready status"),
        node(message="container runtime network not ready: NetworkReady=false reason:NetworkPluginNotReady"),
        node(message="container runtime status check may not have completed yet"),
    ],
)
def test_a_node_that_is_not_ready_for_another_reason_shows_nothing(other: dict[str, object]) -> None:
    assert found(as_list(other)) == {}
