"""The API's Pods: only the fields that admission uses are kept."""

from __future__ import annotations

import pytest

from rollout.adapters.kubernetes.pods import over, placed_pod
from rollout.core.model.pods import ContainerRequest, HostPort, PlacedPod, Requirement, Toleration
from rollout.errors import RemoteError

POD = {
    "metadata": {"namespace": "shop", "name": "web-1", "creationTimestamp": "2026-11-20T10:00:00Z"},
    "spec": {
        "nodeName": "tess-node-0001",
        "priority": 1000,
        "nodeSelector": {"zone": "a"},
        "affinity": {
            "nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {
                    "nodeSelectorTerms": [
                        {
                            "matchExpressions": [{"key": "disk", "operator": "In", "values": ["ssd"]}],
                            "matchFields": [{"key": "metadata.name", "operator": "In", "values": ["tess-node-0001"]}],
                        }
                    ]
                }
            }
        },
        "tolerations": [{"operator": "Exists", "effect": "NoExecute"}, {"key": "a", "value": "b"}],
        "overhead": {"cpu": "10m"},
        "initContainers": [{"name": "proxy", "restartPolicy": "Always", "resources": {"requests": {"cpu": "20m"}}}],
        "containers": [
            {
                "name": "web",
                "resources": {"requests": {"cpu": "100m", "memory": "1Gi"}, "limits": {"cpu": "2"}},
                "ports": [{"containerPort": 80}, {"containerPort": 81, "hostPort": 81, "protocol": "TCP"}],
                "readinessProbe": {"httpGet": {"port": 80}},
            }
        ],
    },
    "status": {"phase": "Running"},
}


def test_everything_that_admission_uses_is_read() -> None:
    assert placed_pod(POD) == PlacedPod(
        node="tess-node-0001",
        name="shop/web-1",
        created="2026-11-20T10:00:00Z",
        asks=(
            ContainerRequest((("cpu", "100m"), ("memory", "1Gi")), ports=(HostPort("", "TCP", 81),)),
            ContainerRequest((("cpu", "20m"),), init=True, stays=True),
        ),
        overhead=(("cpu", "10m"),),
        selector=(("zone", "a"),),
        terms=((Requirement("disk", "In", ("ssd",)), Requirement("metadata.name", "In", ("tess-node-0001",), of_field=True)),),
        tolerations=(Toleration("", "Exists", "", "NoExecute"), Toleration("a", "Equal", "b")),
        probed=True,
    )  # fmt: skip


def test_static_and_system_pods_are_critical() -> None:
    mirror = {"metadata": {"annotations": {"kubernetes.io/config.mirror": "x"}}, "spec": {}}
    system = {"spec": {"priority": 2_000_000_000}}
    assert (placed_pod(mirror).static, placed_pod(mirror).critical) == (True, True)
    assert (placed_pod(system).static, placed_pod(system).critical) == (False, True)
    assert not placed_pod({"spec": {"priority": 1_999_999_999}}).critical


def test_an_ended_pod_is_over() -> None:
    assert [over({"status": {"phase": phase}}) for phase in ("Running", "Pending", "Failed", "Succeeded")] == [
        False, False, True, True,
    ]  # fmt: skip


@pytest.mark.parametrize(
    "spec", [{"containers": {}}, {"containers": [{"ports": [{"hostPort": "81"}]}]}, {"overhead": {"cpu": 1}}]
)
def test_an_invalid_pod_is_a_bad_answer(spec: dict[str, object]) -> None:
    with pytest.raises(RemoteError) as error:
        placed_pod({"spec": spec})
    assert error.value.reference == "bad-answer"
