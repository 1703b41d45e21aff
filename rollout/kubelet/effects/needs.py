"""What a change needs of the node as it is now: files, control groups, sockets, kernel settings, swap, state files, room.

A verdict is one of three. *Refused*: the kubelet would not start, or would evict pods at once. *Said*: it starts, and
something else happens. *Unknown*: the node did not show what decides it. Texts name no values of one node where its
neighbours have others, so that a plan has one line for all of them.

Sources: ``NewContainerManager``, ``setupKernelTunables`` and ``enforceNodeAllocatableCgroups`` (pkg/kubelet/cm),
``validateState`` of policy_static.go (cpumanager, memorymanager), ``PreInitRuntimeService``, eviction/helpers.go,
images/image_gc_manager.go; 1.20.2 and 1.36.3.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import StrEnum

from rollout.core.model.frozen import dataclass
from rollout.core.model.pods import PlacedPod
from rollout.core.model.settings import Setting, Value
from rollout.core.model.snapshot import FileState
from rollout.core.model.surroundings import NodeSurroundings, Room, is_named
from rollout.core.text import json_text
from rollout.kubelet import fields
from rollout.kubelet.conditions import NodeValues, number
from rollout.kubelet.configuration.go_values import cpus
from rollout.kubelet.values import value_at

STATE_UNKNOWN = "needs-not-known"
NEEDS = "needs-of-node"


class NeedVerdict(StrEnum):
    REFUSED = "refused"
    SAID = "said"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Need:
    """``name``: the setting that needs it."""

    name: str
    verdict: NeedVerdict
    text: str


@dataclass(frozen=True, slots=True)
class Here:
    """The values of a node before and after the change, and what was read of the node. ``pods`` ``None``: the API server was not asked."""

    before: NodeValues
    after: NodeValues
    files: Mapping[str, FileState]
    seen: NodeSurroundings
    pods: Sequence[PlacedPod] | None

    def changes(self, *paths: str) -> bool:
        return any(self.before.at(path) != self.after.at(path) for path in paths)

    def text(self, path: str) -> str:
        value = self.after.at(path)
        return value if isinstance(value, str) else ""


@dataclass(frozen=True, slots=True)
class NeedRule:
    """``of``: the settings that it is about. A change that alters none of them needs nothing by it."""

    of: tuple[str, ...]
    needs: Callable[[Here], Iterator[Need]]


def rules_concerned(before: NodeValues, after: NodeValues) -> tuple[NeedRule, ...]:
    """The rules about settings that the change alters: few, or none."""
    return tuple(rule for rule in RULES if any(before.at(path) != after.at(path) for path in rule.of))


def needs(
    rules: Sequence[NeedRule],
    before: NodeValues,
    after: NodeValues,
    files: Mapping[str, FileState],
    seen: NodeSurroundings | None,
    pods: Sequence[PlacedPod] | None,
) -> tuple[Need, ...]:
    """What the change needs of a node with these files, surroundings and pods, by these rules; only of settings that it alters."""
    here = Here(before, after, files, seen or NodeSurroundings(), pods)
    return tuple(need for rule in rules for need in rule.needs(here))


def told(found: tuple[Need, ...]) -> Iterator[tuple[str, str]]:
    """A reference and a line for each need that does not keep the node from being changed, accepted ones included."""
    for each in found:
        yield STATE_UNKNOWN if each.verdict is NeedVerdict.UNKNOWN else NEEDS, f"{each.name}: {each.text}"


def _is_there(name: str, what: str, without: str, *, there: bool | None) -> Iterator[Need]:
    if there is False:
        yield Need(name, NeedVerdict.REFUSED, f"{what} is not on the node, so {without}")
    elif there is None:
        yield Need(name, NeedVerdict.UNKNOWN, f"whether {what} is on the node is not known; without it {without}")


_STOPS = "the kubelet would not start"
_FILES: tuple[tuple[str, str], ...] = (
    ("authentication.x509.clientCAFile", _STOPS),
    ("tlsCertFile", _STOPS),
    ("tlsPrivateKeyFile", _STOPS),
    ("resolvConf", "new pods would not start"),
    ("--kubeconfig", _STOPS),
    ("--image-credential-provider-config", _STOPS),
    ("--image-credential-provider-bin-dir", _STOPS),
    ("--cloud-config", _STOPS),
)


def files_named(settings: Mapping[str, Setting]) -> tuple[str, ...]:
    """The files that these settings name and that a kubelet needs: they are looked at on the node."""
    values: dict[str, Value] = {}
    for name, setting in settings.items():
        flag = fields.flag(name)
        values[flag.field if flag and flag.field else name] = setting.value
    paths = (values.get(name) or value_at(values, name) for name, _ in _FILES)
    return tuple(dict.fromkeys(path for path in paths if isinstance(path, str) and is_named(path)))


def _made(here: Here) -> tuple[str, ...]:
    """Files that a kubelet makes by itself where they are absent (``InitializeTLS``)."""
    return tuple(f"{here.seen.kubelet_root.rstrip('/')}/pki/kubelet.{end}" for end in ("crt", "key"))


def _files(here: Here) -> Iterator[Need]:
    for name, without in _FILES:
        path = here.text(name)
        if path and path not in _made(here) and here.changes(name):
            state = here.files.get(path)
            known = state is not None and state.kind != "symlink"  # what it leads to was not looked at
            yield from _is_there(name, path, without, there=state.kind != "absent" if state and known else None)


def group_path(name: str, driver: str) -> str:
    """The control group that a kubelet looks for: with systemd, ``kube-reserved`` is /kube.slice/kube-reserved.slice.

    ``ParseSystemdToCgroupName`` and ``ToSystemd`` (pkg/kubelet/cm/cgroup_manager_linux.go): the last part of the path,
    without ``.slice``, split at dashes.
    """
    if driver != "systemd":
        return f"/{name.strip('/')}"
    parts = name.rstrip("/").rpartition("/")[2].removesuffix(".slice").split("-")
    return "".join(f"/{'-'.join(parts[:count])}.slice" for count in range(1, len(parts) + 1))


def _groups(here: Here) -> Iterator[Need]:
    enforced, driver = here.after.at("enforceNodeAllocatable"), here.text("cgroupDriver")
    words = [str(word) for word in enforced] if isinstance(enforced, list) else []
    for name, word in (("kubeReservedCgroup", "kube-reserved"), ("systemReservedCgroup", "system-reserved")):
        group = here.text(name)
        if (
            group
            and any(each.startswith(word) for each in words)
            and here.changes(name, "enforceNodeAllocatable", "cgroupDriver")
        ):
            path = group_path(group, driver)
            yield from _is_there(name, f"the control group {path}", _STOPS, there=here.seen.has_cgroup(path))
    root = here.text("cgroupRoot")
    if root.strip("/") and here.changes("cgroupRoot"):
        found = {here.seen.has_cgroup(path) for path in (root, f"{root}.slice")}
        there = True if True in found else None if None in found else False
        yield from _is_there("cgroupRoot", f"the control group {root}", _STOPS, there=there)
    made = here.seen.cgroup_driver
    if made and here.changes("cgroupDriver") and driver and made != driver:
        yield Need("cgroupDriver", NeedVerdict.SAID, f"the control groups of running pods were made by {made}")


def _sockets(here: Here) -> Iterator[Need]:
    endpoint = here.text("imageServiceEndpoint")
    if endpoint.startswith("unix://") and here.changes("imageServiceEndpoint"):
        path = endpoint.removeprefix("unix://")
        listens = here.seen.has_socket(path)
        yield from _is_there("imageServiceEndpoint", f"a program that listens at {path}", _STOPS, there=listens)


KERNEL = {
    "vm.overcommit_memory": "1", "vm.panic_on_oom": "0", "kernel.panic": "10", "kernel.panic_on_oops": "1",
    "kernel.keys.root_maxkeys": "1000000", "kernel.keys.root_maxbytes": "25000000",
}  # fmt: skip
"""What a kubelet with ``protectKernelDefaults`` finds or does not start (pkg/util/sysctl)."""


def _kernel(here: Here) -> Iterator[Need]:
    name = "protectKernelDefaults"
    if here.after.at(name) is not True or not here.changes(name):
        return
    read = here.seen.sysctls
    differ = [f"{key} is {read[key]}, not {value}" for key, value in KERNEL.items() if read.get(key, value) != value]
    if differ:
        yield Need(name, NeedVerdict.REFUSED, f"{', '.join(differ)}, so {_STOPS}")
    missing = [key for key in KERNEL if key not in read]
    if missing and not differ:
        yield Need(
            name,
            NeedVerdict.UNKNOWN,
            f"{', '.join(missing)} could not be read; with another value than its own {_STOPS}",
        )


def _swap(here: Here) -> Iterator[Need]:
    if here.after.at("failSwapOn") is not True or not here.changes("failSwapOn"):
        return
    if here.seen.swaps:
        yield Need("failSwapOn", NeedVerdict.REFUSED, f"swap is in use on the node, so {_STOPS}")
    elif here.seen.swaps is None:
        yield Need("failSwapOn", NeedVerdict.UNKNOWN, f"whether swap is in use is not known; with swap {_STOPS}")


def _swap_of_pods(here: Here) -> Iterator[Need]:
    name = "memorySwap.swapBehavior"
    if not here.changes(name) or here.text(name) not in ("LimitedSwap", "UnlimitedSwap"):
        return
    if here.seen.swaps == ():
        yield Need("memorySwap", NeedVerdict.SAID, "no swap is in use on the node, so no pod gets any")
    elif here.seen.swaps is None:
        yield Need(
            "memorySwap", NeedVerdict.UNKNOWN, "whether swap is in use is not known; without swap no pod gets any"
        )


def _user_namespaces(here: Here) -> Iterator[Need]:
    """A kubelet reads the records of its pods' namespaces at its start; one of another length ends it (``parseUserNsFileAndRecord``)."""
    if here.after.minor < _USER_NAMESPACES_SIZED or not here.changes("userNamespaces.idsPerPod"):
        return
    if here.pods is None:
        yield Need(
            "userNamespaces",
            NeedVerdict.UNKNOWN,
            f"whether the node has pods with user namespaces is not known; with one of another idsPerPod {_STOPS}",
        )
    elif any(pod.own_users for pod in here.pods):
        yield Need(
            "userNamespaces",
            NeedVerdict.REFUSED,
            f"the node has pods with user namespaces of another idsPerPod, so {_STOPS}: drain it first",
        )


