"""A run's summary, from its state alone: counts, folded failures, the rehearsal, the exit code; and what is kept of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Annotated

from rollout.core.model.config_map import ConfigMapOutcome
from rollout.core.model.fleet_changes import LEAVERS
from rollout.core.model.frozen import dataclass
from rollout.core.model.playbook import EMERGENCY_LIMITS
from rollout.core.presentation.waiting_nodes import (
    WaitingForBaselines,
    WaitingForData,
    WaitingForDrains,
    WaitingForPulls,
    data_seen,
    draining,
    pulling,
    without_baseline,
)
from rollout.core.run import drain_rounds, drains
from rollout.core.run.budgets import Distance, nearest
from rollout.core.run.facts import may_hold, needs_force
from rollout.core.run.order import predicted_seconds
from rollout.core.run.retries import need_a_plan, resume_has_work
from rollout.core.run.shown import was_reverted_by_others
from rollout.core.run.state import (
    ClosedWindow,
    Ending,
    Goal,
    Halt,
    LeftOut,
    NodeRecord,
    NodeState,
    Pause,
    Phase,
    Rehearsal,
    RunState,
)
from rollout.core.text.documents import Moment, PrintedKey, Shown
from rollout.core.text.message_folding import for_all, nameless
from rollout.core.text.nodesets import fold
from rollout.core.text.terminal import counted, seconds_text

_TROUBLE = (NodeState.FAILED, NodeState.REVERTED, NodeState.REFUSED, NodeState.UNREACHABLE, NodeState.UNKNOWN)
_EXIT = {Ending.HALTED: 3, Ending.INTERRUPTED: 130, Ending.PREFLIGHT: 2, Ending.CLAIMED: 5}

WITH_OTHERS = "taken-back-with-others"
"""The reference of nodes that are reverted because the run halted; they did not fail themselves."""


@dataclass(frozen=True, slots=True)
class FailureLog:
    """The last log lines of ``node`` before its change was reverted, the oldest first; see ``LastLog``."""

    node: str
    exited: str
    lines: tuple[str, ...]

    def __str__(self) -> str:
        exited = f"its process exited ({self.exited}); " if self.exited else ""
        return f"{self.node}: {exited}the last log lines before its revert:"


def failure_log(state: RunState, names: Iterable[str]) -> FailureLog | None:
    """Of the first of these nodes that has one."""
    for name in names:
        if (log := state.nodes[name].log) is not None:
            return FailureLog(name, log.exited, log.lines)
    return None


@dataclass(frozen=True, slots=True)
class Trouble:
    """Nodes that share a state and a message, folded into one nodeset. ``log``: of the first of them that has one."""

    state: NodeState
    reference: str
    message: str
    nodes: str
    count: int
    log: FailureLog | None = None


@dataclass(frozen=True, slots=True)
class WaveSummary:
    """``reverted_by_others``: of the reverted nodes those that another run has reverted, as a nodeset."""

    name: str
    total: int
    counts: Mapping[str, int]
    reverted_by_others: str


_BUDGET = Shown(
    """The place of a scope that is nearest to halting the run: at ``left`` more failed nodes.

