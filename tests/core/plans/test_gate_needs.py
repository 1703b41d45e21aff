"""Back ends that gates need but that are not set are reported before any change."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rollout.core.model.gates import Gate, GateScope
from rollout.core.model.inventory import Endpoints
from rollout.core.model.plan import LessRoom, PlannedDrain
from rollout.core.model.playbook import LateWatch, Policy, SoakData
from rollout.core.plans.required_back_ends import (
    Needs,
    PodNeeds,
    needs_cluster,
    needs_of,
    needs_to_plan,
    unnamed,
    with_gates_of_api,
)
from rollout.gates.alertmanager.query import AlertQuery
from rollout.gates.api_checks.query import ApiCheck
from rollout.gates.prometheus.query import PrometheusQuery
from rollout.gates.table import DEFAULT_GATES
from tests.core.presentation.journals import plan_of
from tests.kubelet.nodes import POLICY, listing

READY = Gate(ApiCheck("nodeReady"), GateScope.NODE, "nodeReady")
PODS = Gate(ApiCheck("podsKept"), GateScope.NODE, "podsKept")
ERRORS = Gate(PrometheusQuery("up", at_least=1), GateScope.WAVE, "errors")
ALERTS = Gate(AlertQuery(()), GateScope.WAVE, "alerts")
OWN = Gate(PrometheusQuery("up", "http://p", at_least=1), GateScope.WAVE, "own")


@pytest.mark.parametrize(
    ("gates", "said"),
    [
        (DEFAULT_GATES, []),
        ((OWN,), []),
        ((READY,), ["the gate nodeReady needs a kubeconfig, and the inventory of rno names none (use --kubeconfig FILE, or set `endpoints: {kubeconfig: FILE}` in the inventory) [no-kubeconfig]"]),
        ((READY, PODS), ["the gates nodeReady, podsKept need a kubeconfig, and the inventory of rno names none (use --kubeconfig FILE, or set `endpoints: {kubeconfig: FILE}` in the inventory) [no-kubeconfig]"]),
        ((ERRORS, OWN, ALERTS), [
            "the gate errors needs a Prometheus, and the inventory of rno names none (set `endpoints: {prometheus: URL}` in the inventory, or `url` in the gate) [no-prometheus]",
            "the gate alerts needs an Alertmanager, and the inventory of rno names none (set `endpoints: {alertmanager: URL}` in the inventory, or `url` in the gate) [no-alertmanager]",
        ]),
    ],
)  # fmt: skip
def test_each_kind_is_reported_once(gates: tuple[Gate, ...], said: list[str]) -> None:
    assert [str(problem) for problem in unnamed(Needs(gates), Endpoints(), "rno")] == said


def test_a_back_end_that_is_set_is_no_problem() -> None:
    assert (
        unnamed(Needs((READY, ERRORS, ALERTS), PodNeeds.DRAINED), Endpoints("k", "", "http://p", "http://a"), "rno")
        == ()
    )


def named(policy: Policy, kubeconfig: str = "k") -> list[str]:
    return [gate.name for gate in with_gates_of_api(policy, kubeconfig).gates]


def test_with_a_kubeconfig_gates_of_the_api_server_are_on_by_default() -> None:
    usual = [gate.name for gate in DEFAULT_GATES]
    assert named(POLICY) == [*usual, "nodeReady", "podsKept", "devicesKept", "nodesSteady"]
    assert named(POLICY, "") == usual


def test_a_playbook_that_names_node_gates_has_them_too_each_once() -> None:
    own = replace(POLICY, gates=(PODS, ERRORS))
    assert named(own) == ["podsKept", "errors", "nodeReady", "devicesKept", "nodesSteady"]
    assert PODS in with_gates_of_api(own, "k").gates, "with its own timeout"


def test_only_what_a_playbook_switches_off_is_off() -> None:
    assert "podsKept" not in named(replace(POLICY, without=("podsKept",)))
    assert "nodeReady" in named(replace(POLICY, without=("podsKept",)))


def test_only_some_gates_need_the_api_server() -> None:
    assert needs_cluster((ERRORS, READY))
    assert not needs_cluster(DEFAULT_GATES)


@pytest.mark.parametrize("pods", [PodNeeds.COUNTED, PodNeeds.DRAINED])
def test_pods_are_asked_for_from_the_api_server(pods: PodNeeds) -> None:
    (problem,) = unnamed(Needs((), pods), Endpoints(), "rno")
    assert problem.reference == "no-kubeconfig"
    assert "pods on nodes are to be drained or counted" in problem.message
    assert unnamed(Needs((), pods), Endpoints("k"), "rno") == ()
    (told,) = unnamed(Needs((READY,), pods), Endpoints(), "rno")
    assert "the gate nodeReady" in told.message, "once is enough"


def test_what_a_plan_needs_is_known_from_its_nodes() -> None:
    plan = plan_of(2, 2)
    name, node = next(iter(plan.nodes.items()))
    less, drain = LessRoom(20, None, 500, 0, 0), PlannedDrain(3, "prod/api", 30.0, "30 s of grace", 20)
    counted = replace(plan, nodes={**plan.nodes, name: replace(node, less_room=less)})
    drained = replace(plan, nodes={**counted.nodes, name: replace(node, less_room=less, drain=drain)})
    assert needs_of(plan) == Needs(plan.gates)
    assert needs_of(counted) == Needs(plan.gates, PodNeeds.COUNTED)
    assert needs_of(drained) == Needs(plan.gates, PodNeeds.DRAINED)
    assert needs_of(None) == Needs()
    pulling = replace(plan, waves=(replace(plan.waves[0], data=SoakData(pulls=1)), *plan.waves[1:]))
    assert needs_of(pulling) == Needs(plan.gates, pulls=True)


def test_a_watch_after_the_run_needs_a_gate_that_it_can_ask() -> None:
    watched = replace(POLICY, late=LateWatch(3600.0))
    (problem,) = unnamed(needs_to_plan(listing("n1"), watched, ""), Endpoints(), "rno")
    assert str(problem) == (
        "`watchFor` is set, and without a kubeconfig no gate can be measured after the run (use --kubeconfig FILE, or set"
        " `endpoints: {kubeconfig: FILE}` in the inventory) [nothing-to-watch]"
    )
    by_default = needs_to_plan(listing("n1"), with_gates_of_api(watched, "k"), "k")
    assert unnamed(by_default, Endpoints("k"), "rno") == ()
    own = needs_to_plan(listing("n1"), replace(watched, gates=(OWN,)), "")
    assert unnamed(own, Endpoints(), "rno") == ()
    assert unnamed(needs_to_plan(listing("n1"), POLICY, ""), Endpoints(), "rno") == ()


def test_counting_pulls_needs_a_kubeconfig() -> None:
    (problem,) = unnamed(Needs(pulls=True), Endpoints(), "rno")
    assert "image pulls are to be counted, which needs a kubeconfig" in str(problem)
    assert unnamed(Needs(pulls=True), Endpoints("k"), "rno") == ()
