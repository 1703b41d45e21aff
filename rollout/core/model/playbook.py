"""The playbook as the rest of the program sees it: a validated, frozen policy. It is data, never code.

All durations are seconds. A ``Share`` is a count or a percentage of a scope's nodes, never less than one node.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from enum import StrEnum

from rollout.core.model.conditions import Condition
from rollout.core.model.frozen import dataclass
from rollout.core.model.gates import Gate
from rollout.core.model.settings import Setting

# What a change does to a node, from least to most. The playbook may cap it; the plan shows it.


class Disruption(StrEnum):
    """The class of a change: the most disruptive thing that it does."""

    NONE = "none"  # files that are reread without a restart (containerd's hosts.toml)
    RELOAD = "reload"  # a unit gets SIGHUP (dockerd's daemon.json)
    RESTART_RUNTIME = "restart-runtime"  # pulls in flight are cancelled, containers keep running
    RESTART_KUBELET = "restart-kubelet"
    DRAIN_AND_RESTART = "drain-and-restart"  # pods on the node would not survive it

    @property
    def rank(self) -> int:
        """0 for the least."""
        return list(Disruption).index(self)

    @property
    def restarts(self) -> bool:
        """Whether the kubelet or a runtime is restarted: pulls in flight are cancelled, and the node must settle."""
        return self.rank >= Disruption.RESTART_RUNTIME.rank


def worst(*classes: Disruption) -> Disruption:
    """The most disruptive of these; none at all is ``NONE``."""
    return max(classes, key=lambda each: each.rank, default=Disruption.NONE)


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


@dataclass(frozen=True, slots=True)
class SoakData:
    """What the changed nodes of a wave must have done since their change before its soak may end.

    ``pod_starts`` counts pods that started on them, ``pulls`` image pulls that succeeded, of all nodes together (0: none
    are demanded). Without them after ``within`` seconds the run halts.
    """

    pod_starts: int = 0
    within: float = 1800.0
    pulls: int = 0


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
    hold: bool = False  # once it has passed, wait for ``rollout continue``; its gates are still checked
    data: SoakData | None = None  # None: the playbook's


@dataclass(frozen=True, slots=True)
class Limits:
    """Never more than this at once. ``per_rack`` and ``per_zone`` count unavailable nodes; ``pace`` is restarts per second."""

    per_rack: Share = Share(percent=5.0)
    per_zone: Share | None = None
    in_flight: int = 100
    pace: float = 10.0
    preflight: Share = Share(percent=5.0)  # nodes unhealthy or unreadable before the run, of all selected


EMERGENCY_LIMITS = Limits(per_rack=Share(percent=50.0), in_flight=200, pace=30.0)
"""A rollback is fast: half a rack at a time, thirty restarts per second. No budget halts it; failures are reported."""


class Cause(StrEnum):
    """Why a node failed."""

    UNREACHABLE = "unreachable"
    FAILED = "failed"
    UNHEALTHY = "unhealthy"


class Scope(StrEnum):
    WAVE = "wave"
    RACK = "rack"
    FLEET = "fleet"


@dataclass(frozen=True, slots=True)
class Budget:
    """At most ``share`` of a scope's changed nodes may fail for these causes together; reaching it halts the run."""

    scope: Scope
    causes: frozenset[Cause]
    share: Share


ALL_CAUSES = frozenset(Cause)
DEFAULT_BUDGETS = (
    Budget(Scope.WAVE, ALL_CAUSES, Share(percent=2.0)),
    Budget(Scope.RACK, ALL_CAUSES, Share(count=2)),
    Budget(Scope.FLEET, ALL_CAUSES, Share(percent=1.0)),
)


class RevertScope(StrEnum):
    """Which nodes are reverted when a run halts. A failed node always reverts itself."""

    NODE = "node"
    WAVE = "wave"
    RUN = "run"


class OnLateHarm(StrEnum):
    """What happens if the gates of a run fail after its end."""

    NOTIFY = "notify"  # people are told
    ROLLBACK = "rollback"  # and the run is rolled back within its limits


@dataclass(frozen=True, slots=True)
class LateWatch:
    """For ``seconds`` after the end of a run, `rollout watch --late` asks its gates again."""

    seconds: float
    then: OnLateHarm = OnLateHarm.NOTIFY


class Busy(StrEnum):
    """What happens to a node with image pulls that do not end in time."""

    SKIP = "skip"  # it is left alone, with the images named
    OVERRIDE = "override"  # it is changed anyway; its pulls are cancelled


@dataclass(frozen=True, slots=True)
class PullsInFlight:
    """A restart cancels image pulls: a node that pulls is queued again and asked again for ``within`` seconds.

    ``within`` 0 with ``OVERRIDE`` does not ask at all.
    """

    within: float = 600.0
    then: Busy = Busy.SKIP


