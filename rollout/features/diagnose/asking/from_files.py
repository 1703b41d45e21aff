"""A diagnosis from files, of which every line is read once and only facts stay in memory; and from nodes as they were read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Protocol

from rollout.core.model.snapshot import FleetSnapshot
from rollout.features.diagnose.rules.diagnosis import Diagnosis, diagnosed
from rollout.features.diagnose.rules.facts import Facts
from rollout.features.diagnose.rules.finding import ProposalTarget, merged
from rollout.features.diagnose.rules.not_in_force import not_in_force
from rollout.features.diagnose.rules.reading import FileReading


class LogFiles(Protocol):
    """Files of logs and events. ``pieces``: lines, an overlong one in parts. Errors are ``InputError``."""

    def latest(self, path: str) -> datetime: ...

    def pieces(self, path: str) -> Iterator[bytes]: ...


def diagnose_nodes(fleet: FleetSnapshot, target: ProposalTarget) -> Diagnosis:
    """What is written on nodes and not in force, from what a plan reads of them."""
    findings, notes = not_in_force(fleet.nodes.values(), target)
    return Diagnosis(findings, (), notes)


def together(found: Sequence[Diagnosis]) -> Diagnosis:
    return Diagnosis(
        merged(finding for each in found for finding in each.findings),
        tuple(reading for each in found for reading in each.readings),
        tuple(note for each in found for note in each.notes),
        timelines=next((each.timelines for each in found if each.timelines is not None), None),
    )


def diagnose(files: LogFiles, paths: Sequence[str], target: ProposalTarget, pod: str = "") -> Diagnosis:
    """``pod`` (``namespace/name``): its end is shown. A file that cannot be opened raises; what cannot be read inside a file is counted."""
    facts, readings = Facts(), []
    starts = [(path, files.latest(path)) for path in paths]
    for path, latest in starts:
        reading = FileReading("(standard input)" if path == "-" else path)
        for fact in reading.of(files.pieces(path), latest):
            facts.add(fact)
        readings.append(reading)
    return diagnosed(facts, target, readings, pod)
