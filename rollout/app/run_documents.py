"""What ``status`` and ``report`` print for programs of what a journal records beside the events of a run."""

from __future__ import annotations

from rollout.app.ports import Note, PastRuns
from rollout.core.model.frozen import dataclass
from rollout.core.presentation.past_run import PastRun, PastRunFacts
from rollout.core.text.documents import Inline

MOST_NOTES = 100
"""Newest notes on a cluster that are printed: commands of operators, unlocks."""


@dataclass(frozen=True, slots=True)
class JournalHead:
    """How many events a run has, and the hash that covers its header and all of them."""

    events: int
    head: str


@dataclass(frozen=True, slots=True)
class Recorded:
    """The chain of a run, and the newest notes on its cluster."""

    journal: JournalHead
    notes: tuple[Note, ...]


@dataclass(frozen=True, slots=True)
class PastRunDocument:
    """A run of another version of rollout: it can be shown, not resumed."""

    facts: Inline[PastRunFacts]
    recorded: Inline[Recorded]


def past_run_document(past: PastRun, recorded: Recorded) -> PastRunDocument:
    return PastRunDocument(past, recorded)


def recorded(journal: PastRuns, cluster: str, run: str) -> Recorded:
    return Recorded(JournalHead(*journal.head(run)), journal.notes(cluster)[-MOST_NOTES:])
