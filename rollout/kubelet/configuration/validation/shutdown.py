"""Graceful shutdown: in other words until 1.23, and with negative values that pass while the gate is off."""

from __future__ import annotations

from collections.abc import Iterator

from rollout.kubelet.configuration.validation.checked import SECOND, Checked, Complaint, wrong

_TOTAL, _CRITICAL = "shutdownGracePeriod", "shutdownGracePeriodCriticalPods"


def grace_periods(checked: Checked) -> Iterator[Complaint]:
    """The two periods against each other, one second and their gate."""
    total, critical = checked.duration(_TOTAL), checked.duration(_CRITICAL)
    if checked.gate_on("GracefulNodeShutdown"):
        yield from (_newer if checked.minor >= 24 else _older)(checked, total, critical)
    if checked.gate_off("GracefulNodeShutdown") and (total > 0 or critical > 0):
        said = (
            f"specifying {_TOTAL} or {_CRITICAL}"
            if checked.minor >= 24
            else "Specifying ShutdownGracePeriod or ShutdownGracePeriodCriticalPods"
        )
        yield wrong(_TOTAL, f"{said} requires feature gate GracefulNodeShutdown")


def _newer(checked: Checked, total: int, critical: int) -> Iterator[Complaint]:
    shown, shown_critical = checked.shown_duration(_TOTAL), checked.shown_duration(_CRITICAL)
    if critical > total:
        yield wrong(_CRITICAL, f"{_CRITICAL} {shown_critical} must be <= {_TOTAL} {shown}")
    for name, value, said in ((_TOTAL, total, shown), (_CRITICAL, critical, shown_critical)):
        if value < 0 or 0 < value < SECOND:
            yield wrong(name, f"{name} {said} must be either zero or otherwise >= 1 sec")


def _older(checked: Checked, total: int, critical: int) -> Iterator[Complaint]:
    shown, shown_critical = checked.shown_duration(_TOTAL), checked.shown_duration(_CRITICAL)
    if total < 0 or critical < 0 or critical > total:
        said = (
            f"ShutdownGracePeriod {shown} must be >= 0, ShutdownGracePeriodCriticalPods {shown_critical} must be >= 0, "
            f"and ShutdownGracePeriodCriticalPods {shown_critical} must be <= ShutdownGracePeriod {shown}"
        )
        yield wrong(_TOTAL, said)
    for name, value, text in ((_TOTAL, total, shown), (_CRITICAL, critical, shown_critical)):
        if 0 < value < SECOND:
            yield wrong(name, f"{name[0].upper()}{name[1:]} {text} must be either zero or otherwise >= 1 sec")


def by_priority(checked: Checked) -> Iterator[Complaint]:
    """1.23 and later."""
    name = "shutdownGracePeriodByPodPriority"
    if not checked.entries(name):
        return
    gate = "GracefulNodeShutdownBasedOnPodPriority"
    if checked.gate_on(gate) and (checked.duration(_TOTAL) > 0 or checked.duration(_CRITICAL) > 0):
        yield wrong(name, f"Cannot specify both {name} and {_TOTAL} at the same time")
    if checked.gate_off(gate):
        yield wrong(name, f"Specifying {name} requires feature gate {gate}")
