"""Enumerated values, and fields that need a gate."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

from rollout.kubelet.configuration import feature_gates
from rollout.kubelet.configuration.flag_values import KINDS
from rollout.kubelet.configuration.go_values import GoValueError, quoted
from rollout.kubelet.configuration.validation.checked import Checked, Complaint, wrong

# Logging, tracing and taints.


_FORMATS = ("", "text", "json")
_ALPHA_OPTIONS = "LoggingAlphaOptions"
_NAMING = "https://github.com/grpc/grpc/blob/master/doc/naming.md"
_SCHEMES = frozenset({"dns", "unix", "unix-abstract"})


def log_format(checked: Checked) -> Iterator[Complaint]:
    """Until 1.21 with a text of its own, then as a field error of component-base."""
    found = str(checked.inner("logging").get("format") or "")
    if found in _FORMATS:
        return
    if checked.minor < 22:
        yield Complaint("logging", f"unsupported log format: {found}")
    else:
        yield Complaint("logging", f"logging.format: Invalid value: {quoted(found)}: Unsupported log format")


def log_options(checked: Checked) -> Iterator[Complaint]:
    """Alpha options need a gate (component-base ``logs/api/v1``)."""
    options = checked.inner("logging").get("options")
    if not isinstance(options, dict) or not checked.gate_off(_ALPHA_OPTIONS):
        return
    for style in ("text", "json"):
        said = options.get(style) or {}
        for name in (name for name in ("splitStream", "infoBufferSize") if said.get(name) not in {None, False, "0"}):
            text = f"logging.options.{style}.{name}: Forbidden: Feature {_ALPHA_OPTIONS} is disabled"
            yield Complaint("logging", text)


def tracing(checked: Checked) -> Iterator[Complaint]:
    """``tracing``, since 1.25."""
    found = checked.values.get("tracing")
    if not isinstance(found, dict) or checked.minor < 25:
        return
    if checked.gate_off("KubeletTracing"):
        said = "tracing should not be configured if KubeletTracing feature flag is disabled."
        yield wrong("tracing", said)
        return
    rate = found.get("samplingRatePerMillion")
    if isinstance(rate, int) and rate < 0:
        said = "sampling rate must be positive"
        yield Complaint("tracing", f"tracing.samplingRatePerMillion: Invalid value: {rate}: {said}")
    if isinstance(rate, int) and rate > 1_000_000:
        said = "sampling rate per million must be less than or equal to one million"
        yield Complaint("tracing", f"tracing.samplingRatePerMillion: Invalid value: {rate}: {said}")
    # Without ``//`` it is a name; a scheme consists of letters, digits and ``+-.``.
    written = str(found.get("endpoint") or "")
    scheme = written.partition("://")[0].lower() if "//" in written else "dns"
    if scheme not in _SCHEMES:
        said = f"unsupported scheme: {scheme}.  Options are none, dns, unix, or unix-abstract.  See {_NAMING}"
        yield Complaint("tracing", f"tracing.endpoint: Invalid value: {quoted(written)}: {said}")


def taints(checked: Checked) -> Iterator[Complaint]:
    """``registerWithTaints``, since 1.23."""
    for taint in checked.entries("registerWithTaints"):
        if not _is_taint(taint):
            yield Complaint("registerWithTaints", f"invalid taint: {taint}")
        if taint.get("timeAdded") is not None:
            named = "invalid configuration: taint.TimeAdded" if checked.minor >= 24 else "taint TimeAdded"
            yield Complaint("registerWithTaints", f"{named} is not nil")


def _is_taint(taint: Any) -> bool:
    pair = f"{taint.get('key') or ''}={taint.get('value') or ''}"
    try:
        KINDS["taints"](f"{pair}:{taint.get('effect') or 'NoSchedule'}", None)
    except GoValueError:
        return False
    return bool(taint.get("effect"))


_TOPOLOGIES = ("none", "best-effort", "restricted", "single-numa-node")
_SCOPES = ("container", "pod")
_HAIRPINS = ("none", "hairpin-veth", "promiscuous-bridge")


def topology(checked: Checked) -> Iterator[Complaint]:
    """Until 1.26 any value except the defaults also needs the gate."""
    policy, scope = checked.text("topologyManagerPolicy"), checked.text("topologyManagerScope")
    if policy != "none":
        yield from _topology_gate(checked, "topologyManagerPolicy", policy)
    if policy not in _TOPOLOGIES:
        listed = f"[{' '.join(quoted(name) for name in _TOPOLOGIES)}]"
        newer = f"topologyManagerPolicy (--topology-manager-policy) {quoted(policy)} must be one of: {listed}"
        older = f"topologyManagerPolicy non-allowable value: {policy}"
        yield wrong("topologyManagerPolicy", newer if checked.minor >= 24 else older)
    if scope != "container":
        yield from _topology_gate(checked, "topologyManagerScope", scope)
    if scope not in _SCOPES:
        newer = f'topologyManagerScope (--topology-manager-scope) {quoted(scope)} must be one of: "container", or "pod"'
        older = f"topologyManagerScope non-allowable value: {scope}"
        yield wrong("topologyManagerScope", newer if checked.minor >= 24 else older)


def _topology_gate(checked: Checked, field: str, value: str) -> Iterator[Complaint]:
    if checked.minor <= 26 and checked.gate_off("TopologyManager"):
        yield wrong(field, f"{field} {value} requires feature gate TopologyManager")


def gates_needed(checked: Checked) -> Iterator[Complaint]:
    """1.35 and later: a gate that is on needs other gates. Sorted; the kubelet has an order of its own."""
    for name, needed in _needs(checked.minor):
        missing = [gate for gate in needed if not checked.gate_on(gate)]
        if missing and checked.gate_on(name):
            said = f"{name} is enabled, but depends on features that are disabled: [{' '.join(missing)}]"
            yield Complaint("featureGates", said)


@cache
def _needs(minor: int) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Each gate that needs others, with those."""
    needs = ((name, feature_gates.required(name, minor)) for name in sorted(feature_gates.known_gates(minor)))
    return tuple((name, needed) for name, needed in needs if needed)


