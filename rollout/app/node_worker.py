"""Carries one of the machine's commands to a node and brings back what it means.

A node's trouble is an event, never an exception. What is asked of the node is built, and its answer parsed, by the pure
functions in ``kubelet``; what it means for the run is decided by the machine.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import assert_never

from rollout.app.ports import Clock, Local, Nodes, Target
from rollout.core.commands import Ask, Command, JudgeWave, LiftSilences, OpenWave
from rollout.core.events import Answered, Event, SilencesLifted, Trigger, WaveJudged, WaveOpened
from rollout.core.plan import Change, Plan
from rollout.core.playbook import GateKind, GateScope
from rollout.core.remote import RemoteCommand
from rollout.core.report import Outcome, Report
from rollout.core.snapshot import Measurement
from rollout.core.state import Verb
from rollout.core.triggers import reference_of, trigger_of
from rollout.core.verdict import Verdict
from rollout.kubelet import agent_call
from rollout.kubelet.agent_answer import parse_report
from rollout.kubelet.agent_call import ApplyOrder, Claim, CommandGate, FileOrder, Measure
from rollout.kubelet.expectations import judge

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
    before: dict[str, Measurement] = field(default_factory=dict)
    kept: set[str] = field(default_factory=set)

    def __call__(self, command: Command) -> Event:
        if isinstance(command, OpenWave):
            return WaveOpened(self.clock.now(), command.wave, Verdict.PASS, "")
        if isinstance(command, JudgeWave):
            return self._judge_wave(command)
        if isinstance(command, LiftSilences):
            return SilencesLifted(self.clock.now())
        report = self._ask(command)
        self._keep_or_release(command, report)
        return self._event(command, report)

    def _keep_or_release(self, ask: Ask, report: Report) -> None:
        """The connection of an apply is kept until its confirm; every other one is for one verb."""
        if report.outcome is Outcome.DONE and ask.verb is Verb.APPLY:
            self.kept.add(ask.node)
        elif report.outcome is not Outcome.DONE or ask.verb is not Verb.MEASURE or ask.node not in self.kept:
            self.kept.discard(ask.node)
            self.nodes.release(self.way.targets[ask.node])

    def _event(self, ask: Ask, report: Report) -> Answered:
        trigger, message = trigger_of(report), report.message
        reference = reference_of(report, trigger)
        if ask.verb is Verb.MEASURE:
            trigger, reference, message = self._judged(ask, report)
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
        if ask.verb in (Verb.APPLY, Verb.REVERT):
            self.before.pop(ask.node, None)  # a restart by our own doing is not held against the node
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
            raise LookupError("a rollback neither applies, measures nor confirms")
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

    def _judged(self, ask: Ask, report: Report) -> tuple[Trigger, str, str]:
        """The node gates over one reading: the worst verdict counts, with its evidence."""
        if report.outcome is not Outcome.DONE or report.measurement is None:
            return Trigger.GATES_UNKNOWN, report.reference, report.message
        previous = self.before.get(ask.node)
        self.before[ask.node] = report.measurement
        change = self._change(ask.node)
        worst, reference, message = Verdict.PASS, "", ""
        for gate in self._plan.gates:
            if gate.scope is not GateScope.NODE:
                continue
            verdict, evidence = judge(gate, change, report.measurement, previous)
            if _RANK[verdict] > _RANK[worst]:
                worst, reference, message = verdict, f"gate-{gate.name}", evidence
        return _GATE_TRIGGERS[worst], reference, message

    def _judge_wave(self, command: JudgeWave) -> WaveJudged:
        """Ask the wave's command gates where the controller runs; not to be run is UNKNOWN, never a pass."""
        wave = self._plan.waves[command.wave]
        environment = {"ROLLOUT_RUN": self.run, "ROLLOUT_WAVE": wave.name, "ROLLOUT_CLUSTER": self._plan.cluster}
        for gate in self._plan.gates:
            if gate.scope is GateScope.WAVE:
                status = self.local.run(gate.command, environment, gate.timeout)
                verdict = Verdict.UNKNOWN if status is None else Verdict.PASS if status == 0 else Verdict.FAIL
                if verdict is not Verdict.PASS:
                    said = "could not be run or did not end in time" if status is None else f"ended with {status}"
                    return WaveJudged(self.clock.now(), command.wave, verdict, f"gate {gate.name!r} {said}")
        return WaveJudged(self.clock.now(), command.wave, Verdict.PASS, "")


_RANK = {Verdict.PASS: 0, Verdict.UNKNOWN: 1, Verdict.FAIL: 2}
_GATE_TRIGGERS = {
    Verdict.PASS: Trigger.GATES_PASSED,
    Verdict.FAIL: Trigger.GATES_FAILED,
    Verdict.UNKNOWN: Trigger.GATES_UNKNOWN,
}
_AGENT_VERBS = {
    Verb.READ: "status",
    Verb.MEASURE: "status",
    Verb.APPLY: "apply",
    Verb.CONFIRM: "confirm",
    Verb.REVERT: "revert",
    Verb.CLEAN: "cleanup",
}
