"""Follows runs event by event, only from the journal: for ``status``, ``watch``, ``resume``, and to know which have ended."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from threading import Lock

from rollout import __version__
from rollout.app.journal_away import AWAY
from rollout.app.ports import PastRuns, RunHeader
from rollout.core.model.plan import Plan
from rollout.core.model.playbook import RevertTimes
from rollout.core.model.report import Report
from rollout.core.model.snapshot import ReceiptState
from rollout.core.plans import plan_codec
from rollout.core.plans.receipt_history import OURS, OtherClusters
from rollout.core.presentation.left_silences import LeftSilence, Step, left_silences, sets_silences
from rollout.core.presentation.summary import RunSummary, run_summary
from rollout.core.presentation.summary_text import NOTHING_SINCE, Afterwards, Attendance
from rollout.core.run.events import Answered, Event, Resumed, Trigger
from rollout.core.run.journal_codec import decode_events, decode_order, rules_of
from rollout.core.run.late_watch import LateFindings, LateStatus, findings, is_watched, late_status
from rollout.core.run.machine import opening, replayed
from rollout.core.run.order import measured
from rollout.core.run.state import RULES, Ending, Goal, NodeState, Order, Phase, RunState, Verb
from rollout.core.run.state_codec import decode_state
from rollout.core.run.transitions import IllegalMoveError
from rollout.core.text.nodesets import expand
from rollout.errors import InputError, StateError

# The plans of earlier runs, as the journal has them.


def plan_of(header: RunHeader) -> Plan | None:
    """``None`` for a run without one (a rollback), and for a plan that another version of rollout wrote."""
    try:
        return plan_codec.decode_journaled(header.plan, header.run) if header.plan else None
    except InputError:
        return None


def playbook_of(journal: PastRuns, run: str) -> str:
    """The playbook of a run's plan; ``""`` for a rollback."""
    return plan_codec.selection_in(journal.header(run).plan)[0]


def at_the_end(journal: PastRuns, state: RunState) -> Afterwards:
    """What the events of a run that has just ended do not show. A journal that is away is not waited for."""
    try:
        return Afterwards(playbook=playbook_of(journal, state.order.run))
    except StateError:
        return NOTHING_SINCE


LOOK_EVERY = 0.5
"""Seconds between two looks into the journal of a run that is followed."""

AWAY_SECONDS = 90.0
"""Seconds to retry an unreachable journal: longer than the least time that a controller waits for it."""

LOOK_BACK = 5
"""Most runs of a cluster that are searched for the time that reverting a node took."""


class Follower:
    """``state``: the run after the events read so far. No event is read before the first ``catch_up``."""

    def __init__(self, journal: PastRuns, run: str) -> None:
        header = journal.header(run)
        self._journal = journal
        self._run = run
        self._read = 0
        self.state, _ = opening(order_of(header), header.counter, header.at)

    def catch_up(self) -> Sequence[Step]:
        """Read the new events, each with the state before and after it."""
        return tuple(self.steps())

    def steps(self) -> Iterator[Step]:
        """The same, one by one: the states of a large run take much memory together."""
        for event in self._new():
            before = self.state
            self.state = self._after(before, (event,))
            yield event, before, self.state

    def skip(self) -> None:
        """Read the new events without the states between them, which takes less time."""
        self.state = self._after(self.state, self._new())

    def _new(self) -> Iterator[Event]:
        for event in decode_events(self._journal.events(self._run, self._read)):
            self._read += 1
            yield event

    def _after(self, before: RunState, events: Iterable[Event]) -> RunState:
        try:
            return replayed(before, events)
        except IllegalMoveError as exc:
            raise StateError(
                "journal-unreadable",
                f"event {self._read} of {self._run} cannot be followed: {exc}",
                hint="another version of rollout wrote it: use that one, or `rollout rollback --cluster C --emergency`",
            ) from exc


def headers_of(journal: PastRuns, cluster: str) -> tuple[RunHeader, ...]:
    """The runs of a cluster, newest first, without their orders and plans."""
    return tuple(header for header in journal.listed() if header.cluster == cluster)


