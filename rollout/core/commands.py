"""What the machine asks for. The driver runs these and feeds the answers back as events."""

from __future__ import annotations

from dataclasses import dataclass

from rollout.core.state import Verb


@dataclass(frozen=True, slots=True)
class Ask:
    """Ask ``node`` to do ``verb`` about transaction ``tx`` under token ``counter``; the answer carries ``serial``."""

    node: str
    verb: Verb
    serial: int
    tx: str
    counter: int


@dataclass(frozen=True, slots=True)
class JudgeWave:
    """Ask the wave gates of wave number ``wave``."""

    wave: int


Command = Ask | JudgeWave
