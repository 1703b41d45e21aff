"""A flag overrides a field with another value: the node is refused, or the flag is removed and the field is written.

Removing a flag must leave everything else unchanged: its values that are not ours go into the field too.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from rollout.core.model.playbook import Shadowed
from rollout.core.model.settings import Value
from rollout.kubelet import fields, values
from rollout.kubelet.changes import splice
from rollout.kubelet.fields import Flag
from rollout.kubelet.node import arguments
from rollout.kubelet.node.layout import VARIABLE, Layout, LayoutError
from rollout.kubelet.node.sources import Found

# A flag overrides the file: the flags on a command line that keep a field of the configuration file from taking effect.
#
# ``kubeletConfigFlagPrecedence`` parses the arguments again on top of the file (cmd/kubelet/app/server.go); feature
# gates are merged key by key, and flags win.


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
class ShadowingFlag:
    """A flag as given, and whether it sets the field as a whole or one value inside it."""

    flag: str
    value: str
    whole: bool


def shadows(name: str, value: Value, words: tuple[str, ...]) -> tuple[ShadowingFlag, ...]:
    """Every ``--flag=value`` in ``words`` that would override this field with another value."""
    found: list[ShadowingFlag] = []
    for flag, path in _flags_of(name):
        given = arguments.last(words, flag.name)
        touched, part = _part(value, path)
        if given is not None and touched and not _agrees(flag, given.value, part):
            found.append(ShadowingFlag(flag.name, given.value, whole=not path))
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


@dataclass(frozen=True, slots=True)
class Moved:
    """Flags to remove, each with the field that is written instead; ``fields`` are all that must be written."""

    flags: Mapping[str, str]
    fields: Mapping[str, Value]


def moved(found: Found, needed: Mapping[str, Value], shadowed: Shadowed, where: str) -> Moved:
    """The flags that override ``needed`` fields in ``where``, if the playbook lets them be moved; else ``LayoutError``."""
    flags: dict[str, str] = {}
    fields = dict(needed)
    for name, value in needed.items():
        for shadow in shadows(name, value, found.layout.asked):
            if shadowed is Shadowed.REFUSE:
                origin = found.layout.origin(shadow.flag)
                message = f"{shadow.flag}={shadow.value} ({origin}) overrides {name} in {where}"
                raise LayoutError("flag-shadows-field", message)
            _check_removable(found.layout, shadow.flag, name)
            flags[shadow.flag] = name
            was = found.outcome.effective.get(name)
            if shadow.whole and isinstance(was, dict) and isinstance(value, dict):
                fields[name] = splice.merged(was, value, values.same, (name,))
    return Moved(flags, fields)


def _check_removable(now: Layout, flag: str, field: str) -> None:
    """A flag can be removed from an environment file or from the command itself, not from ``Environment=``."""
    for given in arguments.given(now.asked):
        piece = now.pieces[1 + given.start]
        in_unit = piece.variable and piece.file not in now.environments
        if given.name == flag and in_unit and piece.variable != VARIABLE:
            message = f"{flag}={given.value} overrides {field} and cannot be removed from Environment= ({piece.origin})"
            raise LayoutError("flag-shadows-field", message)