_USER_NAMESPACES_SIZED = 33
"""The first minor with ``userNamespaces``."""


# State files of the CPU and the memory manager.


def _state(here: Here, name: str) -> Mapping[str, Value] | None:
    """The content of a manager's state file, ``{}`` without one; ``None``: not known."""
    state = here.files.get(f"{here.seen.kubelet_root.rstrip('/')}/{name}")
    if state is None or (state.content is None and state.kind != "absent"):
        return None
    return state_of(state.content or b"{}")


def state_of(content: bytes) -> Mapping[str, Value] | None:
    """A manager's state; ``None`` where it is not a JSON object."""
    try:
        document = json_text.parse(content)
    except ValueError:
        return None
    return document if isinstance(document, dict) else None


STRICT = "cpuManagerPolicyOptions.strict-cpu-reservation"
_CPU = ("reservedSystemCPUs", STRICT, "kubeReserved.cpu", "systemReserved.cpu")


def _cpus(here: Here) -> Iterator[Need]:
    """With the static policy the reserved CPUs lie in the shared pool, with strict reservation outside of it."""
    altered = [path for path in _CPU if here.changes(path)]
    if here.after.at("cpuManagerPolicy") != "static" or not altered:
        return
    name = altered[0].partition(".")[0]
    state = _state(here, "cpu_manager_state")
    if state is None:
        yield Need(name, NeedVerdict.UNKNOWN, f"cpu_manager_state was not read; where it does not agree {_STOPS}")
        return
    if state.get("policyName") != "static" or not state.get("defaultCpuSet"):
        return
    reserved_text, strict = here.text("reservedSystemCPUs"), str(here.after.at(STRICT)).lower() == "true"
    try:
        pool, reserved = _cpu_set(str(state["defaultCpuSet"])), _cpu_set(reserved_text)
    except ValueError:
        yield Need(name, NeedVerdict.UNKNOWN, f"cpu_manager_state was not understood; where it does not agree {_STOPS}")
        return
    if not reserved:
        if state.get("entries") or strict:
            yield Need(
                name,
                NeedVerdict.UNKNOWN,
                f"which CPUs the kubelet would reserve is not known; where cpu_manager_state has given one away {_STOPS}",
            )
    elif strict and reserved & pool:
        yield Need(
            name,
            NeedVerdict.REFUSED,
            f"with strict-cpu-reservation cpu_manager_state may not have reserved CPUs in its shared pool, and it has, so {_STOPS}: drain the node and remove the file",
        )
    elif not strict and not reserved <= pool:
        yield Need(
            name,
            NeedVerdict.REFUSED,
            f"cpu_manager_state has given away CPUs that would be reserved, so {_STOPS} (kubernetes#110478): drain the node and remove the file",
        )


