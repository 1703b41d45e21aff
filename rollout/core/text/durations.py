"""Go's durations: ``time.ParseDuration`` in, ``Duration.String`` out, as the kubelet reads and prints them.

durationpy is not used: it takes ``d``, ``w``, ``mm`` and ``y``, Unicode digits and rubbish between terms (``1h!5m``),
rounds to microseconds, and prints 5 minutes as ``5m`` and zero as ``0``. The tests compare with it where it is right.
"""

from __future__ import annotations

import re

_UNITS = {"ns": 1, "us": 10**3, "µs": 10**3, "μs": 10**3, "ms": 10**6, "s": 10**9, "m": 60 * 10**9, "h": 3600 * 10**9}
_TERM = re.compile(r"([0-9]*)(\.[0-9]*)?(ns|us|µs|μs|ms|s|m|h)")
_WHOLE = re.compile(r"[+-]?(?:0|(?:(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:ns|us|µs|μs|ms|s|m|h))+)")
_SECOND = 10**9
_LARGEST = 2**63 - 1
_LONGEST_TEXT = 128


class DurationError(ValueError):
    """Not a Go duration; the message describes one."""


def nanoseconds(text: str) -> int:
    """``"1h15m30.5s"`` as Go counts it, or ``DurationError``."""
    if len(text) > _LONGEST_TEXT or not _WHOLE.fullmatch(text):
        raise DurationError("a duration is numbers with units (ns, us, ms, s, m, h), for example 90s or 1m30s")
    total = sum(_term(*match.groups(default="")) for match in _TERM.finditer(text))
    if total > _LARGEST:
        raise DurationError("a duration is at most 2540400h (about 290 years)")
    return -total if text.startswith("-") else total


def _term(whole: str, fraction: str, unit: str) -> int:
    digits = fraction[1:]
    scale: int = 10 ** len(digits)
    return int(whole or "0") * _UNITS[unit] + int(digits or "0") * _UNITS[unit] // scale


def parse(text: str) -> float:
    """A Go duration in seconds, or ``DurationError``."""
    return nanoseconds(text) / _SECOND


def go_format(seconds: float) -> str:
    """Seconds as Go prints a duration: ``5m0s``, ``1h0m0s``, ``1.5s``, ``100ms``, ``0s``."""
    return go_format_nanoseconds(round(seconds * _SECOND))


def go_format_nanoseconds(count: int) -> str:
    """The exact form of ``go_format``."""
    sign, count = ("-" if count < 0 else ""), abs(count)
    if count < _SECOND:
        return sign + _small(count)
    minutes, rest = divmod(count, 60 * _SECOND)
    hours, minutes = divmod(minutes, 60)
    ahead = f"{hours}h{minutes}m" if hours else f"{minutes}m" if minutes else ""
    return f"{sign}{ahead}{_decimal(rest, _SECOND)}s"


def _small(count: int) -> str:
    if count == 0:
        return "0s"
    unit = "ms" if count >= _UNITS["ms"] else "µs" if count >= _UNITS["µs"] else "ns"
    return _decimal(count, _UNITS[unit]) + unit


def _decimal(count: int, unit: int) -> str:
    whole, rest = divmod(count, unit)
    digits = f"{rest:0{len(str(unit)) - 1}d}".rstrip("0") if rest else ""
    return f"{whole}.{digits}" if digits else str(whole)
