"""The plan: frozen, saved, hashed. Apply runs this object and nothing else.

Nodes with the same change share one ``ChangeGroup``: 2,000 nodes become a few groups. ``plans.plan_codec`` is its form on disk.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from enum import StrEnum

from rollout.core.model.conditions import Condition
from rollout.core.model.config_map import ConfigMapChange
from rollout.core.model.frozen import dataclass
from rollout.core.model.gates import Gate
from rollout.core.model.playbook import (
    DEFAULT_DRAIN,
    DEFAULT_PULLS,
    Budget,
    Disruption,
    Drain,
    LateWatch,
    Limits,
    PullsInFlight,
    RevertScope,
    RevertTimes,
    SoakData,
)
from rollout.core.model.settings import IfUnsupported
from rollout.core.model.snapshot import digest


@dataclass(frozen=True, slots=True)
class PullRate:
    """The pull limits of one node's kubelet. ``None``: no bound. ``burst`` counts only together with a ``qps``."""

    parallel: int | None  # pulls at once
    qps: int | None  # pulls started per second
    burst: int = 10


@dataclass(frozen=True, slots=True)
class Sum:
    """A sum over many nodes: the total of those with a bound, and how many have none."""

    total: int
    unbounded: int

    def beyond(self, most: int) -> bool:
        return self.unbounded > 0 or self.total > most

    def more_than(self, other: Sum) -> bool:
        """Whether it is higher: no bound is more than any number."""
        return (self.unbounded, self.total) > (other.unbounded, other.total)


@dataclass(frozen=True, slots=True)
class RegistryLoad:
    """One registry (``""``: any registry) and one zone (``""``: the fleet), before the plan and after it.

    ``nodes`` counts nodes with known values, ``unknown`` those that were not read or not understood.
    """

    registry: str
    zone: str
    nodes: int
    unknown: int
    parallel_before: Sum
    parallel_after: Sum
    qps_before: Sum
    qps_after: Sum


MODE = "644"
"""The mode of a file that a change makes; an existing file keeps its own."""


@dataclass(frozen=True, slots=True)
class FileChange:
    """One file's exact bytes before and after: as edited, planned, shown, and written in the line that the agent reads.

    The two are the same where a change only restarts.
    """

    path: str
    before: bytes | None  # None: it does not exist yet
    after: bytes
    reasons: tuple[str, ...] = ()
    mode: str = MODE  # octal, used only when the file is made

    @property
    def digest_before(self) -> str:
        """Hex SHA-256; ``""``: absent."""
        return "" if self.before is None else digest(self.before)

    @property
    def digest_after(self) -> str:
        return digest(self.after)

    def __repr__(self) -> str:
        """With digests: the contents can hold credentials."""
        before, after = self.digest_before, self.digest_after
        return f"FileChange(path={self.path!r}, {before=}, {after=}, mode={self.mode!r}, reasons={self.reasons!r})"


@dataclass(frozen=True, slots=True)
class Change:
    """What happens to a node: files in order, units to restart in order, and the checks afterwards.

    The runtime's and the kubelet's part of it are of this type too. Without files, units and hangups nothing is done.
    """

    files: tuple[FileChange, ...] = ()
    units: tuple[str, ...] = ()  # restarted in this order
    reload: bool = False  # systemctl daemon-reload first: a unit file or drop-in changes
    disruption: Disruption = Disruption.NONE
    arguments: tuple[str, ...] = ()  # arguments the kubelet's command line must have afterwards, e.g. "--config=/…"
    config_path: str = ""  # the --config file; the effective-config gate compares its digest; "" if none
    healthz_port: int = 0  # 0 = off
    settle: float = 0.0  # seconds after the restart during which the node counts as unavailable (readiness flap)
    notes: tuple[str, ...] = ()  # e.g. "maxParallelImagePulls skipped: the field exists from 1.27"
    hangups: tuple[str, ...] = ()  # units; their main process gets SIGHUP, before any restart
    effective: tuple[tuple[str, str], ...] = ()  # (field, its value as /configz will show it, canonical JSON)
    log_unread: bool = False  # a kubelet with an unreadable log may pass: the playbook accepts it


@dataclass(frozen=True, slots=True)
class ChangeGroup:
    """Nodes of one kubelet version × runtime × layout that get the same change. ``label`` is for people."""

    name: str  # "g1", "g2" … in order of size
    label: str  # e.g. "kubelet 1.20.15, dockershim, kubeadm layout"
    change: Change


def kind_of(label: str, change: Change) -> str:
    """What a canary represents: nodes are of one kind if their changes differ only in bytes that rollout does not change."""
    files = ((file.path, file.before is None, file.reasons) for file in change.files)
    return repr((label, tuple(files), change.units, change.notes))


@dataclass(frozen=True, slots=True)
class PlannedDrain:
    """A node to drain before its change: ``pods`` must go, and ``pod`` may take the longest.

    ``seconds`` is how long it may take on a kubelet of this ``minor`` (``None``: no bound); ``why`` is the reason.
    """

    pods: int
    pod: str
    seconds: float | None
    why: str
    minor: int


