"""The state of a run: the order, and the state of every node. Frozen; ``machine.step`` makes the next one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from enum import StrEnum
from typing import Any, TypeVar

from rollout.core.model.approvals import Approval
from rollout.core.model.config_map import NOT_SENT, ConfigMapChange, ConfigMapOutcome, ConfigMapStanding
from rollout.core.model.fleet_changes import AS_PLANNED, FewerNodes
from rollout.core.model.frozen import dataclass
from rollout.core.model.plan import Wave
from rollout.core.model.playbook import DEFAULT_PULLS, Budget, Cause, Limits, PullsInFlight, RevertScope
from rollout.core.model.report import LastLog

RULES = 17
"""The version of the machine's rules. A journal holds only events: replayed with other rules it gives another state.
Raise it with every change of a node's moves, and with every change after which ``tests/core/run/recorded`` replays to
another state.
"""


class NodeState(StrEnum):
    """The state of a node in a run: exactly one of these. ``unknown`` is resolved by reading the node."""

    PENDING = "pending"
    SKIPPED = "skipped"
    REFUSED = "refused"
    APPLYING = "applying"
    APPLIED = "applied"  # guard armed, not yet confirmed
    CONFIRMED = "confirmed"
    REVERTING = "reverting"
    REVERTED = "reverted"
    FAILED = "failed"
    UNREACHABLE = "unreachable"
    UNKNOWN = "unknown"
    GONE = (
        "gone"  # no longer in the inventory: it left before its change or after its confirm, and is charged to nothing
    )


class Goal(StrEnum):
    APPLY = "apply"
    REVERT = "revert"


class Phase(StrEnum):
    """The phase of the whole run."""

    OPENING = "opening"  # claiming every node, in the read that opens apply, resume or rollback
    RUNNING = "running"  # releasing the nodes of a wave
    SOAKING = "soaking"  # K rounds of node and wave gates over the wave; longer while paused or held
    HALTING = "halting"  # nothing new; nodes in flight finish, nodes that must be reverted are reverted
    CLOSING = "closing"  # cleaning up on every node
    ENDED = "ended"


class Verb(StrEnum):
    """What a node can be asked to do; at most one verb is outstanding per node."""

    READ = "read"  # status with a claim
    APPLY = "apply"
    MEASURE = "measure"
    CONFIRM = "confirm"
    REVERT = "revert"
    CLEAN = "clean"
    DRAIN = "drain"  # one round: cordon it, evict the pods that may go now, list those that are left
    UNCORDON = "uncordon"


@dataclass(frozen=True, slots=True)
class NodeOrder:
    """What is fixed about a node for the whole run. ``settle`` is the seconds for which it counts as unavailable after a restart.

    Nodes of one ``kind`` get the same change. ``drain`` is the seconds that its pods have to leave before the change (0: they stay).
    """

    name: str
    rack: str
    wave: int
    settle: float
    zone: str = ""
    kind: str = ""
    drain: float = 0.0


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Nodes that were selected but are not part of the run, for one reason, folded."""

    what: str  # "refused", "unreachable", "silent"
    reason: str
    nodes: str
    count: int

    @property
    def words(self) -> str:
        """``what`` for people: programs and journals have an older word for nodes that did not answer an emergency."""
        return "unreachable" if self.what == "silent" else self.what


@dataclass(frozen=True, slots=True)
class Order:
    """Everything the machine needs of a plan. ``transactions`` (revert runs) is the transaction to revert."""

    run: str
    cluster: str
    goal: Goal
    nodes: Mapping[str, NodeOrder]
    waves: tuple[Wave, ...]
    racks: Mapping[str, int]
    limits: Limits
    budgets: tuple[Budget, ...]
    on_failure: RevertScope
    passes: int
    guard: float
    wave_gates: bool
    transactions: Mapping[str, str] = field(default_factory=dict)
    left_out: tuple[LeftOut, ...] = ()
    force: bool = False  # revert over bytes that others wrote since: the operator's choice
    rehearsal: bool = False  # the first wave's nodes are reverted once for real, then changed again
    zones: Mapping[str, int] = field(default_factory=dict)  # zone → its nodes; only used with a limit per zone
    pulls: PullsInFlight = DEFAULT_PULLS
    config_map: ConfigMapChange | None = (
        None  # written after the last wave; in a rollback, restored before the first revert
    )
    rules: int = RULES

    def __post_init__(self) -> None:
        """Sort the nodes in the order of the waves: JSON guarantees no order of keys (law 10)."""
        place = {name: at for at, name in enumerate(name for wave in self.waves for name in wave.nodes)}
        names = sorted(self.nodes, key=lambda name: (place.get(name, len(place)), name))
        object.__setattr__(self, "nodes", {name: self.nodes[name] for name in names})


