"""Logging, tracing and taints."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rollout.kubelet.configuration.flag_values import KINDS
from rollout.kubelet.configuration.go_values import GoValueError, quoted
from rollout.kubelet.configuration.validation.checked import Checked, Complaint, wrong

_FORMATS = ("", "text", "json")
_ALPHA_OPTIONS = "LoggingAlphaOptions"
_NAMING = "https://github.com/grpc/grpc/blob/master/doc/naming.md"
_SCHEMES = frozenset({"dns", "unix", "unix-abstract"})


def log_format(checked: Checked) -> Iterator[Complaint]:
    """Until 1.21 in words of its own, then as a field error of component-base."""
    found = str(checked.inner("logging").get("format") or "")
    if found in _FORMATS:
        return
    if checked.minor < 22:
        yield Complaint("logging", f"unsupported log format: {found}")
    else:
        yield Complaint("logging", f"logging.format: Invalid value: {quoted(found)}: Unsupported log format")


def log_options(checked: Checked) -> Iterator[Complaint]:
    """Options that are still alpha ask for a gate (component-base ``logs/api/v1``)."""
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
    yield from _endpoint(str(found.get("endpoint") or ""))


def _endpoint(written: str) -> Iterator[Complaint]:
    """Without ``//`` it is a name; a scheme has letters, digits and ``+-.``."""
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