_MOST_CPUS = 8192


def _cpu_set(listed: str) -> frozenset[int]:
    """``0-3,8``; ``ValueError`` for another form, and for more CPUs than Linux has."""
    if not listed:
        return frozenset()
    if cpus(listed) > _MOST_CPUS:
        raise ValueError("more CPUs than Linux has")
    spans = sorted((int(part.partition("-")[0]), int(part.rpartition("-")[2])) for part in listed.split(","))
    numbers: set[int] = set()
    free = 0  # the first CPU that no span has held so far
    for first, last in spans:
        numbers.update(range(max(first, free), last + 1))
        free = max(free, last + 1)
    return frozenset(numbers)


_MEMORY = ("reservedMemory", "kubeReserved.memory", "systemReserved.memory", "evictionHard.memory.available")


def _memory(here: Here) -> Iterator[Need]:
    """With the static policy ``reservedMemory`` must be what its state file has as ``systemReserved`` (``areMachineStatesEqual``)."""
    altered = [path for path in _MEMORY if _at(here.before, path) != _at(here.after, path)]
    if here.after.at("memoryManagerPolicy") != "Static" or not altered:
        return
    name, state = altered[0].partition(".")[0], _state(here, "memory_manager_state")
    if state is None:
        yield Need(name, NeedVerdict.UNKNOWN, f"memory_manager_state was not read; with other sums in it {_STOPS}")
        return
    if not state.get("machineState"):
        return
    recorded, wanted = _recorded_memory(state["machineState"]), _reserved_memory(here.after.at("reservedMemory"))
    if recorded is None or wanted is None:
        yield Need(
            name, NeedVerdict.UNKNOWN, f"memory_manager_state was not understood; with other sums in it {_STOPS}"
        )
    elif recorded != wanted:
        yield Need(
            name,
            NeedVerdict.REFUSED,
            f"memory_manager_state has other sums of reserved memory, so {_STOPS}: drain the node and remove the file",
        )


