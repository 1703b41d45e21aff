"""What the machine asks for. The driver runs these commands and feeds the answers back as events."""

from __future__ import annotations

from rollout.core.model.config_map import ConfigMapChange
from rollout.core.model.frozen import dataclass
from rollout.core.run.state import Verb


@dataclass(frozen=True, slots=True)
class Ask:
    """Ask ``node`` to run ``verb`` for transaction ``tx`` under token ``counter``; the answer carries ``serial``.

    ``baseline`` (measure only) is from the answer to the apply; ``since`` is when the node entered its state.
    ``regardless`` (apply only): the node is changed even if it pulls. ``left`` (drain only): the seconds that its pods
    still have; ``0``: none. ``evidence`` (revert only): the node failed itself, so its log is worth a look.
    ``count_pulls`` (measure only): its wave still waits for image pulls, so those of the node are to be counted.
    ``void`` (read only): an apply may still be on its way to the node, so the node is to refuse it if it has no receipt of it.
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
    evidence: bool = False
    count_pulls: bool = False
    void: bool = False


@dataclass(frozen=True, slots=True)
class OpenWave:
    """Take the wave gates' baseline, and set their silences, before any of ``nodes`` is changed.

    ``earlier``: the newest baseline of this run, of this wave if an earlier controller took one. ``changed``: the confirmed
    nodes of each wave of the run.
    """

    wave: int
    nodes: tuple[str, ...]
    earlier: str = ""
    changed: tuple[tuple[str, ...], ...] = ()


@dataclass(frozen=True, slots=True)
class JudgeWave:
    """Check the wave gates of wave number ``wave``: ``touched`` are its confirmed nodes, ``control`` are nodes not changed yet.

    ``changed``: the confirmed nodes of each wave of the run.
    """

    wave: int
    baseline: str = ""
    touched: tuple[str, ...] = ()
    control: tuple[str, ...] = ()
    changed: tuple[tuple[str, ...], ...] = ()


@dataclass(frozen=True, slots=True)
class LiftSilences:
    """End these silences."""

    silences: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PutConfigMap:
    """Give the ConfigMap its new text if it has the old one, and read what it has then. It may have been asked before.

    ``void``: a write of an earlier controller must not come after this one.
    """

    change: ConfigMapChange
    void: bool = False


Command = Ask | OpenWave | JudgeWave | LiftSilences | PutConfigMap

_CHANGES = frozenset({Verb.APPLY, Verb.CONFIRM, Verb.REVERT})


def is_change(command: Command) -> bool:
    """Whether it changes a node's files or their guard; all other commands only read, or talk to other systems."""
    return isinstance(command, Ask) and command.verb in _CHANGES
