"""A gate in a plan: its bytes are those of version 9, and it is read again as the same gate."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any, get_args

import pytest

from rollout.adapters.endpoints import HttpBackEnds
from rollout.core.model.gates import GateQuery
from rollout.core.model.inventory import Endpoints
from rollout.errors import InputError
from rollout.gates import table
from rollout.gates.agent_checks.query import AgentCheck, AgentKind
from rollout.gates.alertmanager.query import AlertQuery
from rollout.gates.api_checks.query import ApiCheck, ApiKind
from rollout.gates.command.query import CommandQuery
from rollout.gates.page.query import HttpQuery
from rollout.gates.prometheus.query import PrometheusQuery, Worse
from rollout.gates.steady_nodes.query import SteadyQuery
from tests.gates.plans import gate, read, written

EXAMPLES: dict[str, GateQuery] = {
    **{kind: AgentCheck(kind) for kind in ("unit", "process", "healthz", "effectiveConfig")},
    **{kind: ApiCheck(kind) for kind in ("nodeReady", "podsKept", "devicesKept", "containersKept", "imagePulls")},
    "prometheus": PrometheusQuery("up", "http://p", 1.0, None, Worse.LOWER, 0.5),
    "alertmanager": AlertQuery(("a=b",), "", 60.0, "instance"),
    "http": HttpQuery("http://h/", 204, "ok"),
    "command": CommandQuery(("true", "a b")),
    "nodesSteady": SteadyQuery(),
}
EMPTY: dict[str, object] = {"alertmanager": None, "command": [], "http": None, "prometheus": None}


@pytest.mark.parametrize("kind", EXAMPLES)
def test_a_gate_is_read_as_it_was_written(kind: str) -> None:
    found = written(gate(EXAMPLES[kind]))
    assert (found["kind"], found["scope"], found["name"], found["timeout"]) == (kind, "wave", "g", 2.5)
    assert read(found) == gate(EXAMPLES[kind])


def test_a_gate_has_the_bytes_of_version_9() -> None:
    common = {"scope": "wave", "name": "g", "timeout": 2.5}
    assert written(gate(AgentCheck("unit"))) == {**common, **EMPTY, "kind": "unit"}
    assert written(gate(CommandQuery(("true", "a b")))) == {
        **common,
        **EMPTY,
        "kind": "command",
        "command": ["true", "a b"],
    }
    page = {"url": "http://h/", "status": 204, "contains": "ok"}
    assert written(gate(EXAMPLES["http"])) == {**common, **EMPTY, "kind": "http", "http": page}
    metric = {"query": "up", "url": "http://p", "at_most": 1.0, "at_least": None, "worse": "lower", "tolerance": 0.5}
    assert written(gate(EXAMPLES["prometheus"])) == {**common, **EMPTY, "kind": "prometheus", "prometheus": metric}
    alerts = {"matchers": ["a=b"], "url": "", "silence": 60.0, "node_label": "instance"}
    assert written(gate(EXAMPLES["alertmanager"])) == {
        **common,
        **EMPTY,
        "kind": "alertmanager",
        "alertmanager": alerts,
    }


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"kind": "grpc"}, "gates[0].kind is not one of unit, process"),
        ({"kind": None}, "gates[0].kind is not one of unit, process"),
        ({"kind": "unit"}, "gates[0].http does not belong to a gate of kind unit"),
        ({"http": None}, "gates[0].http is not an object"),
        ({"http": {"url": "http://h/"}}, "gates[0].http: 'contains' is missing"),
        ({"grpc": 1}, "gates[0]: 'grpc' is unknown"),
        ({"timeout": "1"}, "gates[0].timeout is not of type float"),
        ({"scope": "rack"}, "gates[0].scope is not one of node, wave"),
    ],
)
def test_a_gate_that_no_rollout_wrote_is_refused(change: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError) as caught:
        read({**written(gate(EXAMPLES["http"])), **change})
    assert said in str(caught.value)
    assert "[plan-unreadable]" in str(caught.value)


def test_every_kind_of_wave_gate_is_asked_and_without_http_those_that_need_none(stack: ExitStack) -> None:
    of_nodes = {*get_args(AgentKind), *get_args(ApiKind)}
    of_waves = {kind: query for kind, query in table.QUERIES.items() if kind not in of_nodes}
    assert table.askers(HttpBackEnds(Endpoints(), stack), tuple).keys() == of_waves.keys()
    assert table.askers(None).keys() == {
        kind for kind, query in of_waves.items() if not query.asks_http and not query.asks_api
    }
    assert len(table.keys_of_waves()) == len(of_waves) - 1, "a command has no keys of its own"
