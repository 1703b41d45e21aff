"""What one intent asks of one runtime, before the files are put together."""

from __future__ import annotations

from dataclasses import dataclass

from rollout.kubelet.edits import Edit
from rollout.kubelet.runtimes.toml_edit import KeyPath


@dataclass(frozen=True, slots=True)
class Assignment:
    """One key of a TOML file to be set, and why."""

    path: str
    keys: KeyPath
    value: str | int
    reason: str


@dataclass(frozen=True, slots=True)
class Part:
    """An intent's share of a change: keys of configuration files, whole edits of others, and notes."""

    assignments: tuple[Assignment, ...] = ()
    edits: tuple[Edit, ...] = ()
    notes: tuple[str, ...] = ()
