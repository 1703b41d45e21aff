"""One clock for what can be compared: a log's clock and the API server's are aligned by the events that both show.

A kubelet writes the local time of its node without a zone, and a log without a year may be dated a year off. An event
of the API server has the kubelet's own time in UTC, rounded down to a second. The difference between the two is the same
for every shared event, or the clocks cannot be aligned.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import replace

from rollout.features.diagnose.rules.facts import AGES, API_CLOCK, Fact, Facts, Kind

SPREAD = 2.5
"""Seconds by which the differences of shared events may vary: events have whole seconds, and are sent after the act."""
_SHARED = (Kind.QUEUED, Kind.PULLED, Kind.PULL_FAILED, Kind.BACK_OFF, Kind.REJECTED, Kind.CHANGED)

Key = tuple[str, ...]


def named(facts: Facts) -> Facts:
    """The facts with the node of their pod, where its arrival or the pod itself names it; else with that of their file.

    A file is of one node if its lines name one and no other, and no process of it is of two. If they name none, the events of their
    pods may.
    """
    placed = {(fact.clock, fact["pod"]): fact.node for fact in facts.of(Kind.PLACED, Kind.CREATED) if fact.node}
    facts = facts.replaced(
        replace(fact, node=placed[place]) if not fact.node and (place := (fact.clock, fact["pod"])) in placed else fact
        for fact in facts
    )
    by_file: dict[str, set[str]] = defaultdict(set)
    by_pod: dict[str, set[str]] = defaultdict(set)
    pods: dict[str, set[str]] = defaultdict(set)
    for fact in facts:
        if fact.clock == API_CLOCK:
            by_pod[fact["pod"]].update({fact.node} - {""})
        elif not fact.clock.startswith(AGES):
            by_file[fact.where.file].update({fact.node} - {""})
            pods[fact.where.file].add(fact["pod"])
    own, mixed = {}, {fact.where.file for fact in facts.of(Kind.OVERLAP)}
    for file, names in by_file.items():
        if file in mixed:
            continue
        known = names or set[str]().union(*(by_pod.get(pod, set()) for pod in pods[file] if pod))
        if len(known) == 1:
            own[file] = next(iter(known))
    return facts.replaced(
        replace(fact, node=own[fact.where.file]) if not fact.node and fact.where.file in own else fact for fact in facts
    )


def aligned(facts: Facts) -> tuple[Facts, tuple[str, ...]]:
    """The facts with one clock where that is possible, and a note for each clock that stays apart."""
    times: dict[str, dict[Key, list[float]]] = defaultdict(lambda: defaultdict(list))
    for fact in facts.of(*_SHARED):
        if fact.at is not None and fact.times == 1:
            times[fact.clock][(fact.kind, fact["pod"], fact["container"], fact["reason"])].append(fact.at)
    clocks = {fact.clock for fact in facts if fact.at is not None}
    api = times.get(API_CLOCK, {})
    if API_CLOCK not in clocks:
        note = "the clocks of these files are not compared: no file has events with times"
        return facts, ((note,) if len(clocks) > 1 else ())
    shifts = {clock: _shift(times.get(clock, {}), api) for clock in clocks - {API_CLOCK}}
    moved = facts.replaced(_moved(fact, shifts) for fact in facts)
    return moved, tuple(_notes(shifts))


def _shift(log: Mapping[Key, list[float]], api: Mapping[Key, list[float]]) -> float | None:
    """Seconds from the log's clock to the API server's; ``None``: no shared event, or they disagree."""
    differences = sorted(
        there - here
        for key in log.keys() & api.keys()
        for here, there in zip(sorted(log[key]), sorted(api[key]), strict=False)
    )
    if not differences or differences[-1] - differences[0] > SPREAD:
        return None
    middle = differences[len(differences) // 2]
    return 0.0 if abs(middle) <= SPREAD else middle


def _moved(fact: Fact, shifts: Mapping[str, float | None]) -> Fact:
    shift = shifts.get(fact.clock)
    if shift is None:
        return fact
    return replace(fact, clock=API_CLOCK, at=None if fact.at is None else fact.at + shift)


def _notes(shifts: Mapping[str, float | None]) -> Iterator[str]:
    apart = sorted(clock for clock, shift in shifts.items() if shift is None)
    if apart:
        names = ", ".join(apart[:5]) + (" …" if len(apart) > 5 else "")
        yield f"not aligned with the clock of the events, because no event is in both: {names}"
    for clock, shift in sorted(shifts.items()):
        if shift:
            yield f"{clock}: its times are shifted by {shift:+.0f} s to those of the events"
