"""Texts as Go's standard library reads them, with its error texts: for flags and string fields.

Sources: strconv and time of Go 1.15 to 1.24, pflag 1.0.5. Errors are ``GoValueError`` with Go's own text.
"""

from __future__ import annotations

import ipaddress
import json
import re

from rollout.core.text import durations

_TRUE = frozenset({"1", "t", "T", "true", "TRUE", "True"})
_FALSE = frozenset({"0", "f", "F", "false", "FALSE", "False"})
_FLOAT = re.compile(
    r"[-+]?(?:(?:[0-9](?:_?[0-9])*)?(?:\.(?:[0-9](?:_?[0-9])*)?)?(?:[eE][-+]?[0-9]+)?|inf|infinity|nan)",
    re.IGNORECASE | re.ASCII,
)
_DECIMAL = re.compile(r"[+-]?[0-9]+", re.ASCII)
_MOST_DIGITS = 4000
"""Python reads no longer number. Go's is out of range much earlier, except for leading zeros."""
_INTEGER = re.compile(r"[-+]?(?:0[xX]_?[0-9a-fA-F_]+|0[bB]_?[01_]+|0[oO]?_?[0-7_]*|[1-9][0-9_]*|0)", re.ASCII)
_NUMBER = re.compile(r"[0-9]+(?:\.[0-9]*)?|\.[0-9]+", re.ASCII)
_UNIT = re.compile(r"[^.0-9]*", re.ASCII)
_UNITS = frozenset({"ns", "us", "µs", "μs", "ms", "s", "m", "h"})


class GoValueError(ValueError):
    """Not a value of that type; the text is Go's."""


def quoted(text: str) -> str:
    """Go's ``%q`` for text without exotic characters: double quotes, escapes as in JSON."""
    return json.dumps(text, ensure_ascii=False)


def boolean(text: str) -> bool:
    """``strconv.ParseBool``."""
    if text in _TRUE:
        return True
    if text in _FALSE:
        return False
    raise GoValueError(f"strconv.ParseBool: parsing {quoted(text)}: invalid syntax")


def integer(text: str, bits: int) -> int:
    """``strconv.ParseInt`` with base 0, as pflag calls it: ``0x10``, ``010`` and ``1_000`` are numbers."""
    if not _INTEGER.fullmatch(text) or "__" in text or text.endswith("_"):
        raise GoValueError(f"strconv.ParseInt: parsing {quoted(text)}: invalid syntax")
    number = _integer(text.replace("_", ""))
    if not -(2 ** (bits - 1)) <= number < 2 ** (bits - 1):
        raise GoValueError(f"strconv.ParseInt: parsing {quoted(text)}: value out of range")
    return number


def _integer(text: str) -> int:
    sign, digits = (-1 if text[0] == "-" else 1), text.lstrip("+-")
    if len(digits) > 1 and digits[0] == "0" and digits[1].isdigit():
        return sign * int(digits, 8)
    return sign * int(digits, 0)


def atoi(text: str) -> int:
    """``strconv.Atoi``: base 10, 64 bits."""
    if not _DECIMAL.fullmatch(text):
        raise GoValueError(f"strconv.Atoi: parsing {quoted(text)}: invalid syntax")
    if len(text) > _MOST_DIGITS or not -(2**63) <= int(text) < 2**63:
        raise GoValueError(f"strconv.Atoi: parsing {quoted(text)}: value out of range")
    return int(text)


def decimal(text: str) -> float:
    """``strconv.ParseFloat``."""
    if not _FLOAT.fullmatch(text) or not re.search(r"[0-9]|inf|nan", text, re.IGNORECASE):
        raise GoValueError(f"strconv.ParseFloat: parsing {quoted(text)}: invalid syntax")
    return float(text)


def duration(text: str) -> int:
    """``time.ParseDuration`` in nanoseconds."""
    try:
        return durations.nanoseconds(text)
    except durations.DurationError:
        raise GoValueError(f"time: {_duration_mistake(text)}") from None


def _duration_mistake(text: str) -> str:
    """Which of its three errors Go gives; it reads from left to right."""
    invalid = f"invalid duration {quoted(text)}"
    at = 1 if text[:1] in {"-", "+"} else 0
    while at < len(text):
        number = _NUMBER.match(text, at)
        if number is None:
            return invalid
        unit = _UNIT.match(text, number.end())
        name = unit.group() if unit else ""
        if not name:
            return f"missing unit in duration {quoted(text)}"
        if name not in _UNITS:
            return f"unknown unit {quoted(name)} in duration {quoted(text)}"
        at = number.end() + len(name)
    return invalid


def ip_address(text: str) -> str:
    """``net.ParseIP``, which accepts no zones; the text stays as written."""
    try:
        if "%" in text:
            raise ValueError(text)
        ipaddress.ip_address(text)
    except ValueError:
        raise GoValueError(f"{quoted(text)} is not a valid IP address") from None
    return text
