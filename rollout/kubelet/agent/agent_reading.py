"""What was read so far of one agent's answer, line by line, and its measurement."""

from __future__ import annotations

from dataclasses import dataclass, field

from rollout.core.model.report import LastLog
from rollout.core.model.snapshot import (
    FileState,
    Measurement,
    Process,
    Receipt,
    Service,
    Stale,
    Token,
    UnitState,
)
from rollout.core.model.surroundings import NodeSurroundings
from rollout.core.model.transactions import NodeTransaction
from rollout.core.model.verification import Binary


@dataclass
class AgentReading:
    """What was read so far of one answer."""

    refused: tuple[str, str] | None = None
    failed: tuple[str, str] | None = None
    ended: str = ""
    said: list[str] = field(default_factory=list)
    token: Token | None = None
    receipt: Receipt | None = None
    history: list[Receipt] = field(default_factory=list)
    healthy: tuple[bool, str] | None = None
    log: LastLog | None = None
    facts: dict[str, str] = field(default_factory=dict)
    unit: str = ""
    properties: dict[str, str] = field(default_factory=dict)
    process: Process | None = None
    services: dict[str, dict[str, str]] = field(default_factory=dict)
    serving: dict[str, Process] = field(default_factory=dict)
    pulls: tuple[str, ...] | None = None
    healthz: str | None = None
    lenient: int | None = None
    took: float | None = None
    voided: str = ""
    files: dict[str, FileState] = field(default_factory=dict)
    promised: list[FileState] = field(default_factory=list)
    commands: dict[str, int] = field(default_factory=dict)
    outputs: dict[str, str] = field(default_factory=dict)
    left: list[str] = field(default_factory=list)
    transactions: dict[str, NodeTransaction] = field(default_factory=dict)
    stale: list[Stale] = field(default_factory=list)
    binary: Binary | None = None
    age: int | None = None
    surroundings: NodeSurroundings | None = None

    def measurement(self) -> Measurement | None:
        if not (self.unit or self.process or self.healthz or self.files or self.commands or self.pulls is not None):
            return None
        return Measurement(
            unit=UnitState(self.unit, dict(self.properties)) if self.unit else None,
            process=self.process,
            healthz=self.healthz,
            lenient=self.lenient,
            files=dict(self.files),
            commands=dict(self.commands),
            outputs=dict(self.outputs),
            services={
                name: Service(UnitState(name, dict(found)), self.serving.get(name))
                for name, found in self.services.items()
            },
            pulls=self.pulls,
        )
