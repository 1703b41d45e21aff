"""``watch --late``: asks the gates of a run again after its end, and rolls it back if its playbook says so."""

from __future__ import annotations

import time
from dataclasses import dataclass

import click

from rollout.app.ports import Journal
from rollout.cli.options import echo_lines
from rollout.cli.proposals import say
from rollout.cli.registry import Kinds
from rollout.cli.terminal import Terminal, run_documents
from rollout.composition.wiring import Session
from rollout.core.presentation.summary_text import late_lines
from rollout.core.run.late_watch import LateStatus
from rollout.core.text import documents, durations
from rollout.core.text.documents import Inline
from rollout.core.text.terminal import printable
from rollout.errors import StateError, UsageError
from rollout.features.late_watch import asking

LEAST, MOST = 10.0, 3600.0
"""Seconds between two rounds."""


@dataclass(frozen=True, slots=True)
class LateWatchDocument:
    """What the watch of a run knows after a round."""

    run: str
    cluster: str
    late: Inline[LateStatus]


def late_documents() -> Kinds:
    """What a watch prints, and the rollback that may follow."""
    return (LateWatchDocument, *run_documents())


def watch_late(session: Session, run: str, *, once: bool, every: str) -> int:
    """For `rollout watch --late`: its exit code."""
    seconds = _seconds(every)
    return asking.watch_late(session, LateTerminal(session), run, None if once else seconds, time.sleep)


def ask_once(session: Session, journal: Journal, run: str) -> bool:
    """Whether the late gates of a run pass, for a sequence."""
    return asking.late_gates_pass(session, LateTerminal(session), journal, run, time.sleep)


class LateTerminal(Terminal):
    """It also shows the rounds of a watch."""

    def known(self, run: str, cluster: str, late: LateStatus) -> None:
        if self.session.output == "json":
            click.echo(documents.line(LateWatchDocument(run, cluster, late)))
        else:
            echo_lines((f"run {run} on {cluster}", *late_lines(late, run, self.session.zones.wall_seconds())))

    def journal_away(self, error: StateError) -> None:
        say(f"{error}; trying again", err=True)


def _seconds(text: str) -> float:
    try:
        found = durations.parse(text)
    except durations.DurationError as error:
        raise UsageError("bad-duration", f"--every {printable(text, 60)!r}: {error}") from None
    if not LEAST <= found <= MOST:
        raise UsageError("bad-duration", f"--every is between {LEAST:g}s and 1h, not {printable(text, 60)!r}")
    return found
