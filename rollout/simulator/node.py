"""A model node: files, receipts, token, guard and kubelet, and the verbs of ``rollout/agent/``.

A verb is a generator: it yields the seconds until it continues, and returns its report. ``docs/agent.md`` describes each
verb.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass, field, replace

from rollout.core.model.report import Outcome, Report
from rollout.core.model.snapshot import Receipt, ReceiptState, Token
from rollout.simulator.machine import (
    FOREIGN,
    MIXED,
    NEW,
    OLD,
    AgentRefusedError,
    Kubelet,
    ModelMachine,
    Restart,
    Transaction,
    Work,
)

LOCK_PATIENCE, GUARD_PATIENCE = 5.0, 10.0
STAGING_SECONDS = 60.0
"""Seconds from an apply's start within which it is armed, or not at all."""

BEFORE_THE_GUARD = 2.0
"""Seconds before the guard fires at which an apply gives up waiting for health."""

GUARD_AGAIN = 5.0

POD_EVERY = 10.0
"""Seconds between two pod starts on a model node."""

PULL_EVERY = 15.0
"""Seconds between two image pulls that succeed there."""


@dataclass
class ModelNode(ModelMachine):
    """See the module. ``restarted`` is called for each restart of its kubelet."""

    restarted: Callable[[ModelNode, Restart], None] = lambda _node, _restart: None
    stage: float = 0.4
    files: str = OLD
    transactions: dict[str, Transaction] = field(default_factory=dict)
    token: Token = field(default_factory=Token)
    voided: set[str] = field(default_factory=set)  # transactions that a read of theirs did not find
    kubelet: Kubelet = field(default_factory=Kubelet)
    pulls: tuple[str, ...] | None = ()  # images, until ``pulls_until``; ``None``: it cannot tell
    pulls_until: float = 0.0
    restarts: list[Restart] = field(default_factory=list)
    guards: set[str] = field(default_factory=set)
    away_until: float = 0.0  # from a restart of ours
    late: bool = False  # it reverts itself after its guard's time: it was frozen then, or its revert could not end
    cordoned: bool = False  # by us
    cordoned_by_others: bool = False
    cordon_stays_until: float = 0.0  # until then the API server refuses to lift a cordon
    cordon_token: int = 0  # token counter of its cordon
    pods_gone_at: float = float("inf")
    pods_end_in: float = 5.0
    changed_at: float = 0.0  # when its last change began
    evictions_from: float = 0.0  # until then a budget blocks its pods

    @property
    def under_way(self) -> Transaction | None:
        moving = (ReceiptState.ARMED, ReceiptState.REVERTING)
        return next((found for found in self.transactions.values() if found.state in moving), None)

    @property
    def healthy(self) -> bool:
        now = self.timeline.now
        return self.powered and now >= self.kubelet.up_at and not self.kubelet.sick(self.files, now)

    def pulling(self) -> tuple[str, ...] | None:
        return self.pulls if self.timeline.now < self.pulls_until else ()

    def pods_started(self) -> int:
        """The pods that started on it since its last change began."""
        return int((self.timeline.now - self.changed_at) / POD_EVERY)

    def pulls_done(self) -> int:
        """The image pulls that succeeded on it since then."""
        return int((self.timeline.now - self.changed_at) / PULL_EVERY)

    def lose_power(self, back_after: float) -> None:
        self.away_until = 0.0
        self.guards.clear()
        super().lose_power(back_after)

    def _boot(self) -> None:
        """First the boot unit, then the kubelet."""
        super()._boot()
        for found in self.transactions.values():
            if found.state is ReceiptState.ARMED:
                self._become(found, ReceiptState.REVERTING, "boot")
            if found.state is ReceiptState.REVERTING:
                self.files, found.stuck = OLD, ""
                self._become(found, ReceiptState.REVERTED, found.cause)
        self.pulls_until = 0.0
        self.kubelet.up_at = self.timeline.now + self.kubelet.start
        self.told(f"is back, its files are {self.files}")

    def status(self, tx: str, claim: Token | None, *, force: bool, void: bool = False) -> Work:
        """``status``, with a claim if one is given."""
        try:
            if claim is not None:
                yield from self._lock(LOCK_PATIENCE)
                self._fence(claim, force=force)
                if not self.token.live and claim == replace(self.token, live=True):
                    raise AgentRefusedError("ended-here", f"run {claim.run} has ended here")
                self.token = Token(claim.counter, claim.run, live=True)
                if void and tx not in self.transactions:
                    self.voided.add(tx)
                self._unlock()
            yield 0.02
        except AgentRefusedError as error:
            return self._refused("status", tx, error)
        finally:
            self._unlock()
        return self._report("status", tx)

    def apply(self, tx: str, by: Token, guard: float) -> Work:
        began = self.timeline.now
        try:
            yield from self._lock(LOCK_PATIENCE)
            self._fence(by)
            if tx not in self.transactions:
                yield from self._apply(tx, by, guard, began)
        except AgentRefusedError as error:
            return self._refused("apply", tx, error)
        finally:
            self._unlock()
        return self._report("apply", tx, healthy=self.healthy)

    def _apply(self, tx: str, by: Token, guard: float, began: float) -> Generator[float, None, None]:
        if self.token.run == by.run and not self.token.live:
            raise AgentRefusedError("ended-here", f"run {by.run} has ended here")
        if tx in self.voided:
            raise AgentRefusedError("voided", tx)
        if self.under_way:
            raise AgentRefusedError("armed-by-another", self.under_way.tx)
        self._compare()
        self._accept(by)
        yield self.stage
        self._compare()
        if self.timeline.now - began > STAGING_SECONDS:
            raise AgentRefusedError("too-late", "it was frozen while it staged files")
        self.late, self.changed_at = False, self.timeline.now
        transaction = Transaction(tx, by.run, by.counter, self.boot, self.uptime + guard)
        self.transactions[tx] = transaction
        self.arm(transaction)
        self.told(f"{tx} is armed")
        yield 0.05
        self.files = MIXED
        yield 0.01
        self.files = NEW
        self._restart("apply", by)
        left = (transaction.deadline - self.uptime) / self.rate - BEFORE_THE_GUARD
        needed = self.kubelet.up_at - self.timeline.now
        yield max(0.0, min(needed, left)) / self.pace
        if self.healthy:
            transaction.finished = True
            return
        yield from self._take_back(transaction, "health")

    def confirm(self, tx: str, by: Token) -> Work:
        try:
            yield from self._lock(LOCK_PATIENCE)
            self._fence(by)
            transaction = self._known(tx)
            self._accept(by)
            yield 0.03
            if transaction.state is ReceiptState.ARMED and (
                transaction.boot != self.boot or self.uptime >= transaction.deadline
            ):
                yield from self._take_back(transaction, "guard")
            if transaction.state in (ReceiptState.REVERTING, ReceiptState.REVERTED):
                raise AgentRefusedError("too-late", "the guard's time is over")
            if transaction.state is ReceiptState.ARMED:
                self._become(transaction, ReceiptState.CONFIRMED)
                self.guards.discard(tx)
        except AgentRefusedError as error:
            return self._refused("confirm", tx, error)
        finally:
            self._unlock()
        return self._report("confirm", tx)

    def revert(self, tx: str, by: Token, *, force: bool) -> Work:
        try:
            yield from self._lock(LOCK_PATIENCE)
            self._fence(by)
            transaction = self._known(tx)
            self._accept(by)
            if transaction.state is not ReceiptState.REVERTED:
                if self.under_way not in (None, transaction):
                    raise AgentRefusedError("armed-by-another", tx)
                if self.files == FOREIGN and not force and transaction.state is not ReceiptState.REVERTING:
                    raise AgentRefusedError("foreign-bytes", "/etc/kubernetes/kubelet.conf")
                yield 0.1
                yield from self._take_back(transaction, "asked", by)
        except AgentRefusedError as error:
            return self._refused("revert", tx, error)
        finally:
            self._unlock()
        return self._report("revert", tx, healthy=self.healthy)

    def cleanup(self, by: Token) -> Work:
        try:
            yield from self._lock(LOCK_PATIENCE)
            self._fence(by)
            yield 0.05
            self.token = Token(by.counter, by.run, live=False)
        except AgentRefusedError as error:
            return self._refused("cleanup", "", error)
        finally:
            self._unlock()
        left = tuple(f"rollout-guard-{tx}.timer" for tx in sorted(self.guards))
        if self.under_way:
            left = ("rollout-guard-boot.service", *left)
        return Report(self.name, "cleanup", Outcome.DONE, token=self.token, leftovers=left)

    def guard(self, tx: str) -> Work:
        """The timer's command: a process that still has the lock after ten seconds is killed."""
        try:
            try:
                yield from self._lock(GUARD_PATIENCE)
            except AgentRefusedError:
                if self.holder is not None:
                    self.kill(self.holder)
                self.holder = self._acting
            transaction = self.transactions[tx]
            if transaction.state in (ReceiptState.ARMED, ReceiptState.REVERTING):
                yield from self._take_back(transaction, "guard")
            if not transaction.stuck:
                self.guards.discard(tx)
        finally:
            self._unlock()
        return self._report("guard", tx)

    def seen(self) -> Report:
        """The answer to a plain ``status``, without a claim."""
        return self._report("status", "")

    def _fence(self, by: Token, *, force: bool = False) -> None:
        known = self.token
        if by.counter < known.counter or (by.counter == known.counter and by.run != known.run):
            raise AgentRefusedError("fenced", f"this node has accepted token {known.counter} of run {known.run}")
        if known.run != by.run and known.live and not force:
            raise AgentRefusedError("claimed", f"by run {known.run} with token {known.counter}")

    def _accept(self, by: Token) -> None:
        if (by.counter, by.run) != (self.token.counter, self.token.run):
            self.token = Token(by.counter, by.run, live=True)

    def _compare(self) -> None:
        if self.files != OLD:
            raise AgentRefusedError("drifted", "/etc/kubernetes/kubelet.conf is not as it was read")

    def _known(self, tx: str) -> Transaction:
        transaction = self.transactions.get(tx)
        if transaction is None:
            raise AgentRefusedError("no-transaction", tx)
        return transaction

    def arm(self, transaction: Transaction) -> None:
        """Set its guard's timer."""
        self.guards.add(transaction.tx)
        boot = self.boot
        self.timeline.after((transaction.deadline - self.uptime) / self.rate, lambda: self._fire(transaction.tx, boot))

    def _fire(self, tx: str, boot: int) -> None:
        if tx not in self.guards or not self.powered or self.boot != boot:
            return
        if self.timeline.now < self.frozen_until:
            self.late = True
            self.timeline.at(self.frozen_until, lambda: self._fire(tx, boot))
            return
        self.told(f"the guard of {tx} fires")
        self.begin("guard", self.guard(tx), lambda report: self._again(tx, boot, report))

    def _again(self, tx: str, boot: int, report: Report | None) -> None:
        if (report is None or report.reference) and self.powered:
            self.timeline.after(GUARD_AGAIN, lambda: self._fire(tx, boot))

    def _take_back(self, transaction: Transaction, cause: str, by: Token | None = None) -> Generator[float, None, None]:
        untouched = transaction.state is ReceiptState.ARMED and self.files == OLD
        if transaction.state is not ReceiptState.REVERTING:
            self._become(transaction, ReceiptState.REVERTING, cause)
        yield 0.05
        if not untouched:
            self.files = MIXED
            yield 0.01
            self.files = OLD
            if self.timeline.now < self.kubelet.stays_until:
                transaction.stuck, self.late = "not-restarted", True
                self.told("its kubelet is not restarted with the old files")
                self._try_again_alone(transaction.tx)
                return
            self._restart(cause, by)
            yield (self.kubelet.up_at - self.timeline.now) / self.pace
        transaction.stuck = ""
        self._become(transaction, ReceiptState.REVERTED, transaction.cause)
        self.guards.discard(transaction.tx)

    def _try_again_alone(self, tx: str) -> None:
        """A requested revert has no guard any more: one is set, so that it ends without a controller."""
        if tx not in self.guards:
            self.guards.add(tx)
            boot = self.boot
            self.timeline.after(GUARD_AGAIN, lambda: self._fire(tx, boot))

    def _become(self, transaction: Transaction, state: ReceiptState, cause: str = "") -> None:
        transaction.state, transaction.cause = state, cause
        self.told(f"{transaction.tx} is {state}{f' ({cause})' if cause else ''}")

    def _restart(self, why: str, by: Token | None) -> None:
        token = (by.counter, by.run) if by else (0, "")
        asked_at = self._acting.asked_at if self._acting else self.timeline.now
        restart = Restart(self.timeline.now, why, token, asked_at)
        self.restarts.append(restart)
        if self.kubelet.sick_once_restarted:
            self.kubelet.sick_with |= {OLD}
        forth = self.kubelet.back is None or why == "apply"
        start = self.kubelet.start if forth else self.kubelet.back or 0.0
        self.kubelet.up_at = self.away_until = self.timeline.now + start * self.pace
        self.pulls_until = 0.0
        self.told(f"the kubelet restarts ({why})")
        self.restarted(self, restart)

    def receipt(self, tx: str) -> Receipt | None:
        transaction = self.transactions.get(tx)
        if transaction is None:
            return None
        left = max(0.0, transaction.deadline - self.uptime)
        return Receipt(
            tx, transaction.run, transaction.counter, transaction.state, transaction.cause, left, transaction.finished
        )

    def _report(self, verb: str, tx: str, *, healthy: bool | None = None) -> Report:
        newest = {name: receipt for name in reversed(self.transactions) if (receipt := self.receipt(name))}
        stuck = self.transactions[tx].stuck if tx in self.transactions else ""
        return Report(
            self.name,
            verb,
            Outcome.DONE,
            stuck,
            receipt=newest.get(tx),
            receipts=tuple(newest.values()),
            token=self.token,
            healthy=healthy,
            voided=tx if tx in self.voided else "",
        )

    def _refused(self, verb: str, tx: str, error: AgentRefusedError) -> Report:
        reference, message = error.args
        return Report(self.name, verb, Outcome.REFUSED, reference, message, receipt=self.receipt(tx), token=self.token)
