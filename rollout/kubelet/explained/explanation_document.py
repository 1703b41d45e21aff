"""The output of ``rollout explain NAME`` for programs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from rollout.core.text.documents import Inline, PrintedKey, Shown
from rollout.kubelet.defects.matching import FoundDefect
from rollout.kubelet.defects.rows import Defect
from rollout.kubelet.effects.rows import SettingEffect
from rollout.kubelet.explained.explanation import Explanation
from rollout.kubelet.explained.explanation_text import ConfigzAnswer
from rollout.kubelet.explained.on_node import LayerValue, OnNode
from rollout.kubelet.runtimes.description import Row
from rollout.kubelet.runtimes.known import dotted


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
    "What a change of the setting does: when it takes effect, what it needs on the node, what it changes too, what a rollback does not undo.",
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