class Rehearsal(StrEnum):
    """The progress of a canary node's rehearsal."""

    NONE = "none"
    BACK = "back"  # to be reverted, or reverting
    DONE = "done"  # was reverted once, healthy


# The states of a node: each carries what belongs to it, and nothing else of a node does. ``state`` is its word on screens
# and in documents. Only ``transitions`` makes the next one.


class PostponedFor(StrEnum):
    """Why a change is postponed."""

    PULLS = "pulls"  # a restart would cancel the node's pulls, or nobody knows whether it pulls
    BASELINE = "baseline"  # its baseline could not be taken


@dataclass(frozen=True, slots=True)
class Postponed:
    """The change of an untouched node waits, and is asked for again at ``again``.

    ``since``: when each reason was first found; ``images``: those that it pulled when it was last asked; none: not known.
    """

    reason: PostponedFor
    again: float
    since: Mapping[PostponedFor, float]
    images: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Pending:
    """Not changed yet. ``away_since``: since when each request to it found the engine away; 0: the last one did not."""

    postponed: Postponed | None = None
    away_since: float = 0.0
    state = NodeState.PENDING


@dataclass(frozen=True, slots=True)
class Draining:
    """Its pods leave before its change. ``since`` is when it was first asked; it is asked again at ``again``.

    ``waits`` is what it waited for when last asked.
    """

    since: float
    again: float
    waits: str = ""
    state = NodeState.APPLYING


@dataclass(frozen=True, slots=True)
class Drained:
    """Its pods have left, and it waits for its restart."""

    postponed: Postponed | None = None
    state = NodeState.APPLYING


@dataclass(frozen=True, slots=True)
class Applying:
    """Its apply was sent. ``postponed``: for what the change had waited before."""

    drained: bool = False
    postponed: Postponed | None = None
    state = NodeState.APPLYING


@dataclass(frozen=True, slots=True)
class Armed:
    """It has the change, and its guard reverts it unless it is confirmed. ``since`` when, whatever it answered in between."""

    since: float
    state = NodeState.APPLIED


@dataclass(frozen=True, slots=True)
class Confirmed:
    """It has the change for good. ``armed_since`` as in ``Armed``; 0: not known."""

    armed_since: float = 0.0
    state = NodeState.CONFIRMED


@dataclass(frozen=True, slots=True)
class Reverting:
    """Its revert is asked for, or waits for the pace."""

    state = NodeState.REVERTING


@dataclass(frozen=True, slots=True)
class Unknown:
    """It is read until it answers. ``reads``: how many reads in a row got no answer.

    ``armed_since`` as in ``Confirmed``, ``away_since`` as in ``Pending``.
    """

    reads: int = 0
    armed_since: float = 0.0
    away_since: float = 0.0
    state = NodeState.UNKNOWN


@dataclass(frozen=True, slots=True)
class Reverted:
    state = NodeState.REVERTED


@dataclass(frozen=True, slots=True)
class Refused:
    """Left unchanged. ``postponed``: its change had waited for too long."""

    postponed: Postponed | None = None
    state = NodeState.REFUSED


@dataclass(frozen=True, slots=True)
class Untouched:
    """A rollback found nothing to revert on it."""

    state = NodeState.SKIPPED


@dataclass(frozen=True, slots=True)
class Failed:
    state = NodeState.FAILED


@dataclass(frozen=True, slots=True)
class Unreachable:
    state = NodeState.UNREACHABLE


@dataclass(frozen=True, slots=True)
class Gone:
    state = NodeState.GONE


State = (
    Pending
    | Draining
    | Drained
    | Applying
    | Armed
    | Confirmed
    | Reverting
    | Unknown
    | Reverted
    | Refused
    | Untouched
    | Failed
    | Unreachable
    | Gone
)


