"""What a gate asks is one of a closed set of values."""

from __future__ import annotations

from typing import assert_never

import pytest

from rollout.core.model.gates import (
    AgentCheck,
    AlertQuery,
    ApiCheck,
    CommandQuery,
    Gate,
    GateKind,
    GateScope,
    HttpQuery,
    NoQuery,
    PrometheusQuery,
)

QUERIES = {
    GateKind.PROMETHEUS: Gate(GateKind.PROMETHEUS, GateScope.WAVE, "g", prometheus=PrometheusQuery("up")),
    GateKind.ALERTMANAGER: Gate(GateKind.ALERTMANAGER, GateScope.WAVE, "g", alertmanager=AlertQuery(())),
    GateKind.HTTP: Gate(GateKind.HTTP, GateScope.WAVE, "g", http=HttpQuery("http://h/")),
    GateKind.COMMAND: Gate(GateKind.COMMAND, GateScope.WAVE, "g", ("true",)),
}


@pytest.mark.parametrize("kind", GateKind)
def test_each_kind_asks_what_its_name_says(kind: GateKind) -> None:
    gate = QUERIES.get(kind, Gate(kind, GateScope.NODE, "g"))
    match gate.asks:
        case PrometheusQuery():
            found = GateKind.PROMETHEUS
        case AlertQuery():
            found = GateKind.ALERTMANAGER
        case HttpQuery():
            found = GateKind.HTTP
        case CommandQuery(words):
            assert words == ("true",)
            found = GateKind.COMMAND
        case AgentCheck(measured):
            found = measured
        case ApiCheck(reported):
            found = reported
        case NoQuery():
            pytest.fail("its query is there")
        case _ as never:
            assert_never(never)
    assert found is kind
