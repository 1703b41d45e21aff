"""A node's journal and log files as facts: the commands that print them, and their answers on the clock of the events.

This is the only place of these commands. They only read, their output is bounded, and the newest lines are kept. Log files
are those of a kubelet and a runtime that k3s or RKE2 starts: their lines are in no journal.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime

from rollout.core.model.snapshot import Snapshot
from rollout.core.text.terminal import counted, printable
from rollout.features.diagnose.rules.facts import API_CLOCK, Facts, Kind
from rollout.features.diagnose.rules.moments import moment
from rollout.features.diagnose.rules.reading import FileReading
from rollout.kubelet.node.layout import KUBELET_UNITS
from rollout.kubelet.node.rancher import EMBEDDINGS
from rollout.kubelet.runtimes.known import DAEMONS

UNITS = (
    *sorted((unit.removesuffix(".service") for unit in KUBELET_UNITS), key=lambda unit: (unit != "kubelet", unit)),
    *(daemon.name for daemon in DAEMONS),
)
"""The units of kubelets and runtimes. A unit that a node does not have adds no line."""
MOST_BYTES = 3 * 1024 * 1024
"""Bytes of one node's journal that are read. An SSH session keeps 4 MiB."""
MOST_OF_NODE = 1000
"""Facts of one kind that are kept of one node: a noisy node must not push out the others."""
MOST_SHOWN = 3
"""Unreadable lines of all nodes that are shown."""
_ENDED = re.compile(rb"\n?-- journalctl ended (\d+)\n\Z")
_LOG_ENDED = re.compile(rb"\n?-- log ended (\d+) ([+-]\d{4})\n\Z")
_LOGGING = "|".join(re.escape(daemon.name) for daemon in DAEMONS if daemon.logs_requests).encode()
_LOGS_STARTS = re.compile(rb"^\S+ \S+ (?:%s)\[\d+\]: " % _LOGGING, re.MULTILINE)
"""A line of a runtime that logs each pull when it receives it. Others log only the progress."""


def journal_command(seconds: float, until: float = 0.0, most: int = MOST_BYTES) -> str:
    """A line for a POSIX shell: the journal from ``seconds`` ago until ``until`` seconds ago. ``tail`` takes journalctl's exit status away, so that it is the last line."""
    units = " ".join(f"-u {unit}" for unit in UNITS)
    end = f" --until=-{int(until)}s" if until else ""
    shown = f"LC_ALL=C journalctl -q --no-pager -o short-iso --since=-{int(seconds)}s{end} {units}"
    return f'{{ {shown}; status=$?; echo; echo "-- journalctl ended $status"; }} | tail -c {most}'


def log_files(node: Snapshot) -> tuple[str, ...]:
    """The files that have the log of this node's kubelet and runtime; none where the journal has it."""
    unit, process = node.measurement.unit, node.measurement.process
    embedding = EMBEDDINGS.get(unit.name) if unit is not None else None
    if embedding is None:
        return ()
    folder = embedding.agent_folder(process.command_line if process is not None else ())
    names = (embedding.kubelet_log, *(daemon.embedded_log for daemon in DAEMONS))
    return tuple(f"{folder}/{name}" for name in names if name)


def log_command(path: str, most: int = MOST_BYTES) -> str:
    """A line for a POSIX shell: the end of a log file, and the zone of its times, which klog does not write."""
    shown = f"tail -c {most} {shlex.quote(path)}"
    return f'{{ {shown}; status=$?; echo; echo "-- log ended $status $(date +%z)"; }} | tail -c {most}'


@dataclass(frozen=True, slots=True)
class NodeJournal:
    """What one node's journal shows. ``why``: the reason why it was not read, ``""`` if it was.

    ``begins``: the time of its first line if older ones were cut off; ``None``: it is whole. ``pulls_since``: every pull
    that the runtime received since then is in ``facts``; ``None``: it has no line of a runtime that logs them.
    """

    node: str
    facts: Facts
    reading: FileReading
    why: str = ""
    begins: float | None = None
    pulls_since: float | None = None


