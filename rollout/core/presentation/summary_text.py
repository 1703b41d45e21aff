"""A summary as lines for people and as a document, from the same values."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field

from rollout.core.model.config_map import RENAMED, ConfigMapOutcome
from rollout.core.model.frozen import dataclass
from rollout.core.model.pods import BY_HAND
from rollout.core.model.regions import RegionStanding
from rollout.core.plans.again import SAME_SETTINGS, plan_again
from rollout.core.presentation.freeze_text import FreezeNoted
from rollout.core.presentation.left_silences import LeftSilence, left_silences_lines
from rollout.core.presentation.summary import ShownConfigMap, Summary
from rollout.core.run.events import ENDED_HERE
from rollout.core.run.late_watch import LateStatus
from rollout.core.run.state import Ending, Goal, Phase
from rollout.core.text.documents import Inline, Moment
from rollout.core.text.nodesets import expand, fold
from rollout.core.text.terminal import counted, printable, wall

MOST_LOG_LINES = 6


# What a run's own events do not show: whether a controller still works on it, what it left behind, what came since.


@dataclass(frozen=True, slots=True)
class Attendance:
    """Whether a controller works on a run that has not ended. ``silent``: seconds since its last heartbeat; ``None``: it has no lease.

    ``pid``: of its process on that host; ``None``: not known.
    """

    alive: bool
    host: str = ""
    silent: float | None = None
    pid: int | None = None
    regions: tuple[RegionStanding, ...] = ()  # at its last heartbeat, if workers of regions reach the nodes


@dataclass(frozen=True, slots=True)
class Afterwards:
    """As seen at ``now``, seconds since the epoch. ``rolled_back``: later rollback → its nodes. Without arguments: nothing to report.

    ``frozen``: the freeze of its cluster, for the page of a run. ``on_top``: newest run above it → nodes where both are in
    force. ``is_rolled_back``: later rollbacks reverted every node that may have had its change. ``may_undo``: there is a node that
    no rollback of it has reverted, or found without the change. ``followed_by``: the newest later run of the cluster; empty if there is none. ``playbook``: of
    the run's plan; empty if it is not known. ``recovered``: nodes pending recovery that a later run reverted.
    ``config_map_restored_by``: the later rollback that has restored its ConfigMap; empty if there is none.
    """

    now: float = 0.0
    controller: Attendance = field(default_factory=lambda: Attendance(alive=True))
    silences: tuple[LeftSilence, ...] = ()
    rolled_back: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    late: LateStatus | None = None
    frozen: FreezeNoted | None = None
    on_top: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    is_rolled_back: bool = False
    may_undo: bool = True
    followed_by: str = ""
    playbook: str = ""
    recovered: frozenset[str] = frozenset()
    config_map_restored_by: str = ""

    @property
    def is_superseded(self) -> bool:
        """Whether a later run of its cluster has acted: it cannot be resumed."""
        return bool(self.followed_by or self.rolled_back or self.on_top)


NOTHING_SINCE = Afterwards()


def summary_lines(summary: Summary, after: Afterwards = NOTHING_SINCE, first: Iterable[str] = ()) -> Iterator[str]:
    """The run in a few lines, failures folded by message. No command is named that ``after`` makes useless.

    ``first``: lines on what it changes, which come right after how it stands.
    """
    what = "rollback" if summary.goal is Goal.REVERT else "run"
    yield f"{what} {summary.run} on {summary.cluster}: {_where(summary)}"
    yield from first
    if summary.halt:
        yield f"  why: {printable(str(summary.halt), 400)}"
    # A pause, or a closed window: what ends it. A run that has ended waits for nothing before it is resumed.
    run, paused, window = summary.run, printable(str(summary.paused), 300), printable(str(summary.window), 400)
    if summary.paused and summary.ending:
        yield f"  waits after a resume: {paused}; `rollout resume {run} --promote` lifts it"
    elif summary.paused:
        yield f"  waits: {paused}; `rollout continue {run}` continues it, `rollout abort {run}` ends it"
    if summary.window and summary.ending:
        yield f"  waits after a resume: {window}"
    elif summary.window and summary.window.opens is None:
        yield f"  waits: {window}; `rollout abort {run}` ends it"
    elif summary.window:
        yield f"  waits: {window}; it goes on by itself while its controller lives"
    if summary.draining:
        yield f"  waits: {printable(str(summary.draining), 500)}"
    if waiting := "; ".join(str(each) for each in (summary.pulling, summary.baselines) if each):
        yield f"  waits: {printable(waiting, 400)}"
    if summary.soak:
        yield f"  {summary.soak}"
    if is_fenced(summary) and summary.halt and summary.halt.reference == ENDED_HERE:
        yield "  an unlock, or another controller of this run, ended its claim on the node. A resume takes a higher token"
    elif is_fenced(summary):
        yield "  another run had a newer token on the node; it may have ended. A resume takes a higher token, and is refused only while that run is at work"
    elif summary.ending is Ending.CLAIMED:
        yield "  another run has claimed the nodes: first resume it or roll it back where its journal is, or use rollback --emergency;"
        yield f"      if its machine no longer exists: rollout cluster unlock --cluster {summary.cluster} --reason …"
    if summary.ending is not None and summary.can_resume and not after.is_superseded:
        yield f"  To continue: rollout resume {summary.run}"
    if summary.ending not in (None, Ending.DONE) and summary.can_roll_back and after.may_undo:
        yield f"  To undo: rollout rollback {summary.run}"
    for wave in summary.waves:
        yield f"  wave {wave.name} ({wave.total}): {counts_text(wave.counts)}{_by_others(wave.reverted_by_others)}"
    yield f"  all: {counts_text(summary.counts)}{_by_others(summary.reverted_by_others)}"
    if summary.rehearsal:
        yield f"  {summary.rehearsal}"
    # How far a run that has not ended is from halting.
    if summary.budgets and summary.ending is None:
        parts = " · ".join(f"{budget.place} {budget.wrong} of {budget.limit}" for budget in summary.budgets)
        near = summary.budgets[0]
        yield f"  budgets: {parts}: halts at {counted(near.left, 'more failed node')} in {near.place}"
    for trouble in summary.troubles:
        reference = f" [{trouble.reference}]" if trouble.reference else ""
        yield f"  {trouble.state} ({trouble.count}) {trouble.nodes}: {printable(trouble.message, 300) or 'no message'}{reference}"
    # Of one node only: the report and the node's page have the others.
    log = next((trouble.log for trouble in summary.troubles if trouble.log), None)
    if log is not None:
        yield f"  {printable(str(log), 200)}"
        yield from (f"      {printable(line, 200)}" for line in log.lines[-MOST_LOG_LINES:])
    if summary.need_a_plan and not after.is_rolled_back:
        command = plan_again(summary.cluster, summary.need_a_plan, after.playbook)
        yield f"  To change them once they are repaired, {SAME_SETTINGS}: {command}"
    for left in summary.left_out:
        yield f"  not in the run, {left.words} ({left.count}) {left.nodes}: {printable(left.reason, 400)}"
    if summary.config_map is not None:
        yield from config_map_lines(summary.config_map, summary, after)
    if changes := still_pending(summary.pending_recovery.changes, after):
        yield f"  pending recovery (the change is still to be applied or reverted there): {changes}"
    if cordons := still_pending(summary.pending_recovery.cordons, after):
        yield f"  pending recovery (only the cordon is still to be lifted there): {cordons}"
    if nodes := recoverable(summary, after):
        yield f"  To recover {nodes}, once the nodes answer: rollout resume --recover-only {summary.run}"
    for run, forced in summary.need_force.items():
        if nodes := still_pending(forced, after):
            yield f"  others wrote files of run {run} on {nodes}, so its revert is refused there [foreign-bytes]. {FORCED}."
            yield f"      To overwrite them with the old files: {forced_rollback(summary.cluster, run, nodes)}"
    if summary.cancelled:
        yield f"  changed while they pulled images; the pulls were cancelled: {printable(summary.cancelled, 200)}"
    if summary.cordoned:
        nodes = printable(summary.cordoned, 200)
        yield f"  may still be cordoned by this run: {nodes}; the run's next controller lifts the cordon, or run `{BY_HAND}`"
    for leftover in summary.leftovers[:20]:
        yield f"  left behind: {printable(str(leftover), 200)}"
    if any(leftover.node for leftover in summary.leftovers):
        yield f"      to remove it, once the node allows it: rollout cluster unlock --cluster {summary.cluster} --reason …"


def config_map_lines(found: ShownConfigMap, summary: Summary, after: Afterwards = NOTHING_SINCE) -> Iterator[str]:
    """What became of the run's ConfigMap, and what does the rest: nothing where another run has followed."""
    title = f"ConfigMap {printable(f'{found.namespace}/{found.name}', 200)}"
    applies, done = summary.goal is Goal.APPLY, "restored" if found.restores else "written"
    reference = f" [{found.reference}]" if found.reference else ""
    why = f": {printable(found.message, 700)}{reference}" if found.message else ""
    undo = () if after.is_superseded else (f"      to restore it: rollout rollback {summary.run}",)
    if not found.sent and applies:
        yield f"  {title}: not written: this run did not come to it"
    elif after.config_map_restored_by:
        yield f"  {title}: since then run {after.config_map_restored_by} restored it"
    elif found.restores and found.reference == RENAMED:
        yield f"  {title}{why}"
    elif found.outcome is ConfigMapOutcome.WRITTEN:
        yield f"  {title}: {done}, and read back"
        if applies and not found.restores and summary.halt is not None:
            yield "      nodes that join get these settings"
            yield from undo
    elif not found.pending:
        yield f"  {title}: not {done}{why}"
    elif summary.ending is None:
        yield f"  {title}: asked for the {'old' if found.restores else 'new'} text, no answer yet"
    elif applies and not found.restores and summary.ending is not Ending.DONE:
        yield f"  pending recovery ({title} may have the new text: the run ended after it had asked to write it){why}"
        if not after.is_superseded:
            yield f"      to write it: rollout resume {summary.run}"
        yield from undo
    else:
        yield f"  pending recovery ({title} is still to be {done}){why}"
        ended = "resume --recover-only" if summary.ending is Ending.DONE else "resume"
        command = "rollback" if applies and found.restores else ended
        allows = found.outcome is ConfigMapOutcome.REFUSED
        if not after.is_superseded:
            yield f"      once the API server {'allows it' if allows else 'answers'}: rollout {command} {summary.run}"


