"""The measurement in the answer to an apply is the one that the node would give if it were asked right after it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rollout.kubelet.agent.agent_call import Measure
from tests.agent.node import CONFIG, DROPIN, FLAGS, NEW, Node, order

pytestmark = pytest.mark.process
PATHS = (CONFIG, FLAGS, DROPIN, "/etc/none")
MEASURED = replace(order(), measured=PATHS)


@pytest.mark.parametrize("runtime", ["", "containerd.service"])
def test_an_apply_measures_what_a_status_measures_but_runtimes_that_it_does_not_restart(
    node: Node, runtime: str
) -> None:
    if runtime:
        node.serve(runtime, "/usr/bin/containerd")
    report = node.apply(MEASURED)
    applied, took = report.measurement, report.took
    asked = node.status(measure=Measure("kubelet.service", 10248, PATHS)).measurement
    assert applied is not None
    assert asked is not None
    assert applied.files.keys() == set(PATHS)
    assert (applied.lenient, applied.healthz, applied.services) == (0, "ok", {})
    assert set(asked.services) == {runtime} - {""}
    assert applied == replace(asked, services={})
    assert took is not None
    assert took >= 0.2, "it waited for longer than the unit's RestartSec"


def test_several_units_are_measured_once_each(node: Node) -> None:
    node.serve("containerd.service", "/usr/bin/containerd")
    found = node.apply(replace(order(units=("containerd.service", "kubelet.service")), measured=PATHS)).measurement
    asked = node.status(measure=Measure("kubelet.service", 10248, PATHS)).measurement
    assert found is not None
    assert asked is not None
    assert found == asked


def test_a_kubelet_without_healthz_is_measured_as_off(node: Node) -> None:
    found = node.apply(replace(order(healthz_port=0), measured=PATHS)).measurement
    assert found is not None
    assert found.healthz == "off"


def test_nothing_is_measured_unless_it_is_asked_for(node: Node) -> None:
    found = node.apply()
    assert (found.measurement, found.took) == (None, None)


def test_a_kubelet_that_the_apply_does_not_restart_is_not_measured(node: Node) -> None:
    """Its log and its command line are those of its earlier configuration, and the apply did not look at them."""
    node.serve("containerd.service", "/usr/bin/containerd")
    assert node.apply(replace(order(units=("containerd.service",)), measured=PATHS)).measurement is None


def test_nothing_is_measured_after_a_revert(node: Node) -> None:
    found = node.apply(replace(order(new={**NEW, CONFIG: b"LENIENT\n"}), measured=PATHS))
    assert (found.healthy, found.measurement) == (True, None)
    assert found.receipt is not None
    assert found.receipt.state.value == "reverted"
