"""The start of a kubelet from its configuration, step by step as in ``NewKubeletCommand``.

Flags, gates and labels of the command line; the file; drop-ins; flags again, over both; gates; validation; the checks
of the start. The first step that fails ends the start, with all messages of that step. Source:
``cmd/kubelet/app/server.go``.
"""

from __future__ import annotations

from rollout.kubelet import fields
from rollout.kubelet.configuration import feature_gates, start_checks
from rollout.kubelet.configuration.command_line import read_flags, set_gates, wrapped
from rollout.kubelet.configuration.cpu_lists import cpus
from rollout.kubelet.configuration.decoding import Object, shown
from rollout.kubelet.configuration.defaulting import defaults
from rollout.kubelet.configuration.findings import Findings, KubeletStoppedError
from rollout.kubelet.configuration.flags import Flags, field_path, with_flags
from rollout.kubelet.configuration.loading import base, with_drop_ins
from rollout.kubelet.configuration.outcome import KubeletOutcome, Layer, Origin, Sources
from rollout.kubelet.configuration.validation import allocatable, policies, ranges
from rollout.kubelet.configuration.validation.checked import Check, Checked, Complaint
from rollout.kubelet.versions import Version

# What a kubelet itself changes in its configuration during its start; ``/configz`` shows it afterwards.


_CERTIFICATES = "/var/lib/kubelet/pki"


def as_started(configuration: Object, flags: Flags) -> Object:
    """The configuration of a running kubelet."""
    return _reserved_cpus(_own_certificate(configuration, flags))


def _own_certificate(configuration: Object, flags: Flags) -> Object:
    """It makes a certificate for itself when none is given (``InitializeTLS``)."""
    given = configuration.get("tlsCertFile") or configuration.get("tlsPrivateKeyFile")
    if given or configuration.get("serverTLSBootstrap") is True:
        return configuration
    folder = flags.text("--cert-dir") or _CERTIFICATES
    own = {"tlsCertFile": f"{folder}/kubelet.crt", "tlsPrivateKeyFile": f"{folder}/kubelet.key"}
    return {**configuration, **own}


def _reserved_cpus(configuration: Object) -> Object:
    """``reservedSystemCPUs`` replaces the CPU in both reservations (``run`` in ``cmd/kubelet/app/server.go``).

    ``/configz`` was filled earlier, but shares the maps; a map that was nil then is not shown.
    """
    listed = configuration.get("reservedSystemCPUs")
    if not listed:
        return configuration
    full = dict(configuration)
    if full.get("kubeReserved"):
        full["kubeReserved"] = {name: amount for name, amount in full["kubeReserved"].items() if name != "cpu"}
    if full.get("systemReserved") is not None:
        full["systemReserved"] = {**full["systemReserved"], "cpu": str(cpus(listed))}
    return full


class UnknownMinorError(ValueError):
    """rollout has no data for kubelets of this minor."""


def is_known(minor: int) -> bool:
    """Are types, defaults and gates of this minor all known? Without one of them every result would be a guess."""
    return minor in fields.known_minors() and bool(defaults(minor)) and bool(feature_gates.known_gates(minor))


def outcome(version: Version, sources: Sources) -> KubeletOutcome:
    """Verdict, ignored fields, effective values and messages. ``UnknownMinorError`` for a minor that is not in the data."""
    if not is_known(version.minor):
        raise UnknownMinorError(f"rollout has no data for kubelet {version.short}")
    findings = Findings(version.minor)
    try:
        configuration, flags = _configured(sources, findings)
        checked = Checked(configuration, findings.minor, sources.cgroup_v1)
        found = complaints(checked)
        for complaint in found:
            said = wrapped(findings, "failed to validate kubelet configuration, error", complaint.text)
            findings.fatal("invalid-configuration", said, findings.place_of(complaint.field), complaint.field)
        if found:
            raise KubeletStoppedError
        refused = start_checks.refusal(checked, flags)
        if refused is not None:
            raise findings.stop("cannot-run", refused.text, findings.place_of(refused.field), refused.field)
    except KubeletStoppedError:
        return KubeletOutcome(starts=False, ignored=tuple(findings.ignored), messages=tuple(findings.messages))
    effective = shown(as_started(configuration, flags), version.minor)
    origins = {name: findings.origins.get(name, Origin(Layer.DEFAULT)) for name in effective}
    return KubeletOutcome(
        starts=True,
        ignored=tuple(findings.ignored),
        effective=effective,
        origins=origins,
        messages=tuple(findings.messages),
    )


def _configured(sources: Sources, findings: Findings) -> tuple[Object, Flags]:
    flags = read_flags(sources, findings)
    configuration = base(sources.config, flags, findings)
    if sources.drop_ins is not None:
        configuration = with_drop_ins(configuration, sources, sources.drop_ins, findings)
    configuration = with_flags(configuration, flags, findings.minor)
    for name in flags.values:
        path = field_path(name, findings.minor)
        if path:
            findings.origins[path[0]] = Origin(Layer.FLAG, flags.given[name])
    set_gates(configuration.get("featureGates") or {}, findings)
    return configuration, flags


# All checks in the order of the kubelet.


_CHECKS: tuple[Check, ...] = (
    policies.gates_needed,
    ranges.ranges,
    allocatable.cgroups,
    ranges.quota_period,
    ranges.thresholds,
    ranges.image_ages,
    ranges.status_images,
    policies.parallel_pulls,
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
    policies.credentials_verification,
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
