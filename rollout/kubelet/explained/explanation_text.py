"""The output of ``rollout explain NAME`` for people."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass

from rollout.core.model.playbook import Disruption
from rollout.core.model.settings import Value
from rollout.core.text.terminal import printable
from rollout.kubelet import fields
from rollout.kubelet.defects.words import found_line, row_line
from rollout.kubelet.effects.rows import SettingEffect
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
    """Lines for people: the value in force, the layers from low to high, the value in ``/configz``; the node's known defects."""
    yield from _values(here, shown)
    for each in here.defects_of_setting:
        yield f"  known defect here: {printable(found_line(each), 400)}"
    others = [each.defect.id for each in here.defects if each not in here.defects_of_setting]
    if others:
        begins = f"{'other ' if here.defects_of_setting else ''}known defects of this node's versions and settings"
        yield f"  {begins}, each with `rollout explain NAME`: {', '.join(others)}"


def _values(here: OnNode, shown: ConfigzAnswer) -> Iterator[str]:
    yield f"on {here.node}, kubelet {here.kubelet}, {here.runtime}"
    if here.control_plane:
        yield f"  a node of the control plane, although the inventory does not say so: {printable(here.control_plane, 400)}"
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
    for layer in here.layers:
        where = f" ({printable(layer.where, 200)})" if layer.where else ""
        yield f"    {layer.layer.value}: {_text(layer.value)}{where}{', wins' if layer.wins else ''}"
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


def explanation_lines(explanation: Explanation) -> Iterator[str]:
    """Lines for people."""
    yield f"{explanation.name}  {explanation.what.value}{_kind(explanation)}"
    yield from ([f"  {explanation.purpose}"] if explanation.purpose else [])
    if explanation.what is not What.INTENT:
        first = (
            f"since 1.{explanation.since}"
            if explanation.since and explanation.since > _OLDEST
            else f"since 1.{_OLDEST} or before"
        )
        yield f"  {first}{f', removed: {explanation.gone}' if explanation.gone else ''}"
    if explanation.here:
        yield f"  {explanation.here}"
    for since, text in explanation.defaults:
        yield f"  default: {text}" + (f" (from 1.{since})" if len(explanation.defaults) > 1 else "")
    yield f"  home: {explanation.lives}"
    if explanation.twins:
        yield f"  the same as: {', '.join(explanation.twins)}; {explanation.wins}"
    for row in explanation.homes:
        yield f"  on {covered(row)}: {row.refusal or f'{row.key}, in {row.place}'}"
        if not row.refusal:
            default = f"default {row.default}" if row.default else "not set by default"
            yield f"    {_restart(row)}; {default}"
    for runtime, trap in explanation.home_traps:
        yield f"  trap on {runtime}: {trap}"
    yield f"  on change: {_change(explanation)}"
    if explanation.effect:
        yield from _effect(explanation.effect)
    if explanation.not_ours:
        yield f"  rollout does not manage it: {explanation.not_ours}"
    for trap in explanation.traps:
        yield f"  trap: {trap}"
    yield from (f"  known defect: {row_line(row)}" for row in explanation.defects)
    if explanation.source:
        yield f"  source: {explanation.source}"


def _effect(effect: SettingEffect) -> Iterator[str]:
    yield f"  takes effect: {effect.takes.words} ({effect.source})"
    if effect.needs:
        yield f"  needs on the node: {effect.needs}"
    if effect.breaks:
        yield f"  changes too: {effect.breaks}"
    if effect.stays:
        yield f"  a rollback does not undo: {effect.stays}"


def _kind(explanation: Explanation) -> str:
    return f", {explanation.kind}" if explanation.kind else ""


def _restart(row: Row) -> str:
    if row.disruption is Disruption.NONE:
        return f"a change is read without a restart ({row.disruption.value})"
    doing = "sends SIGHUP to" if row.disruption is Disruption.RELOAD else "restarts"
    return f"a change {doing} {row.unit} ({row.disruption.value})"


def _change(explanation: Explanation) -> str:
    if explanation.what is What.INTENT:
        return "see its home"
    stricter = "; a stricter value can reject running pods (drain-and-restart)" if explanation.may_drain else ""
    return f"restarts kubelet.service ({explanation.disruption.value}){stricter}"
