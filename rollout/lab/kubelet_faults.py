"""Faults of a kubelet: they make it exit or stop responding. They depend on the configuration, not the process.

A fault stores the kubelet's command line and configuration at its start (its *fingerprint*). With these the kubelet is
healthy, with any others it is unhealthy. So a revert always heals the node. The exception is a flapping kubelet: it
flaps with any configuration.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from rollout import known_faults
from rollout.lab.kubelet import ProgramStart

NEVER_HEALTHY = known_faults.NEVER_HEALTHY.name
SICK_IN_SOAK = "sick-in-soak"
DEAF_IN_SOAK = "deaf-in-soak"
FLAPPING = "flapping-kubelet"
KINDS = (NEVER_HEALTHY, SICK_IN_SOAK, DEAF_IN_SOAK, FLAPPING)


@dataclass(slots=True)
class Ailments:
    """At most one fault of the kubelet. ``struck`` is when a soak fault begins; a confirm sets it."""

    kind: str = ""
    healthy: str = ""
    after: float = 0.0
    struck: float | None = None
    pending: bool = False

    @property
    def due(self) -> float | None:
        return self.struck if self.pending else None

    def set(self, kind: str, fingerprint: str, after: float) -> None:
        """From now on; ``fingerprint`` is the configuration that stays healthy."""
        self.kind, self.healthy, self.after, self.struck, self.pending = kind, fingerprint, after, None, False

    def flap(self, period: float, now: float) -> None:
        """From now on the kubelet exits ``period`` seconds after each start, whatever its configuration."""
        self.set(FLAPPING, "", period)
        self.struck, self.pending = now, True

    def clear(self) -> None:
        """End the fault; a kubelet that has exited stays down until it is started again."""
        self.set("", "", 0.0)

    def confirmed(self, now: float) -> None:
        """The agent's ``confirm`` has ended: a soak fault begins ``after`` seconds later."""
        if self.kind in {SICK_IN_SOAK, DEAF_IN_SOAK} and self.struck is None:
            self.struck, self.pending = now + self.after, True

    def strike(self, now: float) -> bool:
        """Whether a soak fault begins now; true once."""
        if not self.pending or self.struck is None or now < self.struck:
            return False
        self.pending = False
        return True

    def spoil(self, start: ProgramStart, now: float) -> ProgramStart:
        """The outcome of a start under the fault."""
        if start.status is not None or not self._sick(start, now) or self.kind == DEAF_IN_SOAK:
            return start
        line = f"F1120 09:00:00.000000    4242 server.go:276] failed to run Kubelet: the lab's fault {self.kind}"
        life = self.after if self.kind == FLAPPING else start.life
        return replace(start, status=255, life=life, journal=(*start.journal, line))

    def silent(self, start: ProgramStart, now: float) -> bool:
        """Whether /healthz accepts connections and never answers."""
        return self.kind == DEAF_IN_SOAK and self._sick(start, now)

    def _sick(self, start: ProgramStart, now: float) -> bool:
        if self.kind == FLAPPING:
            return True
        if not self.kind or start.fingerprint == self.healthy:
            return False
        return self.kind == NEVER_HEALTHY or (self.struck is not None and now >= self.struck)
