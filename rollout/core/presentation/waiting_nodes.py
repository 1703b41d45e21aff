"""What nodes wait for: the end of a drain, their image pulls, their baseline, the data of their soak. For people and programs."""

from __future__ import annotations

from collections.abc import Mapping

from rollout.core.model.frozen import dataclass
from rollout.core.model.playbook import Busy
from rollout.core.run.drains import left
from rollout.core.run.postponed import BASELINE_WITHIN
from rollout.core.run.soak_data import Gathered, gathered
from rollout.core.run.state import Draining, NodeState, Phase, Postponed, PostponedFor, RunState
from rollout.core.text.documents import Moment
from rollout.core.text.nodesets import fold
from rollout.core.text.terminal import counted, printable, seconds_text, wall

_MOST_IMAGES = 3
_LONGEST = 300


@dataclass(frozen=True, slots=True)
class WaitingForPulls:
    """``images``: what they pull; none: not known. In ``seconds_left`` they are asked for the last time; ``then``: what happens."""

    nodes: str
    count: int
    images: tuple[str, ...]
    seconds_left: float
    then: Busy

    def __str__(self) -> str:
        said = ", ".join(printable(image, 60) for image in self.images[:_MOST_IMAGES]) or "images not known"
        more = f" and {len(self.images) - _MOST_IMAGES} more" if len(self.images) > _MOST_IMAGES else ""
        then = "left alone" if self.then is Busy.SKIP else "changed anyway"
        left = f"again for {seconds_text(self.seconds_left)} at most" if self.seconds_left else "once more"
        verb = "pulls" if self.count == 1 else "pull"
        return f"{_which(self.count, f'{verb} images', self.nodes)}: {said}{more}; asked {left}, then {then}"


@dataclass(frozen=True, slots=True)
class WaitingForDrains:
    """``longest`` is the node that is being drained for the longest time, ``waits_for`` what it waits for.

    In ``seconds_left`` that node is left alone; 0: its time limit has passed.
    """

    nodes: str
    count: int
    longest: str
    waits_for: str
    seconds_left: float

    def __str__(self) -> str:
        until = (
            f"{seconds_text(self.seconds_left)} left, then left alone"
            if self.seconds_left
            else "its time limit has passed"
        )
        why = self.waits_for or "the eviction of its pods"
        verb = "is" if self.count == 1 else "are"
        return f"{_which(self.count, f'{verb} being drained', self.nodes)}: {self.longest} waits for {why}; {until}"


@dataclass(frozen=True, slots=True)
class WaitingForBaselines:
    """Nodes without an answer of the API server. In ``seconds_left`` they are left alone."""

    nodes: str
    count: int
    seconds_left: float

    def __str__(self) -> str:
        asked = f"asked again for {seconds_text(self.seconds_left)} at most, then left alone"
        return f"{_which(self.count, '', self.nodes)}: no baseline from the API server; {asked}"


@dataclass(frozen=True, slots=True)
class WaitingForData:
    """What the changed nodes of a wave have done, of what its soak must have seen.

    Without all of it the run halts at ``until``. ``None``: nothing is missing, or the run is held, so no time runs.
    """

    wave: str
    data: tuple[Gathered, ...]
    until: Moment | None

    @property
    def counts(self) -> str:
        until = f"; it waits until {wall(self.until)}" if self.until else ""
        return f"{', '.join(str(each) for each in self.data)}{until}"

    def __str__(self) -> str:
        return f"wave {printable(self.wave, 60)} soaks: {self.counts}"


def data_seen(state: RunState) -> WaitingForData | None:
    """``None``: no wave soaks, or its soak needs no data."""
    wave = state.order.waves[state.wave] if state.phase is Phase.SOAKING else None
    records = (
        [record for name in wave.nodes if (record := state.nodes[name]).state is NodeState.CONFIRMED] if wave else []
    )
    if wave is None or wave.data is None or not records:
        return None
    counts = gathered(wave.data, records)
    waits = any(each.missing for each in counts) and not state.waits
    return WaitingForData(wave.name, counts, state.data_by if waits else None)


def _which(count: int, what: str, nodes: str) -> str:
    return " ".join(filter(None, (counted(count, "node"), what, f"({printable(nodes, 60)})")))


def pulling(state: RunState, now: float) -> WaitingForPulls | None:
    """Nodes that wait for their pulls. ``now`` is in the seconds of the state's events."""
    waiting = _postponed(state, PostponedFor.PULLS)
    if not waiting:
        return None
    return WaitingForPulls(
        nodes=fold(waiting),
        count=len(waiting),
        images=tuple(dict.fromkeys(printable(image, _LONGEST) for each in waiting.values() for image in each.images)),
        seconds_left=_left(waiting, PostponedFor.PULLS, state.order.pulls.within, now),
        then=state.order.pulls.then,
    )


def draining(state: RunState, now: float) -> WaitingForDrains | None:
    """Nodes that are being drained."""
    there = {name: at for name, record in state.nodes.items() if isinstance(at := record.current, Draining)}
    if not there:
        return None
    longest = min(there, key=lambda name: there[name].since)
    return WaitingForDrains(
        nodes=fold(there),
        count=len(there),
        longest=longest,
        waits_for=printable(there[longest].waits, _LONGEST),
        seconds_left=left(state.order.nodes[longest].drain, there[longest].since, now),
    )


def without_baseline(state: RunState, now: float) -> WaitingForBaselines | None:
    """Nodes that wait for their baseline."""
    waiting = _postponed(state, PostponedFor.BASELINE)
    if not waiting:
        return None
    seconds = _left(waiting, PostponedFor.BASELINE, BASELINE_WITHIN, now)
    return WaitingForBaselines(fold(waiting), len(waiting), seconds)


def _postponed(state: RunState, reason: PostponedFor) -> dict[str, Postponed]:
    """The nodes with a change that waits, last for this reason."""
    return {
        name: wait
        for name, record in state.nodes.items()
        if (wait := record.postponed) and wait.reason is reason and record.state is not NodeState.REFUSED
    }


def _left(waiting: Mapping[str, Postponed], reason: PostponedFor, within: float, now: float) -> float:
    return max(0.0, max(wait.since[reason] for wait in waiting.values()) + within - now)
