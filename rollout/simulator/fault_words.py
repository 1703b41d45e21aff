"""The syntax of faults: ``WHERE: [SHARE] WHAT [at TIME] [for TIME]``, for example ``rack12: 3% unhealthy at 10m``.

WHERE is a rack, zone, wave or change group (``g1``), any nodeset (``@rack12&@g1!tess-node-0007``), or a part that is not a
node. These parts are ``controller``, ``journal``, ``gates`` (also written ``prometheus`` or ``alertmanager``) and
``apiserver``. SHARE is a number of those nodes or a percentage, spread evenly over them. ``from`` is ``at``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from rollout import known_faults
from rollout.core.model.playbook import Share
from rollout.core.text import durations
from rollout.core.text.nodesets import Names, NodesetError, evaluate
from rollout.core.text.suggest import did_you_mean
from rollout.core.text.terminal import printable
from rollout.errors import InputError, Place, Problem
from rollout.gates.table import QUERIES
from rollout.simulator.scenario import Fault, FaultKind

EVER = float("inf")

OF_NODES: Mapping[str, Fault] = {
    "unhealthy": Fault(FaultKind.FALLS_SICK, lasting=EVER),
    "broken": Fault(FaultKind.SICK_EITHER_WAY, lasting=EVER),
    "unreachable": Fault(FaultKind.CUT, lasting=EVER),
    "slow": Fault(FaultKind.SLOW, lasting=EVER, amount=5.0),
    "drifted": Fault(FaultKind.DRIFTS),
    known_faults.PULLING.name: Fault(FaultKind.PULLS, lasting=EVER),
    "dies": Fault(FaultKind.DIES),
    known_faults.REBOOT.name: Fault(FaultKind.REBOOTS, lasting=60.0),
    "freezes": Fault(FaultKind.FREEZES, lasting=60.0),
}
_GATES = {
    "unreachable": Fault(FaultKind.WAVE_GATE, lasting=EVER, words="unknown"),
    "failing": Fault(FaultKind.WAVE_GATE, lasting=EVER, words="fail"),
}
OF_OTHERS: Mapping[str, Mapping[str, Fault]] = {
    "controller": {"killed": Fault(FaultKind.KILLED, lasting=60.0), "interrupted": Fault(FaultKind.INTERRUPTED)},
    "journal": {
        "unreachable": Fault(FaultKind.STORE_AWAY, lasting=60.0),
        "slow": Fault(FaultKind.STORE_SLOW, lasting=EVER, amount=1.0),
    },
    "gates": _GATES,
    **{kind: _GATES for kind, query in QUERIES.items() if query.asks_http and query.back_end},
    "apiserver": {"unreachable": Fault(FaultKind.NODE_GATE, lasting=EVER, words="unknown")},
}
"""Faults of parts that are not nodes. Gates and the API server answer UNKNOWN when they are unreachable."""

_WORD = re.compile(r"\S+")
_SHARE = re.compile(r"(?P<number>[0-9]{1,6}(?:\.[0-9]{1,3})?)(?P<percent>%?)")
_LONGEST = 1000


@dataclass(frozen=True, slots=True)
class FaultToken:
    text: str
    column: int


class _Wrong(Exception):  # noqa: N818 - never leaves this module
    """A mistake at a column."""

    def __init__(self, column: int, reference: str, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.column, self.reference, self.message, self.hint = column, reference, message, hint


def faults_of(said: Sequence[str], names: Names) -> tuple[Fault, ...]:
    """Every given fault, node by node; ``InputError`` with every invalid part."""
    found: list[Fault] = []
    problems: list[Problem] = []
    for number, text in enumerate(said, start=1):
        try:
            found += _faults(text, names)
        except _Wrong as wrong:
            place = Place(f"--fault {number}", 1, wrong.column)
            problems.append(Problem(wrong.reference, wrong.message, place, wrong.hint))
    if problems:
        raise InputError(tuple(problems))
    return tuple(found)


def _faults(text: str, names: Names) -> Iterator[Fault]:
    where, colon, rest = text[:_LONGEST].partition(":")
    if not colon or len(text) > _LONGEST:
        raise _Wrong(len(where) + 1, "fault-without-place", "a fault is WHERE: WHAT, and the `:` is missing", _EXAMPLE)
    tokens = [FaultToken(match[0], len(where) + 2 + match.start()) for match in _WORD.finditer(rest)]
    place = where.strip()
    share = _share(tokens)
    fault = _timed(_what(tokens, place, len(text) + 1), tokens)
    if place in OF_OTHERS:
        if share is not None:
            raise _Wrong(len(where) + 2, "fault-share", f"{place} is a single part: it cannot have a share")
        return _of_others(place, fault, names)
    members = _nodes(place, names)
    count = len(members) if share is None else share.of(len(members))
    return (replace(fault, node=members[index * len(members) // count]) for index in range(count))


_EXAMPLE = "for example `rack12: 3% unhealthy at 10m`"


def _share(tokens: list[FaultToken]) -> Share | None:
    """The share, removed from the tokens if they start with one."""
    match = _SHARE.fullmatch(tokens[0].text) if tokens else None
    if match is None:
        return None
    token = tokens.pop(0)
    number = float(match["number"])
    if match["percent"]:
        if not 0 < number <= 100:
            raise _Wrong(token.column, "fault-share", "a percentage must be more than 0 and at most 100")
        return Share(percent=number)
    if number < 1 or number != int(number):
        raise _Wrong(token.column, "fault-share", "a number of nodes must be a whole number of at least 1")
    return Share(count=int(number))


def _what(tokens: list[FaultToken], place: str, end: int) -> Fault:
    known = OF_OTHERS.get(place, OF_NODES)
    if not tokens:
        raise _Wrong(end, "fault-unknown", f"the fault is missing: {', '.join(known)}")
    token = tokens.pop(0)
    word = known_faults.named(token.text)
    if word not in known:
        message = (
            f"`{printable(token.text, 40)}` cannot happen to {printable(place, 40) if place in OF_OTHERS else 'nodes'}"
        )
        hint = did_you_mean(token.text, known) or f"possible faults: {', '.join(known)}"
        raise _Wrong(token.column, "fault-unknown", message, hint)
    return known[word]


def _timed(fault: Fault, tokens: list[FaultToken]) -> Fault:
    seen: set[str] = set()
    while tokens:
        word = tokens.pop(0)
        field = _TIMES.get(word.text)
        if field is None or field in seen:
            message = f"`{printable(word.text, 40)}` is not valid here"
            raise _Wrong(word.column, "fault-time", message, did_you_mean(word.text, _TIMES) or "at TIME, for TIME")
        seen.add(field)
        token = tokens.pop(0) if tokens else FaultToken("", word.column + len(word.text) + 1)
        try:
            seconds = durations.parse(token.text)
        except durations.DurationError as error:
            raise _Wrong(token.column, "fault-time", str(error)) from None
        if seconds < 0:
            raise _Wrong(token.column, "fault-time", "a time must not be negative")
        fault = replace(fault, at=seconds) if field == "at" else replace(fault, lasting=seconds)
    return fault


_TIMES = {"at": "at", "from": "at", "for": "lasting"}


def _of_others(place: str, fault: Fault, names: Names) -> Iterator[Fault]:
    """A fault of gates also affects their baselines, and the API server's gates on every node."""
    yield from [replace(fault, node=name) for name in names.nodes] if place == "apiserver" else [fault]
    if fault.kind is FaultKind.WAVE_GATE:
        yield replace(fault, kind=FaultKind.WAVE_BASELINE)
    if fault.kind is FaultKind.NODE_GATE:
        yield from [replace(fault, kind=FaultKind.NODE_BASELINE, node=name) for name in names.nodes]


def _nodes(place: str, names: Names) -> list[str]:
    """In the order of their release."""
    if not place:
        raise _Wrong(1, "fault-without-place", "the place is missing before the `:`", _EXAMPLE)
    try:
        chosen = names.sets[place] if place in names.sets else evaluate(place, names)
    except NodesetError as error:
        hint = did_you_mean(place, [*names.sets, *OF_OTHERS]) or error.flaws[0].hint
        raise _Wrong(1, error.flaws[0].reference, str(error), hint) from None
    if not chosen:
        raise _Wrong(1, "empty-limit", f"`{printable(place, 60)}` has no node of this plan")
    return [name for name in names.nodes if name in chosen]