def order_of(header: RunHeader) -> Order:
    """The order of a run. ``StateError`` ``another-version`` names the version that can continue it."""
    try:
        return decode_order(header.order)
    except StateError as error:
        if error.reference != "another-version":
            raise
    rules = rules_of(header.order)
    began = f"rollout {header.version}, the version" if header.version else "the version of rollout"
    by = f"rules {rules}" if rules else "older rules"
    raise StateError(
        "another-version",
        f"run {header.run} follows {by}, rollout {__version__} follows rules {RULES}: it can be shown, not resumed",
        hint=f"finish it with {began} that started it, or `rollout rollback --cluster {header.cluster} --emergency`; "
        f"`rollout status {header.run}` shows what the journal records of it",
    )


def replay(journal: PastRuns, run: str) -> RunState:
    """The state of a run from its journal alone."""
    follower = Follower(journal, run)
    follower.skip()
    return follower.state


def state_to_show(journal: PastRuns, run: str) -> RunState:
    """The same for people: of a run that has ended, the state that its controller kept, if it belongs to just these events."""
    kept = journal.kept_end(run)
    if kept is None:
        return replay(journal, run)
    order = order_of(journal.header(run))
    try:
        state = decode_state(kept, order)
    except ValueError:
        return replay(journal, run)
    journal.events(run)  # raises if one was changed
    return state


def replay_if_readable(journal: PastRuns, run: str) -> RunState | None:
    """``replay``, but ``None`` for a run that is broken or of another version."""
    try:
        return replay(journal, run)
    except StateError:
        return None


def summary_of(journal: PastRuns, run: str) -> RunSummary | None:
    """How a run ended, or stands: only without a stored summary it is replayed. ``None``: it is broken or of another version."""
    summary = journal.summary(run)
    if summary is not None:
        return summary
    state = replay_if_readable(journal, run)
    return run_summary(state) if state is not None else None


def highest_seen(journal: PastRuns, run: str) -> int:
    """The highest token of a run, its resumes included; 0: it is broken or of another version."""
    summary = summary_of(journal, run)
    return summary.counter if summary is not None else 0


_ACTS = frozenset({Verb.DRAIN, Verb.APPLY, Verb.CONFIRM, Verb.REVERT})
"""Verbs that may change something on a node."""


def has_acted(journal: PastRuns, run: str) -> bool:
    """Whether a run has sent any node a verb that may change it, answered or not, or asked for its ConfigMap."""
    return any(True for _ in acted_on(journal, run)) or replay(journal, run).config_map.sent


def acted_on(journal: PastRuns, run: str) -> Iterator[str]:
    """The nodes that a run has sent such a verb, some of them several times. ``StateError``: its events cannot be followed."""
    follower = Follower(journal, run)
    unanswered: list[RunState] = []
    for event, before, _ in follower.steps():
        if isinstance(event, Answered) and event.verb in _ACTS:
            yield event.node
        if isinstance(event, Resumed):
            unanswered.append(before)  # its controller died: what was asked then will not be answered
    unanswered.append(follower.state)
    for state in unanswered:
        yield from (name for name, record in state.nodes.items() if record.asked in _ACTS)


TURNED_AWAY = frozenset({Ending.CLAIMED, Ending.PREFLIGHT})
"""Ends of runs that were refused before they touched a node, unless they acted before they were resumed."""


def last_that_acted(journal: PastRuns, cluster: str, *, or_else: str) -> RunState:
    """The newest run of a cluster that was not refused before it touched a node. The search ends at ``or_else``."""
    for header in headers_of(journal, cluster):
        state = replay(journal, header.run)
        if header.run == or_else or not _was_turned_away(journal, state):
            return state
    return replay(journal, or_else)


def followed_by(journal: PastRuns, run: str) -> str:
    """The newest later run of the same cluster that may have acted: ``run`` cannot be resumed any more. Empty: there is none."""
    for header in headers_of(journal, journal.header(run).cluster):
        if header.run == run:
            break
        summary = journal.summary(header.run)
        if summary is not None and summary.ending not in TURNED_AWAY:
            return header.run
        state = replay_if_readable(journal, header.run)
        if state is None or not _was_turned_away(journal, state):
            return header.run
    return ""


def _was_turned_away(journal: PastRuns, state: RunState) -> bool:
    """Whether it has touched nothing. A run that was resumed or taken over may have acted before it ended like this."""
    return state.ending in TURNED_AWAY and not has_acted(journal, state.order.run)