@dataclass(frozen=True, slots=True)
class LessRoom:
    """The room that a node's kubelet (of 1.``minor``) takes from its pods, so that pods that came since the plan may not fit.

    ``pods`` is the new limit of pods (``None``: unchanged); ``cpu`` (thousandths), ``memory`` and ``storage`` (bytes) are
    additional reservations, negative if it reserves less.
    """

    minor: int
    pods: int | None
    cpu: int
    memory: int
    storage: int


@dataclass(frozen=True, slots=True)
class PlannedNode:
    """One node that will be changed. ``machine_id`` and the file digests are compared on the node before the write.

    ``jumps`` are the bastions on the way to it (``None``: not known where the plan was made). ``settings`` is a digest of the
    settings that the inventory gave to it (``None``: the plan of a version that did not record it).
    ``drain`` is ``None`` if its pods stay; ``less_room`` is ``None`` if all pods that fit before fit after.
    """

    name: str
    address: str
    rack: str
    zone: str
    group: str  # ChangeGroup.name
    wave: int  # index into Plan.waves
    machine_id: str
    user: str | None = None
    port: int | None = None
    drain: PlannedDrain | None = None
    less_room: LessRoom | None = None
    jumps: tuple[str, ...] | None = None
    settings: str | None = None


@dataclass(frozen=True, slots=True)
class WantedSetting:
    """A value that a plan wants on the nodes of ``selection``, a nodeset expression (``""``: all nodes of the cluster).

    ``value`` is canonical JSON. Of two entries for one setting and node the later one counts. The expression names a group of the
    inventory where one gave the value, so it means nodes that join the group later, too.
    """

    name: str
    value: str
    selection: str
    if_unsupported: IfUnsupported = IfUnsupported.REFUSE
    pin: bool = False


class Standing(StrEnum):
    """Why a selected node is not in the waves."""

    AS_WANTED = "as-wanted"
    SKIPPED = "skipped"  # left alone on purpose: control plane, cordoned by others
    REFUSED = "refused"
    UNREACHABLE = "unreachable"


@dataclass(frozen=True, slots=True)
class ExcludedNode:
    """A selected node that this plan leaves alone, with a stable reference and the reason."""

    name: str
    rack: str
    standing: Standing
    reference: str
    reason: str


@dataclass(frozen=True, slots=True)
class Remark:
    """A warning about nodes before they are changed: new, replaced, also managed by another configuration manager."""

    reference: str
    text: str
    nodes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Consequence:
    """A side effect of a group's change. ``nodes`` are the nodes it was predicted for; ``()``: all."""

    group: str  # ChangeGroup.name
    reference: str
    text: str
    nodes: tuple[str, ...] = ()


CONTROL_PLANE_WAVE = "control plane"


@dataclass(frozen=True, slots=True)
class Wave:
    """Nodes that are changed together: in a plan, and in the order of a run."""

    name: str  # "canary", "1 per rack", "5 %", "25 %", "rest", "devices", "control plane"; of a revert: "rollback"
    nodes: tuple[str, ...]  # in the order of release
    soak: float  # seconds
    hold: bool = False  # wait for `rollout continue` once it has passed
    at_once: int = 0  # most nodes of it in flight; 0: no limit of its own
    data: SoakData | None = (
        None  # what its nodes must have done before its soak ends; None: it ends by time and gates alone
    )


@dataclass(frozen=True, slots=True)
class Plan:
    """See the module. ``counter`` is the highest token counter seen in the snapshot; ``cordoned``: nodes that others have
    cordoned are changed, too.
    """

    cluster: str
    playbook: str
    inventory_digest: str
    playbook_digest: str
    taken: str  # the snapshot's wall time
    counter: int
    limit: str  # the nodeset expression that selected the nodes; "" = all
    groups: tuple[ChangeGroup, ...]
    nodes: Mapping[str, PlannedNode]
    left: tuple[ExcludedNode, ...]
    waves: tuple[Wave, ...]
    racks: Mapping[str, int]  # rack → its nodes in the inventory (the base of a per-rack share)
    limits: Limits
    budgets: tuple[Budget, ...]
    gates: tuple[Gate, ...]
    on_failure: RevertScope
    passes: int
    guard: float
    keep: int
    rehearsal: bool = True
    zones: Mapping[str, int] = field(default_factory=dict)  # zone → its nodes in the inventory
    remarks: tuple[Remark, ...] = ()
    way_back: RevertTimes | None = None  # the times that the last run measured to change and revert a node
    pulls: PullsInFlight = DEFAULT_PULLS
    drain: Drain = DEFAULT_DRAIN
    cordoned: bool = False
    consequences: tuple[Consequence, ...] = ()
    loads: tuple[RegistryLoad, ...] = ()
    late: LateWatch | None = None  # None: nothing is asked after the end of its run
    conditions: tuple[Condition, ...] = ()  # of playbook and inventory: each must be kept
    config_map: ConfigMapChange | None = None  # written after the last wave: nodes that join later read it
    wanted: tuple[WantedSetting, ...] = ()  # in order of precedence; (): its version did not record it

    @property
    def has_work(self) -> bool:
        """Whether a run of it changes anything: a node, or the ConfigMap for those that join later."""
        return bool(self.nodes) or self.config_map is not None

    @property
    def left_out(self) -> tuple[ExcludedNode, ...]:
        """Nodes that could not be read or planned although they were selected."""
        return tuple(entry for entry in self.left if entry.standing in (Standing.REFUSED, Standing.UNREACHABLE))
