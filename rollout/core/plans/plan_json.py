"""``rollout plan -o json``: the plan's summary for programs. The plan file itself holds the bytes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import make_dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

from rollout.core.model.conditions import Condition, of_kind
from rollout.core.model.conditions import known as known_conditions
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
    Standing,
    Sum,
    Wave,
)
from rollout.core.model.playbook import (
    Budget,
    Disruption,
    Drain,
    LateWatch,
    Limits,
    PullsInFlight,
    RevertScope,
    SoakData,
)
from rollout.core.plans import estimate, plan_codec
from rollout.core.plans.plan_text import folded_left
from rollout.core.plans.smallest_harm import SmallestHarm, smallest_harms
from rollout.core.text import diff, nodesets
from rollout.core.text.documents import Inline, PrintedKey, Shown


@dataclass(frozen=True, slots=True)
class FilePart:
    """One file of a change. ``before`` and ``after`` are hex SHA-256; ``before`` ``None``: the file does not exist yet."""

    path: str
    before: str | None
    after: str
    reasons: tuple[str, ...]
    diff: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class NodesPart:
    """A stable reference with its text, and the nodes (a nodeset) that it is about."""

    reference: str
    text: str
    count: int
    nodes: str


@dataclass(frozen=True, slots=True)
class GroupPart:
    """Nodes that get the same change. ``hangups`` are units that get SIGHUP before any restart.

    For ``settle_seconds`` after the restart a node counts as unavailable.
    """

    name: str
    label: str
    count: int
    nodes: str
    files: tuple[FilePart, ...]
    units: tuple[str, ...]
    reload: bool
    disruption: Disruption
    hangups: tuple[str, ...]
    consequences: tuple[NodesPart, ...]
    arguments: tuple[str, ...]
    settle_seconds: float
    notes: tuple[str, ...]


_SHOWN_DATA = Shown(
    "So many pods must start, and image pulls succeed, on the nodes of a wave within this time, or the run halts.\n\n0: none are demanded.",
    ("pod_starts", "pulls", PrintedKey("within", "within_seconds")),
)


@dataclass(frozen=True, slots=True)
class WavePart:
    """``at_once``: most nodes of it in flight; 0: no limit of its own. ``seconds``: its expected length.

    ``must_have_data``: what its nodes must have done before its soak ends. ``smallest_harms``: what each gate could see.
    """

    name: str
    count: int
    nodes: str
    soak_seconds: float
    hold: bool
    at_once: int
    seconds: float
    must_have_data: Annotated[SoakData, _SHOWN_DATA] | None
    smallest_harms: tuple[SmallestHarm, ...]


@dataclass(frozen=True, slots=True)
class LeftPart:
    """Selected nodes that the plan leaves alone."""

    standing: Standing
    reference: str
    reason: str
    count: int
    nodes: str


_SHOWN_DRAIN = Shown(
    "How long drained nodes have, and the kinds of pods that are evicted although that loses them.",
    (PrintedKey("within", "within_seconds"), "evict_too"),
)


@dataclass(frozen=True, slots=True)
class DrainedPart:
    """``seconds`` is ``None`` where the ``slowest`` pod has no bound; ``kubelet`` is the version that this is for."""

    node: str
    pods: int
    slowest: str
    seconds: float | None
    why: str
    kubelet: str


@dataclass(frozen=True, slots=True)
class StepPart:
    """A sum over nodes, before the plan and after it."""

    before: Sum
    after: Sum


@dataclass(frozen=True, slots=True)
class RegistryPart:
    """``registry`` is ``None`` for any registry, ``zone`` for the whole fleet; ``unbounded`` counts nodes without a bound."""

    registry: str | None
    zone: str | None
    nodes: int
    unknown: int
    parallel_pulls: StepPart
    qps: StepPart


_SHOWN_LIMITS = Shown("``pace``: restarts per second.", ("in_flight", "pace", "per_rack", "per_zone", "preflight"))


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


if TYPE_CHECKING:

    class ConditionsPart:
        """A list for each kind of condition."""

        def __init__(self, *of_each_kind: tuple[Condition, ...]) -> None: ...

else:
    ConditionsPart = make_dataclass(
        "ConditionsPart", [(kind.key, tuple[kind, ...]) for kind in known_conditions().kinds]
    )


_SHOWN_PULLS = Shown(
    "How long a node waits for its image pulls, and what happens ``then``.",
    (PrintedKey("within", "within_seconds"), "then"),
)


@dataclass(frozen=True, slots=True)
class PlanDocument:
    """The plan that was written to ``file``. ``changed`` counts its nodes, ``seconds`` is its expected length.

    ``limit`` is the nodeset expression that selected the nodes; ``""``: all. ``left``: nodes that it leaves alone.
    """

    file: str
    digest: str
    cluster: str
    playbook: str
    taken: str
    limit: str
    changed: int
    seconds: float
    groups: tuple[GroupPart, ...]
    waves: tuple[WavePart, ...]
    left: tuple[LeftPart, ...]
    remarks: tuple[NodesPart, ...]
    drain: Annotated[Drain, _SHOWN_DRAIN]
    drained: tuple[DrainedPart, ...]
    registries: tuple[RegistryPart, ...]
    limits: Annotated[Limits, _SHOWN_LIMITS]
    budgets: tuple[Budget, ...]
    gates: tuple[GatePart, ...]
    guard_seconds: float
    pulls_in_flight: Annotated[PullsInFlight, _SHOWN_PULLS]
    rehearsal: bool
    on_failure: RevertScope
    conditions: Inline[ConditionsPart]
    late: LateWatch | None


def plan_json(plan: Plan, file: str) -> PlanDocument:
    """``file`` is where the plan was written. Secrets in diffs are redacted as in the text."""
    members: dict[str, list[str]] = {group.name: [] for group in plan.groups}
    for node in plan.nodes.values():
        members[node.group].append(node.name)
    return PlanDocument(
        file=file,
        digest=plan_codec.digest(plan),
        cluster=plan.cluster,
        playbook=plan.playbook,
        taken=plan.taken,
        limit=plan.limit,
        changed=len(plan.nodes),
        seconds=estimate.total(plan),
        groups=tuple(_group(plan, group, members[group.name]) for group in plan.groups),
        waves=tuple(_wave(plan, wave) for wave in plan.waves),
        left=tuple(_left(entry, names) for entry, names in folded_left(plan)),
        remarks=tuple(_remark(remark) for remark in plan.remarks),
        drain=plan.drain,
        drained=tuple(_drained(node.name, node.drain) for node in plan.nodes.values() if node.drain),
        registries=tuple(_registry_load(load) for load in plan.loads),
        limits=plan.limits,
        budgets=plan.budgets,
        gates=tuple(_gate(gate) for gate in plan.gates),
        guard_seconds=plan.guard,
        pulls_in_flight=plan.pulls,
        rehearsal=plan.rehearsal,
        on_failure=plan.on_failure,
        conditions=ConditionsPart(*(of_kind(plan.conditions, kind) for kind in known_conditions().kinds)),
        late=plan.late,
    )


def _wave(plan: Plan, wave: Wave) -> WavePart:
    return WavePart(
        name=wave.name,
        count=len(wave.nodes),
        nodes=nodesets.fold(wave.nodes),
        soak_seconds=wave.soak,
        hold=wave.hold,
        at_once=wave.at_once,
        seconds=estimate.of_wave(plan, wave),
        must_have_data=wave.data,
        smallest_harms=smallest_harms(plan, wave),
    )


def _left(entry: ExcludedNode, names: Sequence[str]) -> LeftPart:
    return LeftPart(entry.standing, entry.reference, entry.reason, len(names), nodesets.fold(names))


def _remark(remark: Remark) -> NodesPart:
    return NodesPart(remark.reference, remark.text, len(remark.nodes), nodesets.fold(remark.nodes))


def _drained(name: str, drain: PlannedDrain) -> DrainedPart:
    return DrainedPart(name, drain.pods, drain.pod, drain.seconds, drain.why, f"1.{drain.minor}")


def _gate(gate: Gate) -> GatePart:
    return GatePart(gate.name, GateKind(gate.kind), gate.scope)


def _group(plan: Plan, group: ChangeGroup, names: list[str]) -> GroupPart:
    change = group.change
    return GroupPart(
        name=group.name,
        label=group.label,
        count=len(names),
        nodes=nodesets.fold(names),
        files=tuple(_file(file) for file in change.files),
        units=change.units,
        reload=change.reload,
        disruption=change.disruption,
        hangups=change.hangups,
        consequences=tuple(_consequence(each, names) for each in plan.consequences if each.group == group.name),
        arguments=tuple(diff.redacted(argument) for argument in change.arguments),
        settle_seconds=change.settle,
        notes=change.notes,
    )


def _consequence(found: Consequence, members: list[str]) -> NodesPart:
    names = list(found.nodes) or members
    return NodesPart(found.reference, found.text, len(names), nodesets.fold(names))


def _registry_load(load: RegistryLoad) -> RegistryPart:
    return RegistryPart(
        registry=load.registry or None,
        zone=load.zone or None,
        nodes=load.nodes,
        unknown=load.unknown,
        parallel_pulls=StepPart(load.parallel_before, load.parallel_after),
        qps=StepPart(load.qps_before, load.qps_after),
    )


def _file(file: FileChange) -> FilePart:
    return FilePart(
        path=file.path,
        before=file.digest_before or None,
        after=file.digest_after,
        reasons=file.reasons,
        diff=tuple(diff.unified(file.before, file.after, file.path)),
    )
