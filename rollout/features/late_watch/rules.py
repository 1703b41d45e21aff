"""What a watch after a run judges, and when its verdict is worth a note."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from rollout.core.model.playbook import Cause
from rollout.core.model.verdict import Judged, Reading, Verdict
from rollout.core.run.budgets import distances
from rollout.core.run.late_watch import GAP, NOTE_EVERY, LateFindings, LateWord
from rollout.core.run.state import Confirmed, Failed, NodeRecord, NodeState, Order, RunState
from rollout.core.text.documents import instant
from rollout.core.text.message_folding import folded
from rollout.core.text.nodesets import fold
from rollout.core.text.terminal import counted, printable

WORD_OF = {Verdict.PASS: LateWord.PASSED, Verdict.FAIL: LateWord.FAILED, Verdict.UNKNOWN: LateWord.UNKNOWN}


def worth_a_note(so_far: LateFindings, verdict: Verdict, now: float) -> bool:
    """Whether a verdict says something new, or shows that the gates are still asked. ``now``: seconds since the epoch."""
    if verdict is Verdict.FAIL or so_far.last is None or so_far.last.word is not WORD_OF[verdict]:
        return True
    return now >= so_far.last.at + NOTE_EVERY


def gap(so_far: LateFindings, end: float, now: float) -> str:
    """For how long nobody asked, or ``""``. ``end``: of the run. All are seconds since the epoch."""
    last = so_far.last.at if so_far.last is not None else end
    return f"not asked from {instant(last)} to {instant(now)}" if now - last > GAP else ""


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
    return Verdict.PASS, f"{len(readings):,} healthy"


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
