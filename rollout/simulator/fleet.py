"""The network to the nodes: connections that are slow, cut or lose an answer, and the meaning of answers for a run."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from random import Random

from rollout.app.node_worker import APPLY_MARGIN, CLEAN_SECONDS, CONFIRM_SECONDS, READ_SECONDS, REVERT_SECONDS
from rollout.core.model.playbook import Busy
from rollout.core.model.report import Outcome, Report
from rollout.core.model.snapshot import Token
from rollout.core.model.verdict import Verdict
from rollout.core.run.commands import Ask
from rollout.core.run.events import AWAY, Answered, Trigger, newer_attempt, reference_of, trigger_of
from rollout.core.run.state import Goal, Order, Verb
from rollout.simulator.machine import NEW, Work
from rollout.simulator.node import ModelNode
from rollout.simulator.timeline import Timeline

CONNECT_SECONDS = 10.0
"""Seconds without a connection after which a node is unreachable."""

API_SECONDS, AGAIN_SECONDS = 0.3, 2.0
"""Seconds of a request to the API server, and seconds until a drain is requested again."""

ENGINE_SECONDS = 0.1
"""Seconds until an engine that is away has refused a request."""

SILENCE_SECONDS = 15.0
"""Seconds of silence after which a connection is dropped."""


@dataclass
class ModelLink:
    """One node's network. ``cuts`` are spans; ``lost_answers`` and ``lost_commands`` are request numbers, from 1.

    For each verb in ``loses`` the next answer is lost. ``lost_applies``: so many next applies never arrive; ``late_applies``:
    the next ones arrive after so many seconds, when nobody waits for them any more. ``queue``: seconds from an answer, with its time, until the driver
    reads it; ticks come in between.
    """

    latency: float = 0.1
    queue: float = 0.0
    cuts: list[tuple[float, float]] = field(default_factory=list)
    lost_answers: set[int] = field(default_factory=set)
    lost_commands: set[int] = field(default_factory=set)
    loses: set[Verb] = field(default_factory=set)
    lost_applies: int = 0
    late_applies: list[float] = field(default_factory=list)
    asks: int = 0

    def loses_apply(self) -> bool:
        """Whether the next apply never arrives."""
        self.lost_applies -= 1
        return self.lost_applies >= 0

    def drops(self, verb: Verb) -> bool:
        """Whether this answer to a verb is lost; the next one is delivered."""
        lost = verb in self.loses
        self.loses.discard(verb)
        return lost

    def cut_until(self, now: float) -> float:
        """When the link works again; 0: it works now."""
        if not self.cuts:
            return 0.0
        return max((end for begin, end in self.cuts if begin <= now < end), default=0.0)


@dataclass(frozen=True, slots=True)
class Spell:
    """A verdict that replaces that of a node's gates (``""``: of wave gates) for a time."""

    node: str
    verdict: Verdict
    begin: float
    end: float
    before: bool = False  # of the baseline, not of the measurement


@dataclass(frozen=True, slots=True)
class Sender:
    """The requesting controller: its run, its terms, and whether it still listens."""

    run: str
    order: Order
    take_over: bool
    listens: Callable[[], bool]
    now: Callable[[], float]