def attendance_lines(summary: Summary, after: Afterwards) -> Iterator[str]:
    """The regions of the controller of a run. Without one: that none works on it, with the command that continues it."""
    attendance = after.controller
    if summary.phase is Phase.ENDED:
        return
    if attendance.alive:
        yield from (f"  {line}" for line in region_lines(attendance.regions))
        return
    yield f"  no controller is at work on this run{last_heartbeat(attendance)}"
    if not after.is_superseded:
        yield f"  To continue: rollout resume {summary.run}"
        return
    yield (
        f"  It cannot be continued: run {after.followed_by} followed it"
        if after.followed_by
        else "  It cannot be continued"
    )
    if summary.can_roll_back and after.may_undo:
        yield f"  To undo: rollout rollback {summary.run}"


def region_lines(regions: Sequence[RegionStanding]) -> Iterator[str]:
    for region in regions:
        names = f" ({', '.join(printable(name, 60) for name in region.workers)})" if region.workers else ""
        trip = "" if region.round_trip_seconds is None else f", round trip {1000 * region.round_trip_seconds:.0f} ms"
        at_work = f"{counted(region.calls, 'call')} in progress, {counted(region.nodes, 'node')} connected{trip}"
        yield f"region {printable(region.region, 60)}: {counted(len(region.workers), 'worker')}{names}, {at_work}"


