"""A run state during one step: changes are collected, then frozen again. Used only inside ``machine.step``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from rollout.core.model.playbook import Cause, RevertScope
from rollout.core.run import drains, pulls
from rollout.core.run.budgets import may_count
from rollout.core.run.commands import Ask, Command, JudgeWave, LiftSilences, OpenWave
from rollout.core.run.events import FENCES, Trigger
from rollout.core.run.replace import altered
from rollout.core.run.state import Ending, Goal, Halt, NodeRecord, NodeState, Phase, Rehearsal, RunState, Verb
from rollout.core.run.transitions import Move, Next, ResolvedTrigger, move, resolve_trigger

MOST_ATTEMPTS = 3
"""How often a node is tried if its connection drops before anything happened."""

READ_EVERY = 2.0
"""Seconds between two reads of a node that does not answer."""

GRACE = 60.0
"""Seconds after the guard's time until a node without an answer is given up: unreachable, pending recovery."""

_RESTARTS = frozenset({Verb.APPLY, Verb.REVERT})
_ASKS = {
    Next.APPLY: Verb.APPLY, Next.DRAIN: Verb.DRAIN, Next.MEASURE: Verb.MEASURE, Next.CONFIRM: Verb.CONFIRM,
    Next.READ: Verb.READ,
}  # fmt: skip


