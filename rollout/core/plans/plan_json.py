"""``rollout plan -o json``: the plan's summary for programs. The plan file itself holds the bytes."""

from __future__ import annotations

from dataclasses import replace
from enum import StrEnum
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

from rollout.core.model.conditions import known as known_conditions
from rollout.core.model.conditions import of_kind
from rollout.core.model.config_map import ConfigMapChange
from rollout.core.model.frozen import dataclass
from rollout.core.model.gate_kinds import known
from rollout.core.model.gates import Gate, GateScope
from rollout.core.model.plan import (
    ChangeGroup,
    Consequence,
    ExcludedNode,
    FileChange,
    Plan,
    PlannedDrain,
    RegistryLoad,
    Remark,
    Sum,
    Wave,
)
from rollout.core.model.playbook import Drain, Limits, PullsInFlight, SoakData
from rollout.core.plans import estimate, plan_codec
from rollout.core.plans.change_text import config_map_diff
from rollout.core.plans.plan_text import folded_left
from rollout.core.plans.smallest_harm import SmallestHarm, smallest_harms
from rollout.core.text import diff
from rollout.core.text.documents import Inline, PrintedKey, Shown
from rollout.core.text.nodesets import fold

_NODES = (PrintedKey("nodes", "count", write=len, kind=int), PrintedKey("nodes", write=fold))

# The parts of a plan that stand for themselves.

_SHOWN_REMARK = Shown(
    "A stable reference with its text, and the nodes (a nodeset) that it is about.", ("reference", "text", *_NODES)
)

_SHOWN_DATA = Shown(
    "So many pods must start, and image pulls succeed, on the nodes of a wave within this time, or the run halts.\n\n0: none are demanded.",
    ("pod_starts", "pulls", PrintedKey("within", "within_seconds")),
)

_SHOWN_DRAIN = Shown(
    "How long drained nodes have, and the kinds of pods that are evicted although that loses them.",
    (PrintedKey("within", "within_seconds"), "evict_too"),
)

_SHOWN_LIMITS = Shown("``pace``: restarts per second.", ("in_flight", "pace", "per_rack", "per_zone", "preflight"))

_SHOWN_PULLS = Shown(
    "How long a node waits for its image pulls, and what happens ``then``.",
    (PrintedKey("within", "within_seconds"), "then"),
)


@dataclass(frozen=True, slots=True)
class StepPart:
    """A sum over nodes, before the plan and after it."""

    before: Sum
    after: Sum


def _parallel(load: RegistryLoad) -> StepPart:
    return StepPart(load.parallel_before, load.parallel_after)


def _qps(load: RegistryLoad) -> StepPart:
    return StepPart(load.qps_before, load.qps_after)


_SHOWN_LOAD = Shown(
    "``registry`` is ``None`` for any registry, ``zone`` for the whole fleet; ``unbounded`` counts nodes without a bound.",
    (
        PrintedKey("registry", or_null=True), PrintedKey("zone", or_null=True), "nodes", "unknown",
        PrintedKey("", "parallel_pulls", write=_parallel), PrintedKey("", "qps", write=_qps),
    ),
)  # fmt: skip

if TYPE_CHECKING:

    class GateKind(StrEnum):
        """The kinds that ``rollout.gates.table`` lists."""

else:
    GateKind = StrEnum("GateKind", [(kind, kind) for kind in known().queries])


@dataclass(frozen=True, slots=True)
class GatePart:
    name: str
    kind: GateKind
    scope: GateScope


def _diff(file: FileChange) -> tuple[str, ...]:
    return tuple(diff.unified(file.before, file.after, file.path))


_SHOWN_FILE = Shown(
    "One file of a change. ``before`` and ``after`` are hex SHA-256; ``before`` ``None``: the file does not exist yet.",
    (
        "path", PrintedKey("digest_before", "before", or_null=True), PrintedKey("digest_after", "after"), "reasons",
        PrintedKey("", "diff", write=_diff),
    ),
)  # fmt: skip


def _config_map_diff(change: ConfigMapChange) -> tuple[str, ...]:
    return config_map_diff(change)


_SHOWN_CONFIG_MAP = Shown(
    "kubeadm's ConfigMap, which is written after the last wave. ``before`` and ``after`` are hex SHA-256 of the text of ``key``.",
    (
        "namespace", "name", "key", "uid", PrintedKey("digest_before", "before"), PrintedKey("digest_after", "after"),
        PrintedKey("", "diff", write=_config_map_diff),
    ),
)  # fmt: skip

# The parts of a plan that need the rest of it.


@dataclass(frozen=True, slots=True)
class GroupOfPlan:
    """``nodes``: its members."""

    plan: Plan
    group: ChangeGroup
    nodes: tuple[str, ...]


def _consequences(of: GroupOfPlan) -> tuple[Annotated[Consequence, _SHOWN_REMARK], ...]:
    of_group = (each for each in of.plan.consequences if each.group == of.group.name)
    return tuple(replace(each, nodes=each.nodes or of.nodes) for each in of_group)


