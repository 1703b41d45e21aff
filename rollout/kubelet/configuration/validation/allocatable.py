"""What is reserved for the system, and which limits enforce it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rollout.kubelet.configuration import quantities
from rollout.kubelet.configuration.go_values import cpu_list_error, quoted, shown_float
from rollout.kubelet.configuration.validation.checked import Checked, Complaint, wrong

# Checks of Linux only (``validation_linux.go``): the host's cgroups, and users inside pods.


_UNIT = 65536
_MOST = 2**32 - 1


def oom_kill(checked: Checked) -> Iterator[Complaint]:
    """``singleProcessOOMKill``, since 1.32: with cgroup v1 it cannot be false."""
    if checked.minor >= 32 and checked.cgroup_v1 and checked.values.get("singleProcessOOMKill") is False:
        message = "singleProcessOOMKill must not be explicitly set to false when using cgroup v1"
        yield wrong("singleProcessOOMKill", message)


def user_namespaces(checked: Checked) -> Iterator[Complaint]:
    """``userNamespaces.idsPerPod``, since 1.33: whole units."""
    ids = checked.inner("userNamespaces").get("idsPerPod")
    if checked.minor < 33 or not isinstance(ids, int):
        return
    if ids < _UNIT:
        yield wrong("userNamespaces", f"userNamespaces.idsPerPod must not be less than {_UNIT}")
    elif ids % _UNIT:
        yield wrong("userNamespaces", f"userNamespaces.idsPerPod must be a multiple of {_UNIT}")
    elif ids > _MOST:
        yield wrong("userNamespaces", f"userNamespaces.idsPerPod must not be more than {_MOST}")


# Swap, memory QoS and memory reserved by NUMA node.


_HUGE = "hugepages-"
_SUPPORTED = "[memory hugepages-<HugePageSize>]"


def swap(checked: Checked) -> Iterator[Complaint]:
    """``memorySwap``, since 1.22; ``NoSwap`` replaced ``UnlimitedSwap`` in 1.30."""
    behavior = checked.inner("memorySwap").get("swapBehavior") or ""
    if checked.minor < 22 or not behavior:
        return
    named = "memorySwap.swapBehavior" if checked.minor >= 24 else "MemorySwap.SwapBehavior"
    if checked.gate_off("NodeSwap"):
        yield wrong("memorySwap", f"{named} cannot be set when NodeSwap feature flag is disabled")
    elif behavior not in {"LimitedSwap", _other(checked.minor)}:
        yield wrong("memorySwap", f"{named} {_must(str(behavior), checked.minor)}")


def _other(minor: int) -> str:
    return "NoSwap" if minor >= 30 else "UnlimitedSwap"


def _must(behavior: str, minor: int) -> str:
    if minor < 24:
        return f"{behavior} must be one of: LimitedSwap, UnlimitedSwap"
    comma = "" if minor >= 30 else ","
    return f'{quoted(behavior)} must be one of: "", "LimitedSwap"{comma} or "{_other(minor)}"'


_THROTTLING_OF_BEFORE = 0.9
"""The default up to 1.36; from 1.37 on there is none."""


def throttling(checked: Checked) -> Iterator[Complaint]:
    """``memoryThrottlingFactor``, since 1.22; since 1.37 it is refused without its gate."""
    factor = checked.values.get("memoryThrottlingFactor")
    written = isinstance(factor, int | float) and factor != _THROTTLING_OF_BEFORE
    if checked.minor >= 37 and written and checked.gate_off("MemoryQoS"):
        message = "memoryThrottlingFactor must not be set when MemoryQoS feature gate is disabled"
        yield wrong("memoryThrottlingFactor", message)
    if checked.minor >= 22 and isinstance(factor, int | float) and not 0 < factor <= 1:
        message = f"memoryThrottlingFactor {shown_float(factor)} must be greater than 0 and less than or equal to 1.0"
        yield wrong("memoryThrottlingFactor", message)


def reservation_policy(checked: Checked) -> Iterator[Complaint]:
    """``memoryReservationPolicy``, since 1.36."""
    if checked.minor < 36 or "memoryReservationPolicy" not in checked.values:
        return
    policy = checked.text("memoryReservationPolicy")
    if policy == "TieredReservation" and checked.gate_off("MemoryQoS"):
        message = f"memoryReservationPolicy {quoted(policy)} requires MemoryQoS feature gate to be enabled"
        yield wrong("memoryReservationPolicy", message)
    if policy not in {"None", "TieredReservation"}:
        message = f'option {quoted(policy)} specified for memoryReservationPolicy. Valid options are "None" or "TieredReservation"'
        yield wrong("memoryReservationPolicy", message)


def reserved(checked: Checked) -> Iterator[Complaint]:
    """``reservedMemory``: memory and huge pages, none of them zero, no duplicate for a NUMA node."""
    seen: set[tuple[int, str]] = set()
    for entry in checked.entries("reservedMemory"):
        node = entry.get("numaNode", 0)
        for name, amount in (entry.get("limits") or {}).items():
            yield from _limit(node, name, amount, repeated=(node, name) in seen)
            seen.add((node, name))


def _limit(node: int, name: str, amount: Any, *, repeated: bool) -> Iterator[Complaint]:
    if name != "memory" and not name.startswith(_HUGE):
        message = f"the limit type {quoted(name)} for NUMA node {node} is not supported, only {_SUPPORTED} is accepted"
        yield wrong("reservedMemory", message)
    if quantities.parse(str(amount)).amount == 0:
        message = f"reserved memory may not be zero for NUMA node {node} and resource {quoted(name)}"
        yield wrong("reservedMemory", message)
    if repeated:
        message = f"the reserved memory has a duplicate value for NUMA node {node} and resource {quoted(name)}"
        yield wrong("reservedMemory", message)


_FIELD = "enforceNodeAllocatable"
_NAMED = "enforceNodeAllocatable (--enforce-node-allocatable)"
_CGROUPS = {
    "system-reserved": ("systemReservedCgroup", "system-reserved-cgroup"),
    "kube-reserved": ("kubeReservedCgroup", "kube-reserved-cgroup"),
}
_COMPRESSIBLE = "-compressible"


def cgroups(checked: Checked) -> Iterator[Complaint]:
    """Until 1.30 any enforcement, ``none`` too, needs ``cgroupsPerQOS``; ``systemCgroups`` always needs a root."""
    if checked.minor < 31 and not checked.flag("cgroupsPerQOS") and checked.entries(_FIELD):
        message = f"{_NAMED} is not supported unless cgroupsPerQOS (--cgroups-per-qos) is set to true"
        yield wrong("cgroupsPerQOS", message)
    if checked.text("systemCgroups") and not checked.text("cgroupRoot"):
        message = "systemCgroups (--system-cgroups) was specified and cgroupRoot (--cgroup-root) was not specified"
        yield wrong("systemCgroups", message)


def enforcement(checked: Checked) -> Iterator[Complaint]:
    """Each word of ``enforceNodeAllocatable``."""
    words = checked.entries(_FIELD)
    if checked.minor >= 32:
        for word in _CGROUPS:
            if word in words and word + _COMPRESSIBLE in words:
                message = f'both "{word}" and "{word}{_COMPRESSIBLE}" cannot be specified together in {_NAMED}'
                yield wrong(_FIELD, message)
    seen: set[str] = set()
    for word in words:
        if checked.minor >= 31 and word in seen:
            yield wrong(_FIELD, f"duplicated enforcements {quoted(word)} in {_NAMED}")
            continue
        seen.add(word)
        yield from _word(checked, word, len(words))


def _word(checked: Checked, word: str, count: int) -> Iterator[Complaint]:
    base = word.removesuffix(_COMPRESSIBLE) if checked.minor >= 32 else word
    if word == "none":
        if count > 1:
            shown = '"none"' if checked.minor >= 24 else "'none'"
            yield wrong(_FIELD, f"{_NAMED} may not contain additional enforcements when {shown} is specified")
        return
    if base in _CGROUPS:
        yield from _cgroup(checked, base)
    elif word != "pods":
        yield wrong(_FIELD, f"option {quoted(word)} specified for {_NAMED}. Valid options are {_valid(checked.minor)}")
        return
    if checked.minor >= 31 and not checked.flag("cgroupsPerQOS"):
        message = f"cgroupsPerQOS (--cgroups-per-qos) must be set to true when {quoted(word)} contained in {_NAMED}"
        yield wrong("cgroupsPerQOS", message)


def _cgroup(checked: Checked, word: str) -> Iterator[Complaint]:
    field, flag = _CGROUPS[word]
    if checked.text(field):
        return
    if checked.minor >= 32:
        end = f'when "{word}" or "{word}{_COMPRESSIBLE}" included'
    else:
        end = f"when {quoted(word)} contained" if checked.minor >= 24 else f"when '{word}' contained"
    yield wrong(_FIELD, f"{field} (--{flag}) must be specified {end} in {_NAMED}")


def _valid(minor: int) -> str:
    if minor >= 32:
        return '"pods", "system-reserved", "system-reserved-compressible", "kube-reserved", "kube-reserved-compressible" or "none"'
    return '"pods", "system-reserved", "kube-reserved", or "none"'


def reserved_cpus(checked: Checked) -> Iterator[Complaint]:
    """A list such as ``0-3,8``, which cannot be combined with the cgroups."""
    listed = checked.text("reservedSystemCPUs")
    if not listed:
        return
    prefix = "invalid configuration: " if checked.minor >= 24 else ""
    if checked.text("systemReservedCgroup") or checked.text("kubeReservedCgroup"):
        message = (
            "can't use reservedSystemCPUs (--reserved-cpus) with systemReservedCgroup (--system-reserved-cgroup) "
            "or kubeReservedCgroup (--kube-reserved-cgroup)"
        )
        yield Complaint("reservedSystemCPUs", prefix + message)
    error = cpu_list_error(listed, checked.minor)
    if error:
        shown = f" {listed}" if checked.minor >= 24 else ""
        message = f"unable to parse reservedSystemCPUs (--reserved-cpus){shown}, error: {error}"
        yield Complaint("reservedSystemCPUs", prefix + message)
