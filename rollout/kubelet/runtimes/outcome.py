"""The runtime's part of a change."""

from __future__ import annotations

from rollout.core.model.frozen import dataclass
from rollout.core.model.plan import Change, FileChange
from rollout.core.model.playbook import worst
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
    """An intent's part of a change: keys of configuration files, whole other files, and notes."""

    assignments: tuple[TomlKey, ...] = ()
    files: tuple[FileChange, ...] = ()
    notes: tuple[str, ...] = ()


def together(*changes: Change) -> Change:
    """Combines changes of runtimes, which are of different files."""
    return Change(
        files=tuple(file for change in changes for file in change.files),
        units=tuple(dict.fromkeys(unit for change in changes for unit in change.units)),
        hangups=tuple(dict.fromkeys(unit for change in changes for unit in change.hangups)),
        reload=any(change.reload for change in changes),
        disruption=worst(*(change.disruption for change in changes)),
        notes=tuple(note for change in changes for note in change.notes),
    )