def last_heartbeat(attendance: Attendance) -> str:
    """When a lost controller sent its last heartbeat; nothing if it has released its lease."""
    if attendance.silent is None:
        return ""
    return f": the last heartbeat came {attendance.silent:.0f} s ago from {printable(attendance.host)}"


def since_lines(since: Mapping[str, tuple[str, ...]]) -> Iterator[str]:
    """Reports that a later run rolled this one back: later rollback → its nodes."""
    for run, names in since.items():
        nodes = f" on {counted(len(names), 'node')} ({printable(fold(names), 200)})" if names else ""
        yield f"  since then run {run} rolled it back{nodes}"


def on_top_lines(on_top: Mapping[str, tuple[str, ...]]) -> Iterator[str]:
    """Newer runs with a change in force on nodes of this one."""
    for run, names in on_top.items():
        yield f"  newer changes on top: run {run} on {counted(len(names), 'node')} {printable(fold(names), 200)}"


def still_pending(nodes: str, after: Afterwards) -> str:
    """Of a nodeset: the nodes that no later run has reverted."""
    return fold(name for name in expand(nodes) if name not in after.recovered) if after.recovered and nodes else nodes


def forced_rollback(cluster: str, run: str, nodes: str) -> str:
    """The command that reverts a run on nodes where others wrote its files since. It needs no journal."""
    return f"rollout rollback {run} --cluster {cluster} --emergency --force --limit {shlex.quote(nodes)}"


