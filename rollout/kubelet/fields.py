"""Which KubeletConfiguration fields and kubelet flags exist in which Kubernetes minor.

A kubelet accepts a misspelt field with a warning and runs with the default (lenient decoding, kubernetes #83204), so a
misspelt setting must be *our* error. The data is ``kubelet_fields.json`` beside this file, which describes its sources.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from importlib import resources
from typing import Any

from rollout.core.model.frozen import dataclass


@dataclass(frozen=True, slots=True)
class Field:
    """A top-level field; ``since`` and ``last`` are minors (27 is 1.27), ``flags`` set the same and override it."""

    name: str
    kind: str
    since: int
    last: int
    flags: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Flag:
    """A kubelet flag; from minor ``removed`` on a kubelet does not start with it. ``field``: the field it overrides.

    ``removed_text`` is what is known of its end: ``1.24``, or a range such as ``after 1.20, by 1.36``.
    ``kind`` is how pflag reads its text (``bool``, ``duration``, ``gates``, ``pairs`` …; the data explains them). Only
    ``bool`` and ``version`` take no following word.
    """

    name: str
    kind: str
    since: int
    removed: int | None
    field: str
    removed_text: str = ""

    def known_in(self, minor: int) -> bool:
        return self.since <= minor and (self.removed is None or minor < self.removed)


@cache
def _data() -> Mapping[str, Any]:
    text = resources.files("rollout.kubelet").joinpath("kubelet_fields.json").read_text(encoding="utf-8")
    data: dict[str, Any] = json.loads(text)
    return data


@cache
def _fields() -> Mapping[str, Field]:
    return {
        name: Field(name, entry["kind"], entry["since"], entry["last"], tuple(entry["flags"]))
        for name, entry in _data()["fields"].items()
    }


@cache
def _flags() -> Mapping[str, Flag]:
    return {
        name: Flag(
            name, entry["kind"], entry["since"], entry["removed"], entry.get("field", ""), entry.get("removedText", "")
        )
        for name, entry in _data()["flags"].items()
    }


def known_minors() -> range:
    """The minors that the data covers: a kubelet outside them is refused, not guessed."""
    first, last = _data()["minors"]
    return range(first, last + 1)


def field(name: str) -> Field | None:
    """The KubeletConfiguration field of this exact name (case matters to a kubelet, too)."""
    return _fields().get(name)


def flag(name: str) -> Flag | None:
    """The kubelet flag of this name, written ``--like-this``."""
    return _flags().get(name)


def known_fields(minor: int) -> frozenset[str]:
    """Fields that a kubelet 1.``minor`` reads; it ignores any other with a warning."""
    return frozenset(name for name, entry in _fields().items() if entry.since <= minor <= entry.last)


def known_flags(minor: int) -> frozenset[str]:
    """Flags that a kubelet 1.``minor`` certainly takes; it does not start with an unknown one."""
    return frozenset(name for name, entry in _flags().items() if entry.known_in(minor))


def every_name() -> tuple[str, ...]:
    """Every field and flag of any minor, for "did you mean"."""
    return (*_fields(), *_flags())
