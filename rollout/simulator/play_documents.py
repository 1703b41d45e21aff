"""What ``simulate --seed`` and ``simulate --seeds`` print for programs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from rollout.simulator.play import PlayOutcome
from rollout.simulator.scenario import FaultKind
from rollout.simulator.tally import Tally


@dataclass(frozen=True, slots=True)
class PlayedFault:
    """``at`` counts seconds, or actions of a controller, or requests: see ``simulator.scenario.Fault``."""

    kind: FaultKind
    node: str
    at: float
    lasting_seconds: float
    amount: float
    words: str


@dataclass(frozen=True, slots=True)
class PlayedMoment:
    after_seconds: float
    who: str
    text: str


@dataclass(frozen=True, slots=True)
class PlayDocument:
    """The story of one seed. ``broken``: the law that broke, ``None`` if every law was kept."""

    seed: int
    broken: str | None
    ending: str
    faults: tuple[PlayedFault, ...]
    story: tuple[PlayedMoment, ...]


def play_document(outcome: PlayOutcome) -> PlayDocument:
    drawn = outcome.scenario
    return PlayDocument(
        seed=drawn.seed,
        broken=outcome.broken or None,
        ending=outcome.ending,
        faults=tuple(
            PlayedFault(fault.kind, fault.node, fault.at, fault.lasting, fault.amount, fault.words)
            for fault in drawn.faults
        ),
        story=tuple(PlayedMoment(each.at, each.who, each.words) for each in outcome.story),
    )


@dataclass(frozen=True, slots=True)
class TallyDocument:
    """The results of many seeds: ``broken`` is seed → law. ``played_seconds`` passed in all plays, ``seconds`` here."""

    seeds: int
    nodes: int
    events: int
    played_seconds: float
    controllers: int
    killed: int
    faults: Mapping[str, int]
    endings: Mapping[str, int]
    laws: Mapping[str, int]
    broken: Mapping[str, str]
    seconds: float


def tally_document(tally: Tally) -> TallyDocument:
    return TallyDocument(
        seeds=tally.seeds,
        nodes=tally.nodes,
        events=tally.events,
        played_seconds=tally.hours * 3600,
        controllers=tally.controllers,
        killed=tally.killed,
        faults=tally.faults,
        endings=tally.endings,
        laws=tally.laws,
        broken={str(seed): law for seed, law in tally.broken.items()},
        seconds=tally.took,
    )