FORCED = "The bytes of others are kept on the node. A newer run on these nodes is named, and is rolled back first"
"""What ``forced_rollback`` does."""


def recoverable(summary: Summary, after: Afterwards) -> str:
    """The nodeset that ``resume --recover-only`` would finish once it answers."""
    if summary.ending is not Ending.DONE or after.is_superseded:
        return ""
    forced = {name for nodes in summary.need_force.values() for name in expand(nodes)}
    pending = summary.pending_recovery.nodes
    return fold(name for name in expand(pending) if name not in forced) if forced and pending else pending


def is_fenced(summary: Summary) -> bool:
    """Whether a newer or an ended token stopped the run, and no claim: a resume takes a higher token."""
    return (
        summary.ending is Ending.CLAIMED
        and summary.halt is not None
        and summary.halt.reference in ("fenced", ENDED_HERE)
    )


def _where(summary: Summary) -> str:
    if summary.ending is not None and summary.exit_code is not None:
        left = ", incomplete" if summary.ending is Ending.DONE and summary.exit_code else ""
        return f"{summary.ending}{left}, exit code {summary.exit_code}"
    if summary.paused and not summary.halt and summary.phase in (Phase.RUNNING, Phase.SOAKING):
        return f"{'on hold' if summary.paused.held else 'paused'}, wave {summary.wave!r}"
    if summary.window and not summary.halt and summary.phase in (Phase.RUNNING, Phase.SOAKING):
        return f"outside its change window, wave {summary.wave!r}"
    return f"{summary.phase}, wave {summary.wave!r}"


def _by_others(reverted: str) -> str:
    """Behind the counts, which do not tell these nodes from those that this run has reverted."""
    return f" (reverted by another run: {printable(reverted, 160)})" if reverted else ""


