"""All checks in the order of the kubelet."""

from __future__ import annotations

from rollout.kubelet.configuration.validation import allocatable, policies, pulling, ranges
from rollout.kubelet.configuration.validation.checked import Check, Checked, Complaint

_CHECKS: tuple[Check, ...] = (
    policies.gates_needed,
    ranges.ranges,
    allocatable.cgroups,
    ranges.quota_period,
    ranges.thresholds,
    ranges.image_ages,
    ranges.status_images,
    pulling.parallel_pulls,
    policies.certificates,
    policies.run_once,
    policies.taints,
    policies.topology,
    ranges.grace_periods,
    ranges.by_priority,
    allocatable.swap,
    policies.restart_period,
    allocatable.enforcement,
    policies.hairpin,
    pulling.credentials_verification,
    allocatable.reserved_cpus,
    allocatable.reserved,
    policies.cgroup_version,
    allocatable.oom_kill,
    allocatable.user_namespaces,
    policies.hidden_metrics,
    policies.log_format,
    policies.log_options,
    policies.tracing,
    allocatable.throttling,
    allocatable.reservation_policy,
    policies.runtime_endpoint,
    policies.system_log_query,
    ranges.container_logs,
    policies.pod_logs_folder,
)


def complaints(checked: Checked) -> tuple[Complaint, ...]:
    """All errors; duplicate texts are reported once, as Go's aggregate does."""
    found = (complaint for check in _CHECKS for complaint in check(checked))
    return tuple(dict.fromkeys(found))