def hairpin(checked: Checked) -> Iterator[Complaint]:
    """How a pod reaches itself through its Service."""
    mode = checked.text("hairpinMode")
    if mode not in _HAIRPINS:
        said = f'option {quoted(mode)} specified for hairpinMode (--hairpin-mode). Valid options are "none", "hairpin-veth" or "promiscuous-bridge"'
        yield wrong("hairpinMode", said)


def certificates(checked: Checked) -> Iterator[Complaint]:
    """The gate is beta and on in 1.20 and later."""
    if checked.flag("serverTLSBootstrap") and checked.gate_off("RotateKubeletServerCertificate"):
        said = "serverTLSBootstrap true requires feature gate RotateKubeletServerCertificate"
        yield wrong("serverTLSBootstrap", said)


def hidden_metrics(checked: Checked) -> Iterator[Complaint]:
    """Only metrics hidden since the previous minor may be shown."""
    version, before = checked.text("showHiddenMetricsForVersion"), f"1.{checked.minor - 1}"
    if version and version != before:
        yield Complaint(
            "showHiddenMetricsForVersion",
            f"--show-hidden-metrics-for-version must be omitted or have the value '{before}'. "
            "Only the previous minor version is allowed",
        )


def system_log_query(checked: Checked) -> Iterator[Complaint]:
    """1.27 and later; until 1.34 the text names the wrong field."""
    if checked.minor < 27 or not checked.flag("enableSystemLogQuery"):
        return
    if checked.gate_off("NodeLogQuery"):
        named = "enableSystemLogQuery" if checked.minor >= 35 else "enableSystemLogHandler"
        yield wrong("enableSystemLogQuery", f"NodeLogQuery feature gate is required for {named}")
    if not checked.flag("enableSystemLogHandler"):
        yield wrong("enableSystemLogQuery", "enableSystemLogHandler is required for enableSystemLogQuery")


def runtime_endpoint(checked: Checked) -> Iterator[Complaint]:
    """A field since 1.27."""
    if checked.minor >= 27 and not checked.text("containerRuntimeEndpoint"):
        yield wrong("containerRuntimeEndpoint", "the containerRuntimeEndpoint was not specified or empty")


def run_once(checked: Checked) -> Iterator[Complaint]:
    """Refused since 1.32."""
    if checked.minor >= 32 and checked.flag("runOnce"):
        yield wrong("runOnce", "runOnce (--runOnce) true, Runonce mode has been deprecated and should not be set")


def pod_logs_folder(checked: Checked) -> Iterator[Complaint]:
    """1.30 and later: absolute, normalized, ASCII."""
    if checked.minor < 30:
        return
    path = checked.text("podLogsDir")
    if not path:
        yield wrong("podLogsDir", "podLogsDir was not specified")
    if not path.startswith("/"):
        yield wrong("podLogsDir", f"pod logs path {quoted(path)} must be absolute path")
    if not _clean(path):
        yield wrong("podLogsDir", f"pod logs path {quoted(path)} must be normalized")
    if not path.isascii():
        yield wrong("podLogsDir", f"pod logs path {quoted(path)} mut contains ASCII characters only")