def _redacted(arguments: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(diff.redacted(argument) for argument in arguments)


_SHOWN_GROUP = Shown(
    """Nodes that get the same change. ``hangups`` are units that get SIGHUP before any restart.

For ``settle_seconds`` after the restart a node counts as unavailable.""",
    (
        "group.name", "group.label", *_NODES, PrintedKey("group.change.files", kind=tuple[Annotated[FileChange, _SHOWN_FILE], ...]),
        "group.change.units", "group.change.reload", "group.change.disruption", "group.change.hangups",
        PrintedKey("", "consequences", write=_consequences), PrintedKey("group.change.arguments", write=_redacted),
        PrintedKey("group.change.settle", "settle_seconds"), "group.change.notes",
    ),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class WaveOfPlan:
    plan: Plan
    wave: Wave

    @property
    def nodes(self) -> tuple[str, ...]:
        return self.wave.nodes

    @property
    def seconds(self) -> float:
        return estimate.of_wave(self.plan, self.wave)

    @property
    def smallest_harms(self) -> tuple[SmallestHarm, ...]:
        return smallest_harms(self.plan, self.wave)


_SHOWN_WAVE = Shown(
    """``at_once``: most nodes of it in flight; 0: no limit of its own. ``seconds``: its expected length.

``must_have_data``: what its nodes must have done before its soak ends. ``smallest_harms``: what each gate could see.""",
    (
        "wave.name", *_NODES, PrintedKey("wave.soak", "soak_seconds"), "wave.hold", "wave.at_once", "seconds",
        PrintedKey("wave.data", "must_have_data", kind=Annotated[SoakData, _SHOWN_DATA] | None), "smallest_harms",
    ),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class LeftPart:
    """Selected nodes that the plan leaves alone."""

    entry: Inline[Annotated[ExcludedNode, Shown("", ("standing", "reference", "reason"))]]
    count: int
    nodes: str


def _version(minor: int) -> str:
    return f"1.{minor}"


@dataclass(frozen=True, slots=True)
class DrainedPart:
    """``seconds`` is ``None`` where the ``slowest`` pod has no bound; ``kubelet`` is the version that this is for."""

    node: str
    drain: Inline[
        Annotated[
            PlannedDrain,
            Shown(
                "",
                (
                    "pods",
                    PrintedKey("pod", "slowest"),
                    "seconds",
                    "why",
                    PrintedKey("minor", "kubelet", write=_version),
                ),
            ),
        ]
    ]


def _groups(plan: Plan) -> tuple[Annotated[GroupOfPlan, _SHOWN_GROUP], ...]:
    members: dict[str, list[str]] = {group.name: [] for group in plan.groups}
    for node in plan.nodes.values():
        members[node.group].append(node.name)
    return tuple(GroupOfPlan(plan, group, tuple(members[group.name])) for group in plan.groups)


def _gates(gates: tuple[Gate, ...]) -> tuple[GatePart, ...]:
    return tuple(GatePart(gate.name, GateKind(gate.kind), gate.scope) for gate in gates)


def _waves(plan: Plan) -> tuple[Annotated[WaveOfPlan, _SHOWN_WAVE], ...]:
    return tuple(WaveOfPlan(plan, wave) for wave in plan.waves)


def _left(plan: Plan) -> tuple[LeftPart, ...]:
    return tuple(LeftPart(entry, len(names), fold(names)) for entry, names in folded_left(plan))


def _drained(plan: Plan) -> tuple[DrainedPart, ...]:
    return tuple(DrainedPart(node.name, node.drain) for node in plan.nodes.values() if node.drain)


def _conditions(kind: Any) -> PrintedKey:
    """Each kind has a list of its own."""
    return PrintedKey("conditions", kind.key, write=partial(of_kind, kind=kind), kind=tuple[kind, ...])


_SHOWN_PLAN = Shown(
    "",
    (
        PrintedKey("", "digest", write=plan_codec.digest), "cluster", "playbook", "taken", "limit",
        PrintedKey("nodes", "changed", write=len, kind=int), PrintedKey("", "seconds", write=estimate.total),
        PrintedKey("", "groups", write=_groups), PrintedKey("", "waves", write=_waves), PrintedKey("", "left", write=_left),
        PrintedKey("remarks", kind=tuple[Annotated[Remark, _SHOWN_REMARK], ...]),
        PrintedKey("drain", kind=Annotated[Drain, _SHOWN_DRAIN]), PrintedKey("", "drained", write=_drained),
        PrintedKey("loads", "registries", kind=tuple[Annotated[RegistryLoad, _SHOWN_LOAD], ...]),
        PrintedKey("limits", kind=Annotated[Limits, _SHOWN_LIMITS]), "budgets",
        PrintedKey("gates", write=_gates), PrintedKey("guard", "guard_seconds"),
        PrintedKey("pulls", "pulls_in_flight", kind=Annotated[PullsInFlight, _SHOWN_PULLS]),
        "rehearsal", "on_failure", PrintedKey("config_map", kind=Annotated[ConfigMapChange, _SHOWN_CONFIG_MAP] | None), *map(_conditions, known_conditions().kinds), "late",
    ),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class PlanDocument:
    """The plan that was written to ``file`` (``""``: none was, see ``left``). ``changed`` counts its nodes, ``seconds`` is its expected length.

    ``limit`` is the nodeset expression that selected the nodes; ``""``: all. ``left``: nodes that it leaves alone.
    """

    file: str
    plan: Inline[Annotated[Plan, _SHOWN_PLAN]]
