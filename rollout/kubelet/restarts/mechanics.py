"""What a daemon-reload and the restart of a unit do to containers that run: devices that they lose, containers that are killed.

=======================  ==============================================================================================
gpu-lost-at-reload       With the systemd cgroup driver a daemon-reload applies the device rules of every container anew.
                         A GPU that was injected past the runtime is in no rule: the container loses it until it is
                         recreated (nvidia-container-toolkit #48, #251, #1227). A restart with the static CPU manager
                         updates the cpuset of every running container; a runtime that does this with its device rules
                         has the same effect (nvidia-docker #966; runc PR 2994 and crun PR 1614 skip them). The node
                         does not show that version, so this is said and never refused
containers-killed        ``systemctl restart`` stops a unit first. With ``KillMode=control-group`` or ``mixed`` it kills
                         every process of its control group: a shim or conmon there takes its container along
                         (systemd.kill(5)). The units of k3s and RKE2 always have the shims of their containerd
daemon-reload            systemd reads all unit files again, because a file of a unit changes; so does a revert
=======================  ==============================================================================================

The first two are refused, unless the playbook accepts them by these names. What decides them is observed:
``/dev/nvidia*`` or a resource of ``nvidia.com/``, in the Node's capacity or in a pod's requests; the unit's ``KillMode``
and the processes in its control group. Labels of a node prove no device. Another extended resource proves none that was
injected past the runtime: most device plugins name theirs to it. What the node did not show is said to be not known.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache

from rollout.core.model.frozen import dataclass
from rollout.core.model.live import LiveNode
from rollout.core.model.plan import Change, FileChange
from rollout.core.model.playbook import CONTAINERS_KILLED, GPU_LOST
from rollout.core.model.pods import Pairs, PlacedPod
from rollout.core.model.snapshot import Snapshot
from rollout.core.model.surroundings import NodeSurroundings
from rollout.kubelet.conditions import NodeValues
from rollout.kubelet.effects.needs import NeedVerdict
from rollout.kubelet.node.layout import KUBELET_UNITS
from rollout.kubelet.node.rancher import EMBEDDINGS
from rollout.kubelet.runtimes import known

RELOAD = "daemon-reload"


@dataclass(frozen=True, slots=True)
class Harm:
    """``name``: the reference, and the name that ``accept`` has for it. Nodes that are alike have the same text."""

    name: str
    verdict: NeedVerdict
    text: str
    instead: str = ""  # what to do otherwise
    takes_devices: bool = False  # it is seen, and its node belongs in a wave of its own


@dataclass(frozen=True, slots=True)
class ConfiguredAfter:
    """What of a kubelet's values after a change matters to containers that run. ``driver``: of control groups; ``""``: not known."""

    static_cpus: bool
    driver: str


FROM_RUNTIME = 28
"""The first minor where the runtime may tell the kubelet its cgroup driver, whatever ``cgroupDriver`` is (KEP-4033)."""


def configured_after(after: NodeValues) -> ConfiguredAfter:
    driver = str(after.at("cgroupDriver") or "")
    is_known = driver != "cgroupfs" or after.minor < FROM_RUNTIME
    return ConfiguredAfter(after.at("cpuManagerPolicy") == "static", driver if is_known else "")


@dataclass(frozen=True, slots=True)
class NodeAtWork:
    """A node with its change, and what runs there; ``None``: the API server was not asked.

    ``after``: as its kubelet is configured once the change is made; ``None``: not known.
    """

    snapshot: Snapshot
    change: Change
    after: ConfiguredAfter | None
    live: LiveNode | None = None
    pods: Sequence[PlacedPod] | None = None

    @property
    def seen(self) -> NodeSurroundings:
        return self.snapshot.surroundings or NodeSurroundings()


def harms(here: NodeAtWork) -> tuple[Harm, ...]:
    """What the change does to running containers beside its purpose."""
    return (*_devices_lost(here), *_killed(here))


