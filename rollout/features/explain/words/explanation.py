"""The output of ``rollout explain NAME``, for people and for programs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated

from rollout.core.model.playbook import Disruption
from rollout.core.model.settings import Value
from rollout.core.text.documents import Inline, PrintedKey, Shown
from rollout.core.text.terminal import printable
from rollout.features.explain.rules import NOWHERE, LayerValue, OnNode
from rollout.kubelet import fields
from rollout.kubelet.defects.matching import FoundDefect
from rollout.kubelet.defects.rows import Defect
from rollout.kubelet.defects.words import found_line, row_line
from rollout.kubelet.effects.rows import SettingEffect
from rollout.kubelet.explained.explanation import Explanation, What
from rollout.kubelet.runtimes.description import Row
from rollout.kubelet.runtimes.known import covered, dotted

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
        yield f"  it also changes: {effect.breaks}"
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


# For programs.


@dataclass(frozen=True, slots=True)
class DefaultPart:
    """The default from this minor on."""

    since: int
    text: str


_HOME = Shown(
    "Versions are ``from`` and, not included, ``before``; ``refusal`` is why there is no home.",
    (
        "runtime", PrintedKey("since", "from_", write=dotted, kind=str), PrintedKey("before", write=dotted, kind=str),
        "key", "place", "unit", "disruption", "default", "refusal",
    ),
)  # fmt: skip

_LAYER = Shown(
    "The value in one layer, from low to high, and whether it wins.",
    ("layer", "where", PrintedKey("value", kind=object), "wins"),
)

_CONFIGZ = Shown(
    "The value in ``/configz``, and whether it is the computed one; ``not_asked``: why there is none.",
    (PrintedKey("value", kind=object), "agrees", PrintedKey("not_asked", or_null=True)),
)

_FOUND = Shown(
    "A known defect that the node has. ``unread``: what decides it and could not be observed.",
    (
        PrintedKey("defect.id", "id"), "of", PrintedKey("defect.span", "versions"), PrintedKey("defect.effect", "effect"),
        PrintedKey("defect.trigger", "trigger"), PrintedKey("defect.remedy", "remedy"), PrintedKey("defect.source", "source"), "unread",
    ),
)  # fmt: skip
_ON_NODE = Shown(
    "",
    (
        "node", "kubelet", "runtime", PrintedKey("control_plane", "control_plane_seen", or_null=True), PrintedKey("field", or_null=True), PrintedKey("home", or_null=True), PrintedKey("value", kind=object),
        PrintedKey("late", "not_loaded"), PrintedKey("layers", kind=tuple[Annotated[LayerValue, _LAYER], ...]),
        PrintedKey("defects", "known_defects", kind=tuple[Annotated[FoundDefect, _FOUND], ...]),
    ),
)  # fmt: skip


DEFECT = Shown(
    "A known defect: ``versions`` have it, ``trigger`` is when it applies.",
    ("id", "component", PrintedKey("span", "versions"), "effect", "trigger", "stops", "remedy", "source", "seen", "own"),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class DefectDocument:
    """A known defect, as ``rollout explain`` shows it."""

    row: Inline[Annotated[Defect, DEFECT]]


@dataclass(frozen=True, slots=True)
class OnNodePart:
    """The value on one node. ``not_loaded``: values in files that the running process does not have yet."""

    here: Inline[Annotated[OnNode, _ON_NODE]]
    configz: Annotated[ConfigzAnswer, _CONFIGZ]


def _defaults(found: tuple[tuple[int, str], ...]) -> list[DefaultPart]:
    return [DefaultPart(since, text) for since, text in found]


_EFFECT = Shown(
    "What a change of the setting does: when it takes effect, what it needs on the node, what it also changes, what a rollback does not undo.",
    ("takes", "needs", "breaks", "stays", "source"),
)

_EXPLANATION = Shown(
    "",
    (
        "name", "what", PrintedKey("kind", "type"), "purpose", "since", "last", "gone", "here",
        PrintedKey("defaults", write=_defaults, kind=tuple[DefaultPart, ...]),
        "lives", PrintedKey("homes", kind=tuple[Annotated[Row, _HOME], ...]), "twins", "disruption",
        PrintedKey("may_drain", "may_reject_pods"), "not_ours", PrintedKey("every_trap", "traps"), "source",
        PrintedKey("effect", kind=Annotated[SettingEffect, _EFFECT] | None),
        PrintedKey("defects", "known_defects", kind=tuple[Annotated[Defect, DEFECT], ...]),
    ),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class ExplanationDocument:
    """A setting. Minors are numbers, ``27`` is 1.27; ``on_node`` is ``None`` if no node was named."""

    explanation: Inline[Annotated[Explanation, _EXPLANATION]]
    on_node: OnNodePart | None = None
