"""What each kind of kubelet flag accepts, and what happens when it is given more than once.

Sources: pflag 1.0.5, component-base ``cli/flag``, ``pkg/util/flag`` and ``pkg/util/taints`` of 1.20.2. A flag that is a
map or a list replaces the file's value when it is first given; each further one adds to it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from rollout.core.text.durations import go_format_nanoseconds
from rollout.kubelet.configuration import go_values, label_names, quantities
from rollout.kubelet.configuration.go_values import GoValueError

# One line as encoding/csv reads it: pflag parses its lists of strings with it.


def comma_separated(text: str) -> list[str]:
    """The fields of the first line; ``GoValueError`` for a misplaced quote."""
    line = text.lstrip("\n").partition("\n")[0] if '"' not in text else text
    if not line:
        raise GoValueError("EOF")
    parts: list[str] = []
    at = 0
    while at <= len(line):
        value, at = _quoted(line, at + 1) if line[at : at + 1] == '"' else _bare(line, at)
        parts.append(value)
    return parts


def _bare(line: str, start: int) -> tuple[str, int]:
    end = line.find(",", start)
    value = line[start:] if end < 0 else line[start:end]
    if '"' in value:
        column = len(line[: start + value.index('"')].encode()) + 1
        raise GoValueError(f'parse error on line 1, column {column}: bare " in non-quoted-field')
    return value, start + len(value) + 1


def _quoted(line: str, start: int) -> tuple[str, int]:
    value: list[str] = []
    at = start
    while True:
        end = line.find('"', at)
        if end < 0:
            column = len(line.encode()) + 1
            raise GoValueError(f'parse error on line 1, column {column}: extraneous or missing " in quoted-field')
        value.append(line[at:end])
        following = line[end + 1 : end + 2]
        if following in {"", ","}:
            return "".join(value), end + 2
        if following != '"':
            column = len(line[:end].encode()) + 1
            raise GoValueError(f'parse error on line 1, column {column}: extraneous or missing " in quoted-field')
        value.append('"')
        at = end + 2


Set = Callable[[str, Any], Any]
"""The given text and the value so far (``None`` at first) → the new value; ``GoValueError`` with Go's text."""

_TAINTS_ADD_SINCE = 23
"""From this minor on the flag sets the field ``registerWithTaints``."""

_SEVERITIES = frozenset({"INFO", "WARNING", "ERROR", "FATAL"})
EFFECTS = frozenset({"NoSchedule", "PreferNoSchedule", "NoExecute"})


def _duration(text: str, _: Any) -> str:
    return go_format_nanoseconds(go_values.duration(text))


def _strings(text: str, before: Any) -> list[str]:
    """``StringSlice``: one line of comma separated values."""
    return [*(before or []), *(comma_separated(text) if text else [])]


def _ip(text: str, before: Any) -> str | None:
    """``IPVar``: an empty text leaves the value unchanged."""
    return go_values.ip_address(text) if text else before


def _pairs(text: str, separator: str, expected: str) -> list[tuple[str, str]]:
    pairs = []
    for part in text.split(","):
        name, separated, value = part.partition(separator)
        if part and not separated:
            raise GoValueError(f"malformed pair, expect {expected}")
        if part:
            pairs.append((name.strip(), value.strip()))
    return pairs


def _map(text: str, before: Any) -> dict[str, str]:
    return {**(before or {}), **dict(_pairs(text, "=", "string=string"))}


def _one_pair(text: str, before: Any) -> dict[str, str]:
    """``MapStringStringNoSplit``: commas are part of the value."""
    name, separated, value = text.partition("=")
    if not separated:
        raise GoValueError("malformed pair, expect string=string")
    return {**(before or {}), name.strip(): value.strip()}


def _thresholds(text: str, before: Any) -> dict[str, str]:
    return {**(before or {}), **dict(_pairs(text, "<", "string<string"))}


def _headers(text: str, before: Any) -> dict[str, list[str]]:
    headers = {name: list(values) for name, values in (before or {}).items()}
    for name, value in _pairs(text, ":", "string:string"):
        headers.setdefault(name, []).append(value)
    return headers


def _gates(text: str, before: Any) -> dict[str, bool]:
    gates = dict(before or {})
    for name, value in _pairs(text, "=", "string=bool"):
        try:
            gates[name] = go_values.boolean(value)
        except GoValueError as error:
            raise GoValueError(f"invalid value of {name}: {value}, err: {error}") from None
    return gates


def _labels(text: str, before: Any) -> dict[str, str]:
    """``ConfigurationMap``: a name without a value is one with an empty value."""
    parts = (part.partition("=") for part in text.split(",") if part)
    return {**(before or {}), **{name.strip(): value.strip() for name, _, value in parts}}