def unread_journal(node: str, why: str) -> NodeJournal:
    return NodeJournal(node, Facts(), FileReading(_file(node)), why)


def journal_of(node: str, output: bytes, error: str, latest: datetime, most: int = MOST_BYTES) -> NodeJournal:
    """The command's output as facts. ``latest``: a time after its last line; ``error``: its standard error."""
    end = _ENDED.search(output)
    if end is None or int(end[1]):
        told = f"journalctl ended with status {int(end[1])}" if end else "its end is missing"
        return unread_journal(node, f"{told}{f': {printable(error.strip(), 200)}' if error.strip() else ''}")
    text, cut = output[: end.start()], len(output) >= most
    if cut:
        text = text.partition(b"\n")[2]
    reading, facts = FileReading(_file(node)), Facts(MOST_OF_NODE)
    for fact in reading.of(iter(text.splitlines(keepends=True)), latest):
        # The kubelet dates its events by the same clock, and each line has the zone of journald.
        facts.add(replace(fact, node=node, clock=API_CLOCK))
    if cut:
        reading.notes = (*reading.notes, f"only the newest {most // 1024} KiB were read, since {_first_time(text)}")
    elif not text.strip():
        reading.notes = ("it has no line of this time",)
    first = moment(_first_time(text))
    return NodeJournal(
        node, facts, reading, begins=first if cut else None, pulls_since=_pulls_since(text, facts, reading, first)
    )


def with_log(
    journal: NodeJournal, path: str, output: bytes, latest: datetime, since: float, until: float, most: int = MOST_BYTES
) -> NodeJournal:
    """With the facts of a log file of the same node, of the time from ``since`` to ``until``. One that cannot be read is a note."""
    end = _LOG_ENDED.search(output)
    if end is None or int(end[1]):
        journal.reading.notes = (*journal.reading.notes, f"{path} could not be read")
        return journal
    text = output[: end.start()]
    if len(output) >= most:
        text = text.partition(b"\n")[2]
    minutes = int(end[2][1:3]) * 60 + int(end[2][3:5])
    reading = FileReading(f"{journal.node}:{path}", zone=minutes * (-60.0 if end[2].startswith(b"-") else 60.0))
    for fact in reading.of(iter(text.splitlines(keepends=True)), latest):
        if fact.at is not None and since <= fact.at <= until:
            journal.facts.add(replace(fact, node=journal.node, clock=API_CLOCK))
    journal.reading.take_in(reading)
    return journal


def _pulls_since(text: bytes, facts: Facts, reading: FileReading, first: float | None) -> float | None:
    """The time of the journal's first line; of the oldest pull that was kept, if older facts were left out."""
    if not _LOGS_STARTS.search(text):
        return None
    if facts.left_out or reading.left_out:
        return next((fact.at for fact in facts.of(Kind.RUNTIME_STARTED)), None)
    return first


def _file(node: str) -> str:
    return f"{node}:journal"


def _first_time(text: bytes) -> str:
    return printable(text[:40].decode("ascii", "replace").partition(" ")[0])


def summed(name: str, readings: Iterable[FileReading]) -> FileReading:
    """One line about many nodes: the lines of all, the first unreadable ones, and how many nodes have each note."""
    every = tuple(readings)
    whole = FileReading(name, read=sum(each.read for each in every))
    examples = tuple(where for each in every for where in each.unread.examples)[:MOST_SHOWN]
    whole.unread = replace(whole.unread, lines=sum(each.unread.lines for each in every), examples=examples)
    kinds = [note.partition(", since ")[0] for each in every for note in each.notes]
    whole.notes = tuple(f"{note} ({counted(kinds.count(note), 'node')})" for note in dict.fromkeys(kinds))
    return whole
