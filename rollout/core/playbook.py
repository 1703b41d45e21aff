"""The playbook as the rest of the program sees it: a validated, frozen policy. Data, never code.

All durations are seconds. A ``Share`` is a count or a percentage of a scope's nodes, never less than one node.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from rollout.core.settings import Setting


@dataclass(frozen=True, slots=True)
class Share:
    """``Share(count=3)`` or ``Share(percent=2.0)``; exactly one is set."""

    count: int | None = None
    percent: float | None = None

    def of(self, total: int) -> int:
        """How many of ``total`` nodes: a count is at most all of them, a percentage is rounded down; at least 1."""
        if self.count is not None:
            return max(1, min(self.count, total))
        return max(1, int(total * (self.percent or 0.0) / 100))

    def __str__(self) -> str:
        return str(self.count) if self.count is not None else f"{self.percent:g} %"


class WaveKind(StrEnum):
    """How a wave picks its nodes from those not yet in an earlier wave."""

    CANARY = "canary"  # one node of each change group
    PER_RACK = "perRack"  # ``count`` nodes of each rack
    UP_TO = "upTo"  # until ``percent`` of all changed nodes are in this or an earlier wave
    REST = "rest"  # everything left


@dataclass(frozen=True, slots=True)
class WaveRule:
    kind: WaveKind
    count: int = 1
    percent: float = 100.0
    soak: float | None = None  # seconds; None: the playbook's soak


@dataclass(frozen=True, slots=True)
class Limits:
    """Never more than this at once. ``per_rack`` counts unavailable nodes; ``pace`` is restarts a second."""

    per_rack: Share = Share(percent=5.0)
    in_flight: int = 100
    pace: float = 10.0
    preflight: Share = Share(percent=5.0)  # nodes sick or unreadable before the run, of all selected


class Cause(StrEnum):
    """Why a node went wrong."""

    UNREACHABLE = "unreachable"
    FAILED = "failed"
    UNHEALTHY = "unhealthy"


class Scope(StrEnum):
    WAVE = "wave"
    RACK = "rack"
    FLEET = "fleet"


@dataclass(frozen=True, slots=True)
class Budget:
    """At most ``share`` of a scope's changed nodes may go wrong for these causes together; reaching it halts the run."""

    scope: Scope
    causes: frozenset[Cause]
    share: Share


ALL_CAUSES = frozenset(Cause)
DEFAULT_BUDGETS = (
    Budget(Scope.WAVE, ALL_CAUSES, Share(percent=2.0)),
    Budget(Scope.RACK, ALL_CAUSES, Share(count=2)),
    Budget(Scope.FLEET, ALL_CAUSES, Share(percent=1.0)),
)


class GateKind(StrEnum):
    UNIT = "unit"
    PROCESS = "process"
    HEALTHZ = "healthz"
    EFFECTIVE_CONFIG = "effectiveConfig"
    COMMAND = "command"


class GateScope(StrEnum):
    NODE = "node"  # before confirm, again in the soak; a command runs on the node
    WAVE = "wave"  # after the soak; a command runs where the controller runs


@dataclass(frozen=True, slots=True)
class Gate:
    """One thing that must hold. Only a ``command`` gate has a ``command`` (argument list) and a ``name`` of its own."""

    kind: GateKind
    scope: GateScope
    name: str
    command: tuple[str, ...] = ()
    timeout: float = 10.0


DEFAULT_GATES = tuple(
    Gate(kind, GateScope.NODE, kind.value)
    for kind in (GateKind.UNIT, GateKind.PROCESS, GateKind.HEALTHZ, GateKind.EFFECTIVE_CONFIG)
)


class RevertScope(StrEnum):
    """What is taken back when a run halts (a failed node always takes itself back)."""

    NODE = "node"
    WAVE = "wave"
    RUN = "run"


@dataclass(frozen=True, slots=True)
class Templates:
    """Template *texts*, by what they render; names are for messages."""

    kubelet_config: str
    kubelet_config_name: str
    flags_env: str
    flags_env_name: str
    drop_in: str
    drop_in_name: str


@dataclass(frozen=True, slots=True)
class Policy:
    """A validated playbook. ``digest`` is the SHA-256 over playbook and template texts."""

    name: str
    settings: Mapping[str, Setting]
    templates: Templates
    waves: tuple[WaveRule, ...]
    limits: Limits
    budgets: tuple[Budget, ...]
    gates: tuple[Gate, ...]
    on_failure: RevertScope
    soak: float
    passes: int  # K: consecutive rounds of the node gates that must pass over the soak
    guard: float
    keep: int  # copies kept on the node
    digest: str