@dataclass
class ModelFleet:
    """All nodes, each with its link. ``begun`` is called before each request starts on a node."""

    timeline: Timeline
    nodes: Mapping[str, ModelNode]
    links: Mapping[str, ModelLink]
    dice: Random
    spells: list[Spell] = field(default_factory=list)
    begun: Callable[[Sender, Ask], None] = lambda _sender, _ask: None
    cordoned: Callable[[Sender, ModelNode], None] = lambda _sender, _node: None
    api_away: list[tuple[float, float]] = field(default_factory=list)
    engine_away: list[tuple[float, float]] = field(default_factory=list)  # spans without a worker that reaches nodes
    passed: set[tuple[str, str, int]] = field(default_factory=set)  # run, node, serial: measured, and all gates passed
    lines: dict[float, deque[tuple[float, Errand]]] = field(default_factory=dict)  # see ``lose_unless_over``

    def verdict(self, node: str, *, before: bool = False) -> Verdict:
        now = self.timeline.now
        for spell in self.spells:
            if spell.node == node and spell.before == before and spell.begin <= now < spell.end:
                return spell.verdict
        return Verdict.PASS

    @property
    def api_answers(self) -> bool:
        return not self.api_away or not _is_within(self.api_away, self.timeline.now)

    @property
    def engine_answers(self) -> bool:
        return not self.engine_away or not _is_within(self.engine_away, self.timeline.now)

    def carry(self, sender: Sender, ask: Ask, deliver: Callable[[Answered], None]) -> None:
        """Deliver a request to its node, and the answer to the controller if it still listens."""
        errand = Errand(self, sender, ask, deliver)
        if ask.verb in (Verb.DRAIN, Verb.UNCORDON):
            self.timeline.after(API_SECONDS, errand.ask_the_api)
        else:
            errand.set_out()

    def lose_unless_over(self, errand: Errand, seconds: float) -> None:
        """After so many seconds. Errands with as many wait in one line: nearly all are over by then, and none has an event of its own."""
        line = self.lines.setdefault(seconds, deque())
        line.append((self.timeline.now + seconds, errand))
        if len(line) == 1:
            self.timeline.after(seconds, partial(self._look_along, line))

    def _look_along(self, line: deque[tuple[float, Errand]]) -> None:
        while line and (line[0][1].over or line[0][0] <= self.timeline.now):
            line.popleft()[1].lose()
        if line:
            self.timeline.at(line[0][0], partial(self._look_along, line))


def _is_within(spans: list[tuple[float, float]], now: float) -> bool:
    return any(begin <= now < end for begin, end in spans)


