"""Texts as Go's standard library reads them, with its error texts: for flags and string fields.

Sources: strconv and time of Go 1.15 to 1.24, pflag 1.0.5. Errors are ``GoValueError`` with Go's own text.
"""

from __future__ import annotations

import ipaddress
import math
import re
from decimal import Decimal

from rollout.core.text import durations

_TRUE = frozenset({"1", "t", "T", "true", "TRUE", "True"})
_FALSE = frozenset({"0", "f", "F", "false", "FALSE", "False"})
_FLOAT = re.compile(
    r"[-+]?(?:(?=\.?[0-9])(?:[0-9](?:_?[0-9])*)?(?:\.(?:[0-9](?:_?[0-9])*)?)?(?:e[-+]?[0-9](?:_?[0-9])*)?"
    r"|inf|infinity)|nan",
    re.IGNORECASE | re.ASCII,
)
_HEX_FLOAT = re.compile(
    r"[-+]?0x(?=\.?_?[0-9a-f])(?:_?[0-9a-f])*(?:\.(?:[0-9a-f](?:_?[0-9a-f])*)?)?p[-+]?[0-9](?:_?[0-9])*",
    re.IGNORECASE | re.ASCII,
)
FLOAT32 = 32
_LARGEST_FLOAT32 = float.fromhex("0x1.ffffffp127")
"""From here on a number is rounded to one that a float32 does not have (``math.MaxFloat32`` and half a step)."""
_DECIMAL = re.compile(r"[+-]?[0-9]+", re.ASCII)
_DIGITS = re.compile(r"[0-9]+", re.ASCII)
_MOST_DIGITS = 4000
"""Python reads no longer number. Go's is out of range much earlier, except for leading zeros."""
_INTEGER = re.compile(r"[-+]?(?:0[xX]_?[0-9a-fA-F_]+|0[bB]_?[01_]+|0[oO]?_?[0-7_]*|[1-9][0-9_]*|0)", re.ASCII)
_NUMBER = re.compile(r"[0-9]+(?:\.[0-9]*)?|\.[0-9]+", re.ASCII)
_UNIT = re.compile(r"[^.0-9]*", re.ASCII)
_UNITS = frozenset({"ns", "us", "µs", "μs", "ms", "s", "m", "h"})


class GoValueError(ValueError):
    """Not a value of that type; the text is Go's."""


_ESCAPES = {
    '"': '\\"',
    "\\": "\\\\",
    "\a": "\\a",
    "\b": "\\b",
    "\f": "\\f",
    "\n": "\\n",
    "\r": "\\r",
    "\t": "\\t",
    "\v": "\\v",
}


def quoted(text: str) -> str:
    """Go's ``%q``. A byte that is not UTF-8 is half of a surrogate pair here, as Python reads such words."""
    return f'"{"".join(map(_quoted_letter, text))}"'


def _quoted_letter(letter: str) -> str:
    number = ord(letter)
    if letter in _ESCAPES:
        return _ESCAPES[letter]
    if letter.isprintable():
        return letter
    if number < 0x80 or 0xDC80 <= number <= 0xDCFF:
        return f"\\x{number & 0xFF:02x}"
    return f"\\u{number:04x}" if number < 0x10000 else f"\\U{number:08x}"


def shown_float(number: float) -> str:
    """Go's ``%v`` of a float64: the fewest digits that name it, with an exponent from 10^6 on and below 10^-4.

    Source: ``FormatFloat`` with the format ``g`` and the precision -1 (``strconv/ftoa.go`` of Go 1.27).
    """
    sign, digits, exponent = Decimal(repr(float(number))).normalize().as_tuple()
    power = len(digits) - 1 + int(exponent)
    if number and not -4 <= power < _EXPONENT_SINCE:
        rest = "".join(map(str, digits[1:]))
        mantissa = f"{digits[0]}.{rest}" if rest else str(digits[0])
        return f"{'-' if sign else ''}{mantissa}e{power:+03d}"
    return repr(float(number)).removesuffix(".0")


_EXPONENT_SINCE = 6


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
    return _in_base_10("Atoi", _DECIMAL, text, -(2**63), 2**63)


def decimal_integer(text: str, bits: int) -> int:
    """``strconv.ParseInt`` with base 10, as klog calls it."""
    return _in_base_10("ParseInt", _DECIMAL, text, -(2 ** (bits - 1)), 2 ** (bits - 1))


