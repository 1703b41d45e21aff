"""Drop-ins that others put on a node: what a hardened image, a policy or a mistake adds to every unit, or to ours.

``KINDS`` are the lines; ``PLACES`` the folders. A drop-in for all services would also break what the node needs to boot and to
let us in, so every other service gets the opposite back, as such images do for sshd and the kubelet.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from tests.bed.node import Node

NAME = "hard.conf"
LATE = "~~~~~~~~~~~~~~~~late.conf"
"""A name that sorts after every other: what it sets nobody else can reset."""


@dataclass(frozen=True, slots=True)
class Kind:
    """``lines`` of the section that all units of its place have; ``undone`` for the services that are exempt."""

    lines: str
    undone: str
    section: str = "Service"
    boots: bool = True
    """Whether a node with this drop-in for all services but the exempt ones still boots in this bed."""

    def text(self) -> str:
        return f"[{self.section}]\n{self.lines}\n"


KINDS = {
    "ProtectSystem=full": Kind("ProtectSystem=full", "ProtectSystem=no"),
    "ProtectSystem=strict": Kind("ProtectSystem=strict", "ProtectSystem=no"),
    "ReadOnlyPaths": Kind("ReadOnlyPaths=/etc /var/lib", "ReadOnlyPaths="),
    "InaccessiblePaths": Kind("InaccessiblePaths=/var/lib/kubelet", "InaccessiblePaths="),
    "TemporaryFileSystem": Kind("TemporaryFileSystem=/var/lib/kubelet", "TemporaryFileSystem="),
    "BindPaths": Kind("BindPaths=/tmp:/var/lib/kubelet", "BindPaths="),
    "PrivateTmp": Kind("PrivateTmp=yes\nPrivateMounts=yes", "PrivateTmp=no\nPrivateMounts=no"),
    "NoNewPrivileges": Kind("NoNewPrivileges=yes", "NoNewPrivileges=no"),
    "CapabilityBoundingSet": Kind("CapabilityBoundingSet=CAP_NET_BIND_SERVICE", "CapabilityBoundingSet=~", boots=False),
    "SystemCallFilter": Kind("SystemCallFilter=~link linkat rename renameat renameat2", "SystemCallFilter="),
    "RestrictAddressFamilies": Kind("RestrictAddressFamilies=AF_INET", "RestrictAddressFamilies="),
    "MemoryMax": Kind("MemoryMax=64K", "MemoryMax=infinity"),
    "TasksMax": Kind("TasksMax=1", "TasksMax=infinity"),
    "LimitFSIZE": Kind("LimitFSIZE=1", "LimitFSIZE=infinity"),
    "LimitNOFILE": Kind("LimitNOFILE=4", "LimitNOFILE=1024:20000"),
    "RuntimeMaxSec": Kind("RuntimeMaxSec=2", "RuntimeMaxSec=infinity"),
    "TimeoutStartSec": Kind("TimeoutStartSec=1", "TimeoutStartSec=90"),
    "WatchdogSec": Kind("WatchdogSec=1", "WatchdogSec=0"),
    "User": Kind("User=nobody", "User=", boots=False),
    "DynamicUser": Kind("DynamicUser=yes", "DynamicUser=no", boots=False),
    "RootDirectory": Kind("RootDirectory=/tmp", "RootDirectory=", boots=False),
    "WorkingDirectory": Kind("WorkingDirectory=/none", "WorkingDirectory=", boots=False),
    "ExecStartPre": Kind("ExecStartPre=/bin/false", "ExecStartPre=", boots=False),
    "ExecCondition": Kind("ExecCondition=/bin/false", "ExecCondition=", boots=False),
    "UMask": Kind("UMask=0777", "UMask=0022"),
    "Environment": Kind('Environment="PATH=/none" "ROLLOUT_ROOT=/tmp" "LD_PRELOAD=/none"', "", boots=False),
    "ConditionPathExists": Kind("ConditionPathExists=/none", "ConditionPathExists=", section="Unit", boots=False),
    "AssertPathExists": Kind("AssertPathExists=/none", "AssertPathExists=", section="Unit", boots=False),
}
TIMER_KINDS = {
    "OnActiveSec": Kind("OnActiveSec=\nOnActiveSec=3h", "", section="Timer"),
    "AccuracySec": Kind("AccuracySec=3h\nRandomizedDelaySec=3h", "", section="Timer"),
    "Unit": Kind("Unit=kubelet.service", "", section="Timer"),
    "ConditionPathExists": KINDS["ConditionPathExists"],
    "AssertPathExists": KINDS["AssertPathExists"],
}


class Place(StrEnum):
    """For which units a drop-in is."""

    SERVICES = "service.d"
    TIMERS = "timer.d"
    OURS = "rollout-.service.d"
    KUBELET = "kubelet.service.d"

    def kinds(self) -> dict[str, Kind]:
        return TIMER_KINDS if self is Place.TIMERS else KINDS


@contextmanager
def foreign(node: Node, place: Place, kind: Kind, name: str = NAME) -> Iterator[str]:
    """The drop-in is on the node, and systemd has read it. Gives its path; afterwards nothing of it is left."""
    system = Path(node.root, "etc/systemd/system")
    path = f"/etc/systemd/system/{place}/{name}"
    made = [_write(system / place / name, kind.text())]
    if place is Place.SERVICES:
        exempt = f"[{kind.section}]\n{kind.undone}\n"
        # in a folder that no change of ours uses: else a folder would be left that the change has not made
        local = Path(node.root, "usr/local/lib/systemd/system")
        made += [_write(local / f"{unit}.d" / f"{LATE}.conf", exempt) for unit in _services(node)]
    node.exec("sh", "-c", "sync; systemctl daemon-reload")
    try:
        yield path
    finally:
        for file in made:
            file.unlink(missing_ok=True)
            for folder in (file.parent, *file.parents[1:3]):  # never as far as /usr/local/lib or /etc
                if folder.name in ("lib", "etc") or any(folder.iterdir()):
                    break
                folder.rmdir()
        node.exec("systemctl", "daemon-reload")


def _write(file: Path, text: str) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")
    return file


def _services(node: Node) -> set[str]:
    """Every service of the node that is not ours."""
    folders = ("etc/systemd/system", "usr/lib/systemd/system")
    return {path.name for folder in folders for path in Path(node.root, folder).glob("*.service")}
