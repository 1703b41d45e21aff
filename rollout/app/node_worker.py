"""Carries one of the machine's commands to a node and brings back what it means.

A node's trouble is an event, never an exception. What is asked of the node is built, and its answer parsed, by the pure
functions in ``kubelet``; what it means for the run is decided by the machine.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import assert_never

from rollout.app.backends import Backends
from rollout.app.node_gates import NodeGates, UntouchableError
from rollout.app.node_pulls import asks_for_pulls, images_of
from rollout.app.ports import Clock, Local, Nodes, Target
from rollout.app.wave_gates import WaveGates
from rollout.core.model.plan import Change, Plan
from rollout.core.model.playbook import GateKind, GateScope
from rollout.core.model.remote import RemoteCommand
from rollout.core.model.report import Outcome, Report
from rollout.core.run.commands import Ask, Command, JudgeWave, LiftSilences, OpenWave
from rollout.core.run.events import Answered, Event, Trigger
from rollout.core.run.state import Verb
from rollout.core.run.triggers import reference_of, trigger_of
from rollout.kubelet.agent import agent_call
from rollout.kubelet.agent.agent_answer import parse_report
from rollout.kubelet.agent.agent_call import ApplyOrder, Claim, CommandGate, FileOrder, Measure

UNIT = "kubelet.service"
READ_SECONDS = 30.0
CONFIRM_SECONDS = 40.0
REVERT_SECONDS = 180.0
APPLY_MARGIN = 30.0
"""Seconds beyond the guard's time that an apply may take: staging happens before the guard is armed."""


@dataclass(frozen=True, slots=True)
class Way:
    """How nodes are reached: the program that does a node's work, whether through sudo, and where each node is."""

    program: str
    targets: Mapping[str, Target]
    sudo: Mapping[str, bool]


