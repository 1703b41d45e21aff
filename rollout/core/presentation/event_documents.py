"""The events of a run for programs: a document of its own kind for each event in the journal, with where the run is then.

These are not the names on disk: see ``journal_codec``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import assert_never

from rollout.core.model.playbook import RevertScope
from rollout.core.model.report import LastLog
from rollout.core.model.verdict import Reading, Verdict
from rollout.core.presentation.summary import HaltSummary, halt_summary
from rollout.core.run import events
from rollout.core.run.events import Event, Trigger
from rollout.core.run.state import NodeState, Phase, RunState, Verb
from rollout.core.text.documents import Inline, Moment
from rollout.core.text.nodesets import fold


@dataclass(frozen=True, slots=True)
class Step:
    """When an event was, and the run after it. ``wave`` is the name of the wave that it is at."""

    run: str
    at: Moment
    phase: Phase
    wave: str
    halt: HaltSummary | None


@dataclass(frozen=True, slots=True)
class TickedDocument:
    """Time passed: nodes may have been released, tried again or given up."""

    step: Inline[Step]


@dataclass(frozen=True, slots=True)
class AnsweredDocument:
    """A node's answer to ``verb``, or that there was none; ``state`` is the node's after it.

    ``token`` is the highest counter that it knows, ``serial`` the number of the request, ``seconds`` how long it took.
    ``pulls``: images that it pulled right before its change. A drain is asked again in ``again_seconds``.
    ``log``: the last lines before it reverted its change. ``newer``: a later transaction that a rollback found.
    ``pod_starts``, ``pulls_done``: the pods that started on it, and the pulls that succeeded, since its change; ``None``: not known.
    """

    step: Inline[Step]
    node: str
    serial: int
    verb: Verb
    trigger: Trigger
    state: NodeState
    reference: str
    message: str
    token: int
    seconds: float
    leftovers: tuple[str, ...]
    pulls: tuple[str, ...]
    again_seconds: float
    log: LastLog | None
    newer: str
    pod_starts: int | None
    pulls_done: int | None


@dataclass(frozen=True, slots=True)
class SilenceSet:
    """A silence in the alert manager; ``url`` ``""``: the inventory's."""

    identity: str
    url: str


@dataclass(frozen=True, slots=True)
class WaveOpenedDocument:
    """The wave gates were checked before a wave. Anything but ``pass`` halts the run."""

    step: Inline[Step]
    opened: str
    verdict: Verdict
    evidence: str
    silences: tuple[SilenceSet, ...]


@dataclass(frozen=True, slots=True)
class WaveJudgedDocument:
    """The wave gates were checked in a round of the soak of the wave ``judged``."""

    step: Inline[Step]
    judged: str
    verdict: Verdict
    evidence: str
    readings: tuple[Reading, ...]


@dataclass(frozen=True, slots=True)
class SilencesLiftedDocument:
    """The run's silences were ended, except ``leftovers``."""

    step: Inline[Step]
    leftovers: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class CordonsLiftedDocument:
    """After the end of the run, ``who`` made sure that none of these nodes (a nodeset) has a cordon of the run."""

    step: Inline[Step]
    nodes: str
    count: int
    who: str
    reason: str


@dataclass(frozen=True, slots=True)
class InterruptAskedDocument:
    """The first Ctrl-C: nodes in flight finish, nothing new is released."""

    step: Inline[Step]


@dataclass(frozen=True, slots=True)
class Asked:
    """Who asked, and the number of the request in the journal."""

    who: str
    reason: str
    request: int


@dataclass(frozen=True, slots=True)
class PauseAskedDocument:
    """A request to release nothing for now."""

    step: Inline[Step]
    asked: Inline[Asked]


@dataclass(frozen=True, slots=True)
class ContinueAskedDocument:
    """A request to continue after a pause, or after a wave that holds."""

    step: Inline[Step]
    asked: Inline[Asked]


@dataclass(frozen=True, slots=True)
class AbortAskedDocument:
    """A request to end the run as a halt would; ``revert`` ``None``: as set in the playbook."""

    step: Inline[Step]
    asked: Inline[Asked]
    revert: RevertScope | None


