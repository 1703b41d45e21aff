"""Late harm: what the watch after a run has found, from notes in the journal alone, and the verdict over its nodes.

A note says that the verdict changed; each failure has a note of its own, so that a later process can count them. The
run's own events stay as they are: a watch is no part of the run.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from enum import StrEnum

from rollout.core.model.frozen import dataclass
from rollout.core.model.playbook import Cause, LateWatch, OnLateHarm
from rollout.core.model.verdict import Judged, Reading, Verdict
from rollout.core.run.budgets import distances
from rollout.core.run.state import Confirmed, Ending, Failed, NodeRecord, NodeState, Order, Phase, RunState
from rollout.core.text.documents import Moment, instant
from rollout.core.text.message_folding import folded
from rollout.core.text.nodesets import fold
from rollout.core.text.terminal import counted, printable

LONGEST = 600
"""Characters of a note."""

NOTE_EVERY = 3600.0
"""Seconds after which a verdict is noted again although it is the same: the notes show that somebody asks."""

GAP = 2 * NOTE_EVERY + 600.0
"""Seconds without a note that mean that nobody asked. Rounds are at most an hour apart."""


class LateWord(StrEnum):
    """What a note of the watch says."""

    PASSED = "passed"
    FAILED = "failed"
    UNKNOWN = "unknown"
    GAP = "gap"  # nobody asked the gates for that long
    HARM = "harm"  # so many failures in a row as a soak needs passes
    ENDED = "ended"


WORD_OF = {Verdict.PASS: LateWord.PASSED, Verdict.FAIL: LateWord.FAILED, Verdict.UNKNOWN: LateWord.UNKNOWN}


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


def worth_a_note(so_far: LateFindings, verdict: Verdict, now: float) -> bool:
    """Whether a verdict says something new, or shows that the gates are still asked. ``now``: seconds since the epoch."""
    if verdict is Verdict.FAIL or so_far.last is None or so_far.last.word is not WORD_OF[verdict]:
        return True
    return now >= so_far.last.at + NOTE_EVERY


def gap(so_far: LateFindings, end: float, now: float) -> str:
    """For how long nobody asked, or ``""``. ``end``: of the run. All are seconds since the epoch."""
    last = so_far.last.at if so_far.last is not None else end
    return f"not asked from {instant(last)} to {instant(now)}" if now - last > GAP else ""


def late_passed(so_far: LateFindings) -> bool:
    """Whether the newest verdict is a pass."""
    return so_far.last is not None and so_far.last.word is LateWord.PASSED


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


# The nodes.


def changed_nodes(state: RunState) -> tuple[str, ...]:
    return tuple(name for name, record in state.nodes.items() if record.state is NodeState.CONFIRMED)


def judge_nodes(state: RunState, readings: Mapping[str, Reading]) -> Judged:
    """The verdict over the worst reading of each changed node: the budgets of the run decide how many may fail.

    A node that could not be judged makes it UNKNOWN, unless the nodes that fail are too many already.
    """
    sick = {name: reading for name, reading in readings.items() if reading.verdict is Verdict.FAIL}
    unknown = {name: reading for name, reading in readings.items() if reading.verdict is Verdict.UNKNOWN}
    order = state.order
    spent = next(_spent(order, _charged(state, sick)), "")
    if spent:
        return Verdict.FAIL, f"{spent}: {_shown(sick)}"
    if unknown:
        return Verdict.UNKNOWN, f"{counted(len(unknown), 'node')} could not be judged: {_shown(unknown)}"
    if sick:
        return Verdict.PASS, f"{counted(len(sick), 'node')} within the budgets: {_shown(sick)}"
    return Verdict.PASS, f"{counted(len(readings), 'node')} healthy"


def _charged(state: RunState, sick: Mapping[str, Reading]) -> Mapping[str, NodeRecord]:
    """The nodes of the run, with no other failures than the late ones."""
    sound, harmed = NodeRecord(Confirmed()), NodeRecord(Failed(), Cause.UNHEALTHY)
    return {name: harmed if name in sick else sound for name in state.nodes}


def _spent(order: Order, nodes: Mapping[str, NodeRecord]) -> Iterator[str]:
    for wave in range(len(order.waves)):
        yield from (str(distance) for distance in distances(order, nodes, wave) if distance.wrong and not distance.left)


def _shown(readings: Mapping[str, Reading]) -> str:
    first = next(iter(folded({name: f"{each.gate}: {each.evidence}" for name, each in readings.items()}).items()))
    why, names = first
    return printable(f"{fold(names)}: {why}", 300)


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
