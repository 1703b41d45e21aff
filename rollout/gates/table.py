"""The table of the kinds of gates. Each kind has one line in each list that concerns it; no other module names one."""

# ruff: noqa: PLC0415 - pydantic and HTTP take 0.1 s to import, and most calls do not need them

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, get_args

from rollout.core.model.gates import Gate, GateQuery, GateScope
from rollout.gates.agent_checks.query import AgentCheck, AgentKind
from rollout.gates.alertmanager.query import AlertQuery
from rollout.gates.api_checks.query import ApiCheck, ApiKind
from rollout.gates.command.query import CommandQuery
from rollout.gates.page.query import HttpQuery
from rollout.gates.prometheus.query import PrometheusQuery
from rollout.gates.steady_nodes.query import SteadyKind, SteadyQuery

if TYPE_CHECKING:
    from rollout.adapters.endpoints import HttpBackEnds
    from rollout.app.asked_gate import Asker
    from rollout.core.model.ways_in import Probe
    from rollout.core.reading.gate_keys import GateKeys
    from rollout.gates.steady_nodes.asking import Nodes

QUERIES: Mapping[str, type[GateQuery]] = {
    **dict.fromkeys(get_args(AgentKind), AgentCheck),
    **dict.fromkeys(get_args(ApiKind), ApiCheck),
    **{query.kind: query for query in (PrometheusQuery, AlertQuery, HttpQuery, CommandQuery)},
    **dict.fromkeys(get_args(SteadyKind), SteadyQuery),
}
"""Kind → class, in the order in which people are told of them."""

ALWAYS_WRITTEN: Mapping[str, object] = {"alertmanager": None, "command": [], "http": None, "prometheus": None}
"""What version 9 of a plan has for each gate. Kinds since then are not here."""

DEFAULT_GATES = tuple(Gate(AgentCheck(kind), GateScope.NODE, kind) for kind in get_args(AgentKind))
"""The gates of a playbook that names no node gates."""

API_SECONDS = 20.0
"""Seconds to read a node through the API server: three requests, each of which is slow on a busy server."""

_BY_API: tuple[ApiKind, ...] = ("nodeReady", "podsKept", "devicesKept")
LIST_SECONDS = 60.0
"""Seconds to list all Nodes: some thousands of them in pages."""

API_GATES = (
    *(Gate(ApiCheck(kind), GateScope.NODE, kind, API_SECONDS) for kind in _BY_API),
    Gate(SteadyQuery(), GateScope.WAVE, SteadyQuery().kind, LIST_SECONDS),
)
"""The gates that every playbook has as well if a kubeconfig is given, unless it switches them off."""


def keys_of_waves() -> tuple[type[GateKeys], ...]:
    """The keys that each kind adds to a wave gate of a playbook."""
    from rollout.gates.alertmanager.written import AlertKeys
    from rollout.gates.page.written import PageKeys
    from rollout.gates.prometheus.written import PrometheusKeys
    from rollout.gates.steady_nodes.written import SteadyKeys

    return PrometheusKeys, AlertKeys, PageKeys, SteadyKeys


def askers(back_ends: HttpBackEnds | None, nodes: Nodes | None = None) -> Mapping[str, Asker]:
    """Kind → how it is asked for a wave. ``None``: no gate asks over HTTP, or no API server is known, and those that do are left out.

    ``nodes``: lists the Nodes of the API server.
    """
    from rollout.gates.command.asking import CommandGate

    asker_of: dict[str, Asker] = {CommandQuery.kind: CommandGate}
    if nodes is not None:
        from rollout.gates.steady_nodes.asking import connected

        asker_of[SteadyQuery().kind] = connected(nodes)
    if back_ends is not None:
        from rollout.gates.alertmanager import client as alertmanager
        from rollout.gates.page import client as page
        from rollout.gates.prometheus import client as prometheus

        asker_of[PrometheusQuery.kind] = prometheus.connected(back_ends)
        asker_of[AlertQuery.kind] = alertmanager.connected(back_ends)
        asker_of[HttpQuery.kind] = page.connected(back_ends)
    return asker_of


def probes(back_ends: HttpBackEnds) -> tuple[Probe, ...]:
    """How ``rollout doctor`` tries the back ends that an inventory may name."""
    from rollout.gates.alertmanager import client as alertmanager
    from rollout.gates.prometheus import client as prometheus

    return prometheus.probe(back_ends), alertmanager.probe(back_ends)
