"""All checks in the order in which the kubelet makes them."""

from __future__ import annotations

from rollout.kubelet.configuration.validation import (
    allocatable,
    linux,
    memory,
    nested,
    policies,
    pulling,
    ranges,
    shutdown,
)
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
    nested.taints,
    policies.topology,
    shutdown.grace_periods,
    shutdown.by_priority,
    memory.swap,
    policies.restart_period,
    allocatable.enforcement,
    policies.hairpin,
    pulling.credentials_verification,
    allocatable.reserved_cpus,
    memory.reserved,
    policies.cgroup_version,
    linux.oom_kill,
    linux.user_namespaces,
    policies.hidden_metrics,
    nested.log_format,
    nested.log_options,
    nested.tracing,
    memory.throttling,
    memory.reservation_policy,
    policies.runtime_endpoint,
    policies.system_log_query,
    ranges.container_logs,
    policies.pod_logs_folder,
)


def complaints(checked: Checked) -> tuple[Complaint, ...]:
    """Everything that is wrong; a text that comes twice is told once, as Go's aggregate does."""
    found = (complaint for check in _CHECKS for complaint in check(checked))
    return tuple(dict.fromkeys(found))
