"""Which known defects a node has, before a change and after it: the table's rows against versions, settings and what the change does."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from enum import StrEnum, auto

from rollout.core.model.frozen import dataclass
from rollout.core.model.snapshot import Snapshot
from rollout.kubelet.conditions import NodeValues, all_hold
from rollout.kubelet.defects.rows import Defect, Number, Occasion, PodKind, known
from rollout.kubelet.runtimes.description import Runtime
from rollout.kubelet.runtimes.known import KNOWN

KUBELET = "kubelet"
_NUMBER = re.compile(r"(?<![\w.])v?(\d{1,5}(?:\.\d{1,5}){0,3})")


class DefectStanding(StrEnum):
    """What a change does with a defect of the node."""

    TRIGGERED = auto()  # it did not apply, and does afterwards; or the change itself is its occasion
    KEPT = auto()
    ENDED = auto()
    POSSIBLE = auto()  # a value or a version that decides it cannot be observed


@dataclass(frozen=True, slots=True)
class FoundDefect:
    """``version``: as the node prints it, ``""`` if it does not. ``unread``: what could not be observed."""

    defect: Defect
    standing: DefectStanding
    version: str
    unread: tuple[str, ...] = ()

    @property
    def of(self) -> str:
        """``containerd 2.1.4``."""
        return f"{self.defect.component} {self.version}".strip()


@dataclass(frozen=True, slots=True)
class Doing:
    """A change of a node: its values before and after, and what happens on the node."""

    before: NodeValues
    after: NodeValues
    occasions: frozenset[Occasion] = frozenset()


def on_node(
    snapshot: Snapshot, runtime: Runtime, values: NodeValues, own: Iterable[Defect] = ()
) -> tuple[FoundDefect, ...]:
    """The defects that a node has as it is. Those with an occasion wait for it."""
    return tuple(
        here
        for here in on_change(snapshot, runtime, Doing(values, values, frozenset(Occasion)), own)
        if here.standing in (DefectStanding.KEPT, DefectStanding.POSSIBLE) or here.defect.at is not None
    )


def on_change(
    snapshot: Snapshot, runtime: Runtime, doing: Doing, own: Iterable[Defect] = ()
) -> tuple[FoundDefect, ...]:
    """What the change does with each defect of this node, in the order of the table; ``own``: rows of the project."""
    return tuple(_found(snapshot, runtime, doing, (*known(), *own)))


def _found(snapshot: Snapshot, runtime: Runtime, doing: Doing, rows: Iterable[Defect]) -> Iterator[FoundDefect]:
    for row in rows:
        version = version_of(row.component, snapshot, runtime)
        if version is None:
            continue
        number = number_of(version)
        every = row.versions == (((0,), ()),)
        if number is not None and not row.has(number):
            continue
        unread = ("version",) if number is None and not every else ()
        standing, lacking = _standing(row, doing)
        if standing is not None:
            uncertain = unread and standing is not DefectStanding.ENDED
            yield FoundDefect(row, DefectStanding.POSSIBLE if uncertain else standing, version, (*unread, *lacking))


def _standing(row: Defect, doing: Doing) -> tuple[DefectStanding | None, tuple[str, ...]]:
    if row.at is not None and row.at not in doing.occasions:
        return None, ()
    before, after = all_hold(row.when, doing.before), all_hold(row.when, doing.after, doing.before)
    if after is None:
        lacking = (each.path for each in row.when if each.holds(doing.after, doing.before) is None)
        return DefectStanding.POSSIBLE, tuple(dict.fromkeys(lacking))
    if after:
        triggered = row.at is not None or before is False
        return DefectStanding.TRIGGERED if triggered else DefectStanding.KEPT, ()
    return (DefectStanding.ENDED if before and row.at is None else None), ()


def version_of(component: str, snapshot: Snapshot, runtime: Runtime) -> str | None:
    """The component's version as printed, ``""`` if the node does not report it; ``None``: the node does not use it."""
    if component == KUBELET:
        return snapshot.kubelet_version
    description = next((described for described in KNOWN if described.runtime.value == component), None)
    if description is not None:
        version = description.version(snapshot.runtimes)
        return None if description.runtime is not runtime else version.text if version else ""
    return _short(snapshot.facts.get(component, ""))


def _short(printed: str) -> str:
    """The first number of a printed version: of ``systemd 252 (252.38-1)`` it is ``252``."""
    number = _NUMBER.search(printed)
    return number[1] if number else ""


def number_of(version: str) -> Number | None:
    """``1.35.4-eks-1234`` → (1, 35, 4). A pre-release counts as its release."""
    number = _NUMBER.match(version)
    return tuple(map(int, number[1].split("."))) if number else None


def with_pods(defects: Iterable[FoundDefect], has: Mapping[PodKind, bool | None]) -> tuple[FoundDefect, ...]:
    """The defects without those about pods that the node does not have. Where that is not known, they may apply."""
    return tuple(here for defect in defects if (here := _with_pods(defect, has)) is not None)


def _with_pods(here: FoundDefect, has: Mapping[PodKind, bool | None]) -> FoundDefect | None:
    kind = here.defect.pods
    if kind is None or has.get(kind):
        return here
    if has.get(kind) is None:
        return replace(here, standing=DefectStanding.POSSIBLE, unread=(*here.unread, f"pods of the kind {kind.value}"))
    return None
