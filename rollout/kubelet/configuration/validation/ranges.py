"""Numbers and durations with a range of their own."""

from __future__ import annotations

from collections.abc import Iterator

from rollout.core.model.frozen import dataclass
from rollout.kubelet.configuration.validation.checked import MILLISECOND, SECOND, Checked, Complaint, wrong

# Graceful shutdown: with other texts until 1.23, and with negative values accepted while the gate is off.


_TOTAL, _CRITICAL = "shutdownGracePeriod", "shutdownGracePeriodCriticalPods"


def grace_periods(checked: Checked) -> Iterator[Complaint]:
    """Compares the two periods with each other and with one second, and checks their gate."""
    total, critical = checked.duration(_TOTAL), checked.duration(_CRITICAL)
    if checked.gate_on("GracefulNodeShutdown"):
        yield from (_newer if checked.minor >= 24 else _older)(checked, total, critical)
    if checked.gate_off("GracefulNodeShutdown") and (total > 0 or critical > 0):
        message = (
            f"specifying {_TOTAL} or {_CRITICAL}"
            if checked.minor >= 24
            else "Specifying ShutdownGracePeriod or ShutdownGracePeriodCriticalPods"
        )
        yield wrong(_TOTAL, f"{message} requires feature gate GracefulNodeShutdown")


def _newer(checked: Checked, total: int, critical: int) -> Iterator[Complaint]:
    shown, shown_critical = checked.shown_duration(_TOTAL), checked.shown_duration(_CRITICAL)
    if critical > total:
        yield wrong(_CRITICAL, f"{_CRITICAL} {shown_critical} must be <= {_TOTAL} {shown}")
    for name, value, text in ((_TOTAL, total, shown), (_CRITICAL, critical, shown_critical)):
        if value < 0 or 0 < value < SECOND:
            yield wrong(name, f"{name} {text} must be either zero or otherwise >= 1 sec")


def _older(checked: Checked, total: int, critical: int) -> Iterator[Complaint]:
    shown, shown_critical = checked.shown_duration(_TOTAL), checked.shown_duration(_CRITICAL)
    if total < 0 or critical < 0 or critical > total:
        message = (
            f"ShutdownGracePeriod {shown} must be >= 0, ShutdownGracePeriodCriticalPods {shown_critical} must be >= 0, "
            f"and ShutdownGracePeriodCriticalPods {shown_critical} must be <= ShutdownGracePeriod {shown}"
        )
        yield wrong(_TOTAL, message)
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


_LARGEST = 2**63


@dataclass(frozen=True, slots=True)
class _Range:
    """``least`` to ``most``, both included. With ``zero``, 0 is allowed anyway and means "off"."""

    field: str
    flag: str
    rest: str
    least: int = 0
    most: int = _LARGEST
    zero: bool = False


_NEGATIVE = "must not be a negative number"
_RANGES = (
    _Range("eventBurst", "event-burst", _NEGATIVE),
    _Range("eventRecordQPS", "event-qps", _NEGATIVE),
    _Range("healthzPort", "healthz-port", "must be between 1 and 65535, inclusive", 1, 65535, zero=True),
    _Range("imageGCHighThresholdPercent", "image-gc-high-threshold", "must be between 0 and 100, inclusive", 0, 100),
    _Range("imageGCLowThresholdPercent", "image-gc-low-threshold", "must be between 0 and 100, inclusive", 0, 100),
    _Range("iptablesDropBit", "iptables-drop-bit", "must be between 0 and 31, inclusive", 0, 31),
    _Range("iptablesMasqueradeBit", "iptables-masquerade-bit", "must be between 0 and 31, inclusive", 0, 31),
    _Range("kubeAPIBurst", "kube-api-burst", _NEGATIVE),
    _Range("kubeAPIQPS", "kube-api-qps", _NEGATIVE),
    _Range("maxOpenFiles", "max-open-files", _NEGATIVE),
    _Range("maxPods", "max-pods", _NEGATIVE),
    _Range("oomScoreAdj", "oom-score-adj", "must be between -1000 and 1000, inclusive", -1000, 1000),
    _Range("podsPerCore", "pods-per-core", _NEGATIVE),
    _Range("port", "port", "must be between 1 and 65535, inclusive", 1, 65535),
    _Range("readOnlyPort", "read-only-port", "must be between 0 and 65535, inclusive", 0, 65535),
    _Range("registryBurst", "registry-burst", _NEGATIVE),
    _Range("registryPullQPS", "registry-qps", _NEGATIVE),
)


