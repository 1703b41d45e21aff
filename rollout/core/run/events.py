"""What can happen to a run: events, the requests of other terminals, and what a node's answer means.

Time arrives in the event (``at``, seconds); nothing here reads a clock.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum

from rollout.core.model.config_map import ConfigMapOutcome
from rollout.core.model.frozen import dataclass
from rollout.core.model.playbook import RevertScope
from rollout.core.model.report import LastLog, Outcome, Report
from rollout.core.model.snapshot import Receipt, ReceiptState
from rollout.core.model.verdict import Reading, Verdict
from rollout.core.run.state import Verb


class Trigger(StrEnum):
    """What an answer (or a decision) means for a node, for any verb. See ``trigger_of``."""

    RELEASED = "released"  # our decision: go
    UNTOUCHED = "untouched"  # the node has no such transaction: it has its old files
    VOIDED = "voided"  # the same, and from now on it refuses that transaction: a late apply changes nothing
    BUSY = "busy"  # the transaction is still running on the node
    ARMED = "armed"  # new files in force, local health good, guard armed
    CONFIRMED = "confirmed"
    REVERTED_UNHEALTHY = "taken-back-sick"  # the agent found the kubelet unhealthy and reverted the change
    REVERTED_BY_GUARD = "taken-back-alone"  # the guard or the boot unit did: no confirm came in time
    REVERTED_ON_REQUEST = "taken-back-asked"  # we asked for it
    STILL_UNHEALTHY = "still-sick"  # old files, yet unhealthy
    STUCK = "stuck"  # its revert is not complete, and cannot complete yet
    REFUSED = "refused"
    UNREACHED = "unreached"  # no command was started on the node
    AWAY = "away"  # what carries commands to nodes was away itself: nothing is known of the node
    LOST = "lost"  # a command was started, but its end was not seen, or the node cannot read its own receipt
    GATES_PASSED = "gates-passed"
    GATES_FAILED = "gates-failed"
    GATES_UNKNOWN = "gates-unknown"
    PULLING = "pulling"  # it pulls images, or this is not known: not changed
    UNSEEN = "unseen"  # its baseline could not be taken: not changed
    DRAINING = "draining"  # pods that must go are still on it
    DRAINED = "drained"  # they are gone, not only evicted
    NOT_DRAINED = "not-drained"  # they are still there, and their time is over
    UNCORDONED = "uncordoned"  # no cordon of ours is on it
    STILL_CORDONED = "still-cordoned"  # it could not be lifted, or this is not known
    REVERT = "take-back"  # our decision: revert the change
    CLEANED = "cleaned"
    GONE = "gone"  # it is no longer in the inventory; nothing was started on it
    RETURNED = "returned"  # it is in the inventory again
    RESUMED = "resumed"  # a new controller took over; what was in flight is not known


AWAY = "region-away"
"""The reference with which an engine reports that it is away itself: it has no worker that reaches the node."""

ENDED_HERE = "ended-here"
"""The reference with which a node refuses a run: the claim of that run has ended on it, by an unlock or another controller."""

FENCES = frozenset({"claimed", "fenced", ENDED_HERE})
"""References with which a node reports that this controller has it no more."""


@dataclass(frozen=True, slots=True)
class Ticked:
    """Time passed. Releases, retries, soak rounds and deadlines happen here."""

    at: float


@dataclass(frozen=True, slots=True)
class Answered:
    """A node answered verb number ``serial``, or gave no answer.

    * ``counter``: the highest token that it knows; ``seconds``: how long the answer took.
    * ``baseline`` (apply only): the API's answer on the node right before.
    * ``pulls`` (apply only): the images that it pulled right before, whether it was changed anyway or not.
    * ``again`` (drain only): the seconds after which to ask again.
    * ``log`` (apply, revert): the last lines before the node reverted its change; ``None``: none were read.
    * ``pod_starts`` (measure only): the pods that started on it since its change; ``None``: not known.
    * ``pulls_done`` (measure only): the image pulls that succeeded since then; ``None``: not known, or not read.
    * ``newer`` (a rollback's read only): a transaction later than the one asked about.
    """

    at: float
    node: str
    serial: int
    verb: Verb
    trigger: Trigger
    reference: str = ""
    message: str = ""
    counter: int = 0
    leftovers: tuple[str, ...] = ()
    seconds: float = 0.0
    baseline: str = ""
    pulls: tuple[str, ...] = ()
    again: float = 0.0
    log: LastLog | None = None
    newer: str = ""
    pod_starts: int | None = None
    pulls_done: int | None = None


@dataclass(frozen=True, slots=True)
class WaveOpened:
    """The wave gates were checked before a wave: the result is the baseline. Anything but PASS halts the run."""

    at: float
    wave: int
    verdict: Verdict
    evidence: str
    baseline: str = ""
    silences: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class WaveJudged:
    """The wave gates were checked in a round of the soak. UNKNOWN halts the run as FAIL does."""

    at: float
    wave: int
    verdict: Verdict
    evidence: str
    readings: tuple[Reading, ...] = ()


@dataclass(frozen=True, slots=True)
class SilencesLifted:
    """The run's silences were ended; ``leftovers`` are those that could not be ended."""

    at: float
    leftovers: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ConfigMapRead:
    """The run's ConfigMap as it was read after the request to write it. ``digest``: of the text that it has; ``""``: not known."""

    at: float
    outcome: ConfigMapOutcome
    digest: str = ""
    reference: str = ""
    message: str = ""


@dataclass(frozen=True, slots=True)
class CordonsLifted:
    """After the end of the run, the operator ``who`` made sure that none of these nodes has a cordon of the run."""

    at: float
    nodes: tuple[str, ...]
    who: str
    reason: str = ""


@dataclass(frozen=True, slots=True)
class InterruptAsked:
    """The first Ctrl-C: finish the nodes in flight, release nothing new."""

    at: float


@dataclass(frozen=True, slots=True)
class PauseAsked:
    """A request, from another terminal, to release nothing for now. ``request`` is the request's number in the journal."""

    at: float
    who: str
    reason: str
    request: int


@dataclass(frozen=True, slots=True)
class ContinueAsked:
    """Continue after a pause, or after a wave that holds (promote)."""

    at: float
    who: str
    reason: str
    request: int


@dataclass(frozen=True, slots=True)
class AbortAsked:
    """End the run as a halt would; ``revert`` is what to revert (``None``: as set in the playbook)."""

    at: float
    who: str
    reason: str
    request: int
    revert: RevertScope | None = None


@dataclass(frozen=True, slots=True)
class Resumed:
    """A new controller took the run over with a newer token."""

    at: float
    counter: int


@dataclass(frozen=True, slots=True)
class FleetRead:
    """The inventory that a new controller read. ``left``: nodes of the run that are no longer in it → the reference.

    ``racks`` and ``zones``: those that have fewer nodes than ordered → their nodes now.
    """

    at: float
    left: Mapping[str, str]
    racks: Mapping[str, int]
    zones: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class WindowClosed:
    """By a condition of the plan, such as a calendar, no change may start now. ``opens``: when one may again (``None``: not known)."""

    at: float
    why: str
    opens: float | None = None


@dataclass(frozen=True, slots=True)
class WindowOpened:
    """Changes may start again."""

    at: float


@dataclass(frozen=True, slots=True)
class Approved:
    """A person's good signature over the plan, checked before anything was touched. ``key`` is its fingerprint."""

    at: float
    person: str
    key: str
    signature: str


OperatorRequest = PauseAsked | ContinueAsked | AbortAsked
Window = WindowClosed | WindowOpened
Event = (
    Ticked
    | Answered
    | WaveOpened
    | WaveJudged
    | SilencesLifted
    | ConfigMapRead
    | CordonsLifted
    | InterruptAsked
    | OperatorRequest
    | Resumed
    | FleetRead
    | Window
    | Approved
)


# Requests of another terminal to a run, on the way from the journal to the machine.


class RequestWord(StrEnum):
    PAUSE = "pause"
    CONTINUE = "continue"
    ABORT = "abort"


@dataclass(frozen=True, slots=True)
class Request:
    """As recorded: ``number`` counts all requests of a journal, ``revert`` (abort) is a ``RevertScope`` or ``""``."""

    number: int
    word: str
    who: str
    reason: str
    revert: str = ""


def is_known(request: Request) -> bool:
    """Whether this version knows the word. An unknown word of a newer terminal is no reason to stop."""
    return request.word in set(RequestWord) and request.revert in {"", *RevertScope}


def request_event(request: Request, at: float) -> OperatorRequest:
    """The event for a request. An unknown request raises ``ValueError``."""
    word = RequestWord(request.word)
    if word is RequestWord.PAUSE:
        return PauseAsked(at, request.who, request.reason, request.number)
    if word is RequestWord.CONTINUE:
        return ContinueAsked(at, request.who, request.reason, request.number)
    revert = RevertScope(request.revert) if request.revert else None
    return AbortAsked(at, request.who, request.reason, request.number, revert)


# What a node's answer means: report in, trigger out. The outcome is what was read from the node, never what was
# requested.


NOT_DURABLE = "not-durable"
"""The cause of a revert by a node that does not know whether its disk has the change, and the reference of such an answer."""
_REVERTED_BY = {
    "health": Trigger.REVERTED_UNHEALTHY,
    NOT_DURABLE: Trigger.REVERTED_UNHEALTHY,
    "guard": Trigger.REVERTED_BY_GUARD,
    "boot": Trigger.REVERTED_BY_GUARD,
    "asked": Trigger.REVERTED_ON_REQUEST,
}
RECEIPT_UNREADABLE = "receipt-unreadable"
"""The reference with which a node reports that it has a receipt that it cannot read: whatever was asked, nothing is known of its change."""
NOT_REVERTED_YET = frozenset({"not-given-back", "not-restarted", "not-durable", "durability-unknown"})
"""References of a revert that cannot complete for now."""
_TOLD_BY_THE_RECEIPT = frozenset({"too-late", "not-durable", "durability-unknown"})


def trigger_of(report: Report, void: str = "") -> Trigger:
    """The meaning of an answer to ``status``, ``apply``, ``confirm`` or ``revert``. ``void``: the transaction that a read was to void.

    A refusal means that nothing was changed. If the node still has a receipt (``too-late``, ``not-durable``,
    ``durability-unknown``), the receipt counts: what is on the node is the outcome. A revert that cannot complete has a
    reference of ``NOT_REVERTED_YET``: the node failed, and its guard continues by itself.
    """
    if report.outcome is Outcome.UNREACHED:
        return Trigger.AWAY if report.reference == AWAY else Trigger.UNREACHED
    if report.outcome is Outcome.LOST or report.reference == RECEIPT_UNREADABLE:
        return Trigger.LOST
    if report.outcome is Outcome.REFUSED and (report.receipt is None or report.reference not in _TOLD_BY_THE_RECEIPT):
        return Trigger.REFUSED
    if report.receipt is None:
        return Trigger.VOIDED if void and report.voided == void else Trigger.UNTOUCHED
    if report.outcome is Outcome.DONE and report.reference and report.receipt.state is ReceiptState.REVERTING:
        return Trigger.STUCK
    return _of_receipt(report.receipt, healthy=report.healthy)


def newer_attempt(tx: str, receipts: Iterable[Receipt]) -> str:
    """A later transaction of the same run that is not reverted; ``""``: there is none. ``receipts``: newest first.

    A run that was still alive when a rollback read the node may have tried it again before the rollback claimed it.
    """
    run = tx.rpartition("-")[0]
    for receipt in receipts:
        if receipt.tx == tx:
            return ""
        if receipt.run == run and receipt.state is not ReceiptState.REVERTED:
            return receipt.tx
    return ""


def reference_of(report: Report, trigger: Trigger) -> str:
    """The stable reference of an answer; a reverted change has one even when nothing was refused."""
    return report.reference or (NOT_DURABLE if _is_not_durable(report, trigger) else _REFERENCES.get(trigger, ""))


def message_of(report: Report, trigger: Trigger) -> str:
    """Its own, or what the receipt tells of the cause of a revert."""
    if report.message:
        return report.message
    if _is_not_durable(report, trigger):
        return "it is not known that the disk has what was written, so the node reverted the change"
    cause = _cause_of(report)
    if trigger is Trigger.REVERTED_BY_GUARD and cause == "boot":
        return "the node booted before its confirm came, and reverted the change at its start"
    if trigger is not Trigger.REVERTED_BY_GUARD or cause in _REVERTED_BY:
        return ""
    return f"the node reverted the change, for a cause that this version does not know: {cause or 'none'}"


def _is_not_durable(report: Report, trigger: Trigger) -> bool:
    return trigger is Trigger.REVERTED_UNHEALTHY and _cause_of(report) == NOT_DURABLE


def _cause_of(report: Report) -> str:
    return report.receipt.cause if report.receipt is not None else ""


_REFERENCES = {
    Trigger.REVERTED_UNHEALTHY: "unhealthy",
    Trigger.REVERTED_BY_GUARD: "not-confirmed-in-time",
    Trigger.STILL_UNHEALTHY: "unhealthy-with-old-files",
    Trigger.BUSY: "still-busy",
}


def _of_receipt(receipt: Receipt, *, healthy: bool | None) -> Trigger:
    if receipt.state is ReceiptState.CONFIRMED:
        return Trigger.CONFIRMED
    if receipt.state is ReceiptState.REVERTING:
        return Trigger.BUSY
    if receipt.state is ReceiptState.ARMED:
        return Trigger.ARMED if receipt.finished else Trigger.BUSY
    if healthy is False:
        return Trigger.STILL_UNHEALTHY
    return _REVERTED_BY.get(receipt.cause, Trigger.REVERTED_BY_GUARD)
