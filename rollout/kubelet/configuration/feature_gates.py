"""Which feature gates a kubelet's binary registers, by minor, and how each is set when nobody says anything.

A gate that is not registered is fatal to the kubelet, and so is a locked gate set to the other value. The data is
``feature_gates.json`` in ``rollout/kubelet``; it says how it was derived and what of it is not certain.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from importlib import resources
from typing import Any

ALL_ALPHA = "AllAlpha"
ALL_BETA = "AllBeta"


class Stage(StrEnum):
    """How far a feature has come."""

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
    """The gates that a kubelet 1.``minor`` takes, ``AllAlpha`` and ``AllBeta`` among them; empty for a minor without data."""
    return _of_minor(minor)


def certain(minor: int) -> bool:
    """Are all gates of this minor known? Where not, one that ``known`` lacks, or a stage of it, proves nothing."""
    return minor not in _data()["uncertain"] and bool(known_gates(minor))


def default(name: str, minor: int) -> bool:
    """What the gate is when nobody sets it. Raises ``KeyError`` when that minor does not know it."""
    return _of_minor(minor)[name].default


def required(name: str, minor: int) -> tuple[str, ...]:
    """The gates that must be on where this one is: from 1.35 a kubelet that has it on without them does not start.

    Source: ``Validate`` in ``component-base/featuregate/feature_gate.go`` (1.35), whose words are ``A is enabled, but
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
# of their stage that nobody named. Source: component-base ``featuregate/feature_gate.go``.


_STAGES = {ALL_ALPHA: Stage.ALPHA, ALL_BETA: Stage.BETA}


def mistakes(written: Mapping[str, bool], minor: int) -> tuple[str, ...]:
    """What the kubelet says of each gate it cannot set; the first one it meets stops it.

    Where not all gates of a minor are known, this is no more than a suspicion (``gates.certain``).
    """
    known = known_gates(minor)
    return tuple(said for name in sorted(written) if (said := _mistake(name, written[name], known)))


def _mistake(name: str, value: bool, known: Mapping[str, FeatureGate]) -> str:  # noqa: FBT001 (a gate's value)
    gate = known.get(name)
    if gate is None:
        return f"unrecognized feature gate: {name}"
    if gate.locked and gate.default is not value:
        said, locked = ("true" if flag else "false" for flag in (value, gate.default))
        return f"cannot set feature gate {name} to {said}, feature is locked to {locked}"
    return ""


def enabled(name: str, written: Mapping[str, bool], minor: int) -> bool:
    """Is the gate on? One that this minor does not know is off: what hangs on it does not exist yet, or no longer asks."""
    if name in written:
        return written[name]
    gate = known_gates(minor).get(name)
    if gate is None:
        return False
    for all_of_stage, stage in _STAGES.items():
        if gate.stage is stage and all_of_stage in written:
            return written[all_of_stage]
    return gate.default
