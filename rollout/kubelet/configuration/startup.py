"""The start of a kubelet from its configuration, step by step as in ``NewKubeletCommand``.

Flags, gates and labels of the command line; the file; drop-ins; flags again, over both; gates; validation; the checks
of the start. The first step that fails ends the start, with all messages of that step. Source:
``cmd/kubelet/app/server.go``.
"""

from __future__ import annotations

import posixpath
from typing import Any

from rollout.kubelet import fields
from rollout.kubelet.configuration import drop_ins, feature_gates, notes, schema, start_checks
from rollout.kubelet.configuration.command_line import read_again, read_flags, refused_gate, set_gates, wrapped
from rollout.kubelet.configuration.config_file import (
    LoadError,
    check_kind,
    decoded,
    document,
    type_meta,
    with_absolute_paths,
)
from rollout.kubelet.configuration.decoding import Mistake, Object, shown
from rollout.kubelet.configuration.defaulting import defaults, fill_file, is_set, without_file
from rollout.kubelet.configuration.findings import Findings, KubeletStoppedError
from rollout.kubelet.configuration.flags import Flags, field_path, reset_by_flags, with_flags
from rollout.kubelet.configuration.go_values import cpus, quoted
from rollout.kubelet.configuration.outcome import File, KubeletOutcome, Layer, Origin, Sources
from rollout.kubelet.configuration.validation import allocatable, logging, policies, ranges
from rollout.kubelet.configuration.validation.checked import Check, Checked, Complaint
from rollout.kubelet.versions import Version

_PANIC_SINCE = 32
"""From this minor on defaults depend on gates; a gate in the file that cannot be set makes the kubelet panic there."""


def base(config: File | None, flags: Flags, findings: Findings) -> Object:
    """The base for drop-ins and flags; without a file it already contains the flags."""
    if config is None:
        return with_flags(without_file(findings.minor), flags, findings.minor)
    written = _loaded(config, _loading(config, findings.minor), findings)
    return _defaulted(written, config, Layer.FILE, flags, findings)


def _loading(file: File, minor: int) -> str:
    """The prefix of every error of the main file."""
    message = f"failed to load Kubelet config file {file.path}, error"
    if minor >= 28:
        return f"failed to load kubelet config file, path: {file.path}, error: {message}"
    return f"failed to load kubelet config file, error: {message}" if minor >= 26 else message


def _loaded(file: File, ahead: str, findings: Findings) -> Object:
    """A whole configuration file: strictly, then leniently."""
    try:
        found = document(file)
        check_kind(type_meta(found.value))
    except LoadError as error:
        raise findings.unreadable(file, error, f"{ahead} {error.text}") from None
    read = decoded(found.value, findings.minor)
    _refuse_mistakes(read.mistakes, file, f"{ahead} failed to decode:", findings)
    for duplicate in found.duplicates:
        findings.duplicate_key(file, duplicate.path, duplicate.line)
    for path in read.unknown:
        findings.unknown_field(file, path)
    findings.second_document(file, found.rest)
    notes.about_values(read.value, file, findings)
    return read.value


def _refuse_mistakes(mistakes: list[Mistake], file: File, ahead: str, findings: Findings) -> None:
    for mistake in mistakes:
        findings.bad_value(f"{ahead} {mistake.text}", file, mistake)
    if mistakes:
        raise KubeletStoppedError


def _defaulted(written: Object, file: File, layer: Layer, flags: Flags, findings: Findings) -> Object:
    types = schema.fields_of(schema.ROOT, findings.minor)
    findings.files[file.path] = file
    origins = {name: Origin(layer, file.path) for name in written if is_set(written, name, types[name])}
    findings.origins.update(origins)
    _panic_over_gates(written, flags, findings)
    return fill_file(with_absolute_paths(written, file), findings.minor, flags.gates)


def _panic_over_gates(written: Object, flags: Flags, findings: Findings) -> None:
    """Gates that cannot be set, or that need others (since 1.35), before the flags are read again."""
    if findings.minor < _PANIC_SINCE:
        return
    if not feature_gates.certain(findings.minor):
        return
    mistakes = feature_gates.mistakes(written.get("featureGates") or {}, findings.minor)
    ahead = "panic: failed to merge global and in-flight KubeletConfiguration while setting defaults, error:"
    for mistake in mistakes:
        refused_gate(mistake, f"{ahead} {mistake.text}", findings)
    gates = feature_gates.set_over(flags.gates, written.get("featureGates") or {})
    needs = () if mistakes else feature_gates.unmet(gates, findings.minor)
    for need in needs:
        findings.refused("invalid-configuration", f"{ahead} {need}", Complaint("featureGates", need))
    if mistakes or needs:
        raise KubeletStoppedError