@dataclass(frozen=True, slots=True)
class ResumedDocument:
    """A new controller took the run over with this token."""

    step: Inline[Step]
    token: int


@dataclass(frozen=True, slots=True)
class FleetReadDocument:
    """The inventory that a new controller read. ``left``: node of the run that is no longer in it → the reference.

    ``racks`` and ``zones``: those with fewer nodes than ordered → their nodes now.
    """

    step: Inline[Step]
    left: Mapping[str, str]
    racks: Mapping[str, int]
    zones: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class WindowClosedDocument:
    """By the plan's calendars no change may start, for the reason ``why``; ``opens`` ``None``: not known until when."""

    step: Inline[Step]
    why: str
    opens: Moment | None


@dataclass(frozen=True, slots=True)
class WindowOpenedDocument:
    """By the plan's calendars changes may start again."""

    step: Inline[Step]


@dataclass(frozen=True, slots=True)
class ApprovedDocument:
    """A person's good signature over the plan; ``key`` is its fingerprint."""

    step: Inline[Step]
    person: str
    key: str


EVENT_DOCUMENTS = (
    TickedDocument, AnsweredDocument, WaveOpenedDocument, WaveJudgedDocument, SilencesLiftedDocument,
    CordonsLiftedDocument, InterruptAskedDocument, PauseAskedDocument, ContinueAskedDocument, AbortAskedDocument,
    ResumedDocument, FleetReadDocument, WindowClosedDocument, WindowOpenedDocument, ApprovedDocument,
)  # fmt: skip


def event_document(event: Event, after: RunState) -> object:
    """``after``: the state after the event."""
    step = Step(after.order.run, event.at, after.phase, _wave(after, after.wave), halt_summary(after.halt))
    match event:
        case events.Answered():
            return AnsweredDocument(
                step=step,
                node=event.node,
                serial=event.serial,
                verb=event.verb,
                trigger=event.trigger,
                state=after.nodes[event.node].state,
                reference=event.reference,
                message=event.message,
                token=event.counter,
                seconds=event.seconds,
                leftovers=event.leftovers,
                pulls=event.pulls,
                again_seconds=event.again,
                log=event.log,
                newer=event.newer,
                pod_starts=event.pod_starts,
                pulls_done=event.pulls_done,
            )
        case events.WaveOpened():
            wave = _wave(after, event.wave)
            return WaveOpenedDocument(step, wave, event.verdict, event.evidence, _silences(event.silences))
        case events.WaveJudged():
            return WaveJudgedDocument(step, _wave(after, event.wave), event.verdict, event.evidence, event.readings)
        case events.PauseAsked():
            return PauseAskedDocument(step, Asked(event.who, event.reason, event.request))
        case events.ContinueAsked():
            return ContinueAskedDocument(step, Asked(event.who, event.reason, event.request))
        case events.AbortAsked():
            return AbortAskedDocument(step, Asked(event.who, event.reason, event.request), event.revert)
        case events.InterruptAsked():
            return InterruptAskedDocument(step)
        case events.Approved():
            return ApprovedDocument(step, event.person, event.key)
        case events.WindowClosed():
            return WindowClosedDocument(step, event.why, event.opens)
        case events.WindowOpened():
            return WindowOpenedDocument(step)
        case events.Resumed():
            return ResumedDocument(step, event.counter)
        case events.FleetRead():
            return FleetReadDocument(step, dict(event.left), dict(event.racks), dict(event.zones))
        case events.Ticked():
            return TickedDocument(step)
        case events.SilencesLifted():
            return SilencesLiftedDocument(step, event.leftovers)
        case events.CordonsLifted():
            return CordonsLiftedDocument(step, fold(event.nodes), len(event.nodes), event.who, event.reason)
    assert_never(event)


def _wave(state: RunState, index: int) -> str:
    """``""`` for a run without nodes."""
    waves = state.order.waves
    return waves[min(index, len(waves) - 1)].name if waves else ""


def _silences(said: Iterable[str]) -> tuple[SilenceSet, ...]:
    """Journals have them as ``IDENTITY URL``."""
    parts = (each.partition(" ") for each in said)
    return tuple(SilenceSet(identity, url) for identity, _, url in parts)
