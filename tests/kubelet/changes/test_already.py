"""Defaults that depend on gates, and unwritten gates: which values are in force, and which must be written."""

from __future__ import annotations

import pytest

from rollout.core.model.settings import Setting, Value
from rollout.kubelet.changes.changes import LeftAlone, Proposal, proposal
from rollout.kubelet.changes.templated_config import holds
from tests.kubelet import nodes

POLICY, BACK_OFF = "imagePullCredentialsVerificationPolicy", "crashLoopBackOff"
VERIFIES, SLOWS = "KubeletEnsureSecretPulledImages", "KubeletCrashLoopBackOffMax"


@pytest.mark.parametrize(
    ("shown", "wanted", "minor", "in_force"),
    [
        (None, {VERIFIES: True}, 36, True),
        (None, {VERIFIES: False}, 36, False),
        (None, {VERIFIES: True}, 34, False),
        (None, {VERIFIES: False}, 34, True),
        ({VERIFIES: False}, {VERIFIES: False}, 36, True),
        ({SLOWS: True}, {VERIFIES: False}, 36, False),
        ({"AllBeta": False}, {VERIFIES: False}, 36, True),
        (None, {VERIFIES: False}, 32, False),  # a kubelet does not start with a gate that it does not know
        (None, {}, 36, True),
    ],
)
def test_an_unwritten_gate_has_the_default_of_its_minor(
    shown: Value, wanted: Value, minor: int, in_force: bool
) -> None:
    assert holds("featureGates", shown, wanted, minor) is in_force


def decided(minor: int, name: str, value: Value) -> Proposal | LeftAlone:
    found = nodes.kubeadm(version=f"1.{minor}.1", runtime="containerd")
    return proposal(found, {name: Setting(name, value)}, nodes.POLICY, nodes.node(), None)


def test_a_gate_that_is_on_by_default_is_turned_off() -> None:
    made = decided(36, "featureGates", {SLOWS: False})
    assert isinstance(made, Proposal)
    assert 'side effect: crashLoopBackOff.maxContainerRestartPeriod: "5m0s" → not set' in made.change.notes
    assert isinstance(decided(36, "featureGates", {SLOWS: True}), LeftAlone)


def test_a_default_that_depends_on_a_gate_is_not_written_where_the_gate_is_on() -> None:
    period: Value = {"maxContainerRestartPeriod": "5m"}
    for name, value in ((POLICY, "NeverVerifyPreloadedImages"), (BACK_OFF, period)):
        assert isinstance(as_wanted := decided(36, name, value), LeftAlone)
        assert as_wanted.reference == "as-wanted"
        assert isinstance(off := decided(34, name, value), LeftAlone)
        assert off.reference == "kubelet-would-not-start"
    assert isinstance(decided(36, POLICY, "NeverVerify"), Proposal)
