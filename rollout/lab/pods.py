"""A node's two pods on its kubelet, its lease, and the effects of a restart on them.

Like faults of the kubelet, these faults show only under a configuration other than the kubelet's when they were set. But
a revert does not undo what happened to a pod (rejected, a container recreated).
"""

from __future__ import annotations

from dataclasses import dataclass, field

from rollout import known_faults
from rollout.lab.kubelet import START_UP

REJECTED, RESTARTED, PULLING = "pod-rejected", "container-restarted", "pull-failing"
NOT_READY, CORDONED = "not-ready", "cordoned"
BLOCKED, BLOCKED_TWICE, SLOW, HELD = known_faults.PDB_BLOCKS.name, "two-pdbs", "slow-termination", "finalizer"
ENDINGS = (BLOCKED, BLOCKED_TWICE, SLOW, HELD)
GRACE = 30
"""Seconds: the API's own default."""
KINDS = (REJECTED, RESTARTED, PULLING, NOT_READY, CORDONED)
NAMES = (("kube-system", "kube-proxy"), ("default", "web"))
"""Namespace and name of the pods; the node's name is appended. The faults affect the second."""


@dataclass(slots=True)
class LabLease:
    """Renewals of the lease: soon after each start of the kubelet and then every ``period`` seconds while it runs."""

    period: float = 10.0
    since: float | None = None
    last: float | None = None

    def begin(self, now: float) -> None:
        self.since = now + START_UP

    def end(self, now: float) -> None:
        self.last, self.since = self.renewed(now), None

    def renewed(self, now: float) -> float | None:
        """The last renewal until now; ``None`` if there was none."""
        if self.since is None or now < self.since:
            return self.last
        return self.since + (now - self.since) // self.period * self.period

    def is_fresh(self, now: float) -> bool:
        """Whether the node controller still counts the node as alive: four periods, like 40 s for a period of ten."""
        renewed = self.renewed(now)
        return renewed is not None and now - renewed <= 4 * self.period


@dataclass(slots=True)
class LabPods:
    """The state of the pods.

    * ``boots`` and ``made`` count recreated containers of the first and second pod. ``changes`` counts other changes that
      are visible to the API server. ``turned`` is the last change of the node's readiness.
    * ``cordoned`` and ``notes`` (annotations) are clients' writes to the Node.
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
        self.changes += 1

    def kubelet_started(self, fingerprint: str, now: float) -> None:
        """The kubelet re-admits the pods."""
        self._now = fingerprint
        self.changes += 1
        self.started = self.started or now
        self.container_started = self.container_started or now
        self.lease.begin(now)
        sick = bool(self.kind) and fingerprint != self._healthy
        self.pulling = sick and self.kind == PULLING
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
