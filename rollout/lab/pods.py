"""A node's two pods as its kubelet keeps them, its lease, and what a restart may do to them.

As with ailments, the faults show only under a configuration other than the one the kubelet had when they were set; but what has
happened to a pod (rejected, a container made anew) is not undone by taking the change back.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from rollout.lab.kubelet import START_UP

REJECTED, RESTARTED, PULLING = "pod-rejected", "container-restarted", "pull-failing"
NOT_READY, CORDONED = "not-ready", "cordoned"
BLOCKED, BLOCKED_TWICE, SLOW, HELD = "pdb-blocks", "two-pdbs", "slow-termination", "finalizer"
ENDINGS = (BLOCKED, BLOCKED_TWICE, SLOW, HELD)
GRACE = 30
"""Seconds: the API's own default."""
KINDS = (REJECTED, RESTARTED, PULLING, NOT_READY, CORDONED)
NAMES = (("kube-system", "kube-proxy"), ("default", "web"))
"""Namespace and name of the pods; a node's name goes behind the latter. The faults take the second."""


@dataclass(slots=True)
class LabLease:
    """When the kubelet renewed its lease: soon after each start and then every ``period`` seconds, as long as it runs."""

    period: float = 10.0
    since: float | None = None
    last: float | None = None

    def begin(self, now: float) -> None:
        self.since = now + START_UP

    def end(self, now: float) -> None:
        self.last, self.since = self.renewed(now), None

    def renewed(self, now: float) -> float | None:
        """The last renewal until now; ``None``: there never was one."""
        if self.since is None or now < self.since:
            return self.last
        return self.since + (now - self.since) // self.period * self.period

    def is_fresh(self, now: float) -> bool:
        """Whether the node controller still believes in the node: four periods, as 40 s are for one of ten."""
        renewed = self.renewed(now)
        return renewed is not None and now - renewed <= 4 * self.period


@dataclass(slots=True)
class LabPods:
    """What has become of the pods. ``boots`` and ``made`` count how often the first and the second one's container were made anew,
    ``changes`` whatever else the API server would have heard of; ``turned`` is when the node's readiness was changed last.
    ``cordoned`` and ``notes`` (annotations) are what clients wrote into the Node; ``ending`` is a fault of how pods end here,
    ``grace`` the grace period of those that take all of it, and ``daemons`` how often the first pod was deleted.
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
        """From the next start with another configuration on; what is about the node itself at once."""
        self.kind, self._healthy = kind, self._now
        self.changes += 1
        self.ready, self.turned = kind != NOT_READY, now

    def clear(self, now: float) -> None:
        """The fault is over; a pod that was rejected has been replaced."""
        self.kind, self.rejected, self.pulling, self.ready, self.turned = "", False, False, True, now
        self.changes += 1

    def kubelet_started(self, fingerprint: str, now: float) -> None:
        """The kubelet has the pods admitted again."""
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
        """A fault of how pods end; ``""``: none, and what was held is let go."""
        self.ending, self.grace = kind, max(round(grace), 1) if kind == SLOW else GRACE
        self.changes += 1

    def kubelet_ended(self, now: float) -> None:
        self.lease.end(now)

    def rebooted(self, now: float) -> None:
        """No container survives that."""
        if self.started:
            self.boots += 1
            self._make_anew(now)

    def _make_anew(self, now: float) -> None:
        self.made += 1
        self.container_started = now
