"""The output of ``rollout explain NAME`` for people."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass

from rollout.core.model.playbook import Disruption
from rollout.core.model.settings import Value
from rollout.core.text.terminal import printable
from rollout.kubelet import fields
from rollout.kubelet.explained.explanation import Explanation, What
from rollout.kubelet.explained.on_node import NOWHERE, OnNode
from rollout.kubelet.runtimes.description import Row
from rollout.kubelet.runtimes.known import covered

# The additional output of ``rollout explain NAME --node NODE``.


@dataclass(frozen=True, slots=True)
class ConfigzAnswer:
    """The answer of ``/configz``; ``not_asked`` is why there is none. ``agrees`` ``None``: nothing to compare."""

    value: Value = None
    agrees: bool | None = None
    not_asked: str = ""


def on_node_lines(here: OnNode, shown: ConfigzAnswer) -> Iterator[str]:
    """Lines for people: the value in force, the layers from low to high, the value in ``/configz``."""
    yield f"on {here.node}, kubelet {here.kubelet}, {here.runtime}"
    if here.home:
        yield f"  home on this node: {here.home}"
    for late in here.late:
        yield f"  not in force until a restart: {printable(late, 300)}"
    if not here.layers:
        if not here.home:
            yield "  not set on the kubelet's command line"
        elif not here.home.startswith(NOWHERE):
            yield "  rollout does not read its value there"
        return
    yield f"  {'in the files' if here.late else 'in force'}: {_text(here.value)}"
    for each in here.layers:
        where = f" ({printable(each.where, 200)})" if each.where else ""
        yield f"    {each.layer.value}: {_text(each.value)}{where}{', wins' if each.wins else ''}"
    yield f"  /configz: {_shown(shown)}"


def _shown(shown: ConfigzAnswer) -> str:
    if shown.not_asked:
        return f"was not read: {printable(shown.not_asked, 300)}"
    if shown.agrees is None:
        return "does not show flags without a field"
    return f"{_text(shown.value)}, {'as computed' if shown.agrees else 'which differs from the computed value: was the kubelet restarted since?'}"


def _text(value: Value) -> str:
    if value is None:
        return "not set"
    return printable(value if isinstance(value, str) and value else json.dumps(value, ensure_ascii=False), 300)


_OLDEST = fields.known_minors()[0]


def explanation_lines(found: Explanation) -> Iterator[str]:
    """Lines for people."""
    yield f"{found.name}  {found.what.value}{_kind(found)}"
    yield from ([f"  {found.purpose}"] if found.purpose else [])
    if found.what is not What.INTENT:
        first = f"since 1.{found.since}" if found.since and found.since > _OLDEST else f"since before 1.{_OLDEST + 1}"
        yield f"  {first}{f', removed: {found.gone}' if found.gone else ''}"
    if found.here:
        yield f"  {found.here}"
    for since, text in found.defaults:
        yield f"  default: {text}" + (f" (from 1.{since})" if len(found.defaults) > 1 else "")
    yield f"  home: {found.lives}"
    if found.twins:
        yield f"  the same as: {', '.join(found.twins)}; {found.wins}"
    for row in found.homes:
        yield f"  on {covered(row)}: {row.refusal or f'{row.key}, in {row.place}'}"
        if not row.refusal:
            default = f"default {row.default}" if row.default else "not set by default"
            yield f"    {_restart(row)}; {default}"
    for runtime, trap in found.home_traps:
        yield f"  trap on {runtime}: {trap}"
    yield f"  on change: {_change(found)}"
    if found.not_ours:
        yield f"  rollout does not manage it: {found.not_ours}"
    for trap in found.traps:
        yield f"  trap: {trap}"
    if found.source:
        yield f"  source: {found.source}"


def _kind(found: Explanation) -> str:
    return f", {found.kind}" if found.kind else ""


def _restart(row: Row) -> str:
    if row.disruption is Disruption.NONE:
        return f"a change is read without a restart ({row.disruption.value})"
    doing = "sends SIGHUP to" if row.disruption is Disruption.RELOAD else "restarts"
    return f"a change {doing} {row.unit} ({row.disruption.value})"


def _change(found: Explanation) -> str:
    if found.what is What.INTENT:
        return "see its home"
    stricter = "; a stricter value can reject running pods (drain-and-restart)" if found.may_drain else ""
    return f"restarts kubelet.service ({found.disruption.value}){stricter}"
