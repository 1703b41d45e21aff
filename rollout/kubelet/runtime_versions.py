"""Container runtimes and their versions, as a node prints them.

``containerd github.com/containerd/containerd v1.7.24 88bf19b2…``, ``containerd containerd.io 1.6.39 …``,
``crio version 1.30.14``, ``cri-dockerd 0.3.15 (c1c566e)``, ``Docker version 24.0.7, build afdd53b``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

_PRINTED = re.compile(r"(?<![\w.])v?(\d{1,4})\.(\d{1,4})\.(\d{1,4})((?:[-~+.][0-9A-Za-z.+~-]*)?)")


class Runtime(StrEnum):
    """The node's container runtime, by the socket that the kubelet uses."""

    DOCKERSHIM = "dockershim"
    CRI_DOCKERD = "cri-dockerd"
    CONTAINERD = "containerd"
    CRIO = "CRI-O"
    UNKNOWN = "unknown runtime"


PROGRAMS: Mapping[Runtime, str] = {
    Runtime.DOCKERSHIM: "docker",
    Runtime.CRI_DOCKERD: "cri-dockerd",
    Runtime.CONTAINERD: "containerd",
    Runtime.CRIO: "crio",
}
"""The name in ``Snapshot.runtimes`` of the program with the version that counts."""


@dataclass(frozen=True, slots=True, order=True)
class RuntimeVersion:
    """``MAJOR.MINOR.PATCH``, ordered; ``text`` is the version as printed, without ``v``."""

    major: int
    minor: int
    patch: int
    text: str = ""

    @property
    def number(self) -> tuple[int, int, int]:
        return self.major, self.minor, self.patch


def parse(printed: str) -> RuntimeVersion | None:
    """The version in a runtime's output, or ``None`` if none can be parsed."""
    found = _PRINTED.search(printed)
    if found is None:
        return None
    text = f"{found[1]}.{found[2]}.{found[3]}{found[4]}"
    return RuntimeVersion(int(found[1]), int(found[2]), int(found[3]), text)


def version_of(runtime: Runtime, printed: Mapping[str, str]) -> RuntimeVersion | None:
    """The version of a node's runtime from ``Snapshot.runtimes``; ``None`` if the node did not report one."""
    return parse(printed.get(PROGRAMS.get(runtime, ""), ""))