Reserved = Mapping[tuple[str, str], float]
"""NUMA node and kind of memory → bytes; without those of which nothing is reserved."""


def _recorded_memory(machine: Value) -> Reserved | None:
    """``{"0": {"memoryMap": {"memory": {"systemReserved": 3221225472, …}}}}``; ``None`` for another form."""
    found: dict[tuple[str, str], float] = {}
    for numa, node in (machine if isinstance(machine, dict) else {"": None}).items():
        kinds = node.get("memoryMap") if isinstance(node, dict) else None
        for kind, table in (kinds if isinstance(kinds, dict) else {"": None}).items():
            amount = table.get("systemReserved") if isinstance(table, dict) else None
            if isinstance(amount, bool) or not isinstance(amount, int | float):
                return None
            found[numa, kind] = float(amount)
    return {place: amount for place, amount in found.items() if amount}


def _reserved_memory(listed: object) -> Reserved | None:
    """``[{"numaNode": 0, "limits": {"memory": "3Gi"}}]``; ``None`` for another form."""
    found: dict[tuple[str, str], float] = {}
    for each in listed if isinstance(listed, list) else []:
        limits = each.get("limits") if isinstance(each, dict) else None
        if not isinstance(each, dict) or not isinstance(limits, dict):
            return None
        for kind, written in limits.items():
            amount = number(written)
            if amount is None:
                return None
            found[str(each.get("numaNode", 0)), kind] = amount
    return {place: amount for place, amount in found.items() if amount}


def _at(values: NodeValues, path: str) -> Value:
    """A value in a map with dots in its keys: ``evictionHard.memory.available``."""
    field, _, key = path.partition(".")
    held = value_at(values.effective, field)
    return held.get(key) if key and isinstance(held, dict) else held


# Room on disks.


def _runtime_room(seen: NodeSurroundings) -> Room | None:
    rooms = [room for room in seen.rooms if room.of != "kubelet"]
    return rooms[0] if rooms else seen.room("kubelet")


def _evictions(here: Here) -> Iterator[Need]:
    """Signals of disks: ``evictionHard`` evicts at once, ``evictionSoft`` after its grace period."""
    disks = {"nodefs": here.seen.room("kubelet"), "imagefs": _runtime_room(here.seen)}
    for name in ("evictionHard", "evictionSoft"):
        for disk, room in disks.items():
            for signal, size, free in _signals(disk, room):
                old, new = _at(here.before, f"{name}.{signal}"), _at(here.after, f"{name}.{signal}")
                least = _least(new, size)
                if least is None or old == new:
                    continue
                if room is None:
                    yield Need(
                        name,
                        NeedVerdict.UNKNOWN,
                        f"how much is free for {signal} is not known; below {new} pods are evicted",
                    )
                elif free < least and size:
                    when = "at once" if name == "evictionHard" else "after the grace period"
                    yield Need(
                        name,
                        NeedVerdict.REFUSED,
                        f"less than {new} is free for {signal}, so pods would be evicted {when}",
                    )