``name`` is the wave's or the rack's; ``""``: the fleet.""",
    ("scope", "name", "wrong", "limit", "left"),
)
ShownHalt = Annotated[
    Halt, Shown("Why nothing new is released, and since when.", ("reference", "message", PrintedKey("at", kind=Moment)))
]
_PAUSE = Shown(
    "``held``: a wave of the playbook holds, else ``by`` paused the run.",
    ("held", PrintedKey("who", "by"), "reason", PrintedKey("at", kind=Moment)),
)
_CLOSED = Shown(
    "The change window is closed since ``at``. ``opens`` ``None``: not known when it opens again.",
    ("why", PrintedKey("at", kind=Moment), PrintedKey("opens", kind=Moment | None)),
)


@dataclass(frozen=True, slots=True)
class PendingRecovery:
    """Nodesets. ``changes``: the change is still to be applied or reverted there; ``cordons``: only the cordon is still
    to be lifted; ``nodes``: both.
    """

    nodes: str
    changes: str
    cordons: str


@dataclass(frozen=True, slots=True)
class Leftover:
    """What a run could not remove; ``node`` ``None``: it is on no node."""

    node: str | None
    text: str

    def __str__(self) -> str:
        return f"{self.node}: {self.text}" if self.node else self.text


@dataclass(frozen=True, slots=True)
class ShownConfigMap:
    """A ConfigMap that the run writes, or a rollback or a halted run restores. ``outcome``: as it was read then; ``None``: not yet.

    ``pending``: it is still to be written or restored. ``sent``: it was asked for. ``restores``: it is, or was last, to have its old text.
    """

    namespace: str
    name: str
    key: str
    outcome: ConfigMapOutcome | None
    reference: str
    message: str
    pending: bool
    sent: bool
    restores: bool


@dataclass(frozen=True, slots=True)
class Rehearsed:
    """``done`` of ``nodes`` were reverted once, ``healthy`` of them answered that they are healthy since, ``reverting`` are being reverted.

    A revert that a new controller found in a receipt shows no health. Seconds are the longest measured; 0: none.

    ``fleet_seconds`` is how long an emergency rollback of every node of the run would take at that time per node.
    """

    nodes: int
    done: int
    healthy: int
    reverting: int
    revert_seconds: float
    apply_seconds: float
    fleet_seconds: float

    def __str__(self) -> str:
        if not self.done:
            return f"rehearsal: {self.reverting} of {counted(self.nodes, 'node')} being reverted"
        took = f", in at most {seconds_text(self.revert_seconds)} per node" if self.revert_seconds else ""
        fleet = (
            f"; an emergency rollback of all nodes would take about {seconds_text(self.fleet_seconds)}"
            if self.fleet_seconds
            else ""
        )
        healthy = ", healthy" if self.healthy == self.done else f", {self.healthy} of them observed healthy"
        return f"rehearsal: {self.done} of {counted(self.nodes, 'node')} reverted once{healthy}{took}{fleet}"


@dataclass(frozen=True, slots=True)
class Summary:
    """A run in a few lines. ``exit_code`` is ``None`` while it has not ended; ``cancelled``, ``cordoned``, ``need_a_plan`` and
    ``reverted_by_others`` are nodesets.
    """

    run: str
    cluster: str
    goal: Goal
    phase: Phase
    wave: str
    ending: Ending | None
    exit_code: int | None
    halt: ShownHalt | None
    paused: Annotated[Pause, _PAUSE] | None
    window: Annotated[ClosedWindow, _CLOSED] | None
    rehearsal: Rehearsed | None
    budgets: tuple[Annotated[Distance, _BUDGET], ...]
    counts: Mapping[str, int]
    reverted_by_others: str  # of the reverted nodes: those that another run has reverted
    waves: tuple[WaveSummary, ...]
    troubles: tuple[Trouble, ...]
    left_out: tuple[LeftOut, ...]
    pending_recovery: PendingRecovery
    leftovers: tuple[Leftover, ...]
    pulling: WaitingForPulls | None
    baselines: WaitingForBaselines | None
    draining: WaitingForDrains | None
    soak: WaitingForData | None
    cancelled: str  # nodes that were changed while they pulled images
    cordoned: str  # nodes not in flight that may still have the run's cordon
    need_a_plan: str  # nodes that the run left without its change; no resume tries them again
    need_force: Mapping[
        str, str
    ]  # run to revert → nodes where others wrote its files: only a forced revert overwrites them
    config_map: ShownConfigMap | None
    can_resume: bool  # a resume would do something, unless another run has followed
    can_roll_back: bool  # a node may have the run's change, or the run has not ended


def summarize(state: RunState) -> Summary:
    """Fold a state."""
    order, running = state.order, state.phase is Phase.RUNNING
    owed = owed_nodes(state)
    only_cordon = {name for name in owed if drain_rounds.owes_a_cordon(state.nodes[name])}
    return Summary(
        run=order.run,
        cluster=order.cluster,
        goal=order.goal,
        phase=state.phase,
        wave=order.waves[min(state.wave, len(order.waves) - 1)].name if order.waves else "",
        ending=state.ending,
        exit_code=exit_code(state),
        halt=state.halt,
        paused=state.paused,
        window=state.closed,
        rehearsal=rehearsed(state),
        budgets=tuple(nearest(order, state.nodes, state.wave)),
        counts=_counts(state, tuple(state.nodes)),
        reverted_by_others=_reverted_by_others(state, state.nodes),
        waves=tuple(
            WaveSummary(wave.name, len(wave.nodes), _counts(state, wave.nodes), _reverted_by_others(state, wave.nodes))
            for wave in order.waves
        ),
        troubles=troubles(state),
        left_out=order.left_out,
        pending_recovery=PendingRecovery(
            fold(owed), fold(name for name in owed if name not in only_cordon), fold(only_cordon)
        ),
        leftovers=(
            *(Leftover(None, left) for left in state.leftovers),
            *(
                Leftover(name, left)
                for name, record in state.nodes.items()
                for left in (*record.leftovers, *drains.kept(record))
            ),
        ),
        pulling=pulling(state, state.now) if running else None,
        baselines=without_baseline(state, state.now) if running else None,
        draining=draining(state, state.now) if running else None,
        soak=data_seen(state),
        cancelled=fold(name for name, record in state.nodes.items() if record.cancelled),
        cordoned=fold(cordons(state)),
        need_a_plan=fold(need_a_plan(state)),
        need_force=_need_force(state),
        config_map=shown_config_map(state),
        can_resume=resume_has_work(state),
        can_roll_back=_can_roll_back(state),
    )


def shown_config_map(state: RunState) -> ShownConfigMap | None:
    """``None``: the run has none, or has not come to it yet."""
    change, standing = state.order.config_map, state.config_map
    if change is None or state.ending is Ending.PREFLIGHT or not (standing.sent or state.phase is Phase.ENDED):
        return None
    return ShownConfigMap(
        change.namespace, change.name, change.key, standing.outcome, standing.reference, standing.message, state.owes_config_map,
        standing.sent, restores=standing.restores or state.order.goal is Goal.REVERT,
    )  # fmt: skip


def _need_force(state: RunState) -> dict[str, str]:
    found: dict[str, list[str]] = {}
    for name in owed_nodes(state):
        if needs_force(state.nodes[name]):
            found.setdefault(state.transaction(name).rpartition("-")[0], []).append(name)
    return {run: fold(names) for run, names in found.items()}


def _can_roll_back(state: RunState) -> bool:
    """A node that left the fleet cannot be reverted. The ConfigMap that a halted run may have written can."""
    if state.order.goal is Goal.REVERT or state.ending is Ending.PREFLIGHT:
        return False
    held = (record for record in state.nodes.values() if may_hold(record) and record.state is not NodeState.GONE)
    return state.phase is not Phase.ENDED or state.owes_config_map or any(held)


def owed_nodes(state: RunState) -> tuple[str, ...]:
    """Nodes pending recovery; none if preflight refused the run before it changed any."""
    if state.ending is Ending.PREFLIGHT:
        return ()
    return tuple(name for name, record in state.nodes.items() if record.owed)


def _reverted_by_others(state: RunState, names: Iterable[str]) -> str:
    return fold(name for name in names if was_reverted_by_others(state.nodes[name]))


def _counts(state: RunState, names: tuple[str, ...]) -> dict[str, int]:
    counts = Counter(str(state.nodes[name].state) for name in names)
    return {str(kind): counts[kind] for kind in NodeState if counts[kind]}


def troubles(state: RunState, names: Iterable[str] | None = None) -> tuple[Trouble, ...]:
    """Nodes (``None``: all) that failed, were reverted or are gone, folded by state and message.

    The culprits come first, then nodes that were reverted with them, then nodes that are gone; most nodes first within each.
    """
    together: dict[tuple[NodeState, str, str], list[str]] = {}
    expected = {NodeState.REVERTED} if state.order.goal is Goal.REVERT else set()
    for name in state.nodes if names is None else names:
        record = state.nodes[name]
        if record.state in (*_TROUBLE, NodeState.GONE) and record.state not in expected:
            message = record.message or _without_a_message(record)
            together.setdefault((record.state, record.reference, nameless(message, name)), []).append(name)
    folded = (
        Trouble(s, ref, for_all(message, nodes), fold(nodes), len(nodes), failure_log(state, nodes))
        for (s, ref, message), nodes in together.items()
    )
    return tuple(
        sorted(
            folded,
            key=lambda each: (each.state is NodeState.GONE, each.reference == WITH_OTHERS, -each.count, each.nodes),
        )
    )


def _without_a_message(record: NodeRecord) -> str:
    if record.state is NodeState.REVERTED and record.cause is None:
        return "reverted with the run"
    return "not read since the controller asked it last" if record.state is NodeState.UNKNOWN else ""


def exit_code(state: RunState) -> int | None:
    """Nodes that left the fleet before a change, or after it, are nobody's failure. A rollback without them may be incomplete.

    0 done · 2 preflight · 3 halted · 4 some nodes failed, or the ConfigMap is not as wanted · 5 claimed · 130 interrupted; ``None``: not ended."""
    if state.phase is not Phase.ENDED or state.ending is None:
        return None
    if state.ending in _EXIT:
        return _EXIT[state.ending]
    wrong = set(_TROUBLE) - ({NodeState.REVERTED} if state.order.goal is Goal.REVERT else set())
    left_out = [left for left in state.order.left_out if state.order.goal is Goal.REVERT or left.what not in LEAVERS]
    if state.order.config_map is not None and state.config_map.outcome is not ConfigMapOutcome.WRITTEN:
        return 4
    left = bool(left_out or state.leftovers) or any(record.leftovers for record in state.nodes.values())
    return 4 if left or any(record.state in wrong for record in state.nodes.values()) else 0


@dataclass(frozen=True, slots=True)
class NodeCount:
    """How many nodes, and which: a folded nodeset."""

    count: int
    nodes: str


@dataclass(frozen=True, slots=True)
class RunSummary:
    """How a run ended, in a stable form that a version with other rules can still show. Written once, at the end.

    Names are those of the journal's table ``summaries``. ``ended`` is seconds since the epoch. ``why``: the halt;
    ``""``: none. ``counter``: the highest token that the run had or saw.

    ``nodes`` is node state → nodes; ``owed``, ``cordoned`` are nodesets of work that was left. ``reverted`` (rollbacks
    only) is run → nodeset: the nodes where that run's change was reverted.
    """

    ended: float
    ending: str
    exit_code: int
    why: str
    counter: int
    nodes: Mapping[str, NodeCount]
    owed: str
    cordoned: str
    reverted: Mapping[str, str]


def run_summary(state: RunState) -> RunSummary:
    """Of a run that has ended."""
    told = summarize(state)
    together: dict[str, list[str]] = {}
    for name, record in state.nodes.items():
        together.setdefault(record.state.value, []).append(name)
    return RunSummary(
        ended=state.now,
        ending=state.ending.value if state.ending else "",
        exit_code=exit_code(state) or 0,
        why=str(told.halt or ""),
        counter=max(state.counter, state.highest),
        nodes={kind.value: _nodes(together[kind.value]) for kind in NodeState if kind.value in together},
        owed=told.pending_recovery.nodes,
        cordoned=fold(name for name, record in state.nodes.items() if record.cordoned),
        reverted={run: fold(names) for run, names in reverted(state).items()},
    )


def reverted(state: RunState) -> Mapping[str, tuple[str, ...]]:
    """Of a rollback: run → the nodes on which that run's change was reverted; of another run: nothing."""
    by_run: dict[str, tuple[str, ...]] = {}
    for name, record in state.nodes.items() if state.order.goal is Goal.REVERT else ():
        if record.state is NodeState.REVERTED:
            run = state.transaction(name).rpartition("-")[0]
            by_run[run] = (*by_run.get(run, ()), name)
    return by_run


