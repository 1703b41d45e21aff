"""The first steps of a start: the command line on its own, before any file is looked at."""

from __future__ import annotations

from collections.abc import Mapping

from rollout.kubelet.configuration import feature_gates, hints, label_names
from rollout.kubelet.configuration.feature_gates import GateMistake
from rollout.kubelet.configuration.findings import Findings, KubeletStoppedError
from rollout.kubelet.configuration.flags import FlagError, Flags, field_path, parse, parse_again
from rollout.kubelet.configuration.go_values import quoted
from rollout.kubelet.configuration.outcome import Sources
from rollout.kubelet.configuration.validation.checked import Complaint

# ``--node-labels``: in the namespaces of Kubernetes a kubelet may set only some labels on its own Node.
#
# Source: ``ValidateKubeletFlags`` (``cmd/kubelet/app/options/options.go``) and
# ``pkg/kubelet/apis/well_known_labels.go``.


_OURS = ("kubernetes.io", "k8s.io")
_NAMESPACES = ("kubelet.kubernetes.io", "node.kubernetes.io")
_LABELS = (
    "beta.kubernetes.io/arch",
    "beta.kubernetes.io/instance-type",
    "beta.kubernetes.io/os",
    "failure-domain.beta.kubernetes.io/region",
    "failure-domain.beta.kubernetes.io/zone",
    "kubernetes.io/arch",
    "kubernetes.io/hostname",
    "kubernetes.io/os",
    "node.kubernetes.io/instance-type",
    "topology.kubernetes.io/region",
    "topology.kubernetes.io/zone",
)
_CHECKED_SINCE = 25


def mistake(labels: Mapping[str, str], minor: int) -> str:
    """The kubelet's error about its labels, or ``""``."""
    unknown = sorted(
        key
        for key in labels
        if _within(_namespace(key), _OURS) and not (key in _LABELS or _within(_namespace(key), _NAMESPACES))
    )
    if unknown:
        return (
            f"unknown 'kubernetes.io' or 'k8s.io' labels specified with --node-labels: [{' '.join(unknown)}]\n"
            "--node-labels in the 'kubernetes.io' namespace must begin with an allowed prefix "
            f"({', '.join(_NAMESPACES)}) or be in the specifically allowed set ({', '.join(_LABELS)})"
        )
    if minor < _CHECKED_SINCE:
        return ""
    bad = [(key, label_names.key_errors(key, minor)) for key in labels]
    bad += [(value, label_names.value_errors(value, minor)) for value in labels.values()]
    listed = "; ".join(f"'{text}' - {', '.join(errors)}" for text, errors in bad if errors)
    return f"invalid node labels: {listed}" if listed else ""


def _namespace(key: str) -> str:
    namespace, separated, _ = key.partition("/")
    return namespace if separated else ""


def _within(namespace: str, parents: tuple[str, ...]) -> bool:
    return any(namespace == parent or namespace.endswith("." + parent) for parent in parents)


_WRAPPED_SINCE = 24
"""From this minor on an error names the step that failed, and one line ends the process."""


def wrapped(findings: Findings, doing: str, message: str) -> str:
    """An error as this minor prints it."""
    return f"{doing}: {message}" if findings.minor >= _WRAPPED_SINCE else message


def read_flags(sources: Sources, findings: Findings) -> Flags:
    """The command line on its own, before any file is looked at."""
    try:
        flags = parse(sources.flags, findings.minor)
    except FlagError as error:
        text = wrapped(findings, "failed to parse kubelet flag", error.text)
        raise findings.stop(error.reference, text, hint=hints.unknown_flag(error.flag, findings.minor)) from None
    if flags.words:
        colon = "" if findings.minor >= _WRAPPED_SINCE else ":"
        hint = "systemd fills in such a variable: give its content" if flags.words[0].startswith("$") else ""
        raise findings.stop("stray-word", f"unknown command{colon} {flags.words[0]}", hint=hint)
    for name in ("--help", "--version"):
        if flags.values.get(name) not in {None, False, "False"}:
            raise findings.stop("no-start", f"with {name} the kubelet only prints it and exits")
    gates = flags.gates
    set_gates(gates, findings)
    doing = "failed to validate kubelet flags"
    if "--dynamic-config-dir" in flags.values and not feature_gates.enabled(
        "DynamicKubeletConfig", gates, findings.minor
    ):
        message = "the DynamicKubeletConfig feature gate must be enabled in order to use the --dynamic-config-dir flag"
        raise findings.stop("gate-needed", wrapped(findings, doing, message))
    if flags.values.get("--seccomp-default") and _seccomp_off(gates, findings.minor):
        message = "the SeccompDefault feature gate must be enabled in order to use the --seccomp-default flag"
        raise findings.stop("gate-needed", wrapped(findings, doing, message))
    message = mistake(flags.values.get("--node-labels") or {}, findings.minor)
    if message:
        raise findings.stop("bad-label", wrapped(findings, doing, message))
    message = _no_runtime(flags, findings.minor)
    if message:
        raise findings.stop("cannot-run", wrapped(findings, doing, message))
    name = flags.text("--hostname-override").strip().lower()
    if (
        name
        and label_names.subdomain_errors(name, findings.minor)
        and flags.text("--cloud-provider") in {"", "external"}
    ):
        text = f"the API server refuses a Node with the name `{name}`: the kubelet starts, and is never registered"
        findings.doubt("bad-node-name", text, "")
    return flags