@dataclass(frozen=True)  # no slots: see ``altered``
class NodeRecord:
    """One node: its state, and what outlives a state.

    Obligations:

    * ``cause``: what the node is charged for (``None``: nothing, it may have been reverted with others).
      ``accepted``: an operator resumed after the halt that this node led to.
    * ``owed``: it is pending recovery.
    * ``to_revert``: the change must be reverted as soon as limits allow.
    * ``cordoned``: it may have a cordon of ours, from before the first request until it is known to have none.
      ``uncordons`` counts failed attempts in a row to lift it. From the first one on the cordon takes no room from
      nodes that must be reverted. A cordon of a node that was broken begins with one.
    * ``rehearsal``: how far its rehearsal is.
    * ``busy_until``: when it has settled after a restart. ``leftovers``: what its clean-up left.

    The question that is open:

    * ``asked``: the outstanding verb; ``serial``: its number. An answer with another number is stale.
    * ``retry_at``: when it is next read, or its cordon next lifted, after an attempt that failed.

    What is known of it:

    * ``attempt``: the number of its transaction. ``since``: when it entered its state.
    * ``reference``, ``message``: of its last failure.
    * ``orphaned``: its controller died, so a guard that fired is not the node's fault.
    * ``touched``: an apply was sent to it and no later read has found it untouched. What vanishes then may be our doing.
    * ``shown``: it was confirmed, and as far as is known it has its change since, though it may not answer or have left.
    * ``passes``: how often in a row its gates passed in the soak; without a soak, right before the confirm too.
    * ``apply_seconds``, ``revert_seconds``, ``drained_seconds``: how long its last apply, revert and drain took.
    * ``baseline``: the API's answer before its apply.
    * ``cancelled``: the images with pulls that its last apply cancelled.
    * ``log``: the last lines before its change was reverted, the last time that it was.
    * ``pod_starts``: the pods known to have started on it since its last apply; ``None``: not known.
    * ``pulls_done``: the image pulls known to have succeeded on it since then; ``None``: not known.
    * ``tx``: the transaction that a rollback reverts instead of the one in its order, because it was made between the
      read and the claim.
    """

    current: State = Pending()

    cause: Cause | None = None
    accepted: bool = False
    owed: bool = False
    to_revert: bool = False
    cordoned: bool = False
    uncordons: int = 0
    rehearsal: Rehearsal = Rehearsal.NONE
    busy_until: float = 0.0
    leftovers: tuple[str, ...] = ()

    asked: Verb | None = None
    serial: int = 0
    retry_at: float = 0.0

    attempt: int = 1
    since: float = 0.0
    reference: str = ""
    message: str = ""
    orphaned: bool = False
    touched: bool = False
    shown: bool = False
    passes: int = 0
    apply_seconds: float = 0.0
    revert_seconds: float = 0.0
    drained_seconds: float = 0.0
    baseline: str = ""
    cancelled: tuple[str, ...] = ()
    log: LastLog | None = None
    pod_starts: int | None = None
    pulls_done: int | None = None
    tx: str = ""

    @property
    def state(self) -> NodeState:
        """The word for its state. ``applying`` is also a node that is being drained, or is empty."""
        return self.current.state

    @property
    def postponed(self) -> Postponed | None:
        """For what its change waits, or had waited for too long."""
        return self.current.postponed if isinstance(self.current, MAY_WAIT) else None


MAY_WAIT = (Pending, Drained, Applying, Refused)
"""States with a change that may be postponed."""


class Ending(StrEnum):
    """How a run ended; ``summary.exit_code`` maps it."""

    DONE = "done"
    HALTED = "halted"
    INTERRUPTED = "interrupted"
    PREFLIGHT = "preflight"
    CLAIMED = "claimed"


@dataclass(frozen=True, slots=True)
class Halt:
    """Why nothing new is released, and since when."""

    ending: Ending
    reference: str
    message: str
    at: float

    def __str__(self) -> str:
        return f"{self.message} [{self.reference}]"


@dataclass(frozen=True, slots=True)
class Pause:
    """The operator who paused the run, why, and since when. ``held``: the playbook did, after a wave."""

    who: str
    reason: str
    at: float
    held: bool = False

    def __str__(self) -> str:
        if self.held:
            return f"it {self.reason}"
        return f"paused by {self.who}" + (f": {self.reason}" if self.reason else "")


