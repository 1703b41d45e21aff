"""A flag beats the file: which flag on a command line keeps a field of the configuration file from having effect.

``kubeletConfigFlagPrecedence`` parses the arguments again on top of the file (cmd/kubelet/app/server.go); feature gates
are merged key by key, flags winning.
"""

from __future__ import annotations

from functools import cache

from rollout.core.model.settings import Value
from rollout.kubelet import arguments, fields, values
from rollout.kubelet.fields import Flag


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


def shadow(name: str, value: Value, words: tuple[str, ...]) -> str:
    """The first ``--flag=value`` of ``words`` that would beat this field with another value, or ``""``."""
    for flag, path in _flags_of(name):
        found = arguments.last(words, flag.name)
        if found is None:
            continue
        touched, part = _part(value, path)
        if touched and not _agrees(flag, found.value, part):
            return f"{flag.name}={found.value}"
    return ""


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
