"""The changes of a node's container runtime that put the intents with a home there in force."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from rollout.core.model.playbook import Disruption
from rollout.core.model.settings import Setting
from rollout.core.model.snapshot import Snapshot
from rollout.kubelet import runtime_versions
from rollout.kubelet.homes import InRuntime
from rollout.kubelet.intents import DEADLINE, DOWNLOADS
from rollout.kubelet.node.layout import LayoutError
from rollout.kubelet.node.unloaded import edited, how
from rollout.kubelet.runtime_versions import Runtime
from rollout.kubelet.runtimes import containerd, cri_dockerd, crio, dockerd
from rollout.kubelet.runtimes.outcome import RuntimeChange, together
from rollout.kubelet.versions import Version

__all__ = ["RuntimeChange", "runtime_change"]

Wanted = Mapping[str, Setting]
"""Intent → its setting."""


def runtime_change(
    snapshot: Snapshot,
    wanted: tuple[InRuntime, ...],
    settings: Mapping[str, Setting],
    version: Version,
    runtime: Runtime,
) -> RuntimeChange:
    """The change that puts ``wanted`` in force on this node; ``LayoutError`` with the reason for a refused node."""
    if not wanted:
        return RuntimeChange()
    change = _RUNTIMES.get(runtime)
    if change is None:
        raise LayoutError("runtime-unknown", f"a kubelet {version.short} over a runtime that rollout does not know")
    made = change(snapshot, {home.intent: settings[home.intent] for home in wanted})
    readers = {_READERS.get((runtime, home.intent), "") for home in wanted}
    return together(made, _unloaded(snapshot, readers.difference(made.units, made.hangups)))


def _unloaded(snapshot: Snapshot, units: set[str]) -> RuntimeChange:
    """Missing restarts of units with the wanted files: it is not known what their processes have loaded."""
    edits = edited(snapshot, units)
    late = tuple(dict.fromkeys(entry.unit for entry in edits))
    if not late:
        return RuntimeChange()
    files = "; ".join(f"{entry.path} was {how(entry)}" for entry in edits)
    return RuntimeChange(
        units=late,
        disruption=Disruption.RESTART_RUNTIME,
        notes=(f"restart of {', '.join(late)}: {files}, so it is unknown what the running process has loaded",),
    )


def _containerd(snapshot: Snapshot, wanted: Wanted) -> RuntimeChange:
    found = runtime_versions.version_of(Runtime.CONTAINERD, snapshot.runtimes)
    if found is None:
        raise LayoutError("runtime-version-unknown", "the node does not report its containerd version")
    return containerd.change(snapshot, wanted, found)


def _crio(snapshot: Snapshot, wanted: Wanted) -> RuntimeChange:
    found = runtime_versions.version_of(Runtime.CRIO, snapshot.runtimes)
    if found is None:
        raise LayoutError("runtime-version-unknown", "the node does not report its CRI-O version")
    return crio.change(snapshot, wanted[DEADLINE], found)


def _cri_dockerd(snapshot: Snapshot, wanted: Wanted) -> RuntimeChange:
    found = runtime_versions.version_of(Runtime.CRI_DOCKERD, snapshot.runtimes)
    flag = (cri_dockerd.change(snapshot, wanted[DEADLINE], found),) if DEADLINE in wanted else ()
    return together(*flag, _dockerd(snapshot, wanted))


def _dockerd(snapshot: Snapshot, wanted: Wanted) -> RuntimeChange:
    return dockerd.change(snapshot, wanted[DOWNLOADS]) if DOWNLOADS in wanted else RuntimeChange()


_READERS: Mapping[tuple[Runtime, str], str] = {
    (Runtime.DOCKERSHIM, DOWNLOADS): dockerd.UNIT,
    (Runtime.CRI_DOCKERD, DOWNLOADS): dockerd.UNIT,
    (Runtime.CONTAINERD, DOWNLOADS): containerd.UNIT,
    (Runtime.CONTAINERD, DEADLINE): containerd.UNIT,
    (Runtime.CRIO, DEADLINE): crio.UNIT,
}
"""The unit that reads an intent's configuration file at its start. Flags and hosts.toml are read in other ways."""

_RUNTIMES: Mapping[Runtime, Callable[[Snapshot, Wanted], RuntimeChange]] = {
    Runtime.DOCKERSHIM: _dockerd,
    Runtime.CRI_DOCKERD: _cri_dockerd,
    Runtime.CONTAINERD: _containerd,
    Runtime.CRIO: _crio,
}
