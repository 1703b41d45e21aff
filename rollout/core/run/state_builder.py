"""A run state during one step: changes and questions are collected, then frozen again. Used only inside ``machine``."""

from __future__ import annotations

from typing import Any

from rollout.core.model.config_map import ConfigMapChange, ConfigMapStanding
from rollout.core.model.fleet_changes import FewerNodes
from rollout.core.run import drains, postponed
from rollout.core.run.commands import Ask, Command, JudgeWave, LiftSilences, OpenWave, PutConfigMap
from rollout.core.run.events import Trigger
from rollout.core.run.facts import Count, may_count
from rollout.core.run.layout import FLEET, place_of
from rollout.core.run.records import Records
from rollout.core.run.state import (
    Draining,
    Ending,
    Goal,
    NodeRecord,
    NodeState,
    Order,
    RunState,
    Verb,
    altered,
    transaction_of,
)
from rollout.core.run.transitions import GRACE, Circumstances, Decision, Heard, Next, moved


class StateBuilder:
    """See the module. ``nodes`` is read-only for callers: all writes go through ``put``."""

    def __init__(self, state: RunState, *, replays: bool = False) -> None:
        """``replays``: only the next state is wanted, so questions to nodes and gates are not made.

        Most of a replay's steps ask a node, and a gate is asked with the names of all.
        """
        self.state = state
        self.replays = replays
        self.now = state.now
        self._began = (state.phase, state.wave)
        self._known: dict[str, NodeRecord] = {}  # read or put: the newest of each
        self._put: dict[str, NodeRecord] = {}  # not in ``_nodes`` yet
        self._touched: set[str] = set()  # in this step
        self._changed = False  # a record was, since ``state``
        self._asked: dict[int, int] = {}  # of the places that were asked about: how many of their nodes are asked
        self._first = self._nodes = Records.of(state.order, state.nodes, state.now, state.fewer)
        self.commands: list[Command] = []

    @property
    def nodes(self) -> Records:
        """All records. To read one of them, ``record`` is faster."""
        if self._put:
            self._nodes = self._nodes.replaced(self._put)
            self._put = {}
        return self._nodes

    def settle(self) -> None:
        """Nodes that have settled by now no longer count as unavailable. That alone is no change of the run."""
        self._nodes = self.nodes.at(self.now)

    def resize(self, fewer: FewerNodes) -> None:
        """Racks or zones have fewer nodes from now on: their limits are smaller."""
        if fewer != self.state.fewer:
            self.set(fewer=fewer)
            self._nodes = Records.of(self.state.order, self.nodes, self.now, fewer)
            self._changed = True

    def record(self, name: str) -> NodeRecord:
        record = self._known.get(name)
        if record is None:
            record = self._known[name] = self._first[name]
        return record

    def get(self, name: str) -> NodeRecord | None:
        """``None``: the run does not have this node."""
        known = self._known.get(name)
        return self.record(name) if known is None and name in self._first else known

    def next_step(self, now: float) -> None:
        """Begin the next step. A builder that serves many steps knows the records it has read; ``finish`` freezes those it has changed."""
        self.state = altered(self.state, {"now": now})
        self.now = now
        self._began = (self.state.phase, self.state.wave)
        self._touched.clear()

    def finish(self) -> tuple[RunState, tuple[Command, ...]]:
        """The state and the commands since the last time."""
        if self._changed:
            self.state = altered(self.state, {"nodes": self.nodes})
            self._changed = False
        commands, self.commands = tuple(self.commands), []
        return self.state, commands

    def set(self, **changes: Any) -> None:
        self.state = altered(self.state, changes)

    def put(self, name: str, **changes: Any) -> None:
        before = self.record(name)
        self._keep(name, before, altered(before, changes))

    def keep(self, name: str, record: NodeRecord) -> None:
        """This is the node's record from now on."""
        before = self.record(name)
        if record is not before:
            self._keep(name, before, record)

    def _keep(self, name: str, before: NodeRecord, record: NodeRecord) -> None:
        self._known[name] = self._put[name] = record
        self._touched.add(name)
        self._changed = True
        more = (record.asked is not None) - (before.asked is not None)
        if more and self._asked:
            for place in (FLEET, place_of(self.state.order.nodes[name].wave)):
                if place in self._asked:
                    self._asked[place] += more

    def is_asked(self, wave: int | None = None) -> bool:
        """Whether a node of the wave, or of the run, is asked.

        Every step needs to know. So it is counted here: the records that a step has put are counted and listed only when
        one of their other counters is read.
        """
        place = FLEET if wave is None else place_of(wave)
        if place not in self._asked:
            self._asked[place] = self.nodes.count(Count.ASKED, place)
        return self._asked[place] > 0

    def may_have_failed(self) -> bool:
        """Whether more may count against a budget than before this event, or a budget may be smaller. If not, none needs a check."""
        if (self.state.phase, self.state.wave) != self._began:
            return True
        for name in self._touched:
            record = self._known[name]
            if may_count(record) or record.state is NodeState.GONE:
                return True
        return False

    def seen_counter(self, counter: int) -> None:
        if counter > self.state.highest:
            self.set(highest=counter)


# A node moves, and is asked what its move asks for.


_ASKS = {
    Next.APPLY: Verb.APPLY, Next.DRAIN: Verb.DRAIN, Next.MEASURE: Verb.MEASURE, Next.CONFIRM: Verb.CONFIRM,
    Next.READ: Verb.READ,
}  # fmt: skip