def _clean(path: str) -> bool:
    """Go's ``filepath.Clean`` would change nothing."""
    parts = path.removeprefix("/").split("/")
    return path == "/" or all(part not in {"", ".", ".."} for part in parts)


def cgroup_version(checked: Checked) -> Iterator[Complaint]:
    """``failCgroupV1``, since 1.31; true by default since 1.35. No error where the host's version is not known."""
    if checked.cgroup_v1 and checked.flag("failCgroupV1"):
        end = (
            "cgroup v1 support is unsupported and will be removed in a future release"
            if checked.minor >= 35
            else "cgroup v1 support is in maintenance mode"
        )
        said = f"kubelet is configured to not run on a host using cgroup v1. {end}"
        yield Complaint("failCgroupV1", said)


def restart_period(checked: Checked) -> Iterator[Complaint]:
    """``crashLoopBackOff``, since 1.32."""
    period = checked.inner("crashLoopBackOff").get("maxContainerRestartPeriod")
    if checked.minor < 32 or not isinstance(period, str):
        return
    if checked.gate_off("KubeletCrashLoopBackOffMax"):
        said = "FeatureGate KubeletCrashLoopBackOffMax not enabled, CrashLoopBackOff.MaxContainerRestartPeriod must not be set"
        yield wrong("crashLoopBackOff", said)
        return
    seconds = Checked({"period": period}, checked.minor).duration("period") / 10**9
    if not 1 <= int(seconds * 1000) / 1000 <= 300:
        said = f"CrashLoopBackOff.MaxContainerRestartPeriod (got: {seconds:g} seconds) must be set between 1s and 300s"
        yield wrong("crashLoopBackOff", said)


# How images are pulled, and for which pulled images credentials are verified.


_POLICY = "imagePullCredentialsVerificationPolicy"
_ALLOWLIST = "preloadedImagesVerificationAllowlist"
_POLICIES = ("NeverVerify", "NeverVerifyPreloadedImages", "NeverVerifyAllowlistedImages", "AlwaysVerify")


def parallel_pulls(checked: Checked) -> Iterator[Complaint]:
    """1.27 and later; the second error needs a written ``serializeImagePulls: true``, or its flag."""
    most = checked.values.get("maxParallelImagePulls")
    if not isinstance(most, int) or checked.minor < 27:
        return
    if most < 1:
        yield wrong("maxParallelImagePulls", f"maxParallelImagePulls {most} must be a positive number")
    if most > 1 and checked.flag("serializeImagePulls"):
        yield wrong(
            "maxParallelImagePulls",
            "maxParallelImagePulls cannot be larger than 1 unless SerializeImagePulls (--serialize-image-pulls) is set to false",
        )


def credentials_verification(checked: Checked) -> Iterator[Complaint]:
    """1.33 and later: none of its fields may be written while its gate is off."""
    if checked.minor < 33:
        return
    if checked.gate_off("KubeletEnsureSecretPulledImages"):
        for name in (_POLICY, _ALLOWLIST):
            if checked.values.get(name):
                yield wrong(
                    name, f"`{name}` must not be set if KubeletEnsureSecretPulledImages feature gate is not enabled"
                )
        return
    policy = checked.text(_POLICY)
    if policy not in _POLICIES:
        names = [quoted(name) for name in _POLICIES]
        valid = f"{', '.join(names[:-1])} or {names[-1]}"
        yield wrong(_POLICY, f"option {quoted(policy)} specified for {_POLICY}. Valid options are {valid}")
    if checked.entries(_ALLOWLIST) and policy != "NeverVerifyAllowlistedImages":
        said = f'can\'t set `{_ALLOWLIST}` if `imagePullCredentialsVertificationPolicy` is not "NeverVerifyAllowlistedImages"'
        yield wrong(_ALLOWLIST, said)
    # The first invalid pattern (``pullmanager/image_pull_policies.go``).
    said = next((said for pattern in checked.entries(_ALLOWLIST) if (said := _no_pattern(str(pattern)))), "")
    if said:
        yield wrong(_ALLOWLIST, f"invalid image pattern in `{_ALLOWLIST}`: {said}")


def _no_pattern(pattern: str) -> str:
    if pattern != pattern.strip():
        return f"leading/trailing spaces are not allowed: {pattern}"
    plain = pattern[:-1] if pattern.endswith("/*") else pattern
    if not plain:
        return f"the supplied pattern is too short: {pattern}"
    if "*" in plain:
        return f"not a valid wildcard pattern, only patterns ending with '/*' are allowed: {pattern}"
    if plain == "/":
        return "at least registry hostname is required"
    if plain == pattern and ("@" in plain or ":" in plain.rpartition("/")[2]):
        return f"neither tag nor digest is accepted in an image reference: {pattern}"
    return ""
