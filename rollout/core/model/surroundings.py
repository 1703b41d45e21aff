"""What of a node a setting of its kubelet may need or touch, as the node reported it with its snapshot.

``None`` is unknown everywhere: an older agent read the node, or the node does not show it. Nothing here is interpreted.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import field

from rollout.core.model.frozen import dataclass

_NAME = re.compile(r"[A-Za-z0-9_./:@%+=,-]+")
"""Other names are not reported."""


def is_named(path: str) -> bool:
    """Whether an agent can be asked for this absolute path."""
    return path.startswith("/") and _NAME.fullmatch(path) is not None


@dataclass(frozen=True, slots=True)
class Listing:
    """Names that exist on a node, sorted. ``whole``: there are no others; else the agent's bound cut them off."""

    names: tuple[str, ...] = ()
    whole: bool = True

    def has(self, name: str) -> bool | None:
        if name in self.names:
            return True
        return False if self.whole and _NAME.fullmatch(name) else None


@dataclass(frozen=True, slots=True)
class Swap:
    """A line of ``/proc/swaps``: swap that is in use. ``kind``: ``partition`` or ``file``. ``size`` and ``used``: KiB."""

    device: str
    kind: str
    size: int
    used: int


@dataclass(frozen=True, slots=True)
class Room:
    """The file system that holds ``path``, by statfs.

    ``of``: ``kubelet`` for the kubelet's root, or the unit of the runtime that keeps images there. ``kind``: as ``stat`` names it, e.g.
    ``ext2/ext3``. ``size`` and ``free``: KiB; ``free`` is what is left for users other than root, as in the kubelet's
    ``nodefs.available`` and ``imagefs.available``. ``inodes`` is 0 where the file system has no fixed number of them.
    """

    of: str
    path: str
    kind: str
    size: int
    free: int
    inodes: int
    free_inodes: int


@dataclass(frozen=True, slots=True)
class Manifests:
    """A folder of static pods: one that the kubelet's command line or its ``--config`` file names, or the usual one of a layout.

    ``files``: the names in it, without the folder; none where the folder is absent. A drop-in of the configuration may name another folder.
    """

    folder: str
    files: Listing


@dataclass(frozen=True, slots=True)
class UnitProcesses:
    """``count`` processes in the control group of ``unit`` or below it, with this ``/proc/PID/comm`` (at most 15 characters).

    A shim or conmon here is killed when the unit stops, if its ``KillMode`` (a property of the unit) is ``control-group`` or ``mixed``.
    """

    unit: str
    name: str
    count: int


@dataclass(frozen=True, slots=True)
class NodeSurroundings:
    """``kubelet_root``: ``--root-dir``, or its default; the state files of its managers are in ``Snapshot.files`` below it.

    ``cgroups``: paths from the root, ``/system.slice``: all at the top, and the slices in a slice, but none of pods. With cgroup v1 those that each of
    the hierarchies cpu, cpuacct, cpuset, memory, pids and systemd has, as far as the node has these.
    ``sockets``: paths of UNIX sockets in the node's network that a process listens at, if they end in ``.sock``.
    ``devices``: those of NVIDIA's driver. ``manifests``: of each folder that may have static pods.
    ``sysctls``: name → value; those that a kubelet with ``protectKernelDefaults`` compares. A missing one could not be read.
    ``swaps``: ``()``: no swap is in use. ``inhibit_delay``: seconds, logind's ``InhibitDelayMaxSec`` in force; unknown where logind does not run.
    ``processes``: of the units of the runtimes that run; unknown where no control group of them was seen.
    """

    kubelet_root: str = "/var/lib/kubelet"
    cgroups: Listing | None = None
    sockets: Listing | None = None
    devices: Listing | None = None
    manifests: tuple[Manifests, ...] = ()
    sysctls: Mapping[str, str] = field(default_factory=dict)
    swaps: tuple[Swap, ...] | None = None
    rooms: tuple[Room, ...] = ()
    inhibit_delay: float | None = None
    processes: tuple[UnitProcesses, ...] | None = None

    def has_cgroup(self, path: str) -> bool | None:
        """``path``: from the root, ``/kube.slice``. Below a slice only slices are known; below a group that is absent nothing exists."""
        if self.cgroups is None:
            return None
        above, _, name = path.rstrip("/").rpartition("/")
        if not name:
            return True
        if above and (held := self.has_cgroup(above)) is not True:
            return held
        listed = not above or (above.count("/") == 1 and above.endswith(".slice") and name.endswith(".slice"))
        found = self.cgroups.has(f"{above}/{name}")
        return found if found or (listed and not above.startswith("/kubepods")) else None

    def has_socket(self, path: str) -> bool | None:
        """``/var/run`` is ``/run``."""
        if self.sockets is None:
            return None
        same = {re.sub(r"^/var/run/", "/run/", name) for name in self.sockets.names}
        wanted = re.sub(r"^/var/run/", "/run/", path)
        if wanted in same:
            return True
        return self.sockets.has(path) if path.endswith(".sock") else None

    @property
    def cgroup_driver(self) -> str:
        """``systemd`` or ``cgroupfs``: the one that made the group of all pods; ``""``: both groups are there, or none, or it is unknown.

        It is of the kubelet that runs or ran, and of its runtime: pods do not start where the two differ.
        """
        by_systemd, by_name = self.has_cgroup("/kubepods.slice"), self.has_cgroup("/kubepods")
        if by_systemd is by_name or None in (by_systemd, by_name):
            return ""
        return "systemd" if by_systemd else "cgroupfs"

    def room(self, of: str) -> Room | None:
        """Of ``kubelet``, or of a runtime's unit."""
        return next((room for room in self.rooms if room.of == of), None)