def patience(order: Order) -> float:
    """Seconds after which a node is given up that does not answer or cannot be reverted."""
    return order.guard + GRACE


def circumstances(builder: StateBuilder, name: str) -> Circumstances:
    """What a move of this node may depend on now."""
    state, order = builder.state, builder.state.order
    node = order.nodes[name]
    return Circumstances(
        builder.now, order.goal, patience(order), node.settle, node.drain, order.pulls, state.halt is not None,
        state.halt is not None and state.halt.ending is Ending.CLAIMED,
        state.wave >= len(order.waves) or order.waves[state.wave].soak > 0,
    )  # fmt: skip


def transition(
    builder: StateBuilder, name: str, heard: Trigger | Decision | Heard, reference: str = "", message: str = ""
) -> None:
    """Move a node, and send its next verb."""
    if not isinstance(heard, Heard):
        heard = Heard(heard, reference, message)
    follow(builder, name, *moved(builder.record(name), heard, circumstances(builder, name)))


def follow(builder: StateBuilder, name: str, record: NodeRecord, then: Next) -> None:
    """Keep the record after a move, and ask what follows from it."""
    builder.keep(name, record)
    if then in _ASKS:
        ask(builder, name, _ASKS[then])


# The questions that a step sends: to a node, and to the wave gates.


_RESTARTS = frozenset({Verb.APPLY, Verb.REVERT})


def ask(builder: StateBuilder, name: str, verb: Verb, *, count_pulls: bool = False) -> None:
    """Send a verb to a node; its answer must carry the new serial."""
    record = builder.record(name)
    changes: dict[str, Any] = {"asked": verb, "serial": record.serial + 1}
    if verb is Verb.APPLY:
        changes["touched"] = True
    if verb is Verb.DRAIN:
        changes |= {"cordoned": True, "uncordons": 0}
    builder.put(name, **changes)
    if verb in _RESTARTS:
        window = max(64, 2 * int(builder.state.order.limits.pace))
        builder.set(started=(*builder.state.started, builder.now)[-window:])
    if builder.replays:
        return
    order, at = builder.state.order, record.current
    regardless = verb is Verb.APPLY and postponed.goes_regardless(record.postponed, order.pulls, builder.now)
    left = drains.left(order.nodes[name].drain, at.since, builder.now) if isinstance(at, Draining) else 0.0
    tx = transaction_of(order, name, record)
    evidence = verb is Verb.REVERT and record.cause is not None
    void = verb is Verb.READ and record.state is NodeState.UNKNOWN and order.goal is Goal.APPLY
    builder.commands.append(
        Ask(
            name, verb, record.serial + 1, tx, builder.state.counter, record.baseline, record.since, regardless, left,
            evidence, count_pulls, void,
        )
    )  # fmt: skip


def did_not_restart(builder: StateBuilder, name: str) -> None:
    """An apply that was to restart a node did not change it: it no longer counts in the pace's window."""
    asked_at = builder.record(name).since
    if asked_at in builder.state.started:
        at = builder.state.started.index(asked_at)
        builder.set(started=builder.state.started[:at] + builder.state.started[at + 1 :])


def open_wave(builder: StateBuilder) -> None:
    builder.set(gate_asked=True)
    if builder.replays:
        return
    wave, baselines = builder.state.wave, builder.state.baselines
    earlier = baselines.get(wave) or baselines.get(wave - 1, "")
    builder.commands.append(OpenWave(wave, builder.state.order.waves[wave].nodes, earlier, _changed(builder)))


def judge_wave(builder: StateBuilder) -> None:
    """Ask the wave gates; the control group is nodes that are not changed yet."""
    builder.set(gate_asked=True)
    if builder.replays:
        return
    wave, changed = builder.state.wave, _changed(builder)
    control = tuple(
        name for name, record in builder.nodes.items() if record.state is NodeState.PENDING and not record.cordoned
    )
    builder.commands.append(JudgeWave(wave, builder.state.baselines.get(wave, ""), changed[wave], control, changed))


def _changed(builder: StateBuilder) -> tuple[tuple[str, ...], ...]:
    """The confirmed nodes of each wave."""
    return tuple(
        tuple(name for name in wave.nodes if builder.record(name).state is NodeState.CONFIRMED)
        for wave in builder.state.order.waves
    )


def lift_silences(builder: StateBuilder) -> None:
    builder.set(lifting=True)
    builder.commands.append(LiftSilences(builder.state.silences))


def put_config_map(builder: StateBuilder) -> bool:
    """Ask for the run's ConfigMap, once for each controller. Returns whether nothing is outstanding."""
    return _put(builder, builder.state.order.config_map, restores=builder.state.order.goal is Goal.REVERT)


def restore_config_map(builder: StateBuilder) -> bool:
    """Ask for the old text where a run that halts may have written the new one. Returns whether nothing is outstanding."""
    change = builder.state.order.config_map if builder.state.config_map.sent else None
    return _put(builder, change.undone if change is not None else None, restores=True)


def _put(builder: StateBuilder, change: ConfigMapChange | None, *, restores: bool) -> bool:
    standing = builder.state.config_map
    if change is None or standing.outcome is not None:
        return True
    if not standing.asked:
        builder.set(config_map=ConfigMapStanding(sent=True, asked=True, restores=restores))
        builder.commands.append(PutConfigMap(change, void=restores))
    return False
