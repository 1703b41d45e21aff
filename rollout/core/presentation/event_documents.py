"""The events of a run for programs: a document of its own kind for each event in the journal, with where the run is then.

These are not the names on disk: see ``journal_codec``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, make_dataclass
from typing import Annotated, Any

from rollout.core.presentation.summary import ShownHalt
from rollout.core.presentation.summary_text import SummaryDocument
from rollout.core.run import events
from rollout.core.run.events import Event
from rollout.core.run.state import NodeState, Phase, RunState
from rollout.core.text.documents import Inline, Moment, PrintedKey, Shown
from rollout.core.text.nodesets import fold


@dataclass(frozen=True, slots=True)
class Step:
    """When an event was, and the run after it. ``wave`` is the name of the wave that it is at."""

    run: str
    at: Moment
    phase: Phase
    wave: str
    halt: ShownHalt | None


_ANSWER = Shown(
    "",
    (
        "reference", "message", PrintedKey("counter", "token"), "seconds", "leftovers", "pulls",
        PrintedKey("again", "again_seconds"), "log", "newer", "pod_starts", "pulls_done",
    ),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class AnsweredDocument:
    """A node's answer to ``verb``, or that there was none; ``state`` is the node's after it.

    ``token`` is the highest counter that it knows, ``serial`` the number of the request, ``seconds`` how long it took.
    ``pulls``: images that it pulled right before its change. A drain is asked again in ``again_seconds``.
    ``log``: the last lines before it reverted its change. ``newer``: a later transaction that a rollback found.
    ``pod_starts``, ``pulls_done``: the pods that started on it, and the pulls that succeeded, since its change; ``None``: not known.
    """

    step: Inline[Step]
    event: Inline[Annotated[events.Answered, Shown("", ("node", "serial", "verb", "trigger"))]]
    state: NodeState
    answer: Inline[Annotated[events.Answered, _ANSWER]]


@dataclass(frozen=True, slots=True)
class SilenceSet:
    """A silence in the alert manager; ``url`` ``""``: the inventory's. ``identity`` ``""``: it may have been set, and the answer was lost."""

    identity: str
    url: str


def _silences(silences: tuple[str, ...]) -> tuple[SilenceSet, ...]:
    """Journals have them as ``IDENTITY URL``."""
    parts = (silence.partition(" ") for silence in silences)
    return tuple(SilenceSet(identity, url) for identity, _, url in parts)


@dataclass(frozen=True, slots=True)
class WaveOpenedDocument:
    """The wave gates were checked before a wave. Anything but ``pass`` halts the run."""

    step: Inline[Step]
    opened: str
    event: Inline[
        Annotated[events.WaveOpened, Shown("", ("verdict", "evidence", PrintedKey("silences", write=_silences)))]
    ]


@dataclass(frozen=True, slots=True)
class WaveJudgedDocument:
    """The wave gates were checked in a round of the soak of the wave ``judged``."""

    step: Inline[Step]
    judged: str
    event: Inline[Annotated[events.WaveJudged, Shown("", ("verdict", "evidence", "readings"))]]


_REQUEST = Shown("Who asked, and the number of the request in the journal.", ("who", "reason", "request"))
_NOTHING = Shown("", ())

_DERIVED: tuple[tuple[type[Event], str, Shown], ...] = (
    (events.Ticked, "Time passed: nodes may have been released, tried again or given up.", _NOTHING),
    (events.SilencesLifted, "The run's silences were ended, except ``leftovers``.", Shown("", ("leftovers",))),
    (
        events.ConfigMapRead,
        """The run's ConfigMap, as the API server had it after the request. ``digest`` is of its text, hex SHA-256.""",
        Shown("", ("outcome", PrintedKey("digest", or_null=True), "reference", "message")),
    ),
    (
        events.CordonsLifted,
        "After the end of the run, ``who`` made sure that none of these nodes (a nodeset) has a cordon of the run.",
        Shown(
            "", (PrintedKey("nodes", write=fold), PrintedKey("nodes", "count", write=len, kind=int), "who", "reason")
        ),
    ),
    (events.InterruptAsked, "The first Ctrl-C: nodes in flight finish, nothing new is released.", _NOTHING),
    (events.PauseAsked, "A request to release nothing for now.", _REQUEST),
    (events.ContinueAsked, "A request to continue after a pause, or after a wave that holds.", _REQUEST),
    (
        events.AbortAsked,
        "A request to end the run as a halt would; ``revert`` ``None``: as set in the playbook.",
        Shown(_REQUEST.words, (*_REQUEST.keys, "revert")),
    ),
    (
        events.Resumed,
        "A new controller took the run over with this token.",
        Shown("", (PrintedKey("counter", "token"),)),
    ),
    (
        events.FleetRead,
        """The inventory that a new controller read. ``left``: node of the run that is no longer in it → the reference.

        ``racks`` and ``zones``: those with fewer nodes than ordered → their nodes now.""",
        Shown("", ("left", "racks", "zones")),
    ),
    (
        events.WindowClosed,
        "By the plan's calendars no change may start, for the reason ``why``; ``opens`` ``None``: not known until when.",
        Shown("", ("why", PrintedKey("opens", kind=Moment | None))),
    ),
    (events.WindowOpened, "By the plan's calendars changes may start again.", _NOTHING),
    (
        events.Approved,
        "A person's good signature over the plan; ``key`` is its fingerprint.",
        Shown("", ("person", "key")),
    ),
)
"""Events with documents that have only what the event has: its words, its keys."""


def _derived(event: Any, words: str, shown: Shown) -> type:
    beside: Any = Inline  # mypy takes no type that is known at run time only
    fields = [("step", beside[Step]), ("event", beside[Annotated[event, shown]])]
    return make_dataclass(f"{event.__name__}Document", fields, namespace={"__doc__": words}, frozen=True, slots=True)


_DOCUMENTS: Mapping[type[Event], type] = {
    events.Answered: AnsweredDocument,
    events.WaveOpened: WaveOpenedDocument,
    events.WaveJudged: WaveJudgedDocument,
    **{event: _derived(event, words, shown) for event, words, shown in _DERIVED},
}

EVENT_DOCUMENTS = tuple(_DOCUMENTS.values())

RUN_DOCUMENTS = (*EVENT_DOCUMENTS, SummaryDocument)
"""What a run prints: every event, then its summary."""


def event_document(event: Event, after: RunState) -> object:
    """``after``: the state after the event."""
    step = Step(after.order.run, event.at, after.phase, _wave(after, after.wave), after.halt)
    match event:
        case events.Answered():
            return AnsweredDocument(step, event, after.nodes[event.node].state, event)
        case events.WaveOpened():
            return WaveOpenedDocument(step, _wave(after, event.wave), event)
        case events.WaveJudged():
            return WaveJudgedDocument(step, _wave(after, event.wave), event)
    return _DOCUMENTS[type(event)](step, event)


def _wave(state: RunState, index: int) -> str:
    """``""`` for a run without nodes."""
    waves = state.order.waves
    return waves[min(index, len(waves) - 1)].name if waves else ""
