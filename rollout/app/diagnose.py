"""A diagnosis from files: every line once, in one pass; only facts stay in memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Protocol

from rollout.kubelet.diagnosis.diagnosis import Diagnosis, diagnosed
from rollout.kubelet.diagnosis.facts import Facts
from rollout.kubelet.diagnosis.finding import Order
from rollout.kubelet.diagnosis.reading import Reading


class LogFiles(Protocol):
    """Files of logs and events. ``pieces``: lines, an overlong one in parts. Errors are ``InputError``."""

    def latest(self, path: str) -> datetime: ...

    def pieces(self, path: str) -> Iterator[bytes]: ...


def diagnose(files: LogFiles, paths: Sequence[str], order: Order) -> Diagnosis:
    """A file that cannot be opened raises; what cannot be read inside a file is counted."""
    facts, readings = Facts(), []
    starts = [(path, files.latest(path)) for path in paths]
    for path, latest in starts:
        reading = Reading("(standard input)" if path == "-" else path)
        for fact in reading.of(files.pieces(path), latest):
            facts.add(fact)
        readings.append(reading)
    return diagnosed(facts, order, readings)