def _nodes(names: list[str]) -> NodeCount:
    return NodeCount(len(names), fold(names))


def rehearsed(state: RunState) -> Rehearsed | None:
    """``None``: nothing was rehearsed (yet)."""
    if not state.order.rehearsal or not state.order.waves:
        return None
    records = [state.nodes[name] for name in state.order.waves[0].nodes]
    done = [record for record in records if record.rehearsal is Rehearsal.DONE]
    back = sum(record.rehearsal is Rehearsal.BACK for record in records)
    if not done and not back:
        return None
    longest = max((record.revert_seconds for record in done), default=0.0)
    hurried = replace(state.order, limits=EMERGENCY_LIMITS)
    return Rehearsed(
        nodes=len(records),
        done=len(done),
        healthy=sum(record.revert_seconds > 0 for record in done),
        reverting=back,
        revert_seconds=longest,
        apply_seconds=max((record.apply_seconds for record in records), default=0.0),
        fleet_seconds=predicted_seconds(hurried, longest) if longest else 0.0,
    )


def cordons(state: RunState) -> tuple[str, ...]:
    """Nodes that may still have the run's cordon: the run has ended, or the cordon could not be lifted or is kept."""
    ended = state.phase is Phase.ENDED
    stays = (
        name
        for name, record in state.nodes.items()
        if record.cordoned and (ended or record.uncordons or drains.kept(record))
    )
    return tuple(stays)
