"""A field that a flag beats with another value: the node is refused, or the flag is taken out and the field written.

A flag that is taken out must leave everything else as it was: what it said besides our values goes into the field too.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from rollout.core.model.playbook import Shadowed
from rollout.core.model.settings import Value
from rollout.kubelet import values
from rollout.kubelet.changes import splice
from rollout.kubelet.node import arguments, shadows
from rollout.kubelet.node.found import Found
from rollout.kubelet.node.layout import VARIABLE, Layout, LayoutError


@dataclass(frozen=True, slots=True)
class Moved:
    """Flags to be taken out, each with the field that is written instead; ``fields`` are all that must be written."""

    flags: Mapping[str, str]
    fields: Mapping[str, Value]


def moved(found: Found, needed: Mapping[str, Value], shadowed: Shadowed, where: str) -> Moved:
    """The flags that beat ``needed`` fields written to ``where``, if the playbook has them moved; else ``LayoutError``."""
    flags: dict[str, str] = {}
    fields = dict(needed)
    for name, value in needed.items():
        for shadow in shadows.shadows(name, value, found.layout.asked):
            if shadowed is Shadowed.REFUSE:
                origin = found.layout.origin(shadow.flag)
                message = f"{shadow.flag}={shadow.value} ({origin}) beats {name} in {where}"
                raise LayoutError("flag-shadows-field", message)
            _check_removable(found.layout, shadow.flag, name)
            flags[shadow.flag] = name
            was = found.outcome.effective.get(name)
            if shadow.whole and isinstance(was, dict) and isinstance(value, dict):
                fields[name] = splice.merged(was, value, values.same, (name,))
    return Moved(flags, fields)


def _check_removable(now: Layout, flag: str, field: str) -> None:
    """A flag can be taken out of an environment file or of the command itself, not out of ``Environment=``."""
    for given in arguments.given(now.asked):
        piece = now.pieces[1 + given.start]
        in_unit = piece.variable and piece.file not in now.environments
        if given.name == flag and in_unit and piece.variable != VARIABLE:
            message = f"{flag}={given.value} beats {field} and cannot be taken out of Environment= ({piece.origin})"
            raise LayoutError("flag-shadows-field", message)
