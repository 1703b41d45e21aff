"""The forecast of a rehearsed plan: duration, most nodes unavailable at once, halt, reverts and pending recoveries."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated

from rollout.core.model.areas import Area, AreaKind, area_of, most_of, share_of
from rollout.core.model.spans import Span, joined
from rollout.core.presentation.past_run import PendingNodes
from rollout.core.presentation.summary import exit_code
from rollout.core.run.state import Ending, NodeState, Order, RunState
from rollout.core.text.documents import Inline, PrintedKey, Shown
from rollout.core.text.nodesets import fold
from rollout.core.text.terminal import counted, printable, seconds_text

_MOST_SHOWN = 5


class PeakKind(StrEnum):
    FLEET = "fleet"
    ZONE = "zone"
    RACK = "rack"


_PEAKS = {AreaKind.ZONE: PeakKind.ZONE, AreaKind.RACK: PeakKind.RACK}


@dataclass(frozen=True, slots=True)
class Peak:
    """The most nodes of a place that were unavailable at once, first at ``at``. ``limit``: what the plan allows."""

    kind: PeakKind
    name: str
    most: int
    limit: int | None
    at: float

    def __str__(self) -> str:
        allowed = "no limit" if self.limit is None else f"{self.limit} allowed"
        return f"{f'{self.kind} {self.name}'.strip()}: {self.most:,}, {allowed}"


@dataclass(frozen=True, slots=True)
class ForecastMoment:
    """An event of the forecast, ``at`` seconds from the start."""

    at: float
    words: str


@dataclass(frozen=True, slots=True)
class ForecastHalt:
    """Why the run halts in a wave, ``after_seconds`` from its start."""

    wave: str
    reference: str
    message: str
    after_seconds: float


@dataclass(frozen=True, slots=True)
class Forecast:
    """The result of a plan on model nodes. ``exit_code``: that of ``rollout apply``; ``None``: the run did not end."""

    cluster: str
    nodes: int
    seconds: float
    ending: Ending | None
    halt: ForecastHalt | None
    counts: Mapping[str, int]
    reverted: str
    failed: str
    owed: str
    peaks: tuple[Peak, ...]
    moments: tuple[ForecastMoment, ...]
    exit_code: int | None


def foresee(
    state: RunState, began: float, seconds: float, away: Mapping[str, Sequence[Span]], moments: Sequence[ForecastMoment]
) -> Forecast:
    """The forecast from the end of a run. ``away``: when each node was unavailable, in seconds from the start."""
    order = state.order
    return Forecast(
        cluster=order.cluster,
        nodes=len(order.nodes),
        seconds=seconds,
        ending=state.ending,
        halt=_halt(state, began),
        counts=dict(Counter(str(record.state) for record in state.nodes.values())),
        reverted=_those(state, NodeState.REVERTED),
        failed=_those(state, NodeState.FAILED),
        owed=fold(name for name, record in state.nodes.items() if record.owed),
        peaks=tuple(peaks(order, away)),
        moments=tuple(moments),
        exit_code=exit_code(state),
    )


def _halt(state: RunState, began: float) -> ForecastHalt | None:
    halt, waves = state.halt, state.order.waves
    if halt is None:
        return None
    wave = waves[min(state.wave, len(waves) - 1)].name
    return ForecastHalt(wave, halt.reference, halt.message, halt.at - began)


def _those(state: RunState, wanted: NodeState) -> str:
    return fold(name for name, record in state.nodes.items() if record.state is wanted)


def peaks(order: Order, away: Mapping[str, Sequence[Span]]) -> Iterator[Peak]:
    """The peaks of the fleet, each zone and each rack, with their limits."""
    yield _peak(PeakKind.FLEET, "", order.nodes, away, order.limits.in_flight)
    for kind, shown in _PEAKS.items():
        members: dict[Area, list[str]] = {}
        for name, node in order.nodes.items():
            members.setdefault(area_of(node, kind), []).append(name)
        for area, names in members.items():
            limit = None if share_of(order.limits, kind) is None else most_of(order, area)
            yield _peak(shown, area.name, names, away, limit)


def _peak(
    kind: PeakKind, name: str, names: Iterable[str], away: Mapping[str, Sequence[Span]], limit: int | None
) -> Peak:
    most, at = most_at_once([span for node in names for span in joined(away.get(node, ()))])
    return Peak(kind, name, most, limit, at)


def most_at_once(spans: Sequence[Span]) -> tuple[int, float]:
    """The most overlapping spans, and since when. A span that begins when another ends does not overlap it."""
    edges = sorted([(begin, 1) for begin, _ in spans] + [(end, -1) for _, end in spans])
    most, since, here = 0, 0.0, 0
    for at, change in edges:
        here += change
        if here > most:
            most, since = here, at
    return most, since


# ----------------------------------------------------------------------------------------------------------- for people


def foreseen_lines(found: Forecast) -> Iterator[str]:
    """The forecast as text."""
    for moment in found.moments:
        yield f"{seconds_text(moment.at):>14}  {printable(moment.words, 300)}"
    yield f"{counted(found.nodes, 'node')} of {found.cluster}: {found.ending or 'unfinished'} after {seconds_text(found.seconds)}"
    if halt := found.halt:
        why = printable(f"{halt.message} [{halt.reference}]", 400)
        yield f"halts after {seconds_text(halt.after_seconds)} in wave {halt.wave}: {why}"
    yield "nodes: " + ", ".join(f"{count:,} {state}" for state, count in sorted(found.counts.items()))
    for title, names in (("reverted", found.reverted), ("failed", found.failed), ("pending recovery", found.owed)):
        if names:
            yield f"{title}: {printable(names, 2000)}"
    yield "most unavailable at once:"
    for peak in _worth_showing(found.peaks):
        yield f"  {peak}"
    if found.exit_code is not None:
        yield f"`rollout apply` would exit with {found.exit_code}"


def _worth_showing(found: Sequence[Peak]) -> Iterator[Peak]:
    """The fleet, the zones, and the racks with most unavailable nodes."""
    racks = sorted((peak for peak in found if peak.kind is PeakKind.RACK), key=lambda peak: -peak.most)
    yield from (peak for peak in found if peak.kind is not PeakKind.RACK)
    yield from racks[:_MOST_SHOWN]


# -------------------------------------------------------------------------------------------------------- for programs


_PEAK = Shown(
    "The most nodes of the fleet, a zone or a rack that were unavailable at once; ``limit`` ``None``: the plan has none.",
    ("kind", "name", "most", "limit", PrintedKey("at", "after_seconds")),
)
_MOMENT = Shown("", (PrintedKey("at", "after_seconds"), PrintedKey("words", "text")))


_FORECAST = Shown(
    "",
    (
        "cluster", "nodes", "seconds", "ending", "exit_code", "halt", "counts", "reverted", "failed",
        PrintedKey("owed", "pending_recovery", write=PendingNodes), PrintedKey("peaks", kind=tuple[Annotated[Peak, _PEAK], ...]),
        PrintedKey("moments", kind=tuple[Annotated[ForecastMoment, _MOMENT], ...]),
    ),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class ForecastDocument:
    """What a plan would do, on model nodes. ``ending`` and ``exit_code`` ``None``: the run does not end.

    ``reverted`` and ``failed`` are nodesets.
    """

    forecast: Inline[Annotated[Forecast, _FORECAST]]
