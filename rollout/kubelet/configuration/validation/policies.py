"""Enumerated values, and fields that need a gate."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rollout.kubelet.configuration import feature_gates, image_patterns, label_names
from rollout.kubelet.configuration.flag_values import EFFECTS
from rollout.kubelet.configuration.go_urls import UrlError, scheme_of
from rollout.kubelet.configuration.go_values import quoted, shown_float
from rollout.kubelet.configuration.validation.checked import Checked, Complaint, wrong

_NAMING = "https://github.com/grpc/grpc/blob/master/doc/naming.md"
_SCHEMES = frozenset({"dns", "unix", "unix-abstract"})


def tracing(checked: Checked) -> Iterator[Complaint]:
    """``tracing``, since 1.25."""
    tracing_config = checked.values.get("tracing")
    if not isinstance(tracing_config, dict) or checked.minor < 25:
        return
    if checked.gate_off("KubeletTracing"):
        message = "tracing should not be configured if KubeletTracing feature flag is disabled."
        yield wrong("tracing", message)
        return
    rate = tracing_config.get("samplingRatePerMillion")
    if isinstance(rate, int) and rate < 0:
        message = "sampling rate must be positive"
        yield Complaint("tracing", f"tracing.samplingRatePerMillion: Invalid value: {rate}: {message}")
    if isinstance(rate, int) and rate > 1_000_000:
        message = "sampling rate per million must be less than or equal to one million"
        yield Complaint("tracing", f"tracing.samplingRatePerMillion: Invalid value: {rate}: {message}")
    if tracing_config.get("endpoint") is not None:
        written = str(tracing_config["endpoint"])
        endpoint = written if "//" in written else f"dns://{written}"
        message = _no_endpoint(endpoint)
        if message:
            yield Complaint("tracing", f"tracing.endpoint: Invalid value: {quoted(endpoint)}: {message}")


def _no_endpoint(endpoint: str) -> str:
    try:
        scheme = scheme_of(endpoint)
    except UrlError as error:
        return str(error)
    named = f"unsupported scheme: {scheme}.  Options are none, dns, unix, or unix-abstract.  See {_NAMING}"
    return "" if scheme in _SCHEMES else named


def taints(checked: Checked) -> Iterator[Complaint]:
    """``registerWithTaints``, since 1.23."""
    for taint in checked.entries("registerWithTaints"):
        if not _is_taint(taint, checked.minor):
            yield Complaint("registerWithTaints", f"invalid taint: {_go_taint(taint)}")
        if taint.get("timeAdded") is not None:
            named = "invalid configuration: taint.TimeAdded" if checked.minor >= 24 else "taint TimeAdded"
            yield Complaint("registerWithTaints", f"{named} is not nil")


def _is_taint(taint: Any, minor: int) -> bool:
    """``CheckTaintValidation`` (``pkg/util/taints``): an effect need not be given."""
    return (
        not label_names.key_errors(str(taint.get("key") or ""), minor)
        and not label_names.value_errors(str(taint.get("value") or ""), minor)
        and str(taint.get("effect") or "") in {"", *EFFECTS}
    )


def _go_taint(taint: Any) -> str:
    """``%v`` of a ``v1.Taint``."""
    added = str(taint.get("timeAdded") or "<nil>").replace("T", " ").replace("Z", " +0000 UTC")
    return f"{{{taint.get('key') or ''} {taint.get('value') or ''} {taint.get('effect') or ''} {added}}}"


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
    for message in feature_gates.unmet(checked.inner("featureGates"), checked.minor):
        yield Complaint("featureGates", message)


def hairpin(checked: Checked) -> Iterator[Complaint]:
    """How a pod reaches itself through its Service."""
    mode = checked.text("hairpinMode")
    if mode not in _HAIRPINS:
        message = f'option {quoted(mode)} specified for hairpinMode (--hairpin-mode). Valid options are "none", "hairpin-veth" or "promiscuous-bridge"'
        yield wrong("hairpinMode", message)


def certificates(checked: Checked) -> Iterator[Complaint]:
    """The gate is beta and on in 1.20 and later."""
    if checked.flag("serverTLSBootstrap") and checked.gate_off("RotateKubeletServerCertificate"):
        message = "serverTLSBootstrap true requires feature gate RotateKubeletServerCertificate"
        yield wrong("serverTLSBootstrap", message)


def hidden_metrics(checked: Checked) -> Iterator[Complaint]:
    """Only metrics hidden since the previous minor may be shown.

    Sources: component-base ``metrics/options.go`` of 1.23 to 1.35, and ``metrics/api/v1/config.go`` of 1.36.
    """
    name = "showHiddenMetricsForVersion"
    version, before = checked.text(name), f"1.{checked.minor - 1}"
    if not version or version == before:
        return
    must = f"must be omitted or have the value '{before}'"
    if checked.minor >= _METRICS_FIELD_SINCE:
        which = f"invalid {name}: {name}: Invalid value: {quoted(version)}:"
        yield Complaint(name, f"{which} {must}; only the previous minor version is allowed")
    else:
        text = f"--show-hidden-metrics-for-version {must}. Only the previous minor version is allowed"
        yield Complaint(name, text)


_METRICS_FIELD_SINCE = 36


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
        message = f"kubelet is configured to not run on a host using cgroup v1. {end}"
        yield Complaint("failCgroupV1", message)


def pod_sysctls(checked: Checked) -> Iterator[Complaint]:
    """``defaultPodSysctls``, since 1.37; a kubelet takes the names in any order."""
    name, written = "defaultPodSysctls", checked.inner("defaultPodSysctls")
    if checked.minor < 37 or not written:
        return
    if checked.gate_off("DefaultPodSysctls"):
        yield wrong(
            name, "DefaultPodSysctls feature gate is required for Kubelet configuration option defaultPodSysctls"
        )
        return
    seen: set[str] = set()
    for each in sorted(written):
        dotted = dotted_sysctl(each)
        if not _sysctl_name(each):
            yield wrong(name, f"{quoted(each)} is not a valid sysctl name for defaultPodSysctls")
            continue
        if not namespaced_sysctl(dotted, checked.minor):
            yield wrong(name, f"{quoted(each)} is not known to be namespaced for defaultPodSysctls")
        if dotted in seen:
            yield wrong(name, f"duplicate sysctl {quoted(dotted)} found in defaultPodSysctls")
        seen.add(dotted)


_ALPHABET = frozenset("abcdefghijklmnopqrstuvwxyz0123456789-_")


def _sysctl_name(name: str) -> bool:
    parts = name.replace("/", ".").split(".")
    return len(name) <= 253 and all(
        part and _ALPHABET.issuperset(part) and part[0] not in "-_" and part[-1] not in "-_" for part in parts
    )


def dotted_sysctl(name: str) -> str:
    """sysctl separates by the first of dot and slash; the other one is then a letter of a part."""
    first = next((letter for letter in name if letter in "./"), ".")
    return name if first == "." else name.translate(str.maketrans("./", "/."))


_EXACT_SYSCTLS_SINCE = 29
_IPC = frozenset({
    "kernel.msg",
    "kernel.msgmax",
    "kernel.msgmnb",
    "kernel.msgmni",
    "kernel.shm",
    "kernel.shm_rmid_forced",
    "kernel.shmall",
    "kernel.shmmax",
    "kernel.shmmni",
})  # fmt: skip


def namespaced_sysctl(name: str, minor: int) -> bool:
    """A name, or a pattern without its ``*``. Until 1.28 any name below ``kernel.shm`` and ``kernel.msg`` is one of IPC.

    Sources: ``NamespacedBy`` (``pkg/kubelet/sysctl/namespace.go``, 1.20 to 1.28), ``namespaceOf`` (component-helpers
    ``node/util/sysctl/namespace.go``, 1.29 to 1.36).
    """
    if name == "kernel.sem" or name.startswith(("fs.mqueue.", "net.")):
        return True
    return name in _IPC if minor >= _EXACT_SYSCTLS_SINCE else name.startswith(("kernel.shm", "kernel.msg"))


def restart_period(checked: Checked) -> Iterator[Complaint]:
    """``crashLoopBackOff``, since 1.32. Without a file its default is set before the flags, which may set the gate."""
    period = checked.inner("crashLoopBackOff").get("maxContainerRestartPeriod")
    if not isinstance(period, str):
        if checked.gate_on("KubeletCrashLoopBackOffMax"):
            message = "FeatureGate KubeletCrashLoopBackOffMax is enabled, CrashLoopBackOff.MaxContainerRestartPeriod must be set"
            yield wrong("crashLoopBackOff", message)
        return
    if checked.gate_off("KubeletCrashLoopBackOffMax"):
        message = "FeatureGate KubeletCrashLoopBackOffMax not enabled, CrashLoopBackOff.MaxContainerRestartPeriod must not be set"
        yield wrong("crashLoopBackOff", message)
        return
    seconds = Checked({"period": period}, checked.minor).duration("period") / 10**9
    if not 1 <= int(seconds * 1000) / 1000 <= 300:
        message = f"CrashLoopBackOff.MaxContainerRestartPeriod (got: {shown_float(seconds)} seconds) must be set between 1s and 300s"
        yield wrong("crashLoopBackOff", message)


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
        message = f'can\'t set `{_ALLOWLIST}` if `imagePullCredentialsVertificationPolicy` is not "NeverVerifyAllowlistedImages"'
        yield wrong(_ALLOWLIST, message)
        return
    mistakes = (image_patterns.mistake(str(pattern), checked.minor) for pattern in checked.entries(_ALLOWLIST))
    message = next(filter(None, mistakes), "")  # the kubelet reports the first one
    if message:
        yield wrong(_ALLOWLIST, f"invalid image pattern in `{_ALLOWLIST}`: {message}")