@dataclass
class Errand:
    """One request under way. At most one answer is delivered. ``cancels``: pulls that its restart ends."""

    fleet: ModelFleet
    sender: Sender
    ask: Ask
    deliver: Callable[[Answered], None]
    over: bool = False
    cancels: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        self.node = self.fleet.nodes[self.ask.node]
        self.link = self.fleet.links[self.ask.node]
        self.timeline = self.fleet.timeline
        self.asked_at = self.timeline.now

    def set_out(self) -> None:
        self.link.asks += 1
        self.number = self.link.asks
        if not self.fleet.engine_answers:
            self.timeline.after(ENGINE_SECONDS, lambda: self._end(_without_engine(self.ask)))
        elif self.number in self.link.lost_commands:
            self.timeline.after(SILENCE_SECONDS, self.lose)
        elif self.ask.verb is Verb.APPLY and self.link.late_applies:
            self.timeline.after(self.link.late_applies.pop(0), self._arrive_late)
            self.timeline.after(SILENCE_SECONDS, self.lose)
        elif self.ask.verb is Verb.APPLY and self.link.loses_apply():
            self.timeline.after(SILENCE_SECONDS, self.lose)
        else:
            self._connect(self.timeline.now + CONNECT_SECONDS)

    def ask_the_api(self) -> None:
        """The answer is lost with the controller, but the effect stays. A drain starts with a read of the node: if that
        answer is lost, the API server is not contacted.
        """
        if self.ask.verb is Verb.DRAIN and not self.node.cordoned and self.link.drops(Verb.DRAIN):
            self.timeline.after(SILENCE_SECONDS, self.lose)
            return
        if self.ask.verb is Verb.DRAIN:
            trigger = drained(self.fleet, self.sender, self.node, self.ask)
        else:
            trigger = uncordoned(self.fleet, self.node, self.ask.counter)
        if self._is_heard():
            reference = "not-drained" if trigger is Trigger.NOT_DRAINED else ""
            now, ask = self.sender.now(), self.ask
            self._deliver(Answered(now, ask.node, ask.serial, ask.verb, trigger, reference, again=AGAIN_SECONDS))

    def _connect(self, patience: float) -> None:
        if not self.sender.listens():
            return
        now = self.timeline.now
        blocked = max(self.link.cut_until(now), self.node.frozen_until)
        if not self.node.powered:
            self.timeline.after(1.0, lambda: self._end(_unreached(self.ask)))
        elif blocked <= now:
            arrives = now + self.link.latency * (0.5 + self.fleet.dice.random())
            if arrives < patience:
                self.timeline.at(arrives, self._arrive)
            else:  # a link that is slower than the patience for a connection is given up as one that is cut
                self.timeline.at(patience, lambda: self._end(_unreached(self.ask)))
        elif blocked < patience:
            self.timeline.at(blocked, lambda: self._connect(patience))
        else:
            self.timeline.at(patience, lambda: self._end(_unreached(self.ask)))

    def _arrive(self) -> None:
        if not self.node.powered:
            self.timeline.after(SILENCE_SECONDS, self.lose)
            return
        self.fleet.begun(self.sender, self.ask)
        self.fleet.lose_unless_over(self, _DEADLINES[self.ask.verb](self.sender.order))
        if self.ask.verb is Verb.APPLY and self._is_refused_or_pulls():
            return
        self.node.begin(self.ask.verb, self._work(), self._answer, self.asked_at)

    def _arrive_late(self) -> None:
        """The node carries it out if it may; the answer reaches nobody."""
        if self.node.powered:
            self.node.begin(self.ask.verb, self._work(), lambda _report: None, self.asked_at)

    def _is_refused_or_pulls(self) -> bool:
        """The checks right before an apply, while nothing was touched."""
        ask, policy = self.ask, self.sender.order.pulls
        before = self.fleet.verdict(ask.node, before=True)
        if before is Verdict.UNKNOWN:
            self._say(Trigger.UNSEEN, "baseline-unknown", "its baseline could not be taken")
            return True
        if before is Verdict.FAIL:
            self._end(Report(ask.node, "apply", Outcome.REFUSED, "not-ready-before", "its Node is not Ready"))
            return True
        pulls = self.node.pulling() if policy.within > 0 or policy.then is not Busy.OVERRIDE else ()
        if pulls == () or ask.regardless:
            self.cancels = pulls or ()
            return False
        self._say(Trigger.PULLING, pulls=pulls or ())
        return True

    def _say(self, trigger: Trigger, reference: str = "", message: str = "", pulls: tuple[str, ...] = ()) -> None:
        """An answer that does not come from an agent: found before the request."""
        if self._is_heard():
            now, ask = self.sender.now(), self.ask
            self._deliver(Answered(now, ask.node, ask.serial, ask.verb, trigger, reference, message, pulls=pulls))

    def _work(self) -> Work:
        ask, node = self.ask, self.node
        by = Token(ask.counter, self.sender.run, live=True)
        match ask.verb:
            case Verb.READ:
                return node.status(ask.tx, by, force=self.sender.take_over, void=ask.void)
            case Verb.APPLY:
                return node.apply(ask.tx, by, self.sender.order.guard)
            case Verb.CONFIRM:
                return node.confirm(ask.tx, by)
            case Verb.REVERT:
                return node.revert(ask.tx, by, force=self.sender.order.force)
            case Verb.CLEAN:
                return node.cleanup(by)
            case _:
                return node.status(ask.tx, None, force=False)

    def _answer(self, report: Report | None) -> None:
        if not self.fleet.engine_answers:
            self._end(_without_engine(self.ask) if self.ask.verb in (Verb.READ, Verb.MEASURE) else _lost(self.ask))
            return
        lost = self.number in self.link.lost_answers or self.link.drops(self.ask.verb)
        if report is None or lost or self.link.cut_until(self.timeline.now):
            self.timeline.after(SILENCE_SECONDS, self.lose)
        else:
            self.timeline.after(self.link.latency * 0.3, lambda: self._end(report))

    def _is_heard(self) -> bool:
        return not self.over and self.sender.listens()

    def _deliver(self, event: Answered) -> None:
        self.over = True
        if self.link.queue:
            self.timeline.after(self.link.queue, lambda: self._take(event))
        else:
            self.deliver(event)

    def _take(self, event: Answered) -> None:
        if self.sender.listens():
            self.deliver(event)

    def _end(self, report: Report) -> None:
        if self._is_heard():
            self._deliver(self._event(report))

    def lose(self) -> None:
        """At a deadline, most answers have long been delivered."""
        if not self.over:
            self._end(_lost(self.ask))

    def _event(self, report: Report) -> Answered:
        """Same text as in ``NodeWorker``."""
        ask = self.ask
        trigger = trigger_of(report, ask.tx if ask.void else "")
        reference, message, left = reference_of(report, trigger), report.message, report.leftovers
        if ask.verb is Verb.MEASURE:
            trigger = self._judged(report)
        elif ask.verb is Verb.CLEAN:
            trigger = Trigger.CLEANED
            if report.outcome is not Outcome.DONE:
                left = (f"cleanup failed: {message} [{reference}]",)
        counter = report.token.counter if report.token else 0
        took = self.timeline.now - self.asked_at
        back = self.sender.order.goal is Goal.REVERT and ask.verb is Verb.READ
        known = ask.verb is Verb.MEASURE and trigger is not Trigger.GATES_UNKNOWN
        return Answered(
            self.sender.now(), ask.node, ask.serial, ask.verb, trigger, reference, message, counter, left, took,
            newer=newer_attempt(ask.tx, report.receipts) if back else "", pulls=self.cancels,
            pod_starts=self.node.pods_started() if known else None,
            pulls_done=self.node.pulls_done() if known and ask.count_pulls else None,
        )  # fmt: skip

    def _judged(self, report: Report) -> Trigger:
        verdict = self.fleet.verdict(self.ask.node)
        if report.outcome is not Outcome.DONE:
            return Trigger.GATES_UNKNOWN
        if verdict is Verdict.FAIL or not self.node.healthy or self.node.files != NEW:
            return Trigger.GATES_FAILED
        if verdict is Verdict.UNKNOWN:
            return Trigger.GATES_UNKNOWN
        self.fleet.passed.add((self.sender.run, self.ask.node, self.ask.serial))
        return Trigger.GATES_PASSED


