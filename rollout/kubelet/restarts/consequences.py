"""The side effects of a change on a node, as known of kubelets and runtimes of its version.

A restart alone keeps containers: the runtime owns them. Its other effects are listed here, each with its reference:

=========================  ============================================================================================
readiness-flap             up to 1.34 pods with a readiness probe are NotReady until it has passed again (kubernetes
                           #78733; from 1.35 on readiness is kept, gate ChangeContainerStatusOnKubeletRestart)
not-ready-flip             up to 1.30 the Node can be NotReady until its next status update (#122338)
pulls-cancelled            the end of the kubelet or the runtime cancels image pulls in progress; complete layers stay
back-offs-emptied          back-offs and the pull queue are in memory: everything that waits is pulled at once
sessions-break             exec, attach, logs -f and port-forward go through the kubelet
devices-register-again     device plugins must register again; pods that need one can be rejected meanwhile (#133382)
containers-restart         the kubelet on disk has another minor than the running one: containers with another hash
                           are killed and started again (1.31 hashes name and image only: #129385, #124220)
pull-qps                   pulls that would fail by the kubelet's own limit, see ``would_fail``
pods-keep-values           how many pods keep what they have of a setting that only later pods get
pods-rejected              pods that would not be admitted again, see ``readmission``
daemon-reload, gpu-lost-at-reload, containers-killed: see ``mechanics``
known-defect               a defect of this exact version that the change triggers, see ``rollout.kubelet.defects``
known-defects-kept         defects that stay, that may apply, and that no longer apply afterwards, a line each
=========================  ============================================================================================
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from rollout.core.model.frozen import dataclass
from rollout.core.model.inventory import Node, Role
from rollout.core.model.live import LiveNode
from rollout.core.model.plan import Change, PullRate
from rollout.core.model.playbook import GPU_LOST
from rollout.core.model.settings import Value
from rollout.core.model.snapshot import Snapshot
from rollout.core.text.terminal import counted
from rollout.kubelet import fields, versions
from rollout.kubelet.defects import matching
from rollout.kubelet.defects.matching import FoundDefect
from rollout.kubelet.defects.rows import PodKind
from rollout.kubelet.defects.words import on_plan
from rollout.kubelet.node import sources
from rollout.kubelet.node.layout import KUBELET_UNITS, LayoutError
from rollout.kubelet.restarts.mechanics import RELOAD, Harm, device_names, reload_text
from rollout.kubelet.restarts.readmission import CHECKS_HEALTH, Rejected, listed
from rollout.kubelet.values import whole_number

Said = tuple[str, str]
"""A reference and one line of text."""

READINESS_KEPT = 35
READY_KEPT = 31
HASH_OF_NAME_AND_IMAGE = 31
GPU_DEFECT, INIT_DEFECT = "nvidia-devices-lost-at-reload", "kubelet-init-devices-rejected"
"""The known defects that ``mechanics`` and ``readmission`` compute with what was seen on the node."""


@dataclass(frozen=True, slots=True)
class NodeImpact:
    """One node to be changed, and the API server's answer about it; ``None``: the API server was not asked.

    ``minor`` is that of the kubelet with the rules that apply; ``lost`` are the pods that would not survive the
    restart.
    """

    snapshot: Snapshot
    change: Change
    minor: int
    role: Role
    live: LiveNode | None = None
    probed: int | None = None  # pods with a readiness probe
    lost: tuple[Rejected, ...] | None = None
    fails: str = ""  # why pulls can fail by the kubelet's own limit
    defects: tuple[FoundDefect, ...] = ()
    running: int | None = None  # pods on it
    late: tuple[str, ...] = ()  # changed settings that only pods get that are created later
    sidecars: int | None = None  # pods with a restartable init container
    harms: tuple[Harm, ...] = ()  # what the change does to running containers
    with_devices: tuple[str, ...] = ()  # pods that have one, as far as the API server was asked

    @property
    def has_devices(self) -> bool | None:
        """Whether pods can have devices of it; ``None``: the API server was not asked."""
        if self.role is Role.DEVICES:
            return True
        return None if self.live is None else bool(device_names(self.live.capacity) or self.with_devices)

    @property
    def takes_devices(self) -> bool:
        """Whether the change itself may take devices from running containers: the plan has a wave for such nodes."""
        return any(each.takes_devices for each in self.harms)

    @property
    def pods(self) -> Mapping[PodKind, bool | None]:
        """Which kinds of pods it has, as far as that is known."""
        counts = {PodKind.PROBED: self.probed, PodKind.SIDECAR: self.sidecars}
        known = {kind: None if count is None else count > 0 for kind, count in counts.items()}
        return {**known, PodKind.DEVICES: self.has_devices}

    @property
    def pulls_cancelled(self) -> tuple[str, ...]:
        """The images that were being pulled when the node was read, if the change cancels the pulls."""
        return (self.snapshot.measurement.pulls or ()) if self.change.disruption.restarts else ()


def settle(minor: int) -> float:
    """Seconds for which a restarted node counts as unavailable, by the known behaviour of its version."""
    return 20.0 if minor < READY_KEPT else 10.0 if minor < READINESS_KEPT else 0.0


def of_node(here: NodeImpact) -> Iterator[Said]:
    """The effects that are the same on similar nodes: without names or numbers of this node."""
    if here.fails:
        yield "pull-qps", here.fails
    yield from ((harm.name, harm.text) for harm in here.harms)
    if reload := reload_text(here.change):
        yield RELOAD, reload
    if not KUBELET_UNITS.isdisjoint(here.change.units):
        yield from _of_version(here)
        yield (
            "back-offs-emptied",
            "image and crash back-offs are reset: all waiting images are pulled at once, within the kubelet's limits",
        )
        yield "sessions-break", "exec, attach, logs -f and port-forward through this kubelet end"
        if here.has_devices:
            text = "device plugins register again; a pod that needs a device can be rejected meanwhile (kubernetes #133382)"
            yield "devices-register-again", text
        yield from _containers(here)
    computed = _computed(here)
    defects = (each for each in here.defects if each.defect.id not in computed)
    yield from on_plan(matching.with_pods(defects, here.pods))


def _computed(here: NodeImpact) -> frozenset[str]:
    """The known defects that are looked for on the node itself, with its pods and devices."""
    reload = {GPU_DEFECT} if any(harm.name == GPU_LOST for harm in here.harms) else set()
    return frozenset(reload | ({INIT_DEFECT} if here.lost is not None and here.minor >= CHECKS_HEALTH else set()))


def _of_version(here: NodeImpact) -> Iterator[Said]:
    if here.minor < READINESS_KEPT and here.probed != 0:
        many = "" if here.probed is None else ", where there are any"
        text = (
            f"pods with a readiness probe{many} are NotReady until the probe passes again (kubernetes #78733); the node counts"
            f" as unavailable for {settle(here.minor):g} s"
        )
        yield "readiness-flap", text
    if here.minor < READY_KEPT:
        yield "not-ready-flip", "the Node can be NotReady for up to 10 s (kubernetes #122338)"


def _containers(here: NodeImpact) -> Iterator[Said]:
    """Known only where the API server reports the running kubelet; the snapshot has the version on disk."""
    running = versions.parse(here.live.kubelet_version) if here.live else None
    on_disk = versions.parse(here.snapshot.kubelet_version)
    if running is None or on_disk is None or running.minor == on_disk.minor:
        return
    upgrade = f"kubelet {running.text} runs and {on_disk.text} is on disk: the restart starts the one on disk"
    crossed = (running.minor < HASH_OF_NAME_AND_IMAGE) != (on_disk.minor < HASH_OF_NAME_AND_IMAGE)
    if crossed:
        yield "containers-restart", f"{upgrade}, and every container is restarted (kubernetes #129385)"
    elif on_disk.minor < HASH_OF_NAME_AND_IMAGE:
        yield (
            "containers-restart",
            f"{upgrade}, and containers with definitions that it reads differently are restarted",
        )
    else:
        yield "containers-restart", f"{upgrade}; drain the node first, as for a minor upgrade"


def lost_devices_text(here: Sequence[NodeImpact]) -> str:
    """The pods that may lose a device by the change on these nodes; ``""``: none are known."""
    names = [name for each in here if each.takes_devices for name in each.with_devices]
    if not names:
        return ""
    have = "has a device" if len(names) == 1 else "have devices"
    return f"{counted(len(names), 'pod')} {have} now: {listed(names)}. After the change look into each, and recreate it if it has lost its device"


def pulls_text(here: Sequence[NodeImpact]) -> str:
    """The image pulls that the change cancels on these nodes, as read; ``""``: none were seen."""
    busy = [each.pulls_cancelled for each in here if each.pulls_cancelled]
    names = list(dict.fromkeys(image for images in busy for image in images))
    if not names:
        return ""
    pulling = f"{counted(len(names), 'image')} on {counted(len(busy), 'node')} were being pulled when read"
    return f"{pulling}; a restart cancels pulls: {listed(names)}"


# The limit of one kubelet on its pulls from registries, by its values in force.
#
# Source: pkg/kubelet/images/image_manager.go, puller.go and helpers.go. An empty token bucket refuses at once
# (``TryAccept``): a pull over ``registryPullQPS`` fails, it does not wait.


DEFAULT_QPS = 5
DEFAULT_BURST = 10


def rate_of(effective: Mapping[str, Value]) -> PullRate | None:
    """``effective`` is field → value in force; ``None``: it is empty, because the kubelet would not start."""
    if not effective:
        return None
    serial = effective.get("serializeImagePulls", True) is not False
    qps = whole_number(effective, "registryPullQPS", DEFAULT_QPS)
    burst = whole_number(effective, "registryBurst", DEFAULT_BURST)
    parallel = effective.get("maxParallelImagePulls")
    return PullRate(
        parallel=1 if serial else parallel if isinstance(parallel, int) and parallel > 0 else None,
        qps=qps if qps > 0 else None,
        burst=burst,
    )


def rate_now(snapshot: Snapshot, node: Node, assumed: int | None = None) -> PullRate | None:
    """A node's limit on pulls today; ``None``: its version or its files are not understood."""
    version = versions.parse(snapshot.kubelet_version)
    if version is None:
        return None
    taken = versions.taken_for(snapshot.kubelet_version, assumed)
    if taken.minor not in fields.known_minors():
        return None
    try:
        return rate_of(sources.find(snapshot, taken, node).outcome.effective)
    except LayoutError:
        return None


def newly_failing(before: Mapping[str, Value], after: Mapping[str, Value]) -> str:
    """Why pulls can fail by the limit after a change; ``""``: they cannot, or the limit is the same as before."""
    was, will = rate_of(before), rate_of(after)
    return would_fail(will) if will is not None and will != was else ""


def would_fail(rate: PullRate) -> str:
    """Why pulls of one node may fail by its own limit, or ``""``."""
    if rate.qps is None or (rate.parallel is not None and rate.parallel <= rate.burst):
        return ""
    many = "any number of pulls" if rate.parallel is None else f"{rate.parallel} pulls"
    return (
        f"{many} may start at once on a node, and registryBurst is {rate.burst}: pulls beyond it and {rate.qps} a second"
        " fail at once with `pull QPS exceeded`; they do not wait"
    )
