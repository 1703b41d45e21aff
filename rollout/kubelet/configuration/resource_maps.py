"""Maps of quantities and percentages, which a kubelet reads after validation: reservations and eviction.

Sources: ``parseResourceList`` (``cmd/kubelet/app/server.go``), ``ParseThresholdConfig`` (``pkg/kubelet/eviction/helpers.go``),
``ParseQOSReserved`` (``pkg/kubelet/cm/container_manager.go``) of 1.20.2. Go walks maps in no order; here it is sorted.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from rollout.kubelet.configuration import go_values, quantities
from rollout.kubelet.configuration.go_values import GoValueError, quoted

_RESERVED = frozenset({"cpu", "memory", "ephemeral-storage", "pid"})
_SIGNALS = frozenset({
    "memory.available", "nodefs.available", "nodefs.inodesFree", "imagefs.available", "imagefs.inodesFree",
    "pid.available", "allocatableMemory.available",
})  # fmt: skip
_CONTAINERFS = frozenset({"containerfs.available", "containerfs.inodesFree"})
_CONTAINERFS_SINCE = 29
_PERCENT = re.compile(r"[-+]?[0-9]+", re.ASCII)

Texts = Mapping[str, str]


def reservation(amounts: Texts) -> str:
    """``kubeReserved`` or ``systemReserved``: what is wrong, or ``""``."""
    for name, amount in sorted(amounts.items()):
        if name not in _RESERVED:
            return f"cannot reserve {quoted(name)} resource"
        try:
            found = quantities.parse(amount)
        except GoValueError as error:
            return str(error)
        if found.amount < 0:
            return f"resource quantity for {quoted(name)} cannot be negative: {amount}"
    return ""


def qos_reservation(amounts: Texts) -> str:
    """``qosReserved``: memory in whole percent."""
    for name, amount in sorted(amounts.items()):
        if name != "memory":
            return f"cannot reserve {quoted(name)} resource"
        if not amount.endswith("%"):
            return f"percentage expected, got '{amount}'"
        if not _PERCENT.fullmatch(amount.rstrip("%")):
            return f"invalid number in percentage '{amount}'"
        if not 0 <= int(amount.rstrip("%")) <= 100:
            return "percentage must be between 0 and 100"
    return ""


def eviction(hard: Texts, soft: Texts, grace: Texts, reclaim: Texts, minor: int) -> str:
    """The four maps of eviction together: what is wrong, or ``""``."""
    try:
        for _ in _thresholds(hard, minor):
            pass
        counted = list(_thresholds(soft, minor))
        _grace_periods(grace, minor)
        _reclaims(reclaim, minor)
    except GoValueError as error:
        return str(error)
    alone = [signal for signal in counted if signal not in grace]
    return f"grace period must be specified for the soft eviction threshold {alone[0]}" if alone else ""


def _known(signal: str, minor: int) -> None:
    if signal not in _SIGNALS and not (minor >= _CONTAINERFS_SINCE and signal in _CONTAINERFS):
        raise GoValueError(f"unsupported eviction signal {signal}")


def _thresholds(statements: Texts, minor: int) -> Iterator[str]:
    """The signals that count: 0 % and 100 % are no thresholds."""
    for signal, value in sorted(statements.items()):
        _known(signal, minor)
        if value in {"0%", "100%"}:
            continue
        if value.endswith("%"):
            _percentage(signal, value)
        elif quantities.parse(value).amount <= 0:
            raise GoValueError(f"eviction threshold {signal} must be positive: {value}")
        yield signal


def _percentage(signal: str, value: str) -> None:
    percent = go_values.decimal(value.rstrip("%"))
    if percent < 0:
        raise GoValueError(f"eviction percentage threshold {signal} must be >= 0%: {value}")
    if percent / 100 > 100:  # the kubelet compares the hundredth part of it
        raise GoValueError(f"eviction percentage threshold {signal} must be <= 100%: {value}")


def over_capacity(hard: Texts) -> bool:
    """More than all of the node's memory or disk is kept free: nothing can be allocated, whatever the node."""
    values = (hard.get(signal, "") for signal in ("memory.available", "nodefs.available"))
    return any(value.endswith("%") and not go_values.decimal(value.rstrip("%")) <= 100 for value in values)


def _grace_periods(statements: Texts, minor: int) -> None:
    for signal, value in sorted(statements.items()):
        _known(signal, minor)
        if go_values.duration(value) < 0:
            raise GoValueError(f"invalid eviction grace period specified: {value}, must be a positive value")


def _reclaims(statements: Texts, minor: int) -> None:
    for signal, value in sorted(statements.items()):
        _known(signal, minor)
        if value.endswith("%"):
            if go_values.decimal(value.rstrip("%")) <= 0:
                raise GoValueError(f"eviction percentage minimum reclaim {signal} must be positive: {value}")
        elif quantities.parse(value).amount < 0:
            raise GoValueError(f"negative eviction minimum reclaim specified for {signal}")
