"""Swap, memory QoS and memory kept by NUMA node."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rollout.kubelet.configuration import quantities
from rollout.kubelet.configuration.go_values import quoted
from rollout.kubelet.configuration.validation.checked import Checked, Complaint, wrong

_HUGE = "hugepages-"
_SUPPORTED = "[memory hugepages-<HugePageSize>]"


def swap(checked: Checked) -> Iterator[Complaint]:
    """``memorySwap``, since 1.22; ``UnlimitedSwap`` became ``NoSwap`` with 1.30."""
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


def throttling(checked: Checked) -> Iterator[Complaint]:
    """``memoryThrottlingFactor``, since 1.22."""
    factor = checked.values.get("memoryThrottlingFactor")
    if checked.minor >= 22 and isinstance(factor, int | float) and not 0 < factor <= 1:
        said = f"memoryThrottlingFactor {factor:g} must be greater than 0 and less than or equal to 1.0"
        yield wrong("memoryThrottlingFactor", said)


def reservation_policy(checked: Checked) -> Iterator[Complaint]:
    """``memoryReservationPolicy``, since 1.36."""
    if checked.minor < 36 or "memoryReservationPolicy" not in checked.values:
        return
    policy = checked.text("memoryReservationPolicy")
    if policy == "TieredReservation" and checked.gate_off("MemoryQoS"):
        said = f"memoryReservationPolicy {quoted(policy)} requires MemoryQoS feature gate to be enabled"
        yield wrong("memoryReservationPolicy", said)
    if policy not in {"None", "TieredReservation"}:
        said = f'option {quoted(policy)} specified for memoryReservationPolicy. Valid options are "None" or "TieredReservation"'
        yield wrong("memoryReservationPolicy", said)


def reserved(checked: Checked) -> Iterator[Complaint]:
    """``reservedMemory``: memory and huge pages, none of them zero, each once for a NUMA node."""
    seen: set[tuple[int, str]] = set()
    for entry in checked.entries("reservedMemory"):
        node = entry.get("numaNode", 0)
        for name, amount in (entry.get("limits") or {}).items():
            yield from _limit(node, name, amount, repeated=(node, name) in seen)
            seen.add((node, name))


def _limit(node: int, name: str, amount: Any, *, repeated: bool) -> Iterator[Complaint]:
    if name != "memory" and not name.startswith(_HUGE):
        said = f"the limit type {quoted(name)} for NUMA node {node} is not supported, only {_SUPPORTED} is accepted"
        yield wrong("reservedMemory", said)
    if quantities.parse(str(amount)).amount == 0:
        said = f"reserved memory may not be zero for NUMA node {node} and resource {quoted(name)}"
        yield wrong("reservedMemory", said)
    if repeated:
        said = f"the reserved memory has a duplicate value for NUMA node {node} and resource {quoted(name)}"
        yield wrong("reservedMemory", said)
