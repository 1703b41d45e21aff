"""What must happen to a node's container runtime so that the intents that live there are in force."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from rollout.core.model.disruption import Disruption
from rollout.core.model.settings import Setting
from rollout.core.model.snapshot import Snapshot
from rollout.kubelet.edits import Edit
from rollout.kubelet.homes import InRuntime
from rollout.kubelet.layout import LayoutError
from rollout.kubelet.runtime_versions import Runtime
from rollout.kubelet.versions import Version


@dataclass(frozen=True, slots=True)
class RuntimeChange:
    """The runtime's part of a change; nothing to do is no edits, no units and no hangups."""

    edits: tuple[Edit, ...] = ()
    units: tuple[str, ...] = ()  # to restart, in order, before the kubelet
    hangups: tuple[str, ...] = ()  # units to send SIGHUP
    reload: bool = False  # daemon-reload first: a drop-in of a runtime's unit changes
    disruption: Disruption = Disruption.NONE
    notes: tuple[str, ...] = ()  # the direction of an intent, traps, what is as wanted by default


def runtime_change(
    snapshot: Snapshot,
    wanted: tuple[InRuntime, ...],
    settings: Mapping[str, Setting],
    version: Version,
    runtime: Runtime,
) -> RuntimeChange:
    """The change that puts ``wanted`` in force on this node, or ``LayoutError``: the node is refused, and why."""
    if not wanted:
        return RuntimeChange()
    raise LayoutError("setting-unsupported", f"{wanted[0].intent} on {runtime.value} cannot be written yet")
