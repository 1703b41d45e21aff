"""What was read from a node, exactly as it reported it: versions, files, units, the running kubelet, receipts.

Everything here is plain data that survives a round trip through JSON; nothing is interpreted yet.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import field
from enum import StrEnum
from functools import lru_cache

from rollout.core.model.frozen import dataclass
from rollout.core.model.surroundings import NodeSurroundings

# Which token counters are believed: a node with a wrong one must not raise the counter of every other node.
#
# A run takes a token above the highest that the journal and the nodes know. An attacker on a node can report any
# number; after the highest possible one, no later token would fit. So the base is what most nodes report, or the
# journal. A counter may exceed the base by what a thousand runs a day for years would add. A higher one is false and
# is ignored for all other nodes.


MOST_ABOVE = 1_000_000
MOST_AT_ALL = 10**14
"""The bound for fewer than three nodes, where no majority exists. The agent accepts counters below 10**15."""


def highest_believed(counters: Iterable[int], known: int = 0) -> int:
    """The highest believable counter; ``known`` is the journal's, and the minimum."""
    told = sorted(counters)
    if not told:
        return known
    few, median = len(told) < 3, told[(len(told) - 1) // 2]
    most = MOST_AT_ALL if few and not known else max(known, 0 if few else median) + MOST_ABOVE
    return max([known, *(counter for counter in told if counter <= most)])


def is_beyond_belief(counter: int, ours: int) -> bool:
    """Whether a node answers a run of token ``ours`` with a token that no other run can have."""
    return counter > ours + MOST_ABOVE


@dataclass(frozen=True, slots=True)
class FileState:
    """One path as it was. ``content`` is ``None`` when absent, not regular, or larger than the agent sends.

    Of a file with secrets that no change needs, ``content`` is what is kept of it; its digest is always that of the file.
    """

    path: str
    kind: str  # "regular", "absent", "directory", "symlink", "other"
    mode: str = ""  # octal, e.g. "644"
    owner: str = ""  # "uid:gid"
    size: int = 0
    digest: str = ""  # hex SHA-256 of the content; "" unless regular
    content: bytes | None = None

    @property
    def whole(self) -> bool:
        """Whether ``content`` is all of the file: only then may a change write it."""
        return self.content is not None and digest(self.content) == self.digest


@dataclass(frozen=True, slots=True)
class UnitState:
    """``systemctl show`` of one unit: property → value, as printed."""

    name: str
    properties: Mapping[str, str] = field(default_factory=dict)

    @property
    def kubelet_pid(self) -> str:
        """The kubelet in it: RKE2's is a child of the main process, which only the agent knows; ``""``: not told, or it could not be looked for."""
        return self.properties.get("KubeletPID", self.properties.get("MainPID", ""))

    @property
    def standing(self) -> str:
        """Its state in a sentence. ``auto-restart`` is systemd's word for a unit that ended and waits for its next start."""
        active, sub = (self.properties.get(name, "") for name in ("ActiveState", "SubState"))
        if sub == "auto-restart":
            return f"{self.name} ended, and systemd is to start it again ({active}, {sub})"
        return f"{self.name} is {active or 'not told'} ({sub or '-'})"


@dataclass(frozen=True, slots=True)
class Stale:
    """A file that changed ``seconds`` after the process of ``unit`` started, which reads it at its start; by the node's clock.

    ``edited``: its content was written since. Else only its inode changed: it was renamed into place, linked, or given
    another mode or owner.
    """

    path: str
    unit: str
    edited: bool
    seconds: int


class ReceiptState(StrEnum):
    """The state of a node's transaction. The receipt is the only source of truth; timer and boot unit only read it."""

    ARMED = "armed"
    CONFIRMED = "confirmed"
    REVERTING = "reverting"
    REVERTED = "reverted"


@dataclass(frozen=True, slots=True)
class Receipt:
    """The node's own record of a transaction.

    ``cause`` is why it was reverted: ``guard`` (not confirmed in time), ``boot`` (restarted while armed),
    ``health`` (the agent found the kubelet unhealthy), ``asked`` (the controller). ``left`` is seconds until the guard fires,
    only meaningful while armed. ``finished`` is true once an ``apply`` has ended its own health check.
    """

    tx: str
    run: str
    counter: int
    state: ReceiptState
    cause: str = ""
    left: float = 0.0
    finished: bool = False


@dataclass(frozen=True, slots=True)
class Token:
    """The fencing token a node remembers: the newest claim it accepted, and whether that run still holds it."""

    counter: int = 0
    run: str = ""
    live: bool = False


@dataclass(frozen=True, slots=True)
class Process:
    """The kubelet that runs now. ``command_line`` is ``/proc/PID/cmdline`` split at its NULs."""

    pid: int
    command_line: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Service:
    """A unit of a container runtime: ``systemctl show`` and its main process, if it runs."""

    unit: UnitState
    process: Process | None = None


NOT_ITS_OWN = "healthz-not-its-own"
NOT_OBSERVED: Mapping[str, str] = {
    "not-its-own": "another process than the main process of the kubelet's unit listens on the health port",
    "not-observed": "the node does not show which process listens on the health port",
}
"""The agent's answers where nothing is known of the kubelet's own ``/healthz``: any user of a node may listen on a free port."""


@dataclass(frozen=True, slots=True)
class Measurement:
    """The part of a node that gates look at; one reading. ``None`` means: could not be read."""

    unit: UnitState | None = None
    process: Process | None = None
    healthz: str | None = (
        None  # "ok", "off" (port 0), "refused", "timeout", "status NNN", or None: nothing on the node can ask
    )
    lenient: int | None = None  # "lenient decoding" lines since this process started
    files: Mapping[str, FileState] = field(default_factory=dict)
    commands: Mapping[str, int] = field(default_factory=dict)  # command gate name → exit status
    outputs: Mapping[str, str] = field(default_factory=dict)  # the end of the output of a gate that did not pass
    services: Mapping[str, Service] = field(default_factory=dict)  # unit name, e.g. "containerd.service" → what it does
    pulls: tuple[str, ...] | None = None  # images being pulled now, if they have names; None: not known


@dataclass(frozen=True, slots=True)
class Snapshot:
    """One node as read in one round trip."""

    node: str
    machine_id: str
    boot_id: str
    kubelet_version: str  # "1.20.15", without "v"; "" when the binary did not report it
    runtimes: Mapping[str, str]  # "docker", "containerd", "crio", "cri-dockerd" → version as printed
    measurement: Measurement
    files: Mapping[str, FileState]  # unit files, drop-ins, environment files, the --config file, agent targets
    token: Token
    receipts: tuple[Receipt, ...] = ()
    stale: tuple[Stale, ...] = ()  # files that changed after the process that reads them started
    running: str = (
        ""  # the configuration of the running kubelet, canonical JSON; "" unless ``stale`` gave a reason to read it
    )
    facts: Mapping[str, str] = field(
        default_factory=dict
    )  # everything else it reported, e.g. "room-kib", "state-dir-fs"
    surroundings: NodeSurroundings | None = None
    """What settings may need on the node; ``None``: unknown, an older agent read it."""


@dataclass(frozen=True, slots=True)
class Unread:
    """A node that could not be read, and why: a stable ``reference`` and one line of evidence."""

    node: str
    reference: str
    message: str


@dataclass(frozen=True, slots=True)
class FleetSnapshot:
    """The result of one reading of a fleet. ``taken`` is wall time (ISO 8601, UTC, seconds), for display.

    ``jumps``: node → the bastions on the way to it, the nearest first. Nodes with an unknown way are missing.
    ``addresses``: node → where it was read, ``USER@ADDRESS:PORT`` as far as the inventory set them; ``{}``: not stored.
    """

    cluster: str
    inventory_digest: str
    taken: str
    nodes: Mapping[str, Snapshot | Unread]
    jumps: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    addresses: Mapping[str, str] = field(default_factory=dict)


# File contents by their digest: stored once, however many nodes have them.


@lru_cache(maxsize=8192)
def digest(content: bytes) -> str:
    """Hex SHA-256."""
    return hashlib.sha256(content).hexdigest()
