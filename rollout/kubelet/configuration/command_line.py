"""The first steps of a start: the command line on its own, before any file is looked at."""

from __future__ import annotations

from rollout.kubelet.configuration import enabled_gates, gates, node_labels
from rollout.kubelet.configuration.findings import Findings, StoppedError
from rollout.kubelet.configuration.flags import FlagError, Flags, parse
from rollout.kubelet.configuration.outcome import Sources

_WRAPPED_SINCE = 24
"""From this minor on errors carry what was being done, and end the process with one line."""


def wrapped(findings: Findings, doing: str, said: str) -> str:
    """An error as this minor prints it."""
    return f"{doing}: {said}" if findings.minor >= _WRAPPED_SINCE else said


def read_flags(sources: Sources, findings: Findings) -> Flags:
    """The command line on its own, before any file is looked at."""
    try:
        flags = parse(sources.flags, findings.minor)
    except FlagError as error:
        raise findings.stop(error.reference, wrapped(findings, "failed to parse kubelet flag", error.text)) from None
    if flags.words:
        colon = "" if findings.minor >= _WRAPPED_SINCE else ":"
        raise findings.stop("stray-word", f"unknown command{colon} {flags.words[0]}")
    for name in ("--help", "--version"):
        if flags.values.get(name) not in {None, False, "False"}:
            raise findings.stop("no-start", f"with {name} the kubelet prints it and ends")
    set_gates(flags.values.get("--feature-gates") or {}, findings)
    _validate_flags(flags, findings)
    return flags


def _validate_flags(flags: Flags, findings: Findings) -> None:
    gates = flags.values.get("--feature-gates") or {}
    doing = "failed to validate kubelet flags"
    if "--dynamic-config-dir" in flags.values and not enabled_gates.enabled(
        "DynamicKubeletConfig", gates, findings.minor
    ):
        said = "the DynamicKubeletConfig feature gate must be enabled in order to use the --dynamic-config-dir flag"
        raise findings.stop("gate-needed", wrapped(findings, doing, said))
    said = node_labels.mistake(flags.values.get("--node-labels") or {}, findings.minor)
    if said:
        raise findings.stop("bad-label", wrapped(findings, doing, said))


def set_gates(written: dict[str, bool], findings: Findings) -> None:
    """Every gate that cannot be set is told, and stops the kubelet."""
    mistakes = certain_mistakes(written, findings)
    doing = "failed to set feature gates from initial flags-based config"
    for said in mistakes:
        where = findings.place_of("featureGates")
        findings.fatal(gate_reference(said), wrapped(findings, doing, said), where, "featureGates")
    if mistakes:
        raise StoppedError


def certain_mistakes(written: dict[str, bool], findings: Findings) -> tuple[str, ...]:
    """Gates that cannot be set. Where not all gates of this minor are known, ours is the doubt, and nothing is fatal."""
    mistakes = enabled_gates.mistakes(written, findings.minor)
    if gates.certain(findings.minor):
        return mistakes
    for said in mistakes:
        findings.doubt(
            gate_reference(said), f"{said}, if the gates of 1.{findings.minor} are those of its beta", "featureGates"
        )
    return ()


def gate_reference(said: str) -> str:
    """``unknown-gate`` or ``locked-gate``."""
    return "unknown-gate" if said.startswith("unrecognized") else "locked-gate"