def _taints(text: str, _: Any) -> list[dict[str, str]]:
    """The last ``--register-with-taints`` replaces the whole list."""
    return [_taint(part, _TAINTS_ADD_SINCE) for part in text.split(",")] if text else []


def _added_taints(minor: int, text: str, _: Any) -> list[dict[str, str]]:
    """``ParseTaints``: each has an effect and is unique; an entry with ``-`` at its end removes a taint: dropped."""
    taints = [_taint(part.removesuffix("-"), minor) for part in text.split(",")] if text else []
    added = [taint for part, taint in zip(text.split(","), taints, strict=False) if not part.endswith("-")]
    seen: set[tuple[str, str]] = set()
    for taint in added:
        if not taint["effect"]:
            raise GoValueError(f"invalid taint spec: {taint['key']}")
        if (taint["key"], taint["effect"]) in seen:
            shown = f"{taint['key']} {taint.get('value', '')} {taint['effect']} <nil>"
            raise GoValueError(f"duplicated taints with the same key and effect: {{{shown}}}")
        seen.add((taint["key"], taint["effect"]))
    return added


def _taint(text: str, minor: int) -> dict[str, str]:
    """``parseTaint`` (``pkg/util/taints/taints.go``, the same from 1.20.2 to 1.36)."""
    pair, colon, effect = text.partition(":")
    key, _, value = pair.partition("=")
    if colon and ":" not in effect and effect not in EFFECTS:
        raise GoValueError(f"invalid taint effect: {effect}, unsupported taint effect")
    if ":" in effect or (colon and "=" in value):
        raise GoValueError(f"invalid taint spec: {text}")
    if not colon:
        key, value = pair, ""
    errors = label_names.value_errors(value, minor) or label_names.key_errors(key, minor)
    if errors:
        raise GoValueError(f"invalid taint spec: {text}, {'; '.join(errors)}")
    return {"key": key, **({"value": value} if value else {}), "effect": effect}


_SPELT_SINCE = 35
"""From this minor on the errors of ``--reserved-memory`` are spelt well."""
_NODES_SINCE = 24
_HUGE_PAGES = "hugepages-"


def _reserved_memory(minor: int, text: str, before: Any) -> list[dict[str, Any]]:
    """``0:memory=1Gi,hugepages-2Mi=1Gi;1:memory=2Gi``.

    Until 1.23 each node needs a flag of its own. Source: ``ReservedMemoryVar`` (``pkg/util/flag/flags.go``, 1.22 to
    1.36).
    """
    parts = text.split(";") if minor >= _NODES_SINCE else [text]
    return [*(before or []), *(_numa_node(part, minor) for part in parts)] if text else list(before or [])


def _numa_node(text: str, minor: int) -> dict[str, Any]:
    node, separated, listed = text.partition(":")
    if not separated or ":" in listed:
        message = "the reserved memory has incorrect format, expected numaNodeID:type=quantity[,type=quantity...], got"
        raise GoValueError(f"{message} {text}")
    spelt = minor >= _SPELT_SINCE
    try:
        number = go_values.atoi(node)
    except GoValueError:
        expected = "expected" if spelt else "exptected"
        raise GoValueError(f"failed to convert the NUMA node ID, {expected} integer, got {node}") from None
    limits = dict(_memory_limit(part, spelt=spelt) for part in listed.split(","))
    return {"numaNode": (number + 2**31) % 2**32 - 2**31, "limits": limits}


def _memory_limit(text: str, *, spelt: bool) -> tuple[str, str]:
    name, separated, amount = text.partition("=")
    if not separated or "=" in amount:
        quantity = "quantity" if spelt else "quantatity"
        raise GoValueError(f"the reserved limit has incorrect value, expected type={quantity}, got {text}")
    if name != "memory" and not name.startswith(_HUGE_PAGES):
        raise GoValueError(f"memory type conversion error, unknown type: {go_values.quoted(name)}")
    try:
        return name, quantities.shown(amount)
    except GoValueError:
        failed = (
            "failed to parse the quantity:" if spelt else "failed to parse the quantatity, expected quantatity, got"
        )
        raise GoValueError(f"{failed} {amount}") from None


def _version(text: str, _: Any) -> str:
    """``--version``, ``--version=raw``, ``--version=false``."""
    return text if text == "raw" else str(go_values.boolean(text))


