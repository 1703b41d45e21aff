"""What must happen to a node's container runtime so that the intents that live there are in force."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from rollout.core.model.settings import Setting
from rollout.core.model.snapshot import Snapshot
from rollout.kubelet import runtime_versions
from rollout.kubelet.homes import InRuntime
from rollout.kubelet.intents import DEADLINE, DOWNLOADS
from rollout.kubelet.node.layout import LayoutError
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
    """The change that puts ``wanted`` in force on this node, or ``LayoutError``: the node is refused, and why."""
    if not wanted:
        return RuntimeChange()
    change = _RUNTIMES.get(runtime)
    if change is None:
        raise LayoutError("runtime-unknown", f"a kubelet {version.short} over a runtime that rollout does not know")
    return change(snapshot, {home.intent: settings[home.intent] for home in wanted})


def _containerd(snapshot: Snapshot, wanted: Wanted) -> RuntimeChange:
    found = runtime_versions.version_of(Runtime.CONTAINERD, snapshot.runtimes)
    if found is None:
        raise LayoutError("runtime-version-unknown", "the node does not say which containerd it runs")
    return containerd.change(snapshot, wanted, found)


def _crio(snapshot: Snapshot, wanted: Wanted) -> RuntimeChange:
    found = runtime_versions.version_of(Runtime.CRIO, snapshot.runtimes)
    if found is None:
        raise LayoutError("runtime-version-unknown", "the node does not say which CRI-O it runs")
    return crio.change(snapshot, wanted[DEADLINE], found)


def _cri_dockerd(snapshot: Snapshot, wanted: Wanted) -> RuntimeChange:
    found = runtime_versions.version_of(Runtime.CRI_DOCKERD, snapshot.runtimes)
    flag = (cri_dockerd.change(snapshot, wanted[DEADLINE], found),) if DEADLINE in wanted else ()
    return together(*flag, _dockerd(snapshot, wanted))


def _dockerd(snapshot: Snapshot, wanted: Wanted) -> RuntimeChange:
    return dockerd.change(snapshot, wanted[DOWNLOADS]) if DOWNLOADS in wanted else RuntimeChange()


_RUNTIMES: Mapping[Runtime, Callable[[Snapshot, Wanted], RuntimeChange]] = {
    Runtime.DOCKERSHIM: _dockerd,
    Runtime.CRI_DOCKERD: _cri_dockerd,
    Runtime.CONTAINERD: _containerd,
    Runtime.CRIO: _crio,
}