@dataclass(slots=True)
class NodeWorker:
    """Does the commands of one run. ``plan`` is ``None`` for a rollback, which needs only what lies on the nodes."""

    run: str
    way: Way
    nodes: Nodes
    local: Local
    clock: Clock
    plan: Plan | None = None
    take_over: bool = False  # claim nodes that another run still holds (rollback, emergency)
    force: bool = False  # revert over bytes that others wrote since: the operator's word
    backends: Backends = field(default_factory=Backends)
    who: str = ""
    kept: set[str] = field(default_factory=set)
    _node_gates: NodeGates | None = None

    def __post_init__(self) -> None:
        if self.plan is not None:
            self._node_gates = NodeGates(self.plan, self.clock, self.backends)

    def __call__(self, command: Command) -> Event:
        match command:
            case OpenWave():
                return self._wave_gates.open(command)
            case JudgeWave():
                return self._wave_gates.judge(command)
            case LiftSilences():
                return self._wave_gates.lift(command)
        return self._apply(command) if command.verb is Verb.APPLY else self._answered(command)

    def _apply(self, ask: Ask) -> Answered:
        """First the node's baseline, as late as can be: without it nothing could be told by, so nothing is touched.

        And later still its pulls: between that answer and the restart nothing else is waited for.
        """
        try:
            baseline = self._gates.baseline(ask.node)
        except UntouchableError as error:
            return Answered(
                self.clock.now(), ask.node, ask.serial, ask.verb, Trigger.REFUSED, error.reference, error.message
            )
        if not asks_for_pulls(self._plan.pulls, self._change(ask.node)):
            return self._answered(ask, baseline)
        looked = self._look_for_pulls(ask)
        if looked.outcome is not Outcome.DONE:
            self._release(ask.node)
            return self._event(ask, looked)
        pulls = images_of(looked)
        if pulls == () or ask.regardless:
            return self._answered(ask, baseline, pulls or ())
        self._release(ask.node)
        return Answered(self.clock.now(), ask.node, ask.serial, ask.verb, Trigger.PULLING, pulls=pulls or ())

    def _look_for_pulls(self, ask: Ask) -> Report:
        measure = Measure(UNIT, self._change(ask.node).healthz_port)
        sudo = self.way.sudo[ask.node]
        command = agent_call.status(self.way.program, tx=ask.tx, measure=measure, sudo=sudo, deadline=READ_SECONDS)
        started = self.clock.now()
        answer = self.nodes.run(self.way.targets[ask.node], command)
        return parse_report(ask.node, "status", answer, self.clock.now() - started)

    def _answered(self, ask: Ask, baseline: str = "", pulls: tuple[str, ...] = ()) -> Answered:
        report = self._ask(ask)
        self._keep_or_release(ask, report)
        return replace(self._event(ask, report), baseline=baseline, pulls=pulls)

    def _keep_or_release(self, ask: Ask, report: Report) -> None:
        """The connection of an apply is kept until its confirm; every other one is for one verb."""
        if report.outcome is Outcome.DONE and ask.verb is Verb.APPLY:
            self.kept.add(ask.node)
        elif report.outcome is not Outcome.DONE or ask.verb is not Verb.MEASURE or ask.node not in self.kept:
            self._release(ask.node)

    def _release(self, node: str) -> None:
        self.kept.discard(node)
        self.nodes.release(self.way.targets[node])

    def _event(self, ask: Ask, report: Report) -> Answered:
        trigger, message = trigger_of(report), report.message
        reference = reference_of(report, trigger)
        if ask.verb is Verb.MEASURE:
            trigger, reference, message = self._gates.judged(ask, report, self._change(ask.node))
        elif ask.verb is Verb.CLEAN:
            trigger = Trigger.CLEANED
        counter = report.token.counter if report.token else 0
        left = report.leftovers
        if ask.verb is Verb.CLEAN and report.outcome is not Outcome.DONE:
            left = (f"could not be left as found: {message} [{reference}]",)
        return Answered(
            self.clock.now(), ask.node, ask.serial, ask.verb, trigger, reference, message, counter, left, report.seconds
        )

    def _ask(self, ask: Ask) -> Report:
        if ask.verb in (Verb.APPLY, Verb.REVERT) and self._node_gates is not None:
            self._node_gates.forget(ask.node)
        started = self.clock.now()
        answer = self.nodes.run(self.way.targets[ask.node], self._command(ask))
        verb = _AGENT_VERBS[ask.verb]
        return parse_report(ask.node, verb, answer, self.clock.now() - started)

    def _command(self, ask: Ask) -> RemoteCommand:
        program, sudo = self.way.program, self.way.sudo[ask.node]
        match ask.verb:
            case Verb.READ:
                claim = Claim(ask.counter, self.run, force=self.take_over)
                return agent_call.status(program, tx=ask.tx, claim=claim, sudo=sudo, deadline=READ_SECONDS)
            case Verb.APPLY:
                order = self._order(ask)
                return agent_call.apply(program, order, sudo=sudo, deadline=order.guard + APPLY_MARGIN)
            case Verb.MEASURE:
                measure = self._measure(ask.node)
                return agent_call.status(program, tx=ask.tx, measure=measure, sudo=sudo, deadline=READ_SECONDS)
            case Verb.CONFIRM:
                return agent_call.confirm(
                    program, tx=ask.tx, run=self.run, counter=ask.counter, keep=self._plan.keep,
                    sudo=sudo, deadline=CONFIRM_SECONDS,
                )  # fmt: skip
            case Verb.REVERT:
                return agent_call.revert(
                    program, tx=ask.tx, run=self.run, counter=ask.counter, force=self.force,
                    sudo=sudo, deadline=REVERT_SECONDS,
                )  # fmt: skip
            case Verb.CLEAN:
                return agent_call.cleanup(
                    program, run=self.run, counter=ask.counter, sudo=sudo, deadline=READ_SECONDS
                )  # fmt: skip
        assert_never(ask.verb)

    @property
    def _plan(self) -> Plan:
        if self.plan is None:
            raise LookupError(_NO_PLAN)
        return self.plan

    def _change(self, node: str) -> Change:
        group = self._plan.nodes[node].group
        return next(entry.change for entry in self._plan.groups if entry.name == group)

    def _order(self, ask: Ask) -> ApplyOrder:
        plan, change = self._plan, self._change(ask.node)
        return ApplyOrder(
            tx=ask.tx,
            run=self.run,
            counter=ask.counter,
            machine_id=plan.nodes[ask.node].machine_id,
            guard=round(plan.guard),
            keep=plan.keep,
            unit=UNIT,
            healthz_port=change.healthz_port,
            files=tuple(FileOrder(f.path, f.before, f.after, f.mode, plan.blobs[f.after]) for f in change.files),
            units=change.units,
            arguments=change.arguments,
            hangups=change.hangups,
        )

    def _measure(self, node: str) -> Measure:
        change = self._change(node)
        paths = tuple(
            dict.fromkeys([*(f.path for f in change.files), *([change.config_path] if change.config_path else [])])
        )
        commands = tuple(
            CommandGate(gate.name, max(1, round(gate.timeout)), shlex.join(gate.command))
            for gate in self._plan.gates
            if gate.kind is GateKind.COMMAND and gate.scope is GateScope.NODE
        )
        return Measure(UNIT, change.healthz_port, paths, commands)

    @property
    def _gates(self) -> NodeGates:
        if self._node_gates is None:
            raise LookupError(_NO_PLAN)
        return self._node_gates

    @property
    def _wave_gates(self) -> WaveGates:
        return WaveGates(self.run, self._plan, self.local, self.clock, self.backends, self.who)


_NO_PLAN = "a rollback neither applies, measures nor confirms"
_AGENT_VERBS = {
    Verb.READ: "status",
    Verb.MEASURE: "status",
    Verb.APPLY: "apply",
    Verb.CONFIRM: "confirm",
    Verb.REVERT: "revert",
    Verb.CLEAN: "cleanup",
}
