"""A gate as a plan shows it: what will be asked or carried out, before it is."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator

from rollout.core.model.playbook import Gate, GateScope, PrometheusQuery
from rollout.core.text.terminal import printable

_LONGEST = 400


def gates_text(gates: Iterable[Gate], scope: GateScope) -> str:
    """The gates of a scope by name, with what each of them asks in brackets."""
    return printable(", ".join(_gate(gate) for gate in gates if gate.scope is scope), _LONGEST) or "none"


def _gate(gate: Gate) -> str:
    """A command with its arguments: it is carried out on every node, or here."""
    asked = " ".join(_asked(gate))
    return f"{gate.name} ({asked})" if asked else gate.name


def _asked(gate: Gate) -> Iterator[str]:
    if gate.command:
        yield shlex.join(gate.command)
    if gate.prometheus:
        yield from _query(gate.prometheus)
    if gate.alertmanager:
        yield from (*gate.alertmanager.matchers, *_at(gate.alertmanager.url))
    if gate.http:
        yield from (gate.http.url, str(gate.http.status))


def _query(query: PrometheusQuery) -> Iterator[str]:
    yield query.query
    if query.at_most is not None:
        yield f"≤ {query.at_most:g}"
    if query.at_least is not None:
        yield f"≥ {query.at_least:g}"
    if query.worse is not None:
        yield f"not {query.tolerance * 100:g} % {query.worse.value} than nodes not changed yet"
    yield from _at(query.url)


def _at(url: str) -> tuple[str, ...]:
    return (f"at {url}",) if url else ()
