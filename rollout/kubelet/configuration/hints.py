"""What was probably meant: rollout's own words about names that a kubelet does not know."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache, lru_cache

from rollout.core.text.suggest import closest
from rollout.kubelet import fields
from rollout.kubelet.configuration import feature_gates, schema
from rollout.kubelet.configuration.decoding import dotted
from rollout.kubelet.configuration.yaml_document import Path

_NO_LETTERS = re.compile(r"[^A-Za-z0-9]+")
_THRESHOLDS = ("evictionHard", "evictionSoft")
SIGNALS = frozenset({
    "memory.available", "nodefs.available", "nodefs.inodesFree", "imagefs.available", "imagefs.inodesFree",
    "pid.available", "allocatableMemory.available",
})  # fmt: skip
"""Of eviction, in every minor."""


def named(path: Path, text: str) -> str:
    """Which setting it is, where the kubelet's ``text`` does not name it."""
    told = not path or str(path[-1]).casefold() in text.casefold()
    return "" if told else f"the setting is `{dotted(path)}`"


def joined(*parts: str) -> str:
    return "; ".join(part for part in parts if part)


def unknown_flag(written: str, minor: int) -> str:
    """About a flag that a kubelet 1.``minor`` does not take; ``""``: nothing is known of it."""
    if not written:
        return ""
    known = fields.flag(written.replace("_", "-"))
    if known is not None and not known.known_in(minor):
        field = known.field.partition(".")[0]
        instead = f"; the file has `{known.field}`" if field in fields.known_fields(minor) else ""
        if known.removed is not None and known.removed <= minor:
            return f"it was removed in {known.removed_text or f'1.{known.removed}'}{instead}"
        return f"it was added in 1.{known.since}{instead}"
    folded = _folded(written)
    for name in sorted(fields.known_flags(minor)):
        if _folded(name) == folded:
            return f"did you mean `{name}`?"
    for name in sorted(fields.known_fields(minor)):
        if _folded(name) == folded:
            return f"it is no flag: the file has `{name}`"
    similar = _closest(written, tuple(sorted(fields.known_flags(minor))))
    return f"did you mean `{similar}`?" if similar else ""


def unknown_field(path: Path, minor: int) -> str:
    """About a name that is no field where it is written; ``""``: nothing is known of it."""
    written, siblings = str(path[-1]), _siblings(path, minor)
    name = "".join(letter for letter in written if letter.isascii()).strip()
    if name != written:
        return joined("the name has blanks or letters that no field has", _meant(name, siblings, minor))
    return _meant(name, siblings, minor)


def _meant(name: str, siblings: tuple[str, ...], minor: int) -> str:
    same = next((sibling for sibling in siblings if _folded(sibling) == _folded(name)), None)
    if same is not None:
        return f"did you mean `{same}`?"
    if name in SIGNALS:
        return f"it is a key of {' or '.join(f'`{field}`' for field in _THRESHOLDS)}: indent it below one of them"
    if name in feature_gates.known_gates(minor):
        return "it is a feature gate: write it below `featureGates`"
    if places := _places(name, minor):
        return f"the field is {' or '.join(f'`{place}`' for place in places)}"
    if told := _as_flag(name, minor):
        return told
    similar = _closest(name, siblings)
    return f"did you mean `{similar}`?" if similar else ""


def _as_flag(name: str, minor: int) -> str:
    folded = _folded(name)
    flag = next((flag for flag in sorted(fields.known_flags(minor)) if _folded(flag) == folded), None)
    known = fields.flag(flag) if flag else None
    if known is None:
        return ""
    return f"the field is `{known.field}`" if known.field else f"it is a flag and no field: `{known.name}`"


def _folded(name: str) -> str:
    return _NO_LETTERS.sub("", name).casefold()


def _siblings(path: Path, minor: int) -> tuple[str, ...]:
    """The fields that are allowed where ``path`` is."""
    type_name = schema.ROOT
    for part in path[:-1]:
        if isinstance(part, int):
            continue
        kind = schema.fields_of(type_name, minor).get(part)
        kind = kind.element or kind if kind else None
        if kind is None or not kind.type_name:
            return ()
        type_name = kind.type_name
    return tuple(schema.fields_of(type_name, minor))


def _places(name: str, minor: int) -> tuple[str, ...]:
    """Where else a field of this name is."""
    return tuple(path for path in _paths(minor) if path.rpartition(".")[2] == name)


@cache
def _paths(minor: int) -> tuple[str, ...]:
    return tuple(_below(schema.ROOT, "", minor))


def _below(type_name: str, ahead: str, minor: int) -> Iterator[str]:
    for name, kind in schema.fields_of(type_name, minor).items():
        yield ahead + name
        if kind.form is schema.Form.OBJECT:
            yield from _below(kind.type_name, f"{ahead}{name}.", minor)


@lru_cache(maxsize=1024)
def _closest(name: str, known: tuple[str, ...]) -> str | None:
    """Cached: the same mistake is on many nodes."""
    return closest(name, known)
