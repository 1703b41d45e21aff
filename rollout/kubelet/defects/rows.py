"""One known defect, and the table of all that rollout knows.

A row costs no code. Its keys, all but the first four optional:

=============  ======================================================================================================
component      ``kubelet``, ``containerd``, ``CRI-O``, ``cri-dockerd``, ``docker``, ``nvidia-container-toolkit``, …
versions       ``[first, fixed]`` for each series that has it; ``open``: not fixed; ``0``: from the beginning
effect         what happens, after the words ``COMPONENT VERSION: ``
source         the issue, pull request or release note, and what was read of it
when           what must hold of the node's values, see ``rollout.kubelet.conditions``
at             what must happen on the node: an ``Occasion``
pods           the property that a pod must have: a ``PodKind``
stops          what no longer works on the node: a ``Stops``
remedy         what to do
signs          how ``rollout diagnose`` sees it: the id of a finding, and words that the finding or its lines then have (all of them, with `` & `` between)
seen           the day on which the source was read
=============  ======================================================================================================

A project may add rows in a file of its own. They only warn, and they replace none of these.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import replace
from enum import StrEnum
from functools import cache
from importlib import resources
from typing import Any

from rollout.core.model.frozen import dataclass
from rollout.core.model.settings import Value
from rollout.core.text.suggest import did_you_mean
from rollout.core.text.terminal import printable
from rollout.errors import InputError, Place, Problem
from rollout.kubelet.conditions import ValueCondition, conditions

OWN_FILE = "known-defects.toml"
"""The file of a project beside its ``rollout.toml``."""

Number = tuple[int, ...]
OPEN = "open"
_ID = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)+")
_VERSION = re.compile(r"\d{1,5}(\.\d{1,5}){0,3}")
_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")
_LONGEST = 300


class Occasion(StrEnum):
    """What on a node makes the defect happen."""

    KUBELET_RESTART = "kubelet-restart"
    RUNTIME_RESTART = "runtime-restart"
    RELOAD = "daemon-reload"


class PodKind(StrEnum):
    """A property of pods or of the Node object, known only where the API server is asked."""

    DEVICES = "devices"  # the Node has extended resources
    SIDECAR = "sidecar"  # a restartable init container
    PROBED = "probed"  # a readiness probe


class Stops(StrEnum):
    """What no longer works on the node."""

    KUBELET = "kubelet"
    PULLS = "pulls"


_AT = {
    Occasion.KUBELET_RESTART: "at a restart of the kubelet",
    Occasion.RUNTIME_RESTART: "at a restart of the runtime",
    Occasion.RELOAD: "at a daemon-reload",
}
_PODS = {
    PodKind.DEVICES: "pods with devices",
    PodKind.SIDECAR: "pods with a sidecar",
    PodKind.PROBED: "pods with a readiness probe",
}


@dataclass(frozen=True, slots=True)
class Defect:
    """See the module. ``own``: a row of the project. ``versions``: (first, fixed), with ``()`` for not fixed."""

    id: str
    component: str
    versions: tuple[tuple[Number, Number], ...]
    effect: str
    source: str
    when: tuple[ValueCondition, ...] = ()
    at: Occasion | None = None
    pods: PodKind | None = None
    stops: Stops | None = None
    remedy: str = ""
    seen: str = ""
    own: bool = False
    signs: tuple[tuple[str, str], ...] = ()

    def has(self, version: Number) -> bool:
        """Whether this version has the defect."""
        return any(first <= version and (not fixed or version < fixed) for first, fixed in self.versions)

    def in_minor(self, major: int, minor: int) -> bool:
        """Whether some patch of this minor has it."""
        return any(
            first[:2] <= (major, minor) and (not fixed or (major, minor, 0) < fixed) for first, fixed in self.versions
        )

    @property
    def span(self) -> str:
        """``1.35.0 to before 1.35.4; 1.36.0, not fixed``, ``every version``."""
        return "; ".join(_span(first, fixed) for first, fixed in self.versions)

    @property
    def trigger(self) -> str:
        """``with maxParallelImagePulls above 31, at a restart of the kubelet, for pods with devices``; ``""``: always."""
        values = " and ".join(f"{each.path} {each.test} {_shown(each.against)}" for each in self.when)
        parts = (
            f"with {values}" if values else "",
            _AT[self.at] if self.at else "",
            f"for {_PODS[self.pods]}" if self.pods else "",
        )
        return ", ".join(part for part in parts if part)


def _shown(value: Value) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _span(first: Number, fixed: Number) -> str:
    if first == (0,):
        return f"before {dotted(fixed)}" if fixed else "every version"
    return f"{dotted(first)} to before {dotted(fixed)}" if fixed else f"{dotted(first)} and later, not fixed"


def dotted(number: Number) -> str:
    """``1.35.4``."""
    return ".".join(map(str, number))


@cache
def known() -> tuple[Defect, ...]:
    """Every row that is shipped, in the order of the file."""
    text = resources.files("rollout.kubelet.defects").joinpath("table.toml").read_text(encoding="utf-8")
    return read(text, "table.toml")


def of_project(text: str) -> tuple[Defect, ...]:
    """The rows of a project's ``known-defects.toml``. ``InputError`` with every mistake in it."""
    rows = read(text, OWN_FILE)
    shipped = {each.id for each in known()}
    taken = [each.id for each in rows if each.id in shipped]
    if taken:
        raise InputError(
            tuple(_problem(OWN_FILE, f"{name} is a row of rollout: choose another name") for name in taken)
        )
    return tuple(replace(each, own=True) for each in rows)