def drained(fleet: ModelFleet, sender: Sender, node: ModelNode, ask: Ask) -> Trigger:
    """One round: cordon if needed, evict pods if a budget allows, and the pods end a while later.

    The API server knows only the cordon's token. So after a cordon the controller checks the claim on the node, and if
    another run has it, lifts the cordon again. No pod was evicted, so the node does not count as away.
    """
    now = fleet.timeline.now
    over = Trigger.DRAINING if ask.left else Trigger.NOT_DRAINED
    if not fleet.api_answers:
        return over
    if node.cordoned_by_others or (node.cordoned and ask.counter < node.cordon_token):
        return Trigger.NOT_DRAINED
    fenced = ask.counter < node.token.counter
    if not node.cordoned:
        node.cordoned = True
        node.told("is cordoned")
        if not fenced:
            fleet.cordoned(sender, node)
    node.cordon_token = ask.counter
    if fenced:
        uncordoned(fleet, node, ask.counter)
        return Trigger.NOT_DRAINED
    if now >= node.evictions_from:
        node.pods_gone_at = min(node.pods_gone_at, now + node.pods_end_in)
    return Trigger.DRAINED if now >= node.pods_gone_at else over


def uncordoned(fleet: ModelFleet, node: ModelNode, counter: int | None = None) -> Trigger:
    """Pods may return to the node. ``counter`` ``None``: any token of the cordon."""
    refused = not fleet.api_answers or fleet.timeline.now < node.cordon_stays_until
    if refused or (node.cordoned and counter is not None and counter < node.cordon_token):
        return Trigger.STILL_CORDONED
    if node.cordoned:
        node.cordoned, node.pods_gone_at = False, float("inf")
        node.told("is uncordoned")
    return Trigger.UNCORDONED


def _lost(ask: Ask) -> Report:
    return Report(ask.node, ask.verb, Outcome.LOST, "answer-cut-off", "exit status unknown")


def _without_engine(ask: Ask) -> Report:
    return Report(ask.node, ask.verb, Outcome.UNREACHED, AWAY, "no worker answers")


def _unreached(ask: Ask) -> Report:
    return Report(ask.node, ask.verb, Outcome.UNREACHED, "connect-timeout", "no answer on port 22")


_DEADLINES: Mapping[Verb, Callable[[Order], float]] = {
    Verb.READ: lambda _: READ_SECONDS,
    Verb.MEASURE: lambda _: READ_SECONDS,
    Verb.CLEAN: lambda _: CLEAN_SECONDS,
    Verb.CONFIRM: lambda _: CONFIRM_SECONDS,
    Verb.REVERT: lambda _: REVERT_SECONDS,
    Verb.APPLY: lambda order: order.guard + APPLY_MARGIN,
}
