"""What gates need and nobody named is said before anything is touched."""

from __future__ import annotations

import pytest

from rollout.core.gates.gate_needs import needs_cluster, unnamed
from rollout.core.model.inventory import Endpoints
from rollout.core.model.playbook import DEFAULT_GATES, AlertQuery, Gate, GateKind, GateScope, PrometheusQuery

READY = Gate(GateKind.NODE_READY, GateScope.NODE, "nodeReady")
PODS = Gate(GateKind.PODS_KEPT, GateScope.NODE, "podsKept")
ERRORS = Gate(GateKind.PROMETHEUS, GateScope.WAVE, "errors", prometheus=PrometheusQuery("up", at_least=1))
ALERTS = Gate(GateKind.ALERTMANAGER, GateScope.WAVE, "alerts", alertmanager=AlertQuery(()))
OWN = Gate(GateKind.PROMETHEUS, GateScope.WAVE, "own", prometheus=PrometheusQuery("up", "http://p", at_least=1))


@pytest.mark.parametrize(
    ("gates", "said"),
    [
        (DEFAULT_GATES, []),
        ((OWN,), []),
        ((READY,), ["the gate nodeReady needs a kubeconfig, and the inventory of rno names none (say --kubeconfig FILE, or `endpoints: {kubeconfig: FILE}` in the inventory) [no-kubeconfig]"]),
        ((READY, PODS), ["the gates nodeReady, podsKept need a kubeconfig, and the inventory of rno names none (say --kubeconfig FILE, or `endpoints: {kubeconfig: FILE}` in the inventory) [no-kubeconfig]"]),
        ((ERRORS, OWN, ALERTS), [
            "the gate errors needs a Prometheus, and the inventory of rno names none (say `endpoints: {prometheus: URL}` in the inventory, or `url` in the gate) [no-prometheus]",
            "the gate alerts needs an Alertmanager, and the inventory of rno names none (say `endpoints: {alertmanager: URL}` in the inventory, or `url` in the gate) [no-alertmanager]",
        ]),
    ],
)  # fmt: skip
def test_each_kind_is_said_once(gates: tuple[Gate, ...], said: list[str]) -> None:
    assert [str(problem) for problem in unnamed(gates, Endpoints(), "rno")] == said


def test_what_is_named_is_no_problem() -> None:
    assert unnamed((READY, ERRORS, ALERTS), Endpoints("k", "", "http://p", "http://a"), "rno") == ()


def test_only_some_gates_need_the_api_server() -> None:
    assert needs_cluster((ERRORS, READY))
    assert not needs_cluster(DEFAULT_GATES)
