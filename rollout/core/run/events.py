"""What can happen to a run. Time arrives in the event (``at``, seconds); nothing here reads a clock."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from rollout.core.model.playbook import RevertScope
from rollout.core.model.verdict import Reading, Verdict
from rollout.core.run.state import Verb


class Trigger(StrEnum):
    """What an answer (or a decision) means for a node, whatever verb brought it. See ``triggers.trigger_of``."""

    RELEASED = "released"  # our decision: go
    UNTOUCHED = "untouched"  # the node has no such transaction: its files are the old ones
    BUSY = "busy"  # the transaction is still running on the node
    ARMED = "armed"  # new files in force, local health good, guard armed
    CONFIRMED = "confirmed"
    TAKEN_BACK_SICK = "taken-back-sick"  # the agent saw the kubelet sick and took the change back
    TAKEN_BACK_ALONE = "taken-back-alone"  # the guard or the boot unit did: no confirm came in time
    TAKEN_BACK_ASKED = "taken-back-asked"  # we asked for it
    STILL_SICK = "still-sick"  # old files, yet unhealthy
    STUCK = "stuck"  # its revert is not at its end, and cannot come to it yet
    REFUSED = "refused"
    UNREACHED = "unreached"  # no command was started on the node
    LOST = "lost"  # a command was started, its end was not seen
    GATES_PASSED = "gates-passed"
    GATES_FAILED = "gates-failed"
    GATES_UNKNOWN = "gates-unknown"
    PULLING = "pulling"  # it pulls images, or cannot tell: not touched
    UNSEEN = "unseen"  # its baseline could not be taken: not touched
    DRAINING = "draining"  # pods that are to go are still on it
    DRAINED = "drained"  # they are gone, not only asked to go
    NOT_DRAINED = "not-drained"  # they are there, and it is not waited for them any longer
    UNCORDONED = "uncordoned"  # no cordon of ours is on it
    STILL_CORDONED = "still-cordoned"  # it could not be lifted, or not be told
    TAKE_BACK = "take-back"  # our decision: the change is to go
    CLEANED = "cleaned"
    RESUMED = "resumed"  # a new controller took over; what was in flight is not known


FENCES = frozenset({"claimed", "fenced"})
"""References by which a node says that another run has it."""


@dataclass(frozen=True, slots=True)
class Ticked:
    """Time passed. Releases, retries, soak rounds and deadlines happen here."""

    at: float


@dataclass(frozen=True, slots=True)
class Answered:
    """A node answered verb number ``serial``, or was found not to. ``counter``: the highest token it knows.

    ``seconds`` is how long the answer took; ``baseline`` (apply only) what the API said of the node right before;
    ``pulls`` (apply only) the images it pulled right before, whether it was changed all the same or not touched;
    ``again`` (drain only) the seconds after which to ask again; ``newer`` (a way back's read only) a transaction that came after the
    one that was asked about.
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
    newer: str = ""


@dataclass(frozen=True, slots=True)
class WaveOpened:
    """The wave gates were asked before a wave: what they said is the baseline. Anything but PASS halts the run."""

    at: float
    wave: int
    verdict: Verdict
    evidence: str
    baseline: str = ""
    silences: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class WaveJudged:
    """The wave gates were asked in a round of the soak. UNKNOWN halts the run as FAIL does."""

    at: float
    wave: int
    verdict: Verdict
    evidence: str
    readings: tuple[Reading, ...] = ()


@dataclass(frozen=True, slots=True)
class SilencesLifted:
    """The run's silences were ended; ``leftovers`` says which could not be."""

    at: float
    leftovers: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class CordonsLifted:
    """After the run had ended, ``who`` saw to it that none of these nodes has a cordon of the run any more."""

    at: float
    nodes: tuple[str, ...]
    who: str
    reason: str = ""


@dataclass(frozen=True, slots=True)
class InterruptAsked:
    """The first Ctrl-C: finish what is in flight, release nothing new."""

    at: float


@dataclass(frozen=True, slots=True)
class PauseAsked:
    """Somebody asked, from another terminal, to release nothing for now. ``request`` is the request's number in the journal."""

    at: float
    who: str
    reason: str
    request: int


@dataclass(frozen=True, slots=True)
class ContinueAsked:
    """Go on after a pause, or after a wave that holds (promote)."""

    at: float
    who: str
    reason: str
    request: int


@dataclass(frozen=True, slots=True)
class AbortAsked:
    """End the run as a halt would; ``revert`` says what goes back (``None``: as the playbook says)."""

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


Asked = PauseAsked | ContinueAsked | AbortAsked
Event = Ticked | Answered | WaveOpened | WaveJudged | SilencesLifted | CordonsLifted | InterruptAsked | Asked | Resumed
