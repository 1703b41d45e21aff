"""What is known of settings beyond the table: purpose, defaults, traps, source; and the intents' homes (``words.json``)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

from rollout.core.model.disruption import Disruption


@dataclass(frozen=True, slots=True)
class Words:
    """``defaults`` are (first minor it holds for, text), in order."""

    what: str = ""
    defaults: tuple[tuple[int, str], ...] = ()
    traps: tuple[str, ...] = ()
    source: str = ""


@dataclass(frozen=True, slots=True)
class RuntimeHome:
    """Where an intent lives under one runtime. ``unit`` is restarted, or sent SIGHUP (``reload``); ``""``: neither."""

    runtime: str
    versions: str
    lives: str
    unit: str
    disruption: Disruption
    default: str
    traps: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Intent:
    """A setting whose home depends on the node. ``aliases`` are the names that its homes give it."""

    name: str
    kind: str
    aliases: tuple[str, ...]
    words: Words
    homes: tuple[RuntimeHome, ...]


@cache
def _data() -> Mapping[str, Any]:
    text = resources.files("rollout.kubelet.explained").joinpath("words.json").read_text(encoding="utf-8")
    data: dict[str, Any] = json.loads(text)
    return data


def words_of(name: str) -> Words:
    """What is said of a field or flag; empty for most of them."""
    entry = _data()["settings"].get(name)
    return _words(entry) if entry else Words()


def said() -> tuple[str, ...]:
    """The fields and flags that more is said of."""
    return tuple(_data()["settings"])


@cache
def intents() -> Mapping[str, Intent]:
    """Every intent, by name."""
    return {
        name: Intent(name, entry["type"], tuple(entry["aliases"]), _words(entry), tuple(map(_home, entry["homes"])))
        for name, entry in _data()["intents"].items()
    }


def _words(entry: Mapping[str, Any]) -> Words:
    defaults = tuple((since, text) for since, text in entry.get("defaults", ()))
    return Words(entry["what"], defaults, tuple(entry["traps"]), entry["source"])


def _home(entry: Mapping[str, Any]) -> RuntimeHome:
    return RuntimeHome(
        entry["runtime"],
        entry["versions"],
        entry["lives"],
        entry["unit"],
        Disruption(entry["disruption"]),
        entry["default"],
        tuple(entry["traps"]),
    )
