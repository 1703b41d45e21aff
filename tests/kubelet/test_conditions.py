"""Conditions of tables: what they ask of a node's values, and that what cannot be observed is unknown."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from rollout.core.model.settings import Value
from rollout.kubelet.conditions import NodeValues, all_hold, conditions, number

GATE = "gate:KubeletEnsureSecretPulledImages"


def values(**effective: Value) -> NodeValues:
    return NodeValues(35, effective, {"--v": "4"}, {"image_pull_progress_timeout": "0s"}, {"cgroup": "v2"})


@pytest.mark.parametrize(
    ("when", "holds"),
    [
        ({"maxPods": {"is": 110}}, True),
        ({"maxPods": {"not": 110}}, False),
        ({"maxPods": {"above": 100, "below": 120}}, True),
        ({"maxPods": {"in": [50, 110]}}, True),
        ({"maxPods": {"set": True}, "podPidsLimit": {"set": False}}, True),
        ({"authentication.anonymous.enabled": {"is": False}}, True),
        ({"authentication.anonymous.enabled": {"is": 0}}, False),
        ({"shutdownGracePeriod": {"above": 60}}, True),
        ({"shutdownGracePeriod": {"is": "2m"}}, True),
        ({"kubeReserved.cpu": {"below": 1}}, True),
        ({"evictionHard.nodefs.available": {"set": False}}, True),
        ({"clusterDNS": {"has": "10.0.0.10"}}, True),
        ({"kubeReservedCgroup": {"ends": ".service"}}, True),
        ({"kubeReservedCgroup": {"above": 3}}, False),
        ({"--v": {"is": 4}}, True),
        ({GATE: {"is": True}}, True),
        ({"minor": {"above": 19}}, True),
        ({"minor": {"above": 37}}, False),
        ({"runtime:image_pull_progress_timeout": {"is": "0s"}}, True),
        ({"fact:cgroup": {"is": "v1"}}, False),
        ({"fact:kernel": {"is": "6.1"}}, None),
        ({"fact:kernel": {"is": "6.1"}, "maxPods": {"is": 1}}, False),
        ({"maxPods": {"changes": True}}, False),
        ({}, True),
    ],
)
def test_what_holds_of_a_nodes_values(when: Mapping[str, Mapping[str, Value]], holds: bool | None) -> None:
    here = values(
        maxPods=110,
        authentication={"anonymous": {"enabled": False}},
        shutdownGracePeriod="2m0s",
        kubeReserved={"cpu": "500m"},
        clusterDNS=["10.0.0.10"],
        kubeReservedCgroup="/kubelet.service",
    )
    assert all_hold(conditions(when), here) is holds


def test_a_runtime_that_was_not_read_is_unknown() -> None:
    here = NodeValues(35, {}, {}, None, {})
    assert all_hold(conditions({"runtime:local_pull": {"is": True}}), here) is None
    assert all_hold(conditions({"runtime:local_pull": {"changes": True}}), here, here) is None


def test_a_gate_follows_what_is_written() -> None:
    assert all_hold(conditions({GATE: {"is": False}}), values(featureGates={GATE.partition(":")[2]: False})) is True


@pytest.mark.parametrize(
    ("test", "old", "new", "holds"),
    [
        ("changes", 5, 6, True),
        ("changes", 5, 5, False),
        ("changes", True, False, True),
        ("changes", None, {"cpu": "1"}, True),
        ("grows", {"cpu": "500m"}, {"cpu": "1"}, True),
        ("grows", {"cpu": "1"}, {"cpu": "500m"}, False),
        ("grows", None, {"cpu": "500m"}, True),
        ("shrinks", 110, 50, True),
        ("shrinks", 50, 110, False),
    ],
)
def test_changes(test: str, old: Value, new: Value, holds: bool) -> None:
    assert all_hold(conditions({"maxPods": {test: True}}), values(maxPods=new), values(maxPods=old)) is holds


def test_a_duration_that_is_written_otherwise_does_not_change() -> None:
    when = conditions({"shutdownGracePeriod": {"changes": True}})
    assert all_hold(when, values(shutdownGracePeriod="60s"), values(shutdownGracePeriod="1m")) is False


def test_numbers_of_every_written_form() -> None:
    written = (3, "3", "500m", "15%", "1Gi", "x", True, None)
    assert [number(text) for text in written] == [3.0, 3.0, 0.5, 15.0, 2.0**30, None, None, None]
    times = (
        "runtimeRequestTimeout",
        "--runtime-request-timeout",
        "runtime:image_pull_progress_timeout",
        "kubeReserved.cpu",
    )
    assert [number("5m", path) for path in times] == [300.0, 300.0, 300.0, 0.005]


def test_an_unknown_test_is_refused() -> None:
    with pytest.raises(ValueError, match="unknown test 'over'"):
        conditions({"maxPods": {"over": 3}})