class StateBuilder:
    """See the module. ``nodes`` is read-only for callers: all writes go through ``put`` and ``transition``."""

    def __init__(self, state: RunState) -> None:
        self.state = state
        self.now = state.now
        self._began = (state.phase, state.wave)
        self._touched: set[str] = set()
        self._nodes: dict[str, NodeRecord] | None = None
        self._commands: list[Command] = []

    @property
    def nodes(self) -> Mapping[str, NodeRecord]:
        return self.state.nodes if self._nodes is None else self._nodes

    def finish(self) -> tuple[RunState, tuple[Command, ...]]:
        state = self.state if self._nodes is None else altered(self.state, nodes=self._nodes)
        return state, tuple(self._commands)

    def set(self, **changes: Any) -> None:
        self.state = altered(self.state, **changes)

    def put(self, name: str, **changes: Any) -> None:
        if self._nodes is None:
            self._nodes = dict(self.state.nodes)
        self._nodes[name] = altered(self._nodes[name], **changes)
        self._touched.add(name)

    def may_have_gone_wrong(self) -> bool:
        """Whether more may count against a budget than before this event. If not, budgets need no check."""
        moved = (self.state.phase, self.state.wave) != self._began
        return moved or any(may_count(self.nodes[name]) for name in self._touched)

    def ask(self, name: str, verb: Verb) -> None:
        """Send a verb to a node; its answer must carry the new serial."""
        record = self.nodes[name]
        if verb in _RESTARTS:
            window = max(64, 2 * int(self.state.order.limits.pace))
            self.set(started=(*self.state.started, self.now)[-window:])
        if verb is Verb.DRAIN:
            self.put(name, cordoned=True, draining=record.draining or drains.begun(self.now))
        self.put(name, asked=verb, serial=record.serial + 1)
        tx = altered(self.state, nodes=self.nodes).transaction(name)
        regardless = verb is Verb.APPLY and pulls.goes_regardless(record, self.state.order, self.now)
        left = drains.left(self.state.order.nodes[name], self.nodes[name], self.now) if verb is Verb.DRAIN else 0.0
        self._commands.append(
            Ask(name, verb, record.serial + 1, tx, self.state.counter, record.baseline, record.since, regardless, left)
        )

    def did_not_restart(self, name: str) -> None:
        """An apply that was to restart a node did not change it: it no longer counts in the pace's window."""
        asked_at = self.nodes[name].since
        if asked_at in self.state.started:
            at = self.state.started.index(asked_at)
            self.set(started=self.state.started[:at] + self.state.started[at + 1 :])

    def open_wave(self) -> None:
        self.set(gate_asked=True)
        self._commands.append(OpenWave(self.state.wave, self.state.order.waves[self.state.wave].nodes))

    def judge_wave(self) -> None:
        """Ask the wave gates; the control group is nodes that are not changed yet."""
        self.set(gate_asked=True)
        names = self.state.order.waves[self.state.wave].nodes
        touched = tuple(name for name in names if self.nodes[name].state is NodeState.CONFIRMED)
        control = tuple(
            name for name, record in self.nodes.items() if record.state is NodeState.PENDING and not record.cordoned
        )
        self._commands.append(
            JudgeWave(self.state.wave, self.state.baselines.get(self.state.wave, ""), touched, control)
        )

    def lift_silences(self) -> None:
        self.set(lifting=True)
        self._commands.append(LiftSilences(self.state.silences))

    @property
    def patience(self) -> float:
        """Seconds after which a node is given up that does not answer or cannot be reverted."""
        return self.state.order.guard + GRACE

    def transition(self, name: str, trigger: Trigger | ResolvedTrigger, reference: str = "", message: str = "") -> None:
        """Move a node by the table, record why, and send the next verb."""
        record = self.nodes[name]
        sharp = (
            resolve_trigger(trigger, reference, record, self.state.order.goal)
            if isinstance(trigger, Trigger)
            else trigger
        )
        if sharp is ResolvedTrigger.UNFINISHED and record.owed and self.now > record.since + self.patience:
            sharp = ResolvedTrigger.GIVEN_UP
        found = move(record.state, sharp)
        changes: dict[str, Any] = {
            "state": found.to,
            "cause": _charge(record, found),
            "owed": found.owed or (record.owed and (found.to not in _AT_PEACE or bool(drains.left_behind(record)))),
        }
        if sharp is ResolvedTrigger.TAKEN_BACK_BY_OTHERS:
            changes |= {"reference": sharp, "message": "the change was reverted, but not by this run"}
        elif trigger not in _GOOD_NEWS:
            changes |= {"reference": reference, "message": message or _remembered(trigger, record)}
        if found.to is not record.state:
            changes |= self._entering(name, record, found.to)
        if _counts_anew(record, trigger, found.to):
            changes["since"] = self.now
        if sharp is ResolvedTrigger.REHEARSED:
            changes["rehearsal"] = Rehearsal.DONE
        if trigger in (Trigger.UNREACHED, Trigger.LOST) and record.state is NodeState.UNKNOWN:
            changes["reads"] = record.reads + 1
        self.put(name, **changes)
        self._follow(name, found.then)

    def _entering(self, name: str, record: NodeRecord, to: NodeState) -> dict[str, Any]:
        """What else changes when a node enters a state. It is drained, if at all, as long as it is ``applying``."""
        if record.draining is not None:
            return {"draining": None, **self._entering(name, replace(record, draining=None), to)}
        settle = self.now + self.state.order.nodes[name].settle
        if to is NodeState.APPLIED or (to is NodeState.REVERTED and record.state is not NodeState.PENDING):
            return {"busy_until": settle, "orphaned": record.orphaned and to is NodeState.APPLIED, "reads": 0}
        if to is NodeState.PENDING and record.rehearsal is Rehearsal.BACK:
            return {"busy_until": settle}
        if to is NodeState.APPLYING:
            return {"orphaned": False, "accepted": False}  # from here on this controller is responsible for it
        if to is NodeState.REVERTING:
            return {"want_back": True}
        if to is NodeState.CONFIRMED:
            return {
                "orphaned": False,
                "reads": 0,
                "passes": 0,
                "want_back": record.want_back and self._goes_back(record),
            }
        if to is NodeState.UNKNOWN:
            return {"reads": 0}
        return {}

    def _goes_back(self, record: NodeRecord) -> bool:
        """Whether a confirmed node that was to be reverted still must be: not because of a halt that was accepted."""
        forth = self.state.order.goal is Goal.APPLY and self.state.halt is None
        sick = record.cause not in (None, Cause.UNREACHABLE)
        return not forth or sick or record.rehearsal is Rehearsal.BACK

    def _follow(self, name: str, then: Next) -> None:
        """Does nothing when another run has nodes of ours: armed nodes are left to their guards."""
        if self.state.halt is not None and self.state.halt.ending is Ending.CLAIMED:
            return
        if then in _ASKS:
            self.ask(name, _ASKS[then])
        elif then is Next.READ_LATER:
            self.put(name, retry_at=self.now + READ_EVERY)
        elif then is Next.RETRY:
            self._retry(name)

    def _retry(self, name: str) -> None:
        record = self.nodes[name]
        tried = record.attempt - (record.rehearsal is Rehearsal.DONE)
        if tried >= MOST_ATTEMPTS and not record.orphaned:
            self.put(name, state=NodeState.UNREACHABLE, cause=Cause.UNREACHABLE, owed=True)
        else:
            self.put(name, attempt=record.attempt + 1, want_back=False, orphaned=False, owed=False)
            self.put(name, rehearsal=not_begun(record.rehearsal))

    def seen_counter(self, counter: int) -> None:
        if counter > self.state.highest:
            self.set(highest=counter)

    def fenced(self, name: str, reference: str, message: str) -> None:
        """The node reports that another run has it. While opening, a higher token may still win; later a change must stop.

        A rollback continues without the node unless most nodes report this. One false report must not keep the change on
        all others. A node that another run does have refuses us by itself.
        """
        self.put(name, reference=reference, message=message)
        if self.state.phase is Phase.OPENING:
            return
        if self.state.order.goal is Goal.APPLY or self.is_taken_over():
            self.halt(Ending.CLAIMED, reference, f"{name}: {message}")
        else:
            self.transition(name, ResolvedTrigger.LEFT_TO_OTHERS, reference, message)

    def is_taken_over(self) -> bool:
        """Whether most nodes of the run report that another one has them."""
        return 2 * sum(record.reference in FENCES for record in self.nodes.values()) > len(self.nodes)

    def halt(self, ending: Ending, reference: str, message: str, revert: RevertScope | None = None) -> None:
        """Release nothing more; mark the nodes to revert: by ``revert``, or as set in the playbook.

        A takeover by another run ends a halting run, too. A rehearsal in progress becomes a plain revert.
        """
        if self.state.halt is not None and (ending is not Ending.CLAIMED or self.state.halt.ending is Ending.CLAIMED):
            return
        self.set(halt=Halt(ending, reference, message, self.now), phase=Phase.HALTING, paused=None)
        self.end_rehearsals()
        if ending is Ending.HALTED and self.state.order.goal is Goal.APPLY:
            self._mark_for_return(revert or self.state.order.on_failure)

    def end_rehearsals(self) -> None:
        """Confirmed nodes that were to be rehearsed keep their change. Nodes that are reverting stay reverted: a resume
        changes them again.
        """
        for name, record in tuple(self.nodes.items()):
            if record.rehearsal is Rehearsal.BACK:
                stays = record.state is NodeState.CONFIRMED
                self.put(name, rehearsal=Rehearsal.NONE, want_back=record.want_back and not stays)

    def _mark_for_return(self, scope: RevertScope) -> None:
        if scope is RevertScope.NODE:
            return
        for name, record in tuple(self.nodes.items()):
            here = self.state.order.nodes[name].wave == self.state.wave or scope is RevertScope.RUN
            if here and record.state in _TOUCHED:
                self.put(name, want_back=True, reference="taken-back-with-others", message="the run halted")

    def next_wave(self) -> None:
        """The next wave that has not passed yet, or has work again."""
        following = self.state.wave + 1
        while following < self.state.reached and not self._has_open(following):
            following += 1
        reached = max(self.state.reached, following)
        self.set(wave=following, reached=reached, phase=Phase.RUNNING, round=0, gate_passes=0)

    def first_open_wave(self) -> None:
        """After a resume: the first wave with work left, at most the current one, which has not passed yet."""
        first = next((index for index in range(self.state.wave) if self._has_open(index)), self.state.wave)
        self.set(wave=first, round=0, gate_passes=0)

    def _has_open(self, wave: int) -> bool:
        return any(self.nodes[name].state in _OPEN for name in self.state.order.waves[wave].nodes)