def follow(journal: PastRuns, run: str, wait: Callable[[float], None]) -> Iterator[Sequence[Step]]:
    """Batches of a run's events as they are journaled, until the run has ended or has no controller any more.

    The first batch contains all events so far. ``wait`` sleeps. An empty batch only means that time has passed. An
    unreachable journal is retried for at least as long as a controller waits for it.
    """
    follower = Follower(journal, run)
    away = 0.0
    while True:
        try:
            at_work = is_at_work(journal, follower.state.order.cluster, run)
            batch = follower.catch_up()
        except StateError as error:
            if error.reference != AWAY or away >= AWAY_SECONDS:
                raise
            away += LOOK_EVERY
            wait(LOOK_EVERY)
            yield ()
            continue
        away = 0.0
        yield batch
        if follower.state.phase is Phase.ENDED or not at_work:
            return
        wait(LOOK_EVERY)


def rolled_back_directly(journal: PastRuns, run: str) -> Mapping[str, tuple[str, ...]]:
    """Later rollback → the nodes where it reverted this run's change, oldest first, as far as this journal knows."""
    found: dict[str, tuple[str, ...]] = {}
    for later in rollbacks_of(journal, run):
        if back := _reverted(journal, later, run):
            found = {later: back, **found}
    return found


def released_since(journal: PastRuns, run: str) -> frozenset[str]:
    """The nodes where a later rollback found no change of this run, and ended its claim."""
    later = (rollback for rollback in rollbacks_of(journal, run) if _may_have_skipped(journal, rollback))
    states = (replay_if_readable(journal, rollback) for rollback in later)
    return frozenset(
        name
        for state in states
        if state is not None
        for name, record in state.nodes.items()
        if record.state is NodeState.SKIPPED and state.transaction(name).rpartition("-")[0] == run
    )


def _may_have_skipped(journal: PastRuns, run: str) -> bool:
    """Whether it may have skipped a node. The summary does not name the transaction that it looked for there."""
    summary = journal.summary(run)
    return summary is None or NodeState.SKIPPED in summary.nodes


def recovered_since(journal: PastRuns, state: RunState) -> frozenset[str]:
    """The nodes pending recovery of a run where a later rollback reverted the same transaction, or found it absent."""
    owed = {name: state.transaction(name) for name, record in state.nodes.items() if record.owed}
    found: set[str] = set()
    for later in headers_of(journal, state.order.cluster) if owed else ():
        if later.run == state.order.run:
            break
        if later.goal == Goal.REVERT:
            found |= _settled_by(journal, later.run, owed)
    return frozenset(found)


def _settled_by(journal: PastRuns, rollback: str, owed: Mapping[str, str]) -> set[str]:
    """The nodes of ``owed`` (node → transaction) that a rollback needs nobody to recover any more."""
    state = replay_if_readable(journal, rollback)
    if state is None:
        summary = journal.summary(rollback)
        known = summary.reverted if summary is not None else {}
        return {name for name, tx in owed.items() if name in expand(known.get(tx.rpartition("-")[0], ""))}
    there = {name: record for name, record in state.nodes.items() if owed.get(name) == state.transaction(name)}
    return {name for name, record in there.items() if record.state in (NodeState.REVERTED, NodeState.SKIPPED)}


def rollbacks_of(journal: PastRuns, run: str) -> Iterator[str]:
    """The later rollbacks that were ordered to revert this run, newest first."""
    for later in headers_of(journal, journal.header(run).cluster):
        if later.run == run:
            return
        if later.goal == Goal.REVERT and f'"{run}-' in journal.header(later.run).order:
            yield later.run


def _reverted(journal: PastRuns, rollback: str, run: str) -> tuple[str, ...]:
    """The nodes where a rollback reverted a run's change."""
    summary = summary_of(journal, rollback)
    return expand(summary.reverted[run]) if summary is not None and run in summary.reverted else ()


def is_at_work(journal: PastRuns, cluster: str, run: str) -> bool:
    """Whether a controller that may still be alive holds this run."""
    holder = journal.holder(cluster)
    return holder is not None and holder.run == run and holder.alive


def attendance(journal: PastRuns, cluster: str, run: str) -> Attendance:
    """The controller of a run, or its last one."""
    holder = journal.holder(cluster)
    if holder is None or holder.run != run:
        return Attendance(alive=False)
    return Attendance(holder.alive, holder.host, holder.silent, holder.pid, holder.regions)