def with_drop_ins(base: Object, sources: Sources, flags: Flags, findings: Findings) -> Object:
    """The base with the drop-ins merged into it, in the way of this minor."""
    files = sources.drop_ins or ()
    minor = findings.minor
    if minor < drop_ins.SINCE:
        message = wrapped(findings, "failed to parse kubelet flag", "unknown flag: --config-dir")
        raise findings.stop("unknown-flag", message)
    folder = flags.text("--config-dir") or (posixpath.dirname(files[0].path) if files else "--config-dir")
    walking = f"failed to merge kubelet configs: failed to walk through kubelet dropin directory {quoted(folder)}:"
    if minor <= drop_ins.ENVIRONMENT_UNTIL and drop_ins.ENVIRONMENT not in sources.environment:
        message = (
            f"flag {folder} specified but environment variable {drop_ins.ENVIRONMENT} not set, cannot start kubelet"
        )
        raise findings.stop("drop-ins-need-environment", message)
    if minor < drop_ins.PATCH_SINCE:
        # 1.28: the defaults that fill a drop-in win, just like its written values.
        for file in files:
            loading = f"failed to load Kubelet config file {file.path}, error"
            ahead = f"{walking} failed to load kubelet dropin file, path: {file.path}, error: {loading}"
            written = _loaded(file, ahead, findings)
            drop_in = _defaulted(written, file, Layer.DROP_IN, flags, findings)
            merged = drop_ins.merge_whole(base, drop_in, schema.ROOT, findings.minor)
            for name in merged:
                if name not in written and merged[name] != base.get(name):
                    findings.origins.pop(name, None)
            base = merged
        return base
    patches = [_patch(file, walking, findings) for file in files]
    patched = drop_ins.apply_patches(base, patches, findings.minor, flags.gates)
    for mistake in patched.mistakes:
        author = _who_wrote(mistake.path[0], files, patches)
        message = f"failed to merge kubelet configs: failed to unmarshal merged JSON into kubelet configuration: {mistake.text}"
        findings.bad_value(message, author, mistake)
    if patched.mistakes:
        raise KubeletStoppedError
    if minor >= drop_ins.VERSIONED_SINCE:
        _panic_over_gates(patched.configuration, flags, findings)
    for path in patched.unknown:
        author = _who_wrote(path[0], files, patches)
        if author:
            findings.dropped_field(author, path)
    for name in [name for name in findings.origins if base.get(name) != patched.configuration.get(name)]:
        del findings.origins[name]
    for file, patch in zip(files, patches, strict=True):
        findings.files[file.path] = file
        notes.about_values(decoded(patch, minor).value, file, findings)
        for name, typed in drop_ins.typed_names(patch, findings.minor).items():
            if name != typed:
                findings.wrong_case(file, name, typed)
            elif patch[name] is None and findings.minor >= drop_ins.VERSIONED_SINCE:
                findings.origins.pop(typed, None)
            if patch[name] is not None and typed in patched.configuration:
                findings.origins[typed] = Origin(Layer.DROP_IN, file.path)
    return patched.configuration


def _patch(file: File, walking: str, findings: Findings) -> Object:
    """``loadDropinConfigFileIntoJSON`` (``cmd/kubelet/app/server.go``, 1.29 to 1.36) names no step of decoding."""
    try:
        patch = drop_ins.patch_of(file, findings.minor)
    except LoadError as error:
        comma = ", " if error.text.startswith("unknown apiVersion") else ", error: "
        text = error.text.removeprefix("failed to decode: ")
        message = f"{walking} failed to load kubelet dropin file, path: {file.path}{comma}{text}"
        raise findings.unreadable(file, error, message) from None
    findings.second_document(file, document(file).rest)
    return patch


def _who_wrote(name: Any, files: tuple[File, ...], patches: list[Object]) -> File | None:
    """The last drop-in that has this top-level field."""
    return next((file for file, patch in zip(files[::-1], patches[::-1], strict=True) if name in patch), None)


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
    folder = str(flags.values.get("--cert-dir", _CERTIFICATES))
    certificate, key = (posixpath.normpath(posixpath.join(folder, name)) for name in ("kubelet.crt", "kubelet.key"))
    own = {"tlsCertFile": certificate, "tlsPrivateKeyFile": key}
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
        checked = Checked(configuration, findings.minor, sources.cgroup_v1, flags.values)
        if findings.minor >= logging.FIRST_SINCE:
            _refuse(tuple(logging.logging(checked)), "initialize logging", findings)
        _refuse(complaints(checked), "failed to validate kubelet configuration, error", findings)
        refused = start_checks.refusal(checked, flags)
        if refused is not None:
            findings.refused("cannot-run", refused.text, refused)
            raise KubeletStoppedError
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


def _refuse(complained: tuple[Complaint, ...], doing: str, findings: Findings) -> None:
    for complaint in complained:
        findings.refused("invalid-configuration", wrapped(findings, doing, complaint.text), complaint)
    if complained:
        raise KubeletStoppedError


def _configured(sources: Sources, findings: Findings) -> tuple[Object, Flags]:
    flags = read_flags(sources, findings)
    configuration = base(sources.config, flags, findings)
    if sources.drop_ins is not None:
        configuration = with_drop_ins(configuration, sources, flags, findings)
    over = flags
    if sources.config is not None or sources.drop_ins is not None:
        over = read_again(sources, flags, findings)
        configuration, lost = reset_by_flags(configuration, findings.minor)
        notes.about_lost_fields(lost, over, findings)
        before, configuration = configuration, with_flags(configuration, over, findings.minor)
        notes.about_flags(before, configuration, over, findings)
    for name in over.values:
        path = field_path(name, findings.minor)
        if path:
            findings.origins[path[0]] = Origin(Layer.FLAG, over.given[name])
    gates = configuration.get("featureGates") or {}
    set_gates(gates, findings)
    notes.about_gates(gates, findings)
    notes.about_runtime(flags, findings)
    notes.about_sources(sources, flags, findings)
    return configuration, flags


_CHECKS: tuple[Check, ...] = (
    policies.gates_needed,
    ranges.ranges,
    allocatable.cgroups,
    ranges.quota_period,
    ranges.thresholds,
    policies.pod_sysctls,
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
    logging.logging,
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
    every = (complaint for check in _CHECKS for complaint in check(checked))
    return tuple(dict.fromkeys(every))