DEFAULT_PULLS = PullsInFlight()


class EvictToo(StrEnum):
    """Pods that an eviction loses for good: a node that has some is not drained unless the playbook names them."""

    BARE = "bare"  # nothing recreates it
    LOCAL = "local"  # the data in its emptyDir is lost with it


@dataclass(frozen=True, slots=True)
class Drain:
    """A node is drained first if its pods would not survive its change: they have ``within`` seconds to leave."""

    within: float = 900.0
    evict_too: frozenset[EvictToo] = frozenset()


DEFAULT_DRAIN = Drain()


class Shadowed(StrEnum):
    """What to do about a field that a flag on the node's command line beats with another value."""

    REFUSE = "refuse"
    MOVE = "move"  # the flag is removed from its file, the field is written


@dataclass(frozen=True, slots=True)
class RegistryCap:
    """The highest load that a plan may let the nodes of a scope put on one registry. ``None``: no cap.

    ``registry`` ``""``: each one; ``per_zone``: the cap holds for each zone, else for the fleet. ``qps`` is Σ registryPullQPS.
    """

    registry: str = ""
    per_zone: bool = False
    parallel_pulls: int | None = None
    qps: int | None = None


@dataclass(frozen=True, slots=True)
class Templates:
    """Template *texts*, by the file that they render; names are for messages."""

    kubelet_config: str
    kubelet_config_name: str
    flags_env: str
    flags_env_name: str
    drop_in: str
    drop_in_name: str


LOG_UNREADABLE = "log-unreadable"
"""The refusal of a node with an unreadable kubelet log: an ignored field would go unnoticed."""

GPU_LOST = "gpu-lost-at-reload"
"""The refusal of a node where the change itself may take GPUs from running containers."""

CONTAINERS_KILLED = "containers-killed"
"""The refusal of a node where the restart of a runtime, or of k3s or RKE2 with its runtime, would end running containers."""

ACCEPTED_BY_REFERENCE = (LOG_UNREADABLE, GPU_LOST, CONTAINERS_KILLED)
"""The refusals that ``accept`` names by their reference."""


@dataclass(frozen=True, slots=True)
class Policy:
    """A validated playbook. ``digest`` is the SHA-256 over playbook and template texts."""

    name: str
    settings: Mapping[str, Setting]
    templates: Templates
    waves: tuple[WaveRule, ...]
    limits: Limits
    budgets: tuple[Budget, ...]
    gates: tuple[Gate, ...]  # without those that are added if a kubeconfig is given
    on_failure: RevertScope
    soak: float
    passes: int  # K: consecutive rounds of the node gates that must pass over the soak
    guard: float
    keep: int  # copies kept on the node
    digest: str
    rehearsal: bool = True  # the first wave is reverted once for real, then changed again
    control_plane: bool = False  # whether control-plane nodes are changed too
    cordoned: bool = False  # whether nodes that others cordoned are changed too
    disruption: Disruption = Disruption.RESTART_KUBELET  # a node is refused if its change would do more
    drain: Drain = DEFAULT_DRAIN  # for ``drain-and-restart``
    pulls: PullsInFlight = DEFAULT_PULLS
    shadowed: Shadowed = Shadowed.REFUSE
    caps: tuple[RegistryCap, ...] = ()
    late: LateWatch | None = None  # None: nothing is asked after the end of a run
    data: SoakData | None = None  # None: a soak ends by time and gates alone
    conditions: tuple[Condition, ...] = ()  # what its plans must keep, one of a kind
    without: tuple[str, ...] = ()  # the gates that are on by default and that it switches off
    kubeadm_config_map: bool = False  # whether kubeadm's ConfigMap gets the settings too, for nodes that join later
    accepted: Mapping[str, str] = field(default_factory=dict)  # refusals to ignore: setting, file or reference → why


# The revert times that runs have measured, and the estimate for a whole fleet.


SETTLE = 5.0
"""Seconds for which a reverted node still counts as unavailable; then the next one takes its place."""


@dataclass(frozen=True, slots=True)
class RevertTimes:
    """Seconds to revert one node, the slowest of ``nodes`` reverted in ``run``; and to apply (0: not measured)."""

    run: str
    nodes: int
    apply_seconds: float
    revert_seconds: float


def seconds_to_revert(nodes: int, rounds: int, limits: Limits, each: float) -> float:
    """Seconds to revert ``nodes`` when one takes ``each`` seconds and their racks and zones allow them in ``rounds``.

    The longer of two times: the pace plus one node's own time, or rounds within the limits, each with the time to settle.
    """
    rounds = max(rounds, -(-nodes // limits.in_flight))
    return max(nodes / limits.pace + each, rounds * each + max(0, rounds - 1) * SETTLE)