def not_begun(rehearsal: Rehearsal) -> Rehearsal:
    """The rehearsal of a node with nothing of it begun: ``BACK`` becomes ``NONE``, and is set again in the node's turn."""
    return Rehearsal.NONE if rehearsal is Rehearsal.BACK else rehearsal


def _remembered(trigger: Trigger | ResolvedTrigger, record: NodeRecord) -> str:
    """Why the confirm did not come in time, if known: the guard reports only that it did not."""
    if trigger is not Trigger.TAKEN_BACK_ALONE:
        return ""
    before = f": {record.message} [{record.reference}]" if record.message else ""
    return f"not confirmed in time, so the node reverted the change{before}"


def _counts_anew(record: NodeRecord, trigger: Trigger | ResolvedTrigger, to: NodeState) -> bool:
    """Whether a node's time starts again. A node pending recovery changes state without a new start, so that retries end.

    A new controller gives every node that it must ask the full time: no controller has asked since the last one died.
    """
    if trigger is Trigger.RESUMED:
        return to is NodeState.UNKNOWN
    return to is not record.state and not (record.owed and {record.state, to} == _GOING_BACK)


def _charge(record: NodeRecord, found: Move) -> Cause | None:
    """A charge stays, but a node that answers again is no longer unreachable."""
    if record.cause is Cause.UNREACHABLE and found.to in _SPEAKING:
        return found.charge
    return record.cause or found.charge


_GOOD_NEWS = frozenset(
    {
        Trigger.RELEASED, Trigger.UNTOUCHED, Trigger.ARMED, Trigger.CONFIRMED, Trigger.TAKEN_BACK_ASKED,
        Trigger.GATES_PASSED, Trigger.TAKE_BACK, Trigger.CLEANED, Trigger.RESUMED, Trigger.PULLING, Trigger.UNSEEN,
        Trigger.DRAINING, Trigger.DRAINED, ResolvedTrigger.TO_DRAIN, ResolvedTrigger.EMPTY_AND_PULLING,
    }
)  # fmt: skip
"""Triggers with messages that do not replace the recorded message of the node's last failure."""

_GOING_BACK = {NodeState.UNKNOWN, NodeState.REVERTING}
_SPEAKING = frozenset({NodeState.PENDING, NodeState.APPLIED, NodeState.CONFIRMED, NodeState.SKIPPED})
_AT_PEACE = frozenset({NodeState.CONFIRMED, NodeState.REVERTED, NodeState.SKIPPED, NodeState.PENDING})
_TOUCHED = frozenset({NodeState.APPLYING, NodeState.APPLIED, NodeState.CONFIRMED, NodeState.UNKNOWN})
_OPEN = frozenset({NodeState.PENDING, NodeState.APPLYING, NodeState.APPLIED, NodeState.UNKNOWN, NodeState.REVERTING})