def ranges(checked: Checked) -> Iterator[Complaint]:
    """Checks each number against its range."""
    if checked.number("nodeLeaseDurationSeconds") <= 0:
        yield wrong("nodeLeaseDurationSeconds", "nodeLeaseDurationSeconds must be greater than 0")
    for span in _RANGES:
        value = checked.number(span.field)
        if not (span.least <= value <= span.most or (span.zero and value == 0)):
            yield wrong(span.field, f"{span.field} (--{span.flag}) {value} {span.rest}")


def thresholds(checked: Checked) -> Iterator[Complaint]:
    """The low threshold of image garbage collection must be below the high one."""
    low, high = checked.number("imageGCLowThresholdPercent"), checked.number("imageGCHighThresholdPercent")
    if low >= high:
        yield wrong(
            "imageGCLowThresholdPercent",
            f"imageGCLowThresholdPercent (--image-gc-low-threshold) {low} must be less than "
            f"imageGCHighThresholdPercent (--image-gc-high-threshold) {high}",
        )


def status_images(checked: Checked) -> Iterator[Complaint]:
    """-1 means all images."""
    value = checked.number("nodeStatusMaxImages")
    if value < -1:
        shown = f"{value} " if checked.minor >= 24 else ""
        yield wrong(
            "nodeStatusMaxImages", f"nodeStatusMaxImages (--node-status-max-images) {shown}must be -1 or greater"
        )


def quota_period(checked: Checked) -> Iterator[Complaint]:
    """A value other than 100 ms needs its gate, and has a range."""
    period, shown = checked.duration("cpuCFSQuotaPeriod"), checked.shown_duration("cpuCFSQuotaPeriod")
    name = "cpuCFSQuotaPeriod (--cpu-cfs-quota-period)"
    least, said = (MILLISECOND, "1ms") if checked.minor >= 26 else (1000, "1usec")
    if checked.gate_off("CustomCPUCFSQuotaPeriod") and period != 100 * MILLISECOND:
        named = name if checked.minor >= 24 else "cpuCFSQuotaPeriod"
        yield wrong("cpuCFSQuotaPeriod", f"{named} {shown} requires feature gate CustomCPUCFSQuotaPeriod")
    if checked.gate_on("CustomCPUCFSQuotaPeriod") and not least <= period <= SECOND:
        yield wrong("cpuCFSQuotaPeriod", f"{name} {shown} must be between {said} and 1sec, inclusive")


def container_logs(checked: Checked) -> Iterator[Complaint]:
    """Workers and interval since 1.30, files since 1.33 (before, only the runtime's log manager checks their number)."""
    if checked.minor >= 30 and checked.number("containerLogMaxWorkers") < 1:
        yield wrong("containerLogMaxWorkers", "containerLogMaxWorkers must be greater than or equal to 1")
    if checked.minor >= 30 and checked.duration("containerLogMonitorInterval") < 3 * SECOND:
        message = "containerLogMonitorInterval must be a positive time duration greater than or equal to 3s"
        yield wrong("containerLogMonitorInterval", message)
    if checked.minor >= 33 and checked.number("containerLogMaxFiles") <= 1:
        yield wrong("containerLogMaxFiles", "containerLogMaxFiles must be greater than 1")


def image_ages(checked: Checked) -> Iterator[Complaint]:
    """``imageMaximumGCAge`` since 1.29; a negative minimum is refused since 1.36."""
    least, most = checked.duration("imageMinimumGCAge"), checked.duration("imageMaximumGCAge")
    shown = checked.text("imageMaximumGCAge")
    if most and checked.gate_off("ImageMaximumGCAge"):
        option = "imageMaximumGCAge" if checked.minor >= 30 else "ImageMaximumGCAge"
        message = f"ImageMaximumGCAge feature gate is required for Kubelet configuration option {option}"
        yield wrong("imageMaximumGCAge", message)
    if checked.minor >= 36 and least < 0:
        yield wrong("imageMinimumGCAge", f"imageMinimumGCAge {checked.text('imageMinimumGCAge')} must not be negative")
    if most < 0:
        yield wrong("imageMaximumGCAge", f"imageMaximumGCAge {shown} must not be negative")
    if 0 < most <= least:
        message = (
            f"imageMaximumGCAge {shown} must be greater than imageMinimumGCAge {checked.text('imageMinimumGCAge')}"
        )
        yield wrong("imageMaximumGCAge", message)
