"""Wave gates as written in a playbook, and their meaning. Refused gates are also in ``test_playbook_file``."""

from __future__ import annotations

import pytest

from rollout.core.model.gates import Gate, GateScope
from rollout.core.model.inventory import Endpoints
from rollout.core.reading.inventory_file import load_inventory
from rollout.core.reading.playbook_file import load_playbook
from rollout.errors import InputError
from rollout.gates.alertmanager.query import AlertQuery
from rollout.gates.page.query import HttpQuery
from rollout.gates.prometheus.query import PrometheusQuery, Worse
from tests.places import ROOT

TEMPLATES = {path.name: path.read_text() for path in (ROOT / "templates").iterdir()}


def gates(text: str) -> tuple[Gate, ...]:
    return load_playbook(f"name: p\nsettings: {{maxPods: 1}}\ngates:\n{text}\n", "p.yaml", TEMPLATES).gates


def wave(text: str) -> Gate:
    return gates(f"  wave: [{text}]")[-1]


def test_gates_of_the_api_server_are_written_by_name() -> None:
    found = gates("  node: [nodeReady, podsKept, containersKept, imagePulls]")
    assert [gate.kind for gate in found] == ["nodeReady", "podsKept", "containersKept", "imagePulls"]
    assert all(gate.scope is GateScope.NODE and gate.name == gate.kind and gate.timeout == 20.0 for gate in found)


@pytest.mark.parametrize(
    ("text", "name", "timeout", "query"),
    [
        ("{prometheus: up, atLeast: 1}", "prometheus", 10.0, PrometheusQuery("up", at_least=1.0)),
        ("{prometheus: up, atMost: 0.5, atLeast: -1, name: own, timeout: 30s, url: 'https://p:9090/x'}", "own", 30.0,
         PrometheusQuery("up", "https://p:9090/x", 0.5, -1.0)),
        ("{prometheus: 'up{n=\"$nodes\"}', worse: lower, tolerance: 2.5%}", "prometheus", 10.0,
         PrometheusQuery('up{n="$nodes"}', worse=Worse.LOWER, tolerance=0.025)),
        ("{prometheus: 'up{n=\"$nodes\"}', worse: higher}", "prometheus", 10.0,
         PrometheusQuery('up{n="$nodes"}', worse=Worse.HIGHER, tolerance=0.2)),
    ],
)  # fmt: skip
def test_prometheus(text: str, name: str, timeout: float, query: PrometheusQuery) -> None:
    assert wave(text) == Gate(query, GateScope.WAVE, name, timeout)


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("{alertmanager: []}", AlertQuery(())),
        ("{alertmanager: ['severity=\"critical\"', ' job=~kube.* ', team!=web], silence: 30m, nodeLabel: instance}",
         AlertQuery(('severity="critical"', "job=~kube.*", "team!=web"), "", 1800.0, "instance")),
    ],
)  # fmt: skip
def test_alertmanager(text: str, query: AlertQuery) -> None:
    assert wave(text) == Gate(query, GateScope.WAVE, "alertmanager")


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("{http: 'https://shop/healthz'}", HttpQuery("https://shop/healthz")),
        ("{http: 'http://[::1]:80/?a=b', status: 302, contains: ok}", HttpQuery("http://[::1]:80/?a=b", 302, "ok")),
    ],
)
def test_http(text: str, query: HttpQuery) -> None:
    assert wave(text) == Gate(query, GateScope.WAVE, "http")


def test_several_of_a_kind_need_names() -> None:
    with pytest.raises(InputError, match=r"duplicate gate `http` \(give it a `name` of its own\)"):
        gates("  wave: [{http: 'http://a'}, {http: 'http://b'}]")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{prometheus: ' ', atMost: 1}", "`prometheus` is empty [bad-query]"),
        ("{prometheus: up, atMost: .inf}", "[yaml-ambiguous]"),
        ("{prometheus: up, atMost: 1, tolerance: 20%}", "`tolerance` goes with `worse` [bad-gate]"),
        ("{http: 7}", "`http` must be a URL, not a number [wrong-type]"),
        ("{http: 'http://a:99999/'}", "is not a URL"),
        ("{http: 'http://a/ b'}", "is not a URL"),
        ("{http: 'ftp://a/'}", "is not a URL"),
        ("{alertmanager: [], nodeLabel: a-b}", "`nodeLabel`: `a-b` is not a label of a metric or alert [bad-label]"),
        ("{alertmanager: ['a=\"b']}", "is not a matcher"),
        ("prometeus", "p.yaml:4:10: `wave[0]` must be a map with one of prometheus, alertmanager, http, "),
        ("prometeus", "(did you mean `prometheus`?) [bad-gate]"),
        ("{name: x}", "must have one of prometheus, alertmanager, http, "),
        ("{http: 'http://a', command: [b]}", "`wave[0]` must have one of prometheus, alertmanager, http, "),
    ],
)
def test_refused(text: str, said: str) -> None:
    with pytest.raises(InputError) as error:
        wave(text)
    assert said in str(error.value)


@pytest.mark.parametrize("gate", ["prometheus", "{http: 'http://a'}"])
def test_a_wave_gate_is_not_a_node_gate(gate: str) -> None:
    with pytest.raises(InputError, match=r"is a gate of a wave, not of each node \(put it under `wave`\)"):
        gates(f"  node: [{gate}]")


def test_an_inventory_names_the_back_ends_of_gates() -> None:
    text = """\
cluster: c
apiServer: v1.30.1
nodes: {n1: {}}
endpoints: {kubeconfig: k, context: c, prometheus: 'https://p', alertmanager: 'https://a', tokenFile: t, caFile: f, tenant: a|b, certFile: e, keyFile: d}
"""
    named = Endpoints("k", "c", "https://p", "https://a", "t", "f", "a|b", "e", "d")
    assert load_inventory(text, "i.yaml").endpoints == named
    with pytest.raises(InputError, match=r"`a b: c` is not a tenant .*\[bad-tenant\]"):
        load_inventory(text.replace("a|b", "'a b: c'"), "i.yaml")
    assert load_inventory(text.partition("endpoints")[0], "i.yaml").endpoints == Endpoints()
    with pytest.raises(InputError, match=r"unknown key `promethus` \(did you mean `prometheus`\?\)"):
        load_inventory(text.replace("prometheus", "promethus"), "i.yaml")
