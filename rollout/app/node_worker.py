"""Carries one of the machine's commands to a node and returns what the answer means.

An error of a node is an event, never an exception. The pure functions in ``kubelet`` build the request to the node and
parse its answer. The machine decides what the answer means for the run.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable
from dataclasses import field, replace
from functools import partial
from typing import assert_never

from rollout.app.arrivals import why_not_now
from rollout.app.backends import Backends
from rollout.app.config_maps import put
from rollout.app.following import ClusterOf, HasEnded, gives_way, known_to_none, none_has_ended
from rollout.app.isolation import READING_FAILED, Keep, attempt, keep_nothing, run_verb
from rollout.app.node_access import NodeAccess
from rollout.app.node_drains import LATER, DrainRound, NodeDrains, NoDrains, NotOursError
from rollout.app.node_gates import BASELINE_UNKNOWN, Judgement, NodeGates, UntouchableError
from rollout.app.ports import Clock, Local, Nodes
from rollout.app.pull_counts import PullCounts
from rollout.app.roll_call import Lists, lists_all
from rollout.app.wave_gates import WaveGates
from rollout.core.model.approvals import USED
from rollout.core.model.fleet_changes import GONE, IS_GONE
from rollout.core.model.freeze import FROZEN, told
from rollout.core.model.frozen import dataclass
from rollout.core.model.gates import GateScope
from rollout.core.model.plan import Change, Plan
from rollout.core.model.report import Outcome, RemoteCommand, Report
from rollout.core.model.snapshot import Token, is_beyond_belief
from rollout.core.plans.receipt_history import newer_run
from rollout.core.run.commands import Ask, Command, JudgeWave, LiftSilences, OpenWave, PutConfigMap
from rollout.core.run.events import (
    ENDED_HERE,
    Answered,
    Event,
    Trigger,
    message_of,
    newer_attempt,
    reference_of,
    trigger_of,
)
from rollout.core.run.postponed import PULLS_IN_FLIGHT, asks_for_pulls, images_of
from rollout.core.run.state import Verb
from rollout.core.text.terminal import printable
from rollout.kubelet.agent import agent_call
from rollout.kubelet.agent.agent_call import ApplyOrder, Claim, Measure, NodeCommand, PullsFound
from rollout.kubelet.agent.deadlines import COMMAND_MARGIN, TIMES
from rollout.kubelet.node.layout import KUBELET_UNITS

UNIT = "kubelet.service"
READ_SECONDS = TIMES["status"].waits
CONFIRM_SECONDS = TIMES["confirm"].waits
REVERT_SECONDS = TIMES["revert"].waits
CLEAN_SECONDS = TIMES["cleanup"].waits
CLAIM_AGAIN = 15.0
"""Seconds until a draining node is claimed again: a controller that was taken over must evict no more pods."""

APPLY_MARGIN = TIMES["apply"].waits
"""Seconds that an apply may take in addition to the guard's time: staging happens before the guard is armed."""


FRESH = 5.0
"""Seconds for which the measurement in an apply's answer counts as that of the gates, its way to here included."""


@dataclass(frozen=True, slots=True)
class JustMeasured:
    """The answer to the apply of ``tx``, with a measurement. ``at``: the earliest time at which it can have been made."""

    tx: str
    at: float
    report: Report


def always_holds() -> bool:
    return True


