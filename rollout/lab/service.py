"""One systemd service as a state with a clock: start, stop, exit, automatic restart. Nothing here runs a process.

The rules are those of systemd 252. A start of ``Type=simple`` succeeds as soon as the process exists. A process that
ends is started again after ``RestartSec`` and counted. The counter survives a restart out of ``auto-restart``; the first
start after a requested stop clears it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from uuid import uuid4

from rollout.lab.kubelet import ProgramStart
from rollout.lab.units import Unit


class UnitPhase(Enum):
    """The unit's state; the value is (ActiveState, SubState)."""

    STOPPED = ("inactive", "dead")
    RUNNING = ("active", "running")
    WAITING = ("activating", "auto-restart")
    FAILED = ("failed", "failed")
    ONESHOT = ("activating", "start")
    EXITED = ("active", "exited")


@dataclass(slots=True)
class LabService:
    """A service and its process, if it has one. ``ends`` and ``wakes`` are the times of the next change by itself."""

    unit: Unit
    phase: UnitPhase = UnitPhase.STOPPED
    pid: int = 0
    child: int = 0  # the kubelet, where its unit's main process is another program
    restarts: int = 0
    started: float = 0.0
    ended: float = 0.0  # when it last became inactive or failed
    ends: float | None = None
    wakes: float | None = None
    status: int = 0
    result: str = "success"
    start: ProgramStart = field(default_factory=ProgramStart)
    arguments: tuple[str, ...] = ()
    flush: bool = False
    invocation: str = ""  # of the newest start, as ``INVOCATION_ID`` tells it to the unit's commands

    @property
    def restart_after(self) -> float:
        return self.unit.span("RestartSec", 0.1)

    @property
    def due(self) -> float | None:
        """The time of the next change by itself."""
        times = [moment for moment in (self.ends, self.wakes) if moment is not None]
        return min(times) if times else None

    def begin(self, now: float, pid: int, arguments: tuple[str, ...], start: ProgramStart) -> None:
        """A process exists; the unit is active, even if the process exits later."""
        if self.flush:
            self.restarts, self.flush = 0, False
        self.phase, self.pid, self.started, self.wakes = UnitPhase.RUNNING, pid, now, None
        self.arguments, self.start, self.result = arguments, start, "success"
        self.invocation = uuid4().hex
        self.ends = None if start.status is None else now + start.life

    def end(self, now: float, status: int) -> None:
        """The process ended by itself: wait for the automatic restart, or fail, or be done."""
        self.pid, self.ends, self.status = 0, None, status
        self.result = "exit-code" if status else "success"
        if self.unit.last("Restart", "no") in {"always", "on-failure"} and (
            status or self.unit.last("Restart") == "always"
        ):
            self.phase, self.wakes = UnitPhase.WAITING, now + self.restart_after
        else:
            self.phase, self.flush, self.ended = (UnitPhase.FAILED if status else UnitPhase.STOPPED), True, now

    def stop(self, now: float) -> None:
        """Stopped on purpose. In ``auto-restart`` the counter is kept, as in systemd."""
        if self.phase is not UnitPhase.WAITING:
            self.flush = True
        self.phase, self.pid, self.ends, self.wakes, self.ended = UnitPhase.STOPPED, 0, None, None, now
        self.result, self.status = "success", 0
