"""The logging of a kubelet, as component-base checks it.

Sources: ``logs/options.go`` of 1.20.2; ``logs/validate.go`` and, from 1.25 on, ``logs/api/v1/options.go`` of
github.com/kubernetes/component-base (the last tag of each minor from 1.22 to 1.36, and 1.37.0-beta.0). The form of a
value in an error is that of ``field.Error`` (apimachinery ``pkg/util/validation/field/errors.go``).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from rollout.kubelet.configuration import quantities
from rollout.kubelet.configuration.go_values import GoValueError, duration, quoted
from rollout.kubelet.configuration.validation.checked import Checked, Complaint

_LOGGING = "logging"
_MOST = 2**31 - 1
_FORMATS = frozenset({"text", "json"})
_FIELD_ERRORS_SINCE = 22
_VERBOSITY_SINCE = 23
_OPTIONS_SINCE = 25
_JSON_SHOWN_SINCE = 34
_POSITIVE_FLUSH_SINCE = 35
"""From here on ``flushFrequency`` must be above zero."""
FIRST_SINCE = 25
"""From this minor on logging is checked before the rest of the configuration, and alone."""

_KLOG: Mapping[str, Any] = {
    "--add-dir-header": False,
    "--alsologtostderr": False,
    "--log-backtrace-at": ":0",
    "--log-dir": "",
    "--log-file": "",
    "--log-file-max-size": 1800,
    "--logtostderr": True,
    "--one-output": False,
    "--skip-headers": False,
    "--skip-log-headers": False,
    "--stderrthreshold": "2",
}
"""klog's flags and their defaults (``klog.go`` of 1.20.2): another format than ``text`` refuses each that was changed."""
_KLOG_OLD: Mapping[str, Any] = {"--log-flush-frequency": "5s", "--vmodule": ""}
"""Until 1.22 these two are such flags as well."""
_SEVERITIES = {"INFO": "0", "WARNING": "1", "ERROR": "2", "FATAL": "3"}


def logging(checked: Checked) -> Iterator[Complaint]:
    """Format, verbosity, the verbosity of modules, how often it is flushed, and the options of a format."""
    written = checked.inner(_LOGGING)
    format_ = str(written.get("format", "text"))  # "" is text in a file, which has defaults, and not in a flag
    if checked.minor >= _POSITIVE_FLUSH_SINCE:
        yield from _flush(written.get("flushFrequency"))
    yield from _flags(checked, format_)
    if format_ not in _FORMATS:
        if checked.minor < _FIELD_ERRORS_SINCE:
            yield Complaint(_LOGGING, f"unsupported log format: {format_}")
        else:
            yield Complaint(_LOGGING, f"logging.format: Invalid value: {quoted(format_)}: Unsupported log format")
    if format_ == "json" and checked.minor >= _OPTIONS_SINCE and checked.gate_off("LoggingBetaOptions"):
        message = "Log format json is disabled, see LoggingBetaOptions feature"
        yield Complaint(_LOGGING, f"logging.format: Forbidden: {message}")
    if checked.minor >= _VERBOSITY_SINCE:
        yield from _verbosity("logging.verbosity", written.get("verbosity"), checked.minor)
        yield from _modules(written.get("vmodule") or [], format_, checked.minor)
    if checked.minor >= _OPTIONS_SINCE and checked.gate_off("LoggingAlphaOptions"):
        yield from _alpha_options(written.get("options") or {})


def _flush(frequency: object) -> Iterator[Complaint]:
    nanoseconds = frequency if isinstance(frequency, int) else duration(str(frequency or "0s"))
    if nanoseconds <= 0:
        shown = json.dumps(frequency or 0)
        message = f"logging.flushFrequency: Invalid value: {shown}: Must be greater than zero"
        yield Complaint(_LOGGING, message)


def _flags(checked: Checked, format_: str) -> Iterator[Complaint]:
    """A flag of klog with another value than its default; klog's names have underscores, which 1.23 writes as dashes."""
    if format_ == "text":
        return
    defaults = {**_KLOG, **_KLOG_OLD} if checked.minor < _VERBOSITY_SINCE else _KLOG
    for name in sorted(defaults):
        value = checked.given.get(name, defaults[name])
        value = _SEVERITIES.get(str(value).upper(), value) if name == "--stderrthreshold" else value
        if value == defaults[name]:
            continue
        plain = name.removeprefix("--")
        klogs = plain if checked.minor >= _VERBOSITY_SINCE or name in _KLOG_OLD else plain.replace("-", "_")
        if checked.minor < _FIELD_ERRORS_SINCE:
            yield Complaint(_LOGGING, f"non-default logging format doesn't honor flag: {klogs}")
        else:
            message = f"Non-default format doesn't honor flag: {klogs}"
            yield Complaint(_LOGGING, f"logging.format: Invalid value: {quoted(format_)}: {message}")


def _verbosity(path: str, value: object, minor: int) -> Iterator[Complaint]:
    """klog takes no more than an int32. Until 1.33 the value is in Go's own notation (``%#v`` of a uint32)."""
    if isinstance(value, int) and value > _MOST:
        shown = str(value) if minor >= _JSON_SHOWN_SINCE else f"{value:#x}"
        yield Complaint(_LOGGING, f"{path}: Invalid value: {shown}: Must be <= {_MOST}")


def _modules(modules: list[Any], format_: str, minor: int) -> Iterator[Complaint]:
    if modules and format_ != "text":
        yield Complaint(_LOGGING, "logging.vmodule: Forbidden: Only supported for text log format")
    for at, module in enumerate(modules):
        pattern, path = str((module or {}).get("filePattern") or ""), f"logging.vmodule[{at}]"
        if not pattern:
            yield Complaint(_LOGGING, f"{path}: Required value: File pattern must not be empty")
        if set("=,") & set(pattern):
            message = "File pattern must not contain equal sign or comma"
            yield Complaint(_LOGGING, f"{path}: Invalid value: {quoted(pattern)}: {message}")
        yield from _verbosity(path, (module or {}).get("verbosity"), minor)


def _alpha_options(options: Mapping[str, Any]) -> Iterator[Complaint]:
    """``text`` exists since 1.30."""
    for style in ("text", "json"):
        given = options.get(style) or {}
        for name, is_set in (
            ("splitStream", bool(given.get("splitStream"))),
            ("infoBufferSize", _is_some(given.get("infoBufferSize"))),
        ):
            if is_set:
                message = "Forbidden: Feature LoggingAlphaOptions is disabled"
                yield Complaint(_LOGGING, f"logging.options.{style}.{name}: {message}")


def _is_some(size: object) -> bool:
    try:
        return quantities.parse(str(size or "0")).amount != 0
    except GoValueError:
        return True