@dataclass(slots=True)
class NodeWorker:
    """Does the commands of one run. ``plan``: ``None`` for a rollback, which needs only what is stored on the nodes."""

    run: str
    access: NodeAccess
    nodes: Nodes
    local: Local
    clock: Clock
    plan: Plan | None = None
    take_over: bool = False  # take over the claims of another run (rollback, emergency)
    force: bool = False  # revert over bytes that others wrote since (the operator's --force)
    backends: Backends = field(default_factory=Backends)
    who: str = ""
    approved: bool = False  # it carries approvals: a node that another run has changed since the plan is refused
    has_ended: HasEnded = none_has_ended  # whether a run that a node names has ended: its claim is void then
    other_cluster: ClusterOf = known_to_none  # of a run that a node names
    keep: Keep = keep_nothing
    lists: Lists = lists_all  # what the inventory, read now, shows of a node that left
    holds: Callable[[], bool] = always_holds  # whether this controller has the cluster's lease
    claimed: dict[str, float] = field(default_factory=dict)  # node that is being drained → when it was last claimed
    just_measured: dict[str, JustMeasured] = field(default_factory=dict)  # node → the answer to its apply
    not_ours: dict[str, Answered] = field(default_factory=dict)  # answers of nodes found taken over in a round
    _node_gates: NodeGates | None = None
    _drains: NodeDrains | None = None
    _pulls: PullCounts | None = None

    def __post_init__(self) -> None:
        if self.plan is not None:
            plan, cluster = self.plan, self.backends.cluster
            self._node_gates = NodeGates(plan, self.clock, self.backends)
            self._drains = self.backends.drains(self.run, plan, self.clock)
            self._pulls = PullCounts(cluster)

    def __call__(self, command: Command) -> Event:
        match command:
            case OpenWave():
                return self._wave_gates.open(command)
            case JudgeWave():
                return self._wave_gates.judge(command)
            case LiftSilences():
                return self._wave_gates.lift(command)
            case PutConfigMap():
                return put(
                    command.change,
                    self.backends.config_maps,
                    self.clock,
                    self.backends.wait,
                    self.holds,
                    void=command.void,
                )
        if command.node not in self.access.targets and command.verb is not Verb.UNCORDON:
            return self._gone(command, IS_GONE)
        return _DOING.get(command.verb, NodeWorker._answered)(self, command)

    def _gone(self, ask: Ask, why: str) -> Answered:
        """The inventory does not list it: there is nothing to ask, and nothing of ours to remove."""
        trigger = Trigger.CLEANED if ask.verb is Verb.CLEAN else Trigger.GONE
        return Answered(self.clock.now(), ask.node, ask.serial, ask.verb, trigger, GONE, why)

    def _drain(self, ask: Ask) -> Answered:
        """No pod is evicted from a node that does not answer, that another run holds, or that cannot pass its gates."""
        answer = self._before_draining(ask)
        if answer is not None:
            return answer
        drain = self._plan.nodes[ask.node].drain
        if drain is None or self._drains is None:
            raise LookupError(_NO_PLAN)
        try:
            said = self._drains.round(ask.node, drain.minor, ask.counter, ask.left, partial(self._check_claim, ask))
        except NotOursError:
            return self.not_ours.pop(ask.node)
        if said.trigger is not Trigger.DRAINING:
            self.claimed.pop(ask.node, None)
        return self._of_drain(ask, said)

    def _before_draining(self, ask: Ask) -> Answered | None:
        """Claim and read the node again every ``CLAIM_AGAIN`` seconds. Returns its answer unless it is untouched and
        healthy.

        A node that does not answer during a drain is not given up for that, but nothing is done meanwhile.
        """
        last = self.claimed.get(ask.node)
        if last is not None and self.clock.now() - last < CLAIM_AGAIN:
            return None
        report = self._ask(replace(ask, verb=Verb.READ))
        event = self._event(ask, report)
        if last is not None and event.trigger in (Trigger.UNREACHED, Trigger.LOST, Trigger.AWAY):
            trigger = Trigger.DRAINING if self._may_wait(ask) else Trigger.NOT_DRAINED
            return self._of_drain(ask, DrainRound(trigger, f"it no longer answers: {event.message}", LATER))
        if event.trigger is not Trigger.UNTOUCHED:
            return event
        if report.frozen is not None:  # no pod is evicted for a change that the node then refuses
            return self._refused(ask, UntouchableError(FROZEN, told(report.frozen)))
        try:
            if last is None:
                self._gates.baseline(ask.node)
        except UntouchableError as error:
            if error.reference == BASELINE_UNKNOWN:
                trigger = Trigger.DRAINING if self._may_wait(ask) else Trigger.NOT_DRAINED
                return self._of_drain(ask, DrainRound(trigger, error.message, LATER))
            return self._refused(ask, error)
        self.claimed[ask.node] = self.clock.now()
        return None

    def _may_wait(self, ask: Ask) -> bool:
        return self._drains is not None and self._drains.may_wait(ask.node, ask.left)

    def _check_claim(self, ask: Ask) -> None:
        answer = self._before_draining(ask)
        if answer is not None:
            self.not_ours[ask.node] = answer
            raise NotOursError(refused=answer.trigger is Trigger.REFUSED)

    def _uncordon(self, ask: Ask) -> Answered:
        if self._drains is None:
            raise LookupError(_NO_PLAN)
        self.claimed.pop(ask.node, None)
        return self._of_drain(ask, self._drains.uncordon(ask.node, ask.counter))

    def _of_drain(self, ask: Ask, said: DrainRound) -> Answered:
        return Answered(
            self.clock.now(), ask.node, ask.serial, ask.verb, said.trigger, said.reference, said.message,
            again=said.again,
        )  # fmt: skip

    def _refused(self, ask: Ask, error: UntouchableError) -> Answered:
        return Answered(
            self.clock.now(), ask.node, ask.serial, ask.verb, Trigger.REFUSED, error.reference, error.message
        )

    def _apply(self, ask: Ask) -> Answered:
        """Takes the node's baseline first, as late as possible. Without it there is nothing to compare, so nothing is
        touched.

        The node itself looks for image pulls, even later: right before it stages its files.
        """
        try:
            baseline = self._gates.baseline(ask.node)
        except UntouchableError as error:
            if error.reference == BASELINE_UNKNOWN:
                return replace(self._refused(ask, error), trigger=Trigger.UNSEEN)
            return self._refused(ask, error)
        backends = self.backends
        pods = why_not_now(
            self._plan.nodes[ask.node], self._drains or NoDrains(), backends.cluster, self.clock, backends.wait
        )
        if pods:
            return self._of_drain(ask, DrainRound(Trigger.NOT_DRAINED, pods))
        report = self._ask(ask)
        pulls = images_of(report) or ()
        if self._waits_for_pulls(ask, report):
            return Answered(self.clock.now(), ask.node, ask.serial, ask.verb, Trigger.PULLING, pulls=pulls)
        if report.outcome is Outcome.DONE and report.took is not None:
            at = self.clock.now() - max(0.0, report.seconds - report.took)
            self.just_measured[ask.node] = JustMeasured(ask.tx, at, report)
        return replace(self._event(ask, report), baseline=baseline, pulls=pulls)

    def _answered(self, ask: Ask) -> Answered:
        return self._event(ask, self._read(ask) if ask.verb is Verb.READ else self._ask(ask))

    def _measured(self, ask: Ask) -> Answered:
        """From the answer to the apply, if that has just come with a measurement; else the node measures again."""
        measured = self.just_measured.pop(ask.node, None)
        if measured is None or measured.tx != ask.tx or self.clock.now() - measured.at > FRESH:
            return self._event(ask, self._ask(ask))
        return self._event(ask, replace(measured.report, seconds=0.0))

    def _read(self, ask: Ask) -> Report:
        """Read with a claim. A refusal does not contain the node's state, so the node is then read without a claim."""
        report = self._ask(ask)
        if report.reference in ("fenced", ENDED_HERE) and report.token is None:
            token = self._look(ask).token
            return replace(report, token=token, message=f"{report.message}{self._cluster_of(token)}")
        if report.reference == "claimed" and not self.take_over:
            looked = self._look(ask)
            if gives_way(looked, self.has_ended):
                return self._ask(ask, take_over=True)
            return replace(report, message=f"{report.message}{self._cluster_of(looked.token)}")
        return report

    def _cluster_of(self, token: Token | None) -> str:
        """For a refusal because of another run."""
        other = self.other_cluster(token.run) if token is not None else ""
        return (
            f": that run is of cluster {printable(other, 80)}, which has this machine in its inventory, too"
            if other
            else ""
        )

    def _event(self, ask: Ask, report: Report) -> Answered:
        trigger = trigger_of(report, ask.tx if ask.void else "")
        message = message_of(report, trigger)
        asks = trigger is Trigger.UNREACHED and ask.verb in _BEFORE_OR_AFTER
        if asks and (shown := self.lists(ask.node, self.access.targets)):
            return self._gone(ask, shown)
        reference, pod_starts, pulls_done = reference_of(report, trigger), None, None
        if ask.verb is Verb.MEASURE:
            trigger, reference, message = self._judged(ask, report)
            pod_starts = self._gates.started.get(ask.node)
            if ask.count_pulls and trigger is Trigger.GATES_PASSED:
                pulls_done = self._pulls_done(ask.node)
        elif ask.verb is Verb.CLEAN:
            trigger = Trigger.CLEANED
        elif untenable := self._falsehood(ask, report, reference) or self._not_approved(ask, report, trigger):
            trigger, (reference, message) = Trigger.REFUSED, untenable
        told = report.token.counter if report.token else 0
        counter = 0 if is_beyond_belief(told, ask.counter) else told
        left = report.leftovers
        if ask.verb is Verb.CLEAN and report.outcome is not Outcome.DONE:
            still = f"cleanup failed: {message} [{reference}]"
            left = (f"{still}; once it answers, `rollout cluster unlock` ends the claim on it",)
        return Answered(
            self.clock.now(), ask.node, ask.serial, ask.verb, trigger, reference, message, counter, left, report.seconds,
            log=report.log,
            newer=newer_attempt(ask.tx, report.receipts) if self.plan is None and ask.verb is Verb.READ else "",
            pod_starts=pod_starts, pulls_done=pulls_done,
        )  # fmt: skip

    def _pulls_done(self, node: str) -> int | None:
        if self._pulls is None:
            raise LookupError(_NO_PLAN)
        return self._pulls.since_change(node, restarted=not KUBELET_UNITS.isdisjoint(self._change(node).units))

    def _judged(self, ask: Ask, report: Report) -> Judgement:
        """The verdict of the node's gates. If rollout itself fails on the measurement, it is unknown, never a pass."""
        return attempt(
            ask.node,
            lambda: self._gates.judged(ask, report, self._change(ask.node)),
            lambda why: (Trigger.GATES_UNKNOWN, READING_FAILED, why),
            self.keep,
        )

    def _look(self, ask: Ask) -> Report:
        """Read the node without a claim."""
        sudo = self.access.sudo[ask.node]
        command = agent_call.status(self.access.program, tx=ask.tx, sudo=sudo, deadline=READ_SECONDS)
        return run_verb(self.nodes, self.access.targets[ask.node], "status", command, self.keep)

    def _falsehood(self, ask: Ask, report: Report, reference: str) -> tuple[str, str] | None:
        """An answer that no correct agent gives, and that would stop the run on all other nodes if it were believed."""
        if report.token is not None and is_beyond_belief(report.token.counter, ask.counter):
            return "false-token", f"it reports token {report.token.counter}, which no run can have"
        if self.take_over and report.outcome is Outcome.REFUSED and reference == "claimed":
            return "false-claim", "it refuses because of a claim, although this run takes over claims"
        return None

    def _not_approved(self, ask: Ask, report: Report, trigger: Trigger) -> tuple[str, str] | None:
        """For a node without a change of this run: why its approvals do not count for it as it is now.

        A node that was to refuse an apply which may be on its way, and did not, may still get that change.
        """
        if not self.approved or trigger is not (Trigger.VOIDED if ask.void else Trigger.UNTOUCHED):
            return None
        run = newer_run(self._plan, report, self.run)
        message = f"run {printable(run, 80)} changed it since the plan was made: plan it again and have it approved"
        return (USED, message) if run else None

    def _ask(self, ask: Ask, *, take_over: bool = False) -> Report:
        started = self.clock.now()
        command = self._command(ask, take_over=take_over or self.take_over)
        report = run_verb(self.nodes, self.access.targets[ask.node], _AGENT_VERBS[ask.verb], command, self.keep)
        if ask.verb in (Verb.APPLY, Verb.REVERT) and report.reference != PULLS_IN_FLIGHT:
            self._forget(ask.node)
        return replace(report, seconds=self.clock.now() - started)

    def _forget(self, node: str) -> None:
        """What was known of the node's process and pods, before a restart that may have been done."""
        if self._node_gates is not None and self._pulls is not None:
            self._node_gates.forget(node)
            self._pulls.forget(node)

    def _command(self, ask: Ask, *, take_over: bool) -> RemoteCommand:
        program, sudo = self.access.program, self.access.sudo[ask.node]
        match ask.verb:
            case Verb.READ:
                claim = Claim(ask.counter, self.run, force=take_over)
                return agent_call.status(
                    program, tx=ask.tx, claim=claim, void=ask.void, sudo=sudo, deadline=READ_SECONDS
                )
            case Verb.APPLY:
                order = self._order(ask)
                return agent_call.apply(program, order, sudo=sudo, deadline=order.guard + APPLY_MARGIN)
            case Verb.MEASURE:
                measure = self._measure(ask.node)
                seconds = READ_SECONDS + sum(gate.seconds + COMMAND_MARGIN for gate in measure.commands)
                return agent_call.status(program, tx=ask.tx, measure=measure, sudo=sudo, deadline=seconds)
            case Verb.CONFIRM:
                return agent_call.confirm(
                    program, tx=ask.tx, run=self.run, counter=ask.counter, keep=self._plan.keep,
                    sudo=sudo, deadline=CONFIRM_SECONDS,
                )  # fmt: skip
            case Verb.REVERT:
                return agent_call.revert(
                    program, tx=ask.tx, run=self.run, counter=ask.counter, force=self.force, evidence=ask.evidence,
                    sudo=sudo, deadline=REVERT_SECONDS,
                )  # fmt: skip
            case Verb.CLEAN:
                return agent_call.cleanup(
                    program, run=self.run, counter=ask.counter, sudo=sudo, deadline=CLEAN_SECONDS
                )  # fmt: skip
            case Verb.DRAIN | Verb.UNCORDON:
                raise LookupError(_NOT_OF_THE_AGENT)
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
            change=change,
            pulls=self._pulls_found(ask, change),
            measured=None if self._measure(ask.node).commands else self._measure(ask.node).paths,
        )

    def _waits_for_pulls(self, ask: Ask, report: Report) -> bool:
        """Whether the node refused because of its pulls, and was told to: else a wrong answer would be asked for without end."""
        refused = report.outcome is Outcome.REFUSED and report.reference == PULLS_IN_FLIGHT
        return refused and self._pulls_found(ask, self._change(ask.node)) is PullsFound.REFUSE

    def _pulls_found(self, ask: Ask, change: Change) -> PullsFound | None:
        if not asks_for_pulls(self._plan.pulls, change):
            return None
        return PullsFound.OVERRIDE if ask.regardless else PullsFound.REFUSE

    def _measure(self, node: str) -> Measure:
        change = self._change(node)
        paths = tuple(
            dict.fromkeys([*(f.path for f in change.files), *([change.config_path] if change.config_path else [])])
        )
        commands = tuple(
            NodeCommand(gate.name, max(1, round(gate.timeout)), shlex.join(gate.asks.program))
            for gate in self._plan.gates
            if gate.asks.program and gate.scope is GateScope.NODE
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


_BEFORE_OR_AFTER = frozenset({Verb.APPLY, Verb.DRAIN, Verb.MEASURE})
"""Verbs with which a node may be found to have left: before its change, or in the soak after its confirm."""

_NO_PLAN = "a rollback neither applies, measures, confirms nor drains"
_NOT_OF_THE_AGENT = "cordons and evictions are the API server's"
_DOING = {
    Verb.APPLY: NodeWorker._apply,  # noqa: SLF001
    Verb.MEASURE: NodeWorker._measured,  # noqa: SLF001
    Verb.DRAIN: NodeWorker._drain,  # noqa: SLF001
    Verb.UNCORDON: NodeWorker._uncordon,  # noqa: SLF001
}
_AGENT_VERBS = {
    Verb.READ: "status",
    Verb.MEASURE: "status",
    Verb.APPLY: "apply",
    Verb.CONFIRM: "confirm",
    Verb.REVERT: "revert",
    Verb.CLEAN: "cleanup",
}
