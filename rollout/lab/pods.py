"""A node's two pods on its kubelet, its lease, and the effects of a restart on them.

Like faults of the kubelet, these faults show only under a configuration other than the kubelet's when they were set. But
a revert does not undo what happened to a pod (rejected, a container recreated).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from rollout import known_faults
from rollout.lab.kubelet import START_UP

REJECTED, RESTARTED, PULLING = "pod-rejected", "container-restarted", "pull-failing"
DEVICES_LOST = "devices-lost"
NOT_READY, CORDONED = "not-ready", "cordoned"
BLOCKED, BLOCKED_TWICE, SLOW, HELD = known_faults.PDB_BLOCKS.name, "two-pdbs", "slow-termination", "finalizer"
ENDINGS = (BLOCKED, BLOCKED_TWICE, SLOW, HELD)
GRACE = 30
"""Seconds: the API's own default."""
KINDS = (REJECTED, RESTARTED, PULLING, DEVICES_LOST, NOT_READY, CORDONED)
FREE = 0.6
"""The share of its memory, of its disk and of its process ids that is free on a lab node."""
_PRESSURES = {"memory": "MemoryPressure", "nodefs": "DiskPressure", "imagefs": "DiskPressure", "pid": "PIDPressure"}
"""The condition for each beginning of an eviction signal."""
NAMES = (("kube-system", "kube-proxy"), ("default", "web"))
"""Namespace and name of the pods; the node's name is appended. The faults affect the second."""


_NO_VALUES: Mapping[str, object] = MappingProxyType({})


def _reached(thresholds: object) -> Iterator[tuple[str, str]]:
    """The condition of each threshold in percent that is above what is free, and the message of an eviction for it."""
    for signal, threshold in thresholds.items() if isinstance(thresholds, Mapping) else ():
        kind, wanted = signal.partition(".")[0], str(threshold)
        if kind in _PRESSURES and wanted.endswith("%") and float(wanted[:-1]) > 100 * FREE:
            resource = {"memory": "memory", "pid": "pids"}.get(kind, "ephemeral-storage")
            said = (
                f"The node was low on resource: {resource}. Threshold quantity: {wanted}, available: {100 * FREE:g}%. "
            )
            yield _PRESSURES[kind], said


@dataclass(slots=True)
class LabLease:
    """Renewals of the lease: soon after each start of the kubelet, and then every quarter of the time that it lasts.

    ``period`` stands for the 10 s in which a kubelet looks at its own Node; the node controller's grace is four of them. ``lasts``:
    nodeLeaseDurationSeconds, which with its usual 40 s is renewed every ``period``.
    """

    period: float = 10.0
    since: float | None = None
    last: float | None = None
    lasts: int = 40

    @property
    def every(self) -> float:
        """Seconds between two renewals."""
        return self.period * self.lasts / 40

    @property
    def grace(self) -> float:
        return 4 * self.period

    def begin(self, now: float, lasts: int = 40) -> None:
        self.since, self.lasts = now + START_UP, lasts

    def end(self, now: float) -> None:
        self.last, self.since = self.renewed(now), None

    def renewed(self, now: float) -> float | None:
        """The last renewal until now; ``None`` if there was none."""
        if self.since is None or now < self.since:
            return self.last
        return self.since + (now - self.since) // self.every * self.every

    def is_fresh(self, now: float) -> bool:
        """Whether the node controller counts the node as alive: four periods after its last sign of life, like 40 s for a period of ten."""
        return self.seen_alive(now)[0]

    def seen_alive(self, now: float) -> tuple[bool, float | None]:
        """Whether the node controller counts it as alive, and since when (``None``: since the kubelet's start, or before).

        A kubelet that runs finds its Node Unknown within a period and reports that it is Ready, which is a sign of life as well. So a
        Node flaps if its lease is renewed later than the grace.
        """
        renewed = self.renewed(now)
        if renewed is None:
            return False, None
        if self.since is None or now < self.since:
            return now - renewed <= self.grace, None
        cycle = self.grace + self.period
        passed, here = divmod(now - renewed, cycle)
        if here > self.grace:
            return False, now - here + self.grace
        if passed:
            return True, renewed + passed * cycle
        if renewed <= self.since:
            return True, None
        passed, here = divmod(self.every, cycle)  # at the end of the lease's time before this one
        if here > self.grace:
            return True, renewed
        return True, renewed - self.every + passed * cycle if passed else None


@dataclass(slots=True)
class LabPods:
    """The state of the pods.

    * ``boots`` and ``made`` count recreated containers of the first and second pod. ``changes`` counts other changes that
      are visible to the API server. ``turned`` is the last change of the node's readiness.
    * ``cordoned`` and ``notes`` (annotations) are clients' writes to the Node.
    * ``pressures`` are the kubelet's conditions of pressure, ``low`` the message of its evictions (``""``: none were needed), and ``gone``
      that the plugin of the node's devices has not registered.
    * ``ending`` is a fault of pod termination, ``grace`` the grace period of pods that use all of it. ``daemons`` counts
      deletions of the first pod.
    """

    lease: LabLease = field(default_factory=LabLease)
    kind: str = ""
    made: int = 0
    boots: int = 0
    changes: int = 0
    turned: float = 0.0
    rejected: bool = False
    low: str = ""
    pressures: tuple[str, ...] = ()
    gone: bool = False
    pulling: bool = False
    ready: bool = True
    started: float = 0.0
    container_started: float = 0.0
    cordoned: bool = False
    notes: dict[str, str] = field(default_factory=dict)
    ending: str = ""
    grace: int = GRACE
    daemons: int = 0
    _now: str = ""
    _healthy: str = ""

    def set(self, kind: str, now: float) -> None:
        """From the next start with another configuration on; faults of the Node itself at once."""
        self.kind, self._healthy = kind, self._now
        self.changes += 1
        self.ready, self.turned = kind != NOT_READY, now

    def clear(self, now: float) -> None:
        """The fault is over; a pod that was rejected has been replaced."""
        self.kind, self.rejected, self.pulling, self.ready, self.turned = "", False, False, True, now
        self.low, self.gone = "", False
        self.changes += 1

    def kubelet_started(self, fingerprint: str, now: float, values: Mapping[str, object] = _NO_VALUES) -> None:
        """The kubelet re-admits the pods, and evicts them where a threshold of its ``values`` is reached."""
        self._now = fingerprint
        self.changes += 1
        self.started = self.started or now
        self.container_started = self.container_started or now
        lasts = values.get("nodeLeaseDurationSeconds")
        self.lease.begin(now, lasts if isinstance(lasts, int) else 40)
        reached = tuple(_reached(values.get("evictionHard")))
        self.pressures = tuple(dict.fromkeys(condition for condition, _ in reached))
        self.low = reached[0][1] if reached else self.low
        sick = bool(self.kind) and fingerprint != self._healthy
        self.pulling = sick and self.kind == PULLING
        self.gone = sick and self.kind == DEVICES_LOST
        self.rejected = self.rejected or (sick and self.kind == REJECTED)
        if sick and self.kind == RESTARTED:
            self._make_anew(now)

    def end_by(self, kind: str, grace: float) -> None:
        """A fault of pod termination; ``""``: none, and held pods end."""
        self.ending, self.grace = kind, max(round(grace), 1) if kind == SLOW else GRACE
        self.changes += 1

    def kubelet_ended(self, now: float) -> None:
        self.lease.end(now)

    def rebooted(self, now: float) -> None:
        """No container survives a power cut."""
        if self.started:
            self.boots += 1
            self._make_anew(now)

    def _make_anew(self, now: float) -> None:
        self.made += 1
        self.container_started = now