def refusal(found: Sequence[Harm]) -> str:
    """Why the node is refused, and what to do otherwise."""
    names = ", ".join(dict.fromkeys(each.name for each in found))
    instead = "".join(f". {text}" for text in dict.fromkeys(each.instead for each in found))
    return f"{'; '.join(each.text for each in found)}{instead}. `accept: [{names}]` in the playbook allows it"


def accepted(harm: Harm, names: Mapping[str, str]) -> Harm:
    """A harm that the playbook accepts, with the reason that it gives."""
    why = names.get(harm.name, "")
    return replace(harm, text=f"{harm.text} (accepted: {why})") if why and harm.verdict is NeedVerdict.REFUSED else harm


# Devices of running containers.


_NOT_DEVICES = ("vpc.amazonaws.com/", "networking.gke.io")
"""Resources of a Node that a controller writes: addresses and interfaces, no devices."""


@lru_cache(maxsize=4096)
def device_names(resources: Pairs) -> tuple[str, ...]:
    """The resources that are devices: extended ones, which have a domain other than Kubernetes' own."""
    return tuple(
        name
        for name, amount in resources
        if "/" in name and "kubernetes.io/" not in name and amount != "0" and not name.startswith(_NOT_DEVICES)
    )


def pods_with_devices(pods: Iterable[PlacedPod]) -> tuple[str, ...]:
    """The pods that request one, in the API's order."""
    return tuple(pod.name for pod in pods if any(device_names(ask.requests) for ask in pod.asks))


_PAST_THE_RUNTIME = "nvidia.com/"
"""Resources of devices that a hook may inject, so that the runtime has no rule for them."""


def _resources(here: NodeAtWork) -> tuple[str, ...]:
    """The devices of the Node's capacity, and those that its pods request."""
    requests = (name for pod in here.pods or () for ask in pod.asks for name in device_names(ask.requests))
    capacity = device_names(here.live.capacity) if here.live is not None else ()
    return tuple(dict.fromkeys((*capacity, *sorted(requests))))


def _devices_lost(here: NodeAtWork) -> Iterator[Harm]:
    reload, static = _by_reload(here), _by_static_cpus(here)
    if not reload and not static:
        return
    listed, resources = here.seen.devices, _resources(here)
    shown = listed.names if listed is not None else ()
    files = ("/dev/nvidia*",) if any(each.startswith("/dev/") for each in shown) else shown[:1]
    gpus = ", ".join((*files, *(name for name in resources if name.startswith(_PAST_THE_RUNTIME))))
    others = ", ".join(name for name in resources if not name.startswith(_PAST_THE_RUNTIME))
    if gpus and reload:
        yield Harm(
            GPU_LOST,
            NeedVerdict.REFUSED,
            f"{reload} can take GPUs from running containers until they are recreated (nvidia-container-toolkit#48): the node"
            f" has {gpus}",
            f"{_needing(here.change)}Or evict the pods with GPUs first, or recreate them afterwards{_to_know(here)}",
            takes_devices=True,
        )
    if gpus and static:
        yield Harm(
            GPU_LOST, NeedVerdict.UNKNOWN, f"{static} can take GPUs from running containers: the node has {gpus}"
        )
    does = " and ".join(cause for cause in (reload, static) if cause)
    if not gpus and (listed is None or not listed.whole):
        text = f"{does} can take GPUs from running containers; whether the node has GPUs is not known"
        yield Harm(GPU_LOST, NeedVerdict.UNKNOWN, text)
    if others:
        text = (
            f"{does} can take devices that the runtime does not know from running containers: the node has {others}, and it"
            " is not known whether the runtime knows the device"
        )
        yield Harm(GPU_LOST, NeedVerdict.UNKNOWN, text)


def _to_know(here: NodeAtWork) -> str:
    """How to learn the driver, where it alone decides."""
    if _driver(here):
        return ""
    return (
        ". Or read the node again once pods run there: /sys/fs/cgroup/kubepods.slice or /sys/fs/cgroup/kubepods then shows what"
        " manages control groups, and with cgroupfs nothing is lost"
    )


def _needing(change: Change) -> str:
    files = ", ".join(path.rpartition("/")[2] for path in unit_files(change.files))
    return f"{files} needs the reload; a kubelet field, or a flag in an environment file, does not. " if files else ""