def counts_text(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{count} {state}" for state, count in counts.items()) or "none"


def afterwards_lines(summary: Summary, after: Afterwards) -> Iterator[str]:
    """For people, on a terminal and on the page. What rolled the run back is said first, by ``since_lines``."""
    yield from attendance_lines(summary, after)
    yield from left_silences_lines(after.silences, summary.run, after.now)
    yield from late_lines(after.late, summary.run, after.now)
    yield from on_top_lines(after.on_top)


def late_lines(late: LateStatus | None, run: str, now: float) -> Iterator[str]:
    """What is watched after the end of the run, and until when; nothing for a run that is not watched."""
    if late is None:
        return
    if late.ended:
        yield f"  its watch has ended: {printable(late.ended, 400)}"
    elif late.harm:
        yield f"  late harm: {printable(late.harm, 400)}"
        yield f"  To undo: rollout rollback {run}"
    elif now >= late.until:
        yield f"  its watch is over since {wall(late.until)}: `rollout watch --late {run} --once` records how it ended"
    else:
        yield f"  its gates are watched until {wall(late.until)}; on late harm: {late.on_harm}"
    if late.verdict is not None and late.since is not None and not late.ended:
        yield f"  late gates: {late.verdict} since {wall(late.since)}: {printable(late.evidence, 300)}"
    elif late.verdict is None and not late.ended:
        yield f"  late gates: not measured yet: `rollout watch --late {run}`"
    if late.gaps:
        more = f" and {counted(len(late.gaps) - 1, 'earlier gap')}" if len(late.gaps) > 1 else ""
        yield f"  late gates: {printable(late.gaps[-1], 300)}{more}"


@dataclass(frozen=True, slots=True)
class SummaryDocument:
    """A run in a few lines: the last line that ``apply``, ``resume``, ``rollback`` and ``watch`` print."""

    summary: Inline[Summary]


@dataclass(frozen=True, slots=True)
class ControllerPart:
    """``alive``: it may still act. The others are ``None`` for a controller that has released its lease.

    ``regions``: at its last heartbeat; none if it reaches the nodes itself.
    """

    alive: bool
    host: str | None
    pid: int | None
    heartbeat: Moment | None
    regions: tuple[RegionStanding, ...]


@dataclass(frozen=True, slots=True)
class RolledBack:
    """A later rollback, and the nodes (a nodeset) on which it reverted the run."""

    run: str
    nodes: str
    count: int


@dataclass(frozen=True, slots=True)
class NewerRun:
    """A newer run with a change in force above this one, and the nodes (a nodeset) that have both."""

    run: str
    nodes: str
    count: int


@dataclass(frozen=True, slots=True)
class SinceThen:
    """What a run's own events do not show. ``controller`` is ``None`` once the run has ended.

    ``followed_by``: the newest later run of the cluster that acted; ``None``: there is none, so it may be resumed.
    """

    controller: ControllerPart | None
    silences: tuple[LeftSilence, ...]
    rolled_back: tuple[RolledBack, ...]
    on_top: tuple[NewerRun, ...]
    late: LateStatus | None
    followed_by: str | None


def since_then(summary: Summary, after: Afterwards) -> SinceThen:
    controller = controller_of(summary, after.controller, after.now)
    return SinceThen(
        controller,
        after.silences,
        rolled_back(after.rolled_back),
        newer_runs(after.on_top),
        after.late,
        after.followed_by or None,
    )


def controller_of(summary: Summary, attendance: Attendance, now: float) -> ControllerPart | None:
    """``None`` once the run has ended."""
    if summary.phase is Phase.ENDED:
        return None
    heartbeat = None if attendance.silent is None else now - attendance.silent
    return ControllerPart(attendance.alive, attendance.host or None, attendance.pid, heartbeat, attendance.regions)


def rolled_back(since: Mapping[str, tuple[str, ...]]) -> tuple[RolledBack, ...]:
    return tuple(RolledBack(run, fold(names), len(names)) for run, names in since.items())


def newer_runs(on_top: Mapping[str, tuple[str, ...]]) -> tuple[NewerRun, ...]:
    return tuple(NewerRun(run, fold(names), len(names)) for run, names in on_top.items())