def decimal_unsigned(text: str, bits: int) -> int:
    """``strconv.ParseUint`` with base 10: without a sign."""
    return _in_base_10("ParseUint", _DIGITS, text, 0, 2**bits)


def _in_base_10(function: str, form: re.Pattern[str], text: str, least: int, beyond: int) -> int:
    if not form.fullmatch(text):
        raise GoValueError(f"strconv.{function}: parsing {quoted(text)}: invalid syntax")
    if len(text) > _MOST_DIGITS or not least <= int(text) < beyond:
        raise GoValueError(f"strconv.{function}: parsing {quoted(text)}: value out of range")
    return int(text)


def decimal(text: str, bits: int = 64) -> float:
    """``strconv.ParseFloat``: also hexadecimal numbers, which need an exponent (``0x1p3``)."""
    is_hex = bool(_HEX_FLOAT.fullmatch(text))
    if not is_hex and not _FLOAT.fullmatch(text):
        raise GoValueError(f"strconv.ParseFloat: parsing {quoted(text)}: invalid syntax")
    try:
        number = float.fromhex(text.replace("_", "")) if is_hex else float(text)
    except OverflowError:
        number = math.inf
    written = "inf" in text.lower()
    if not written and (math.isinf(number) or (bits == FLOAT32 and abs(number) >= _LARGEST_FLOAT32)):
        raise GoValueError(f"strconv.ParseFloat: parsing {quoted(text)}: value out of range")
    return number


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


_LEADING_ZEROS = re.compile(r"(?<![0-9A-Fa-f])0+(?=[0-9A-Fa-f])")


def parsed_ip(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """``net.ParseIP`` of Go up to 1.16, later ``ParseIPSloppy`` (k8s.io/utils ``net``): no zones, but leading zeros.

    An IPv4 address that is written as IPv6 (``::ffff:10.0.0.1``) is one of IPv4 (``To4``).
    """
    try:
        address = None if "%" in text else ipaddress.ip_address(_LEADING_ZEROS.sub("", text))
    except ValueError:
        return None
    return address.ipv4_mapped or address if isinstance(address, ipaddress.IPv6Address) else address


def ip_address(text: str) -> str:
    """An IP address; the text stays as written."""
    if parsed_ip(text) is None:
        raise GoValueError(f"{quoted(text)} is not a valid IP address")
    return text


_ATOI = re.compile(r"[-+]?[0-9]+", re.ASCII)
_LONGEST_NUMBER = 100
"""Characters. Leading zeros count; more of them than this are not read, and no kubelet's file has them."""

_INT64 = 2**63
_STRICT_RANGES_SINCE = 22


def cpu_list_error(listed: str, minor: int) -> str:
    """The error for the first bad part, or ``""``.

    Until 1.21 a part with two dashes is skipped, and a range may be turned around (``cm/cpuset`` of 1.20.2 and
    1.21.4); later ones refuse both (1.22.6 to 1.36, from 1.27 on with another sign).
    """
    strict = minor >= _STRICT_RANGES_SINCE
    for part in listed.split(","):
        bounds = part.split("-", 1) if strict else part.split("-")
        if len(bounds) > 2:
            continue
        for bound in bounds:
            if not _ATOI.fullmatch(bound):
                return f"strconv.Atoi: parsing {quoted(bound)}: invalid syntax"
            if len(bound) > _LONGEST_NUMBER or not -_INT64 <= int(bound) < _INT64:
                return f"strconv.Atoi: parsing {quoted(bound)}: value out of range"
        first, last = int(bounds[0]), int(bounds[-1])
        if strict and first > last:
            return f"invalid range {quoted(part)} ({first} {'>' if minor >= 27 else '>='} {last})"
    return ""


def cpus(listed: str) -> int:
    """The number of CPUs in a list of any minor. ``ValueError``: no minor can read it (``cpu_list_error``)."""
    error = cpu_list_error(listed, _STRICT_RANGES_SINCE - 1)
    if error:
        raise ValueError(error)
    parts = (part.split("-") for part in listed.split(","))
    spans = sorted((int(bounds[0]), int(bounds[-1])) for bounds in parts if len(bounds) <= 2)
    count, next_free = 0, -_INT64
    for first, last in spans:
        count += max(0, last + 1 - max(first, next_free))
        next_free = max(next_free, last + 1)
    return count