@dataclass(frozen=True, slots=True)
class ClosedWindow:
    """Why no change may start by a condition of the plan, since when, and when one may again (``None``: not known)."""

    why: str
    at: float
    opens: float | None

    def __str__(self) -> str:
        return f"the change window is closed: {self.why}"


@dataclass(frozen=True)  # no slots: see ``altered``
class RunState:
    """The whole state of a run.

    * ``started``: the times of the restarts within the pace's window, oldest first.
    * ``reached``: the furthest wave that has begun. After a resume ``wave`` may be an earlier one for a while.
    * ``round`` counts the rounds of a soak, ``gate_passes`` those in a row in which the wave gates passed.
    * ``data_by``: when the soak must have its data (0: it needs none).
    * ``opened``: the wave that this controller opened last; ``baselines``: the wave gates' results before each wave.
    * ``closed``: its change window is closed; a halt ends that as it ends a pause.
    * ``approved``: the approvals that it was started with.
    * ``promoted``: the last wave with a hold that was lifted.
    * ``fewer``: racks and zones that have fewer nodes now than the order says.
    * ``heard``: the number of the last request taken from another terminal.
    """

    order: Order
    counter: int
    phase: Phase
    wave: int
    nodes: Mapping[str, NodeRecord]
    now: float
    started: tuple[float, ...] = ()
    round: int = 0
    round_at: float = 0.0
    data_by: float = 0.0
    gate_asked: bool = False
    gate_passes: int = 0
    reached: int = 0
    opened: int = -1
    baselines: Mapping[int, str] = field(default_factory=dict)
    silences: tuple[str, ...] = ()
    lifting: bool = False
    leftovers: tuple[str, ...] = ()
    paused: Pause | None = None
    closed: ClosedWindow | None = None
    approved: tuple[Approval, ...] = ()
    promoted: int = -1
    heard: int = 0
    halt: Halt | None = None
    highest: int = 0  # the highest token counter any node answered with
    claims: int = 1  # how often the opening claim was made
    ending: Ending | None = None
    interrupted: bool = False
    fewer: FewerNodes = AS_PLANNED
    config_map: ConfigMapStanding = NOT_SENT

    @property
    def waits(self) -> bool:
        """Whether nothing is released for now: it is paused or on hold, or its change window is closed."""
        return self.paused is not None or self.closed is not None

    @property
    def owes_config_map(self) -> bool:
        """Whether its ConfigMap is still to be written, or restored: it was asked for, and did not answer or refused it; or a rollback did not come to it."""
        found, due = self.config_map, self.config_map.sent or self.order.goal is Goal.REVERT
        undone = found.outcome in (None, ConfigMapOutcome.UNANSWERED, ConfigMapOutcome.REFUSED)
        return self.order.config_map is not None and due and undone

    @property
    def wave_is_opening(self) -> bool:
        """Whether the answer with the wave's baseline and silences is still outstanding."""
        return self.gate_asked and self.opened != self.wave

    def transaction(self, name: str) -> str:
        """The transaction's name on this node: fixed in a revert run, else run and attempt."""
        return transaction_of(self.order, name, self.nodes[name])


def transaction_of(order: Order, name: str, record: NodeRecord) -> str:
    """See ``RunState.transaction``."""
    fixed = record.tx or order.transactions.get(name)
    return fixed if fixed is not None else f"{order.run}-{record.attempt}"


# A copy of a value with some fields changed, for what every event copies: the state of a run and its nodes'
# records. ``dataclasses.replace`` is slower: its ``__init__`` sets every field again.


Value = TypeVar("Value")


def altered(value: Value, changes: dict[str, Any]) -> Value:
    """``value``, a frozen dataclass without slots or ``__post_init__``, with these fields changed; ``TypeError``: no such field."""
    known = value.__dict__
    fields = known | changes  # a copy of one size and shape: far faster than to fill a new one
    if len(fields) != len(known):
        message = f"{type(value).__name__} has no {', '.join(sorted(changes.keys() - known.keys()))}"
        raise TypeError(message)
    new = object.__new__(type(value))
    object.__setattr__(new, "__dict__", fields)
    return new
