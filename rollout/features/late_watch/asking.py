"""Watches a run after its end: asks its gates again, and keeps what it finds as notes in the journal.

Everything that a round depends on is in the journal, so that any later process goes on where the last one stopped.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Protocol

from rollout.app.call import CallPorts, Operator
from rollout.app.chosen_run import chosen_run
from rollout.app.following import last_that_acted, late_findings, late_of, plan_of, replay
from rollout.app.journal_away import AWAY
from rollout.app.node_gates import AGAIN_READY, NodeGates
from rollout.app.ports import Clock, Journal, Local, Note, Zones
from rollout.app.revert import RunResult, passed_lines, revert_by_journal, since_by_nodes
from rollout.app.rollbacks import rollback_order
from rollout.app.wave_gates import WaveGates, worst
from rollout.core.model.gates import GateScope
from rollout.core.model.plan import Plan
from rollout.core.model.playbook import LateWatch, OnLateHarm
from rollout.core.model.verdict import SEVERITY, SHOWN, Reading, Verdict
from rollout.core.plans.required_back_ends import needs_of
from rollout.core.presentation.notices import Notice
from rollout.core.run.commands import Ask, JudgeWave
from rollout.core.run.late_watch import LateFindings, LateNote, LateStatus, LateWord, ends_at, is_watched, late_passed
from rollout.core.run.state import NodeState, RunState, Verb
from rollout.core.text.terminal import counted, wall
from rollout.errors import StateError
from rollout.features.late_watch.rules import WORD_OF, changed_nodes, gap, judge_nodes, worth_a_note
from rollout.features.late_watch.words import late_harm, late_unknown

HEARTBEAT = 10.0
"""Seconds between two heartbeats of a watch."""

HARM, NOT_PASSED = 3, 4
"""Exit codes."""


class Notifier(Protocol):
    """Sends notices to people who do not watch."""

    def tell(self, notice: Notice, state: RunState) -> None: ...


class LatePorts(CallPorts, Protocol):
    """The ports of a call that watches a run after its end."""

    @property
    def zones(self) -> Zones: ...

    @property
    def local(self) -> Local: ...

    def notices(self, journal: Journal) -> AbstractContextManager[Sequence[Notifier]]:
        """None if no address is set."""
        ...


class LateOperator(Operator, Protocol):
    """The operator, who sees each round."""

    def known(self, run: str, cluster: str, late: LateStatus) -> None:
        """What the watch of a run knows after a round."""
        ...

    def result(self, found: RunResult) -> int:
        """What a rollback has not printed itself; its exit code."""
        ...

    def journal_away(self, error: StateError) -> None: ...


def watch_late(
    call: LatePorts, operator: LateOperator, run: str, every: float | None, wait: Callable[[float], None]
) -> int:
    """Measure the gates of a run (``""``: the newest) again until its watch ends, and act on harm; the exit code.

    ``every``: seconds between two rounds; ``None``: one round. ``wait`` sleeps.
    """
    journal = call.past()
    name = chosen_run(call, journal, run)
    with watching(journal, name), _watcher(call, journal, name, wait) as watcher:
        if every is None:
            return _acted(call, operator, watcher, watcher.round())
        return watcher.rounds(every, partial(_acted, call, operator, watcher), operator.journal_away)


def late_gates_pass(
    call: LatePorts, operator: LateOperator, journal: Journal, run: str, wait: Callable[[float], None]
) -> bool:
    """One round, and what follows from it; whether the gates pass. If another process watches the run, its newest note counts."""
    try:
        with watching(journal, run), _watcher(call, journal, run, wait) as watcher:
            _acted(call, operator, watcher, watcher.round())
    except StateError as error:
        if error.reference != "watched-already":
            raise
    state, _, watch = watched_run(journal, run)
    return late_passed(late_findings(journal, state), ends_at(state, watch), call.zones.wall_seconds())


@contextmanager
def _watcher(call: LatePorts, journal: Journal, run: str, wait: Callable[[float], None]) -> Iterator[LateWatcher]:
    state, plan, watch = watched_run(journal, run)
    inventory = call.inventory_or_remembered(state.order.cluster)
    with call.back_ends(inventory, needs_of(plan)) as backends:
        lasting = replace(plan, gates=tuple(gate for gate in plan.gates if gate.can_be_late))
        waves = WaveGates(run, lasting, call.local, call.clock, backends, call.who)
        nodes = NodeGates(plan, call.clock, backends)
        yield LateWatcher(journal, call.clock, run, plan, watch, waves, nodes, call.zones, wait, call.who)


def _acted(call: LatePorts, operator: LateOperator, watcher: LateWatcher, measured: LateRound) -> int:
    """Tell people what is new, roll back if it must be, and show what is known; the exit code."""
    journal = watcher.journal
    state = replay(journal, watcher.run)
    rolls_back = watcher.watch.then is OnLateHarm.ROLLBACK
    code = 0 if measured.verdict in (Verdict.PASS, None) else NOT_PASSED
    if measured.harm:
        code = HARM
        _tell(call, watcher, late_harm(state, measured.harm, rolls_back=rolls_back))
        if rolls_back:
            code = _rolled_back(call, operator, watcher) or HARM
        else:
            watcher.end(f"late harm: {measured.harm}")
    elif measured.changed and measured.verdict is Verdict.UNKNOWN:
        _tell(call, watcher, late_unknown(state, measured.evidence))
    state = replay(journal, watcher.run)
    late = late_of(journal, state)
    if late is not None:
        operator.known(watcher.run, state.order.cluster, late)
    return code


def _tell(call: LatePorts, watcher: LateWatcher, notice: Notice) -> None:
    with call.notices(watcher.journal) as notifiers:
        for notifier in notifiers:
            notifier.tell(notice, replay(watcher.journal, watcher.run))


def _rolled_back(call: LatePorts, operator: LateOperator, watcher: LateWatcher) -> int:
    """By the ordinary way of a rollback, within the limits of the run; the exit code."""
    watcher.heartbeat()
    journal = watcher.journal
    source = replay(journal, watcher.run)
    inventory = call.inventory_or_remembered(source.order.cluster)
    chosen, code = frozenset(inventory.nodes), 0
    with closing(call.nodes()) as nodes:
        since = since_by_nodes(call, journal, source, inventory, nodes, chosen)
        order = rollback_order(source, call.new_run_id(), None, inventory, watcher.plan.limits, since, force=False)
        operator.tell(passed_lines(call, inventory, watcher.plan))
        if order.nodes or order.config_map:
            code = operator.result(revert_by_journal(call, journal, source, order, inventory, chosen, since, nodes))
            ended = f"its rollback, run {order.run}, ended with exit code {code}"
        else:
            ended = "no run rolled it back: no node is left to be reverted"
    watcher.end(f"late harm; {ended}")
    return code


def watched_run(journal: Journal, run: str) -> tuple[RunState, Plan, LateWatch]:
    """``StateError``: this run is not watched."""
    state = replay(journal, run)
    if not is_watched(state):
        raise StateError("not-done", f"run {run} has not ended as done: {state.ending or state.phase}")
    plan = plan_of(journal.header(run))
    if plan is None or plan.late is None:
        raise StateError("not-watched", f"the playbook of run {run} has no `watchFor`")
    return state, plan, plan.late


@contextmanager
def watching(journal: Journal, run: str) -> Iterator[None]:
    """The lease of one watch. The cluster itself stays free. ``StateError`` ``watched-already``: another process has it."""
    try:
        journal.acquire(_lease(run), run)
    except StateError as error:
        if error.reference != "locked":
            raise
        holder = journal.holder(_lease(run))
        where = f" on {holder.host}, last heartbeat {holder.silent:.0f} s ago" if holder else ""
        raise StateError("watched-already", f"run {run} is watched by another process{where}") from None
    try:
        yield
    finally:
        with suppress(StateError):  # it expires without heartbeats
            journal.release(_lease(run), run)


def _lease(run: str) -> str:
    """No cluster has a name with a space."""
    return f"late watch of {run}"


@dataclass(frozen=True, slots=True)
class LateRound:
    """``harm``: this round made it harm, and nobody acted on it yet. ``ended``: the watch is over; why."""

    verdict: Verdict | None
    evidence: str
    changed: bool = False
    harm: str = ""
    ended: str = ""


@dataclass(slots=True)
class LateWatcher:
    """The rounds of one watch, under its lease. ``wait`` sleeps."""

    journal: Journal
    clock: Clock
    run: str
    plan: Plan
    watch: LateWatch
    wave_gates: WaveGates
    node_gates: NodeGates
    zones: Zones  # the end of a watch is a time of the wall clock, also after a suspend
    wait: Callable[[float], None]
    who: str
    looked: bool = field(default=False, init=False)

    def round(self) -> LateRound:
        """Ask every gate once, unless the watch is over."""
        state = replay(self.journal, self.run)
        so_far = late_findings(self.journal, state)
        if so_far.ended is not None:
            return LateRound(None, "", ended=so_far.ended.said)
        if over := self._over(state, so_far):
            return replace(self.end(over), verdict=Verdict.FAIL if so_far.harm is not None else None)
        if so_far.harm is not None:  # a process before this one found it and stopped
            return LateRound(Verdict.FAIL, so_far.harm.said, harm=so_far.harm.said)
        if not is_watched(state):
            return LateRound(Verdict.UNKNOWN, "the run is in progress: its controller measures its gates")
        if missed := gap(so_far, state.now, self.zones.wall_seconds()):
            self._note(LateWord.GAP, missed)
        verdict, evidence = self._judged(state)
        self.heartbeat()
        changed = so_far.last is None or so_far.last.word is not WORD_OF[verdict]
        if worth_a_note(so_far, verdict, self.zones.wall_seconds()):
            self._note(WORD_OF[verdict], evidence)
        failures = so_far.failures + 1 if verdict is Verdict.FAIL else 0
        if failures < self.plan.passes:
            return LateRound(verdict, evidence, changed)
        harm = f"{counted(failures, 'failure')} in a row; {evidence}"
        self._note(LateWord.HARM, harm)
        return LateRound(verdict, evidence, changed, harm)

    def rounds(self, every: float, act: Callable[[LateRound], int], away: Callable[[StateError], None]) -> int:
        """A round every so many seconds, until the watch ends or ``act`` was told of harm; its last answer.

        While the journal is away, ``away`` is told and it is tried again: what was not asked meanwhile becomes a gap.
        """
        while True:
            try:
                measured = self.round()
                code = act(measured)
                if measured.ended or measured.harm:
                    return code
                self.pause(every)
            except StateError as error:
                if error.reference != AWAY:
                    raise
                away(error)
                self.wait(HEARTBEAT)

    def end(self, why: str) -> LateRound:
        self._note(LateWord.ENDED, why)
        return LateRound(None, "", ended=why)

    def pause(self, seconds: float) -> None:
        """Wait until the next round, or until the watch ends, with heartbeats."""
        until = self.clock.now() + seconds
        ends = ends_at(replay(self.journal, self.run), self.watch)
        while (left := min(until - self.clock.now(), ends - self.zones.wall_seconds())) > 0:
            self.wait(min(left, HEARTBEAT))
            self.heartbeat()

    def heartbeat(self) -> None:
        """``StateError`` ``lease-lost``: another process watches this run now. A journal that is away may come back."""
        try:
            self.journal.renew(_lease(self.run), self.run)
        except StateError as error:
            if error.reference != AWAY:
                raise

    def _over(self, state: RunState, so_far: LateFindings) -> str:
        newest = last_that_acted(self.journal, state.order.cluster, or_else=self.run).order.run
        if newest != self.run and so_far.harm is not None:  # a process before this one may have died in its rollback
            return f"late harm was found, and run {newest} followed: `rollout status {newest}` shows how it ended"
        if newest != self.run:
            return f"run {newest} followed, and its nodes are no longer only of this run"
        until = ends_at(state, self.watch)
        if self.zones.wall_seconds() < until or so_far.harm is not None:
            return ""
        last = so_far.last
        if last is None:
            return f"its time was over at {wall(until)}, and its gates were never measured"
        if missed := gap(so_far, state.now, until):
            return f"its time was over at {wall(until)}, and its gates were {missed}; before that the verdict was {last.word}"
        return f"its time was over at {wall(until)}; the newest verdict is {last.word}, since {wall(so_far.since or last.at)}"

    def _judged(self, state: RunState) -> tuple[Verdict, str]:
        readings = [*self._of_waves(state), *self._of_nodes(state)]
        if not readings:
            return Verdict.UNKNOWN, "nothing to measure: no node has the change, or no gate can be late"
        verdict = worst(readings)
        those = [f"{reading.gate}: {reading.evidence}" for reading in readings if reading.verdict is verdict]
        return verdict, "; ".join(those[:SHOWN]) + (f" and {len(those) - SHOWN} more" if len(those) > SHOWN else "")

    def _of_waves(self, state: RunState) -> Iterator[Reading]:
        """The wave gates of each wave. All its nodes are changed, so it is compared with itself before the change."""
        for wave, ordered in enumerate(state.order.waves):
            touched = tuple(name for name in ordered.nodes if state.nodes[name].state is NodeState.CONFIRMED)
            if not touched or not any(gate.scope is GateScope.WAVE for gate in self.wave_gates.plan.gates):
                continue
            judged = self.wave_gates.judge(JudgeWave(wave, state.baselines.get(wave, ""), touched))
            evidence = judged.evidence or "its gates pass"
            yield Reading(f"wave {ordered.name}", judged.verdict, evidence)
            self.heartbeat()

    def _of_nodes(self, state: RunState) -> Iterator[Reading]:
        """The gates of the API server. A lease shows that it is renewed only from the second look on."""
        checks = [gate for gate in self.plan.gates if gate.can_be_late and gate.scope is GateScope.NODE]
        names = changed_nodes(state)
        if not checks or not names:
            return
        if not self.looked:
            self._look(state, names)
            settle = max(group.change.settle for group in self.plan.groups)
            self.wait(max(AGAIN_READY, settle + 1.0))
            self.looked = True
        verdict, evidence = judge_nodes(state, self._look(state, names))
        yield Reading("nodes", verdict, evidence)

    def _look(self, state: RunState, names: tuple[str, ...]) -> dict[str, Reading]:
        """The worst reading of each node."""
        changes = {group.name: group.change for group in self.plan.groups}
        worst_of: dict[str, Reading] = {}
        beat = self.clock.now()
        for name in names:
            ask = Ask(name, Verb.MEASURE, 0, state.transaction(name), state.counter, state.nodes[name].baseline)
            readings = self.node_gates.seen(ask, changes[self.plan.nodes[name].group])
            worst_of[name] = max(readings, key=lambda reading: SEVERITY[reading.verdict])
            if self.clock.now() - beat >= HEARTBEAT:
                self.heartbeat()
                beat = self.clock.now()
        return worst_of

    def _note(self, word: LateWord, said: str) -> None:
        at = self.zones.wall_seconds()
        self.journal.note(self.plan.cluster, Note(at, self.who, LateNote(at, word, said).text(self.run)))