def _by_reload(here: NodeAtWork) -> str:
    """The reload, if it can apply the device rules of containers anew; ``""``: it cannot, or there is none."""
    driver = _driver(here)
    if not here.change.reload or driver == "cgroupfs":
        return ""
    return "a daemon-reload" if driver else "a daemon-reload, if systemd manages control groups (not known),"


def _by_static_cpus(here: NodeAtWork) -> str:
    """The restart of a kubelet that updates every running container; ``""``: it does not."""
    restarts = not KUBELET_UNITS.isdisjoint(here.change.units)
    if not restarts or here.after is None or not here.after.static_cpus:
        return ""
    return (
        "a restart with the static CPU manager, if runc is older than its PR 2994 or crun than its PR 1614 (not known),"
    )


def _driver(here: NodeAtWork) -> str:
    """The driver that made the pods' control groups, else the one in the kubelet's configuration; ``""``: not known."""
    return here.seen.cgroup_driver or (here.after.driver if here.after is not None else "")


_OF_UNITS = ("/etc/systemd/", "/run/systemd/", "/usr/lib/systemd/", "/usr/local/lib/systemd/", "/lib/systemd/")


def unit_files(files: Iterable[FileChange]) -> tuple[str, ...]:
    """Those for which systemd reads its files again. The agent does it for each file of a unit, changed or not."""
    return tuple(file.path for file in files if file.path.startswith(_OF_UNITS))


def reload_text(change: Change) -> str:
    """What a plan says of the reload; ``""``: there is none."""
    if not change.reload:
        return ""
    return (
        f"systemctl daemon-reload: systemd reads all unit files again, because {', '.join(unit_files(change.files))} changes;"
        " so does a revert"
    )


# Containers in the control group of a unit.


_KILLS = ("control-group", "mixed")
"""Kill modes that reach every process of the unit's control group (systemd.kill(5))."""


_MOST_COUNTED = 2000
"""Processes of a unit that the agent counts; there can be more."""


_KEEP = "Set KillMode=process in a drop-in of the unit first, or drain the node by hand"


def _killed_with_the_kubelet(here: NodeAtWork, unit: str) -> Iterator[Harm]:
    """``unit`` of k3s or RKE2: both installers write ``KillMode=process``."""
    measured = here.snapshot.measurement
    units = (measured.unit, *(each.unit for each in measured.services.values()))
    mode = next((each.properties.get("KillMode", "") for each in units if each is not None and each.name == unit), "")
    if mode not in {"process", "none"}:
        text = (
            f"a restart of {unit} ends running containers: their shims are processes of that unit, and its KillMode is"
            f" {mode or 'unknown'}"
        )
        yield Harm(CONTAINERS_KILLED, NeedVerdict.REFUSED, text, _KEEP)


def _killed(here: NodeAtWork) -> Iterator[Harm]:
    for unit in here.change.units:
        if unit in EMBEDDINGS:
            yield from _killed_with_the_kubelet(here, unit)
        service = here.snapshot.measurement.services.get(unit)
        mode = service.unit.properties.get("KillMode", "") if service is not None else ""
        if unit in KUBELET_UNITS or (mode and mode not in _KILLS):
            continue
        inside = [each for each in here.seen.processes or () if each.unit == unit]
        keepers = ", ".join(each.name for each in inside if each.name in known.KEEPERS)
        if keepers and mode:
            yield Harm(
                CONTAINERS_KILLED,
                NeedVerdict.REFUSED,
                f"a restart of {unit} ends running containers: their {keepers} processes are in its control group, and"
                f" KillMode={mode} kills all of it",
                _KEEP,
            )
        elif keepers or not inside or sum(each.count for each in inside) >= _MOST_COUNTED:
            lacking = (
                "its KillMode is not known" if keepers else "which processes are in its control group is not known"
            )
            yield Harm(
                CONTAINERS_KILLED,
                NeedVerdict.UNKNOWN,
                f"a restart of {unit}: {lacking}. With KillMode=control-group it ends each container that has its shim or conmon there",
            )
