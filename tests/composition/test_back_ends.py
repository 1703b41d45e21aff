"""Rights at the API server that a run needs are asked for before any node is touched."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rollout.composition import back_ends
from rollout.core.model.gates import Gate, GateScope
from rollout.core.model.inventory import Endpoints
from rollout.core.model.live import LiveNode
from rollout.core.plans.required_back_ends import Needs, PodNeeds
from rollout.errors import RemoteError, UsageError
from rollout.gates.api_checks.query import ApiCheck
from tests.kubelet.nodes import inventory

READY = Gate(ApiCheck("nodeReady"), GateScope.NODE, "nodeReady")
NEEDS = Needs((READY,), PodNeeds.NOT_ASKED, pulls=False)


class ApiServer:
    """Behind the port: what the API server answers to a review of our rights."""

    def __init__(self, *missing: str, away: bool = False) -> None:
        self.missing, self.away = missing, away

    def nodes(self) -> tuple[LiveNode, ...]:
        raise AssertionError("asked for the Nodes before the rights")

    def missing_rights(self) -> tuple[str, ...]:
        if self.away:
            raise RemoteError("not-reached", "connection refused")
        return self.missing


def refusal(monkeypatch: pytest.MonkeyPatch, api: ApiServer) -> UsageError:
    monkeypatch.setattr(back_ends, "_cluster", lambda *_: api)
    found = replace(inventory(1), endpoints=Endpoints(kubeconfig="admin.conf"))
    monkeypatch.setattr(back_ends, "check_backends", lambda *_: None)
    with pytest.raises(UsageError) as caught, back_ends.gate_backends(found, NEEDS, ""):
        raise AssertionError("the run began")
    return caught.value


def test_a_right_that_is_missing_is_named_before_any_node_is_touched(monkeypatch: pytest.MonkeyPatch) -> None:
    error = refusal(monkeypatch, ApiServer("get nodes", "list pods"))
    assert error.message == "nothing was touched: admin.conf lacks the right to get nodes, list pods"
    assert error.reference == "kubeconfig-rights"


def test_an_api_server_that_does_not_answer_is_named_before_any_node_is_touched(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    error = refusal(monkeypatch, ApiServer(away=True))
    said = "nothing was touched: the request to the API server of admin.conf failed: connection refused"
    assert (error.message, error.reference) == (said, "api-not-reached")