def _other_evictions(here: Here) -> Iterator[Need]:
    """Signals of memory and process ids. What is free of them was not read."""
    for name in ("evictionHard", "evictionSoft"):
        held = here.after.at(name)
        for signal, new in held.items() if isinstance(held, dict) else ():
            if signal.startswith(("nodefs.", "imagefs.", "containerfs.")) or not _rises(here, f"{name}.{signal}"):
                continue
            if isinstance(new, str) and new.endswith("%") and (number(new) or 0) >= 100:
                yield Need(name, NeedVerdict.REFUSED, f"{signal} is never above {new}, so all pods would be evicted")
            else:
                yield Need(
                    name,
                    NeedVerdict.UNKNOWN,
                    f"how much is free for {signal} is not known; below {new} pods are evicted",
                )


def _rises(here: Here, path: str) -> bool:
    """Whether a threshold is a new or a higher one; one of another form may be."""
    old, new = _at(here.before, path), _at(here.after, path)
    if old == new or not number(new):
        return False
    alike = str(old).endswith("%") is str(new).endswith("%")
    was, will = number(old), number(new)
    return not alike or was is None or will is None or will > was


def _signals(disk: str, room: Room | None) -> Iterator[tuple[str, float, float]]:
    """Each signal of a disk, with its whole amount and what is free, in bytes and in inodes."""
    yield f"{disk}.available", (room.size if room else 0) * 1024.0, (room.free if room else 0) * 1024.0
    yield f"{disk}.inodesFree", float(room.inodes if room else 0), float(room.free_inodes if room else 0)


def _least(threshold: Value, size: float) -> float | None:
    amount = number(threshold)
    if amount is None:
        return None
    return size * amount / 100 if isinstance(threshold, str) and threshold.endswith("%") else amount


def _image_gc(here: Here) -> Iterator[Need]:
    name = "imageGCHighThresholdPercent"
    high = number(here.after.at(name))
    if not here.changes(name) or high is None or high >= 100:
        return
    room = _runtime_room(here.seen)
    if room is None or not room.size:
        yield Need(name, NeedVerdict.UNKNOWN, "how full the disk of images is, is not known")
    elif math.floor(100 - room.free * 100 / room.size) >= high:
        yield Need(
            name,
            NeedVerdict.SAID,
            f"the disk of images is at least {high:g} % full: unused images are deleted within 5 minutes, and pulled again when they are needed",
        )


def _shutdown(here: Here) -> Iterator[Need]:
    name, wanted = "shutdownGracePeriod", number(here.after.at("shutdownGracePeriod"), "shutdownGracePeriod")
    by_priority = here.after.at("shutdownGracePeriodByPodPriority")
    if isinstance(by_priority, list) and by_priority:  # all of them, one after another
        name = "shutdownGracePeriodByPodPriority"
        seconds = [each.get("shutdownGracePeriodSeconds") for each in by_priority if isinstance(each, dict)]
        wanted = sum(number(each) or 0.0 for each in seconds)
    if not here.changes(name) or not wanted:
        return
    delay = here.seen.inhibit_delay
    if delay is None:
        yield Need(
            name,
            NeedVerdict.UNKNOWN,
            "whether systemd-logind runs is not known; without it pods get no graceful shutdown",
        )
    elif delay < wanted:
        yield Need(
            name,
            NeedVerdict.SAID,
            "logind's InhibitDelayMaxSec is shorter: the kubelet writes /etc/systemd/logind.conf.d/99-kubelet.conf, which stays after a rollback; a later file of others still bounds it",
        )


RULES: tuple[NeedRule, ...] = (
    NeedRule(tuple(name for name, _ in _FILES), _files),
    NeedRule(("kubeReservedCgroup", "systemReservedCgroup", "enforceNodeAllocatable", "cgroupDriver", "cgroupRoot"), _groups),
    NeedRule(("imageServiceEndpoint",), _sockets),
    NeedRule(("protectKernelDefaults",), _kernel),
    NeedRule(("failSwapOn",), _swap),
    NeedRule(_CPU, _cpus),
    NeedRule(("reservedMemory", "kubeReserved", "systemReserved", "evictionHard"), _memory),
    NeedRule(("evictionHard", "evictionSoft"), _evictions),
    NeedRule(("evictionHard", "evictionSoft"), _other_evictions),
    NeedRule(("imageGCHighThresholdPercent",), _image_gc),
    NeedRule(("shutdownGracePeriod", "shutdownGracePeriodByPodPriority"), _shutdown),
    NeedRule(("memorySwap.swapBehavior",), _swap_of_pods),
    NeedRule(("userNamespaces.idsPerPod",), _user_namespaces),
)  # fmt: skip
"""In the order in which a plan names what is needed."""
