"""Which feature gates a kubelet's binary registers, by minor, and the default of each.

A gate that is not registered is fatal to the kubelet, and so is a locked gate set to the other value. The data is
``feature_gates.json`` in ``rollout/kubelet``; the file describes how it was derived and which parts are uncertain.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from enum import StrEnum
from functools import cache
from importlib import resources
from typing import Any

from rollout.core.model.frozen import dataclass
from rollout.core.text.suggest import did_you_mean

ALL_ALPHA = "AllAlpha"
ALL_BETA = "AllBeta"


class Stage(StrEnum):
    """The maturity of a feature."""

    ALPHA = "ALPHA"
    BETA = "BETA"
    GA = "GA"
    DEPRECATED = "DEPRECATED"


@dataclass(frozen=True, slots=True)
class FeatureGate:
    """A gate in one minor. ``locked``: it cannot be set to anything but ``default``."""

    name: str
    stage: Stage
    default: bool
    locked: bool


def known_gates(minor: int) -> Mapping[str, FeatureGate]:
    """The gates that a kubelet 1.``minor`` accepts, also ``AllAlpha`` and ``AllBeta``; empty without data."""
    return _of_minor(minor)


def certain(minor: int) -> bool:
    """Are all gates of this minor known? If not, a gate missing in ``known_gates``, or its stage, proves nothing."""
    return minor not in _data()["uncertain"] and bool(known_gates(minor))


def default(name: str, minor: int) -> bool:
    """The gate's default. Raises ``KeyError`` when that minor does not know the gate."""
    return _of_minor(minor)[name].default


def required(name: str, minor: int) -> tuple[str, ...]:
    """The gates that must be on where this one is: from 1.35 a kubelet without them does not start.

    Source: ``Validate`` in ``component-base/featuregate/feature_gate.go`` (1.35), which prints ``A is enabled, but
    depends on features that are disabled: [B C]``. Sorted; the kubelet prints them in the order of its own table.
    """
    spans = _data()["requires"].get(name, ())
    return tuple(gate for span in spans if span["since"] <= minor <= span["last"] for gate in span["gates"])


@cache
def _data() -> Mapping[str, Any]:
    text = resources.files("rollout.kubelet").joinpath("feature_gates.json").read_text(encoding="utf-8")
    data: dict[str, Any] = json.loads(text)
    return data


@cache
def _of_minor(minor: int) -> Mapping[str, FeatureGate]:
    return {
        name: FeatureGate(name, Stage(span["stage"]), span["default"], span.get("locked", False))
        for name, spans in _data()["gates"].items()
        for span in spans
        if span["since"] <= minor <= span["last"]
    }


# Which feature gates are on, as ``featuregate.SetFromMap`` sets them: key by key over the defaults.
#
# An unknown gate and a locked one set to the other value are fatal. ``AllAlpha`` and ``AllBeta`` set the gates
# of their stage that are not set by name. Source: component-base ``featuregate/feature_gate.go``.


_STAGES = {ALL_ALPHA: Stage.ALPHA, ALL_BETA: Stage.BETA}


@dataclass(frozen=True, slots=True)
class GateMistake:
    """A gate that cannot be set: the kubelet's text, and what to do."""

    name: str
    text: str
    hint: str


def mistakes(written: Mapping[str, bool], minor: int) -> tuple[GateMistake, ...]:
    """The kubelet's error for each gate that it cannot set; the kubelet stops at the first one.

    Where not all gates of a minor are known, an error is only a suspicion (``certain``).
    """
    texts = ((name, _mistake(name, written[name], minor)) for name in sorted(written))
    return tuple(GateMistake(name, text, _hint(name, minor)) for name, text in texts if text)


def _hint(name: str, minor: int) -> str:
    """The minors that have the gate, or a gate of a similar name."""
    spans = _data()["gates"].get(name)
    if not spans:
        return did_you_mean(name, known_gates(minor))
    first, last = min(span["since"] for span in spans), max(span["last"] for span in spans)
    if minor < first:
        return f"1.{first} is the first minor with this gate"
    return f"1.{last} is the last minor with this gate: remove it" if minor > last else "remove the gate"


def _mistake(name: str, value: bool, minor: int) -> str:  # noqa: FBT001 (a gate's value)
    gate = known_gates(minor).get(name)
    if gate is None:
        return f"unrecognized feature gate: {name}"
    if gate.locked and gate.default is not value:
        wanted, locked = ("true" if flag else "false" for flag in (value, gate.default))
        return f"cannot set feature gate {name} to {wanted}, feature is locked to {locked}"
    return ""


def unmet(written: Mapping[str, bool], minor: int) -> tuple[str, ...]:
    """The kubelet's error for each gate that is on without those that it needs (1.35 and later); sorted by name."""
    known = known_gates(minor)
    found = []
    for name, needed in _needs(minor):
        missing = [gate for gate in needed if gate not in known or not enabled(gate, written, minor)]
        if missing and enabled(name, written, minor):
            found.append(f"{name} is enabled, but depends on features that are disabled: [{' '.join(missing)}]")
    return tuple(found)


@cache
def _needs(minor: int) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Each gate that needs others, with those."""
    needs = ((name, required(name, minor)) for name in sorted(known_gates(minor)))
    return tuple((name, needed) for name, needed in needs if needed)


def set_over(first: Mapping[str, bool], second: Mapping[str, bool]) -> Mapping[str, bool]:
    """Two calls of ``SetFromMap``: the first one of ``AllAlpha`` has set all gates of its stage, the second sets none."""
    return {**first, **{name: value for name, value in second.items() if name not in _STAGES or name not in first}}


def enabled(name: str, written: Mapping[str, bool], minor: int) -> bool:
    """Is the gate on? A gate that this minor does not know is off: the feature is newer, or has lost its gate."""
    if name in written:
        return written[name]
    gate = known_gates(minor).get(name)
    if gate is None:
        return False
    for all_of_stage, stage in _STAGES.items():
        if gate.stage is stage and all_of_stage in written:
            return written[all_of_stage]
    return gate.default
