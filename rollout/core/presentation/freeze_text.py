"""A freeze in the journal, as notes on its cluster, and what operators read about it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from rollout.core.model.freeze import NodeFreeze, of_fact, told
from rollout.core.model.frozen import dataclass
from rollout.core.model.snapshot import FleetSnapshot, Snapshot
from rollout.core.text.documents import Moment
from rollout.core.text.message_folding import folded
from rollout.core.text.nodesets import fold
from rollout.core.text.terminal import counted, printable, wall

# The notes. Their texts are read again, so they do not change.

_NOTE = re.compile(r"(frozen|unfreezing|unfrozen) as ([A-Za-z0-9_.@-]+) with token (\d{1,15}): (.*)", re.DOTALL)
_FOUND = re.compile(r"(un)?freeze ([A-Za-z0-9_.@-]+) is (not )?on (.+)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class FreezeNoted:
    """A freeze, by the journal. ``marked``: the nodeset that took it, ``missed``: that did not; both ``""``: it is not known.

    ``lifted``: it is not in force, but nodes missed its unfreeze and may refuse changes; all else is of this unfreeze.
    """

    name: str
    token: int
    since: Moment
    who: str
    reason: str
    missed: str = ""
    marked: str = ""
    lifted: bool = False


def frozen_note(freeze: NodeFreeze) -> str:
    return f"frozen as {freeze.name} with token {freeze.counter}: {freeze.reason}"


def unfreezing_note(freeze: NodeFreeze) -> str:
    """Before the nodes are asked: until they have answered, the freeze is in force."""
    return f"unfreezing as {freeze.name} with token {freeze.counter}: {freeze.reason}"


def unfrozen_note(freeze: NodeFreeze) -> str:
    return f"unfrozen as {freeze.name} with token {freeze.counter}: {freeze.reason}"


def marked_note(freeze: NodeFreeze, nodeset: str) -> str:
    return f"freeze {freeze.name} is on {nodeset}"


def missed_note(freeze: NodeFreeze, names: Iterable[str], *, on: bool) -> str:
    """``on``: of a freeze, not of an unfreeze."""
    return f"{'freeze' if on else 'unfreeze'} {freeze.name} is not on {fold(names)}"


def highest_noted(texts: Iterable[str]) -> int:
    """The highest token of a freeze or unfreeze among the notes of a cluster; 0: there is none."""
    return max((int(found[3]) for found in map(_NOTE.fullmatch, texts) if found), default=0)


def noted(notes: Iterable[tuple[float, str, str]]) -> FreezeNoted | None:
    """The freeze in force, or one that nodes may still have. ``notes``: time, operator and text, oldest first."""
    now: FreezeNoted | None = None
    for at, who, text in notes:
        if (match := _NOTE.fullmatch(text)) and match[1] != "unfreezing":
            now = FreezeNoted(match[2], int(match[3]), at, who, match[4], lifted=match[1] == "unfrozen")
        elif (
            now is not None
            and (found := _FOUND.fullmatch(text))
            and (bool(found[1]), found[2]) == (now.lifted, now.name)
        ):
            now = replace(now, missed=found[4]) if found[3] else replace(now, marked=found[4])
    return None if now is not None and now.lifted and not now.missed else now


def noted_line(freeze: FreezeNoted) -> str:
    """Who, why, since when, and where it is missing."""
    reason = freeze.reason or "no reason given"
    where = ""
    if freeze.missed:
        where = f"; {'not known to be unfrozen' if freeze.lifted else 'not marked'}: {printable(freeze.missed, 300)}"
    elif not freeze.marked:
        where = "; no node is known to be marked: repeat the freeze"
    word = "unfrozen" if freeze.lifted else "frozen"
    return printable(f"{word} by {freeze.who} since {wall(freeze.since)}: {reason}", 900) + where


def frozen_lines(freezes: Mapping[str, NodeFreeze | None]) -> Iterator[str]:
    """The freezes that nodes report, one line each with its nodes."""
    for note, names in folded({name: told(freeze) for name, freeze in freezes.items() if freeze is not None}).items():
        yield f"{counted(len(names), 'node')} {printable(fold(names), 200)}: {printable(note, 900)}"


def frozen_in(fleet: FleetSnapshot) -> Mapping[str, NodeFreeze | None]:
    """Node → its freeze, of the nodes that were read."""
    return {name: of_fact(read.facts) for name, read in fleet.nodes.items() if isinstance(read, Snapshot)}