def silences_left(journal: PastRuns, run: str, now: float) -> tuple[LeftSilence, ...]:
    """The silences that a run without a controller left and that have not expired at ``now``."""
    plan = plan_of(journal.header(run))
    return left_silences(Follower(journal, run).steps(), plan, now) if plan and sets_silences(plan) else ()


NOT_LATE = b'\n"late": null'
"""In the bytes of a plan without a watch: its whole text need not be read."""


def late_of(journal: PastRuns, state: RunState) -> LateStatus | None:
    """``None``: nothing is watched after this run."""
    if not is_watched(state) or state.order.goal is not Goal.APPLY:
        return None
    header = journal.header(state.order.run)
    plan = None if NOT_LATE in header.plan else plan_of(header)
    if plan is None or plan.late is None:
        return None
    return late_status(state, plan.late, late_findings(journal, state))


def late_findings(journal: PastRuns, state: RunState) -> LateFindings:
    return findings(state.order.run, ((note.at, note.text) for note in journal.notes(state.order.cluster)))


def runs_at_work(journal: PastRuns) -> tuple[str, ...]:
    """Runs of any cluster that may have a live controller."""
    holders = (journal.holder(cluster) for cluster in dict.fromkeys(header.cluster for header in journal.listed()))
    return tuple(holder.run for holder in holders if holder is not None and holder.alive)


def last_revert_times(journal: PastRuns, cluster: str) -> RevertTimes | None:
    """How long reverting a node took, from the newest of the last few runs that reverted one."""
    newest = [header.run for header in headers_of(journal, cluster)[:LOOK_BACK]]
    states = (replay_if_readable(journal, run) for run in newest if _reverted_a_node(journal, run))
    return next((measurement for state in states if state and (measurement := measured(state))), None)


def _reverted_a_node(journal: PastRuns, run: str) -> bool:
    """Whether an event may have measured a revert: told from the texts, because most runs revert nothing."""
    try:
        return any(f'"{Trigger.REVERTED_ON_REQUEST}"' in text for text in journal.events(run))
    except StateError:
        return False


# Which runs have ended, according to this journal. A claim that an ended run left on a node is void.


HasEnded = Callable[[str], bool]


def none_has_ended(_run: str) -> bool:
    return False


class EndedRuns:
    """Called on many threads with the run that a node names. Replays each run once. An unknown run has not ended."""

    def __init__(self, journal: PastRuns, cluster: str) -> None:
        self._journal = journal
        self._cluster = cluster
        self._lock = Lock()
        self._known: dict[str, bool] = {}

    def __call__(self, run: str) -> bool:
        with self._lock:
            if run not in self._known:
                self._known[run] = self._has_ended(run)
            return self._known[run]

    def _has_ended(self, run: str) -> bool:
        if all(header.run != run for header in headers_of(self._journal, self._cluster)):
            return False
        if self._journal.summary(run) is not None:
            return True
        state = replay_if_readable(self._journal, run)
        return state is not None and state.phase is Phase.ENDED


ClusterOf = Callable[[str], str]
"""Run → its cluster, if that is another one; ``""``: it is ours, or not known."""


def known_to_none(_run: str) -> str:
    return ""


def other_cluster(journal: PastRuns, cluster: str, run: str) -> str:
    """The cluster of a run that a node of ``cluster`` names: two inventories list that machine. ``""``: it is ours, or not known."""
    return other_clusters(journal, cluster).get(run, "")


def other_clusters(journal: PastRuns, cluster: str) -> OtherClusters:
    """The runs of all other clusters; none if the journal cannot be read."""
    with suppress(StateError):
        return {each.run: each.cluster for each in journal.listed() if each.cluster != cluster}
    return OURS


def gives_way(looked: Report, has_ended: HasEnded) -> bool:
    """Whether the claim on a node belongs to a run that has ended and left nothing armed there.

    ``looked``: read without a claim of ours. A newer token then takes the node over. The node refuses anything that the
    ended run may still send, because its token is older.
    """
    if looked.token is None or not looked.token.live or not has_ended(looked.token.run):
        return False
    return not any(receipt.state in _UNDER_WAY for receipt in looked.receipts)


_UNDER_WAY = frozenset({ReceiptState.ARMED, ReceiptState.REVERTING})
