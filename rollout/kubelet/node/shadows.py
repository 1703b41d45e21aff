"""A flag beats the file: which flags on a command line keep a field of the configuration file from having effect.

``kubeletConfigFlagPrecedence`` parses the arguments again on top of the file (cmd/kubelet/app/server.go); feature gates
are merged key by key, flags winning.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from rollout.core.model.settings import Value
from rollout.kubelet import fields, values
from rollout.kubelet.fields import Flag
from rollout.kubelet.node import arguments


@cache
def _flags_of(name: str) -> tuple[tuple[Flag, tuple[str, ...]], ...]:
    """Flags that set this field or a part of it, with the path inside the field."""
    entry = fields.field(name)
    whole = dict.fromkeys(entry.flags, ()) if entry else {}
    parts = {
        flag: tuple(known.field.split(".")[1:])
        for flag in fields.every_name()
        if (known := fields.flag(flag)) is not None and known.field.split(".")[0] == name
    }
    found = {**whole, **parts}
    return tuple((known, path) for flag, path in found.items() if (known := fields.flag(flag)) is not None)


@dataclass(frozen=True, slots=True)
class Shadow:
    """A flag as given, and whether it sets the field as a whole or one value inside it."""

    flag: str
    value: str
    whole: bool


def shadows(name: str, value: Value, words: tuple[str, ...]) -> tuple[Shadow, ...]:
    """Every ``--flag=value`` of ``words`` that would beat this field with another value."""
    found: list[Shadow] = []
    for flag, path in _flags_of(name):
        given = arguments.last(words, flag.name)
        touched, part = _part(value, path)
        if given is not None and touched and not _agrees(flag, given.value, part):
            found.append(Shadow(flag.name, given.value, whole=not path))
    return tuple(found)


def _part(value: Value, path: tuple[str, ...]) -> tuple[bool, Value]:
    for key in path:
        if not isinstance(value, dict) or key not in value:
            return False, None
        value = value[key]
    return True, value


def _agrees(flag: Flag, given: str, value: Value) -> bool:
    if isinstance(value, dict):
        return flag.name == "--feature-gates" and _gates_agree(given, value)
    if isinstance(value, list):
        return given.split(",") == value
    kind = "bool" if isinstance(value, bool) else flag.kind
    return values.same_flag(kind, given, values.flag_text(value))


def _gates_agree(given: str, gates: dict[str, Value]) -> bool:
    pairs = dict(pair.strip().partition("=")[::2] for pair in given.split(",") if pair.strip())
    return all(
        values.same_flag("bool", pairs[gate], values.flag_text(on)) for gate, on in gates.items() if gate in pairs
    )