_REMOTE_ONLY = range(24, 27)
_ENDPOINT_ASKED_IN = 26


def _no_runtime(flags: Flags, minor: int) -> str:
    """``ValidateKubeletFlags`` (``cmd/kubelet/app/options/options.go``) of 1.24 to 1.26; the endpoint is a field later.

    Without any ``--container-runtime-endpoint`` 1.26 is refused too, but a caller may not know all flags: see ``notes``.
    """
    runtime = str(flags.values.get("--container-runtime", "remote"))
    if minor in _REMOTE_ONLY and runtime != "remote":
        return f'unsupported CRI runtime: {quoted(runtime)}, only "remote" is currently supported'
    if minor == _ENDPOINT_ASKED_IN and flags.values.get("--container-runtime-endpoint") == "":
        message = "the container runtime endpoint address was not specified or empty, use"
        return f"{message} --container-runtime-endpoint to set"
    return ""


def _seccomp_off(gates: Mapping[str, bool], minor: int) -> bool:
    """Only gates among the flags count: no file is read yet."""
    name = "SeccompDefault"
    return name in feature_gates.known_gates(minor) and not feature_gates.enabled(name, gates, minor)


def read_again(sources: Sources, first: Flags, findings: Findings) -> Flags:
    """The command line again, over the file: of its flags that set fields, those that are still found in it."""
    try:
        again = parse_again(sources.flags, findings.minor)
    except FlagError as error:
        raise findings.stop(error.reference, error.text) from None  # pflag prints it, and ends the process
    for name, given in first.given.items():
        if given != again.given.get(name) and field_path(name, findings.minor):
            findings.swallowed_flag(given)
    return again


def set_gates(written: Mapping[str, bool], findings: Findings) -> None:
    """Every gate that cannot be set is reported, and stops the kubelet; so does one without those that it needs.

    Source: ``SetFromMap`` (``component-base/featuregate/feature_gate.go``), which looks at what gates need since 1.35.
    """
    mistakes = certain_mistakes(written, findings)
    doing = "failed to set feature gates from initial flags-based config"
    for mistake in mistakes:
        refused_gate(mistake, wrapped(findings, doing, mistake.text), findings)
    certain = feature_gates.certain(findings.minor)
    needs = feature_gates.unmet(written, findings.minor) if certain and not mistakes else ()
    for need in needs:
        complaint = Complaint("featureGates", need)
        findings.refused("invalid-configuration", wrapped(findings, doing, need), complaint)
    if mistakes or needs:
        raise KubeletStoppedError


def certain_mistakes(written: Mapping[str, bool], findings: Findings) -> tuple[GateMistake, ...]:
    """Gates that cannot be set. Where rollout does not know all gates of a minor, they are doubts, not fatal."""
    mistakes = feature_gates.mistakes(written, findings.minor)
    if feature_gates.certain(findings.minor):
        return mistakes
    for mistake in mistakes:
        text = f"{mistake.text}, if the gates of 1.{findings.minor} are those of its beta"
        findings.doubt(_gate_reference(mistake), text, "featureGates")
    return ()


def refused_gate(mistake: GateMistake, text: str, findings: Findings) -> None:
    """The kubelet stops at this gate, with ``text``."""
    complaint = Complaint("featureGates", mistake.text, (mistake.name,), mistake.hint)
    findings.refused(_gate_reference(mistake), text, complaint)


def _gate_reference(mistake: GateMistake) -> str:
    return "unknown-gate" if mistake.text.startswith("unrecognized") else "locked-gate"