def _plain_flag(read: Callable[[str], Any]) -> Set:
    """A flag of Go's own ``flag`` package: its errors contain no more than this."""

    def set_(text: str, _: Any) -> Any:
        try:
            return read(text)
        except GoValueError as error:
            out_of_range = str(error).endswith("value out of range")
            raise GoValueError("value out of range" if out_of_range else "parse error") from None

    return set_


def _klog_modules(text: str, _: Any) -> str:
    """``--vmodule`` of klog, until 1.22: ``file=2,other=3``; the last one counts."""
    for part in (part for part in text.split(",") if part):
        name, _, level = part.partition("=")
        try:
            number = go_values.decimal_integer(level, 32)
        except GoValueError:
            number = None
        if not name or number is None:
            raise GoValueError("syntax error: expect comma-separated list of filename=N")
        if number < 0:
            raise GoValueError("negative value for vmodule level")
    return text


def _modules(text: str, before: Any) -> str:
    """``--vmodule`` of component-base, from 1.23 on (``logs/api/v1/pflags.go``): each one adds to those before."""
    for part in (part for part in text.split(",") if part):
        name, _, level = part.partition("=")
        if not name or not level or "=" in level:
            raise GoValueError(f"{go_values.quoted(part)} does not have the pattern=N format")
        try:
            go_values.decimal_unsigned(level, 31)
        except GoValueError as error:
            raise GoValueError(f"parsing verbosity in {go_values.quoted(part)}: {error}") from None
    return f"{before},{text}" if before else text


def _severity(text: str, _: Any) -> str:
    return text if text.upper() in _SEVERITIES else str(go_values.decimal_integer(text, 32))


def _quantity(text: str, _: Any) -> str:
    return quantities.shown(text)


def _text(text: str, _: Any) -> str:
    return text


def _trace_location(text: str, _: Any) -> str:
    """``--log_backtrace_at``: ``file.go:234``."""
    name, _, line = text.rpartition(":")
    if text and not (name and line.isdecimal() and int(line) > 0):
        raise GoValueError("syntax error: expect file.go:234")
    return text


def _uint64(text: str, _: Any) -> int:
    number = go_values.integer(text, 65)
    if number < 0:
        raise GoValueError("parse error")
    return number


KINDS: Mapping[str, Set] = {
    "bool": lambda text, _: go_values.boolean(text),
    "duration": _duration,
    "float64": lambda text, _: go_values.decimal(text),
    "gates": _gates,
    "headers": _headers,
    "int32": lambda text, _: go_values.integer(text, 32),
    "int64": lambda text, _: go_values.integer(text, 64),
    "ip": _ip,
    "labels": _labels,
    "level": lambda text, _: go_values.decimal_unsigned(text, 31),
    "modules": _modules,
    "pair": _one_pair,
    "pairs": _map,
    "quantity": _quantity,
    "severity": _severity,
    "string": _text,
    "stringslice": _strings,
    "taints": _taints,
    "thresholds": _thresholds,
    "trace-location": _trace_location,
    "uint64": _uint64,
    "version": _version,
}
"""By the kind in the table of flags."""

GLOBAL_SWITCHES = (
    "--add-dir-header",
    "--alsologtostderr",
    "--docker-only",
    "--docker-tls",
    "--enable-load-reader",
    "--log-cadvisor-usage",
    "--logtostderr",
    "--one-output",
    "--skip-headers",
    "--skip-log-headers",
    "--storage-driver-secure",
)
"""The switches of klog and cAdvisor (``AddGlobalFlags``)."""

_BY_NAME: Mapping[str, Set] = {
    "--application-metrics-count-limit": _plain_flag(lambda text: go_values.integer(text, 64)),
    "--global-housekeeping-interval": _plain_flag(go_values.duration),
    "--housekeeping-interval": _plain_flag(go_values.duration),
    "--storage-driver-buffer-duration": _plain_flag(go_values.duration),
    **dict.fromkeys(GLOBAL_SWITCHES, _plain_flag(go_values.boolean)),
}
"""Flags that klog and cAdvisor register with Go's own package."""

_KLOG_UNTIL = 22
"""From the next minor on component-base parses these two itself."""
_KLOG: Mapping[str, Set] = {"level": lambda text, _: go_values.decimal_integer(text, 32), "modules": _klog_modules}


def setter(name: str, kind: str, minor: int) -> Set:
    """How a flag parses its text."""
    if kind == "reserved-memory":
        return partial(_reserved_memory, minor)
    if kind == "taints" and minor >= _TAINTS_ADD_SINCE:
        return partial(_added_taints, minor)
    if minor <= _KLOG_UNTIL and kind in _KLOG:
        return _KLOG[kind]
    return _BY_NAME.get(name) or KINDS[kind]
