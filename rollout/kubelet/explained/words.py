"""What people should know of settings beyond what the tables hold: purpose, traps, source (``words.json``)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from typing import Any


@dataclass(frozen=True, slots=True)
class Words:
    """``defaults`` are a flag's, (first minor it holds for, text), in order; fields' are in ``kubelet_defaults.json``."""

    what: str = ""
    defaults: tuple[tuple[int, str], ...] = ()
    traps: tuple[str, ...] = ()
    source: str = ""


@dataclass(frozen=True, slots=True)
class IntentWords:
    """``aliases`` are the names that an intent's homes give it; ``runtime_traps`` are by the runtime's name."""

    kind: str
    aliases: tuple[str, ...]
    words: Words
    runtime_traps: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


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
def intent_words() -> Mapping[str, IntentWords]:
    """Every intent that something is said of, by name."""
    return {name: _intent(entry) for name, entry in _data()["intents"].items()}


def _intent(entry: Mapping[str, Any]) -> IntentWords:
    traps = {runtime: tuple(each) for runtime, each in entry["runtimeTraps"].items()}
    return IntentWords(entry["type"], tuple(entry["aliases"]), _words(entry), traps)


def _words(entry: Mapping[str, Any]) -> Words:
    defaults = tuple((since, text) for since, text in entry.get("defaults", ()))
    return Words(entry["what"], defaults, tuple(entry["traps"]), entry["source"])
