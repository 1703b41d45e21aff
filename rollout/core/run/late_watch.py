"""Late harm: what the watch after a run has found, from notes in the journal alone.

A note says that the verdict changed; each failure has a note of its own, so that a later process can count them. The
run's own events stay as they are: a watch is no part of the run.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from enum import StrEnum

from rollout.core.model.frozen import dataclass
from rollout.core.model.playbook import LateWatch, OnLateHarm
from rollout.core.run.state import Ending, Phase, RunState
from rollout.core.text.documents import Moment
from rollout.core.text.terminal import printable

NOTE_EVERY = 3600.0
"""Seconds after which a verdict is noted again although it is the same: the notes show that somebody asks."""

GAP = 2 * NOTE_EVERY + 600.0
"""Seconds without a note that mean that nobody asked. Rounds are at most an hour apart."""

LONGEST = 600
"""Characters of a note."""


class LateWord(StrEnum):
    """What a note of the watch says."""

    PASSED = "passed"
    FAILED = "failed"
    UNKNOWN = "unknown"
    GAP = "gap"  # nobody asked the gates for that long
    HARM = "harm"  # so many failures in a row as a soak needs passes
    ENDED = "ended"


@dataclass(frozen=True, slots=True)
class LateNote:
    """``at``: seconds since the epoch."""

    at: Moment
    word: LateWord
    said: str

    def text(self, run: str) -> str:
        """As the journal keeps it, among the notes on the cluster."""
        return f"{_beginning(run)}{self.word}: {printable(self.said, LONGEST)}"


@dataclass(frozen=True, slots=True)
class LateFindings:
    """The watch of one run so far. ``failures``: in a row; neither an UNKNOWN nor a gap ends the row or counts.

    ``since``: when the newest verdict was first noted, without another one after it. ``gaps``: when nobody asked.
    """

    failures: int = 0
    since: float | None = None
    gaps: tuple[str, ...] = ()
    last: LateNote | None = None  # the newest verdict
    harm: LateNote | None = None
    ended: LateNote | None = None


def findings(run: str, notes: Iterable[tuple[float, str]]) -> LateFindings:
    """``notes``: time and text of each note on the cluster, the oldest first."""
    so_far = LateFindings()
    for note in _notes(run, notes):
        so_far = _after(so_far, note)
    return so_far


def late_passed(so_far: LateFindings, until: float, now: float) -> bool:
    """Whether the gates passed when they were last to be measured: now, or at the end of the watch (``until``, unless it ended before).

    An older note is no measurement of that time: its process may have stopped since.
    """
    at = min(until, so_far.ended.at if so_far.ended is not None else now)
    return so_far.last is not None and so_far.last.word is LateWord.PASSED and at - so_far.last.at <= GAP


def is_watched(state: RunState) -> bool:
    """Whether a run has ended in a way that leaves its change on nodes, with nothing to be resumed."""
    return state.phase is Phase.ENDED and state.ending is Ending.DONE


def _beginning(run: str) -> str:
    return f"late watch of {run}: "


def _notes(run: str, notes: Iterable[tuple[float, str]]) -> Iterator[LateNote]:
    beginning = _beginning(run)
    for at, text in notes:
        word, colon, said = text.removeprefix(beginning).partition(": ")
        if text.startswith(beginning) and colon and word in set(LateWord):
            yield LateNote(at, LateWord(word), said)


def _after(so_far: LateFindings, note: LateNote) -> LateFindings:
    match note.word:
        case LateWord.PASSED:
            return replace(so_far, failures=0, last=note, since=_since(so_far, note))
        case LateWord.FAILED:
            return replace(so_far, failures=so_far.failures + 1, last=note, since=_since(so_far, note))
        case LateWord.UNKNOWN:
            return replace(so_far, last=note, since=_since(so_far, note))
        case LateWord.GAP:
            return replace(so_far, gaps=(*so_far.gaps, note.said))
        case LateWord.HARM:
            return replace(so_far, harm=note)
        case LateWord.ENDED:
            return replace(so_far, ended=note)


def _since(so_far: LateFindings, note: LateNote) -> float:
    if so_far.last is None or so_far.since is None or so_far.last.word is not note.word:
        return note.at
    return so_far.since


# For people and programs.


@dataclass(frozen=True, slots=True)
class LateStatus:
    """``until``: when the watch ends, seconds since the epoch. ``ended``: how it did; ``""``: it has not."""

    until: Moment
    on_harm: OnLateHarm
    verdict: LateWord | None  # the newest one; ``None``: its gates were not asked yet
    since: Moment | None
    evidence: str
    gaps: tuple[str, ...]  # times without a question, the oldest first
    harm: str
    ended: str


def late_status(state: RunState, watch: LateWatch, so_far: LateFindings) -> LateStatus:
    last = so_far.last
    return LateStatus(
        until=ends_at(state, watch),
        on_harm=watch.then,
        verdict=last.word if last else None,
        since=so_far.since,
        evidence=last.said if last else "",
        gaps=so_far.gaps,
        harm=so_far.harm.said if so_far.harm else "",
        ended=so_far.ended.said if so_far.ended else "",
    )


def ends_at(state: RunState, watch: LateWatch) -> float:
    """The time of the run's last event, and so long after."""
    return state.now + watch.seconds
