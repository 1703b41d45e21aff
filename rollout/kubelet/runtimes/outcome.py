"""The runtime's part of a change."""

from __future__ import annotations

from rollout.core.model.frozen import dataclass
from rollout.core.model.plan import FileChange
from rollout.core.model.playbook import Disruption, worst
from rollout.kubelet.runtimes.toml_edit import KeyPath

# The part of one intent on one runtime, before the files are combined.


@dataclass(frozen=True, slots=True)
class TomlKey:
    """One key of a TOML file to be set, and why."""

    path: str
    keys: KeyPath
    value: str | int
    reason: str


@dataclass(frozen=True, slots=True)
class Part:
    """An intent's part of a change: keys of configuration files, whole edits of others, and notes."""

    assignments: tuple[TomlKey, ...] = ()
    edits: tuple[FileChange, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RuntimeChange:
    """The runtime's part of a change; without edits, units and hangups there is nothing to do."""

    edits: tuple[FileChange, ...] = ()
    units: tuple[str, ...] = ()  # to restart, in order, before the kubelet
    hangups: tuple[str, ...] = ()  # units to send SIGHUP
    reload: bool = False  # daemon-reload first: a drop-in of a runtime's unit changes
    disruption: Disruption = Disruption.NONE
    notes: tuple[str, ...] = ()  # the direction of an intent, traps, intents that the default already meets


def together(*changes: RuntimeChange) -> RuntimeChange:
    """Combines changes of different files."""
    return RuntimeChange(
        tuple(edit for change in changes for edit in change.edits),
        tuple(dict.fromkeys(unit for change in changes for unit in change.units)),
        tuple(dict.fromkeys(unit for change in changes for unit in change.hangups)),
        any(change.reload for change in changes),
        worst(*(change.disruption for change in changes)),
        tuple(note for change in changes for note in change.notes),
    )
