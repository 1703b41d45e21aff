"""What the machine asks for. The driver runs these and feeds the answers back as events."""

from __future__ import annotations

from dataclasses import dataclass

from rollout.core.run.state import Verb


@dataclass(frozen=True, slots=True)
class Ask:
    """Ask ``node`` to do ``verb`` about transaction ``tx`` under token ``counter``; the answer carries ``serial``.

    ``baseline`` (measure only) is what the answer to the apply brought; ``since`` when the node entered its state.
    ``regardless`` (apply only): the node is changed whatever it pulls. ``left`` (drain only): the seconds that its pods
    still have, ``0``: their time is over.
    """

    node: str
    verb: Verb
    serial: int
    tx: str
    counter: int
    baseline: str = ""
    since: float = 0.0
    regardless: bool = False
    left: float = 0.0


@dataclass(frozen=True, slots=True)
class OpenWave:
    """Take the wave gates' baseline, and set their silences, before any of ``nodes`` is touched."""

    wave: int
    nodes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class JudgeWave:
    """Ask the wave gates of wave number ``wave``: ``touched`` are its confirmed nodes, ``control`` nodes still to come."""

    wave: int
    baseline: str = ""
    touched: tuple[str, ...] = ()
    control: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class LiftSilences:
    """End these silences."""

    silences: tuple[str, ...]


Command = Ask | OpenWave | JudgeWave | LiftSilences

_CHANGES = frozenset({Verb.APPLY, Verb.CONFIRM, Verb.REVERT})


def is_change(command: Command) -> bool:
    """Whether it changes a node's files or their guard; everything else looks, or speaks to others."""
    return isinstance(command, Ask) and command.verb in _CHANGES