def read(text: str, file: str) -> tuple[Defect, ...]:
    """The rows of a table. ``InputError`` with every mistake."""
    try:
        written = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise InputError((_problem(file, f"it is not TOML: {error}", "not-toml"),)) from None
    rows, problems = [], []
    for name, entry in written.items():
        wrong = tuple(_mistakes(name, entry))
        problems += [_problem(file, f"{printable(name, 80)}: {each}") for each in wrong]
        if not wrong:
            rows.append(_row(name, entry))
    if problems:
        raise InputError(tuple(problems))
    return tuple(rows)


def _problem(file: str, message: str, reference: str = "bad-defect") -> Problem:
    return Problem(reference, printable(message, 400), Place(file, 1, 1))


_TEXTS = ("component", "effect", "source", "remedy", "seen")
_CHOICES: Mapping[str, type[StrEnum]] = {"at": Occasion, "pods": PodKind, "stops": Stops}
_KEYS = ("component", "versions", "effect", "source", "when", "at", "pods", "stops", "remedy", "seen", "signs")
_NEEDED = _KEYS[:4]


def _mistakes(name: str, entry: object) -> Iterator[str]:
    if not _ID.fullmatch(name):
        yield "the name of a row is words in small letters with dashes between them"
    if not isinstance(entry, dict):
        yield "a row is a table"
        return
    for key in entry:
        if key not in _KEYS:
            yield f"unknown key {key}; {did_you_mean(key, _KEYS) or 'known are ' + ', '.join(_KEYS)}"
    yield from (f"{key} is missing" for key in _NEEDED if key not in entry)
    for key in _TEXTS:
        if key in entry and not (isinstance(entry[key], str) and 0 < len(entry[key]) <= _LONGEST):
            yield f"{key} is a text of at most {_LONGEST} characters"
    for key, choices in _CHOICES.items():
        if key in entry and entry[key] not in list(choices):
            yield f"{key} is one of {', '.join(choices)}"
    if "seen" in entry and not _DAY.fullmatch(str(entry["seen"])):
        yield "seen is a day, such as 2026-11-25"
    if "versions" in entry and not _are_spans(entry["versions"]):
        yield 'versions is a list of pairs such as ["1.35.0", "1.35.4"] or ["1.36.0", "open"]'
    if not _are_signs(entry.get("signs", {})):
        yield f'signs is a table of texts of at most {_LONGEST} characters, such as {{ pull-progress-deadline = "unpacking" }}'
    yield from _wrong_conditions(entry.get("when", {}))


def _are_signs(signs: object) -> bool:
    return isinstance(signs, dict) and all(
        isinstance(words, str) and 0 < len(words) <= _LONGEST for words in signs.values()
    )


def _wrong_conditions(when: object) -> Iterator[str]:
    if not isinstance(when, dict) or not all(isinstance(tests, dict) for tests in when.values()):
        yield "when is a table of tables, such as { maxParallelImagePulls = { above = 31 } }"
        return
    try:
        conditions(when)
    except ValueError as error:
        yield f"when: {error}"


def _are_spans(value: object) -> bool:
    return isinstance(value, list) and bool(value) and all(_is_span(each) for each in value)


def _is_span(value: object) -> bool:
    if not (isinstance(value, list) and len(value) == 2 and all(isinstance(each, str) for each in value)):
        return False
    first, fixed = value
    return bool(_VERSION.fullmatch(first) and (fixed == OPEN or _VERSION.fullmatch(fixed)))


def _row(name: str, entry: Mapping[str, Any]) -> Defect:
    return Defect(
        id=name,
        component=entry["component"],
        versions=tuple((_number(first), () if fixed == OPEN else _number(fixed)) for first, fixed in entry["versions"]),
        effect=entry["effect"],
        source=entry["source"],
        when=conditions(entry.get("when", {})),
        at=Occasion(entry["at"]) if "at" in entry else None,
        pods=PodKind(entry["pods"]) if "pods" in entry else None,
        stops=Stops(entry["stops"]) if "stops" in entry else None,
        remedy=entry.get("remedy", ""),
        seen=entry.get("seen", ""),
        signs=tuple(entry.get("signs", {}).items()),
    )


def _number(text: str) -> Number:
    return tuple(map(int, text.split(".")))
