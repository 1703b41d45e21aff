"""Resource quantities as ``resource.ParseQuantity`` reads them: ``500m``, ``1.5Gi``, ``1e3``; exact, with its errors.

Source: apimachinery ``pkg/api/resource/quantity.go`` and ``suffix.go`` of 1.20.2; later minors have the same grammar.
"""

from __future__ import annotations

import re
from fractions import Fraction
from functools import lru_cache
from math import ceil

from rollout.core.model.frozen import dataclass
from rollout.kubelet.configuration.go_values import GoValueError

_SPLIT = "^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$"
_SCANNED = re.compile(r"([+-]?)0*+([0-9]*+)(?:\.([0-9]*+))?((?:(?:[eEinumkKMGTP]++[-+]?|[-+])[0-9]*)?)", re.ASCII)
_EXPONENT = re.compile(r"[eE]([-+]?[0-9]+)", re.ASCII)
_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_MOST_DIGITS = (
    2_000  # before and after the point: Python reads no longer numbers, and to the kubelet they are all the same
)
_MOST_EXPONENT = 10_000  # the kubelet also treats larger ones as infinite or as zero


@dataclass(frozen=True, slots=True)
class Quantity:
    """``amount`` is exact. ``whole`` is the result of ``AsInt64``: ``None`` where Go keeps no int64."""

    amount: Fraction
    whole: int | None


def parse(text: str) -> Quantity:
    """The quantity, or ``GoValueError``."""
    match = _SCANNED.fullmatch(text) if text else None
    if match is None:
        raise GoValueError(f"quantities must match the regular expression '{_SPLIT}'")
    sign, digits, fraction, suffix = match[1], match[2] or "0", match[3] or "", match[4]
    if fraction[_MOST_DIGITS:].strip("0"):
        fraction = fraction[:_MOST_DIGITS] + "1"  # it is rounded up later
    fraction = fraction[: _MOST_DIGITS + 1]
    if len(digits) > _MOST_DIGITS:
        digits = "9" * _MOST_DIGITS
    number = Fraction(int(digits + fraction), 10 ** len(fraction)) * (-1 if sign == "-" else 1)
    if suffix in _BINARY:
        exponent = _BINARY[suffix]
        exact = not fraction and 15 - len(digits) - exponent * 3 // 10 - 1 >= 0
        return _quantity(number * 2**exponent, exact=exact)
    power = _power(suffix)
    exact = len(digits) + len(fraction) <= 18 and power - len(fraction) >= 0
    return _quantity(number * Fraction(10) ** power, exact=exact)


def shown(text: str) -> str:
    """As the kubelet shows it: ``1000m`` as ``1``, ``0.5Mi`` as ``512Ki``, ``1024Ki`` as ``1Mi``, but ``1.500`` as it is written; ``GoValueError`` for an invalid one.

    Source: ``ParseQuantity``, which keeps a text that seems canonical, and ``CanonicalizeBytes`` of 1.36.
    """
    quantity = parse(text)
    suffix = text.lstrip("+-0123456789.")
    if _seems_canonical(text.lstrip("+-").removesuffix(suffix), suffix):
        return text
    size = Fraction(ceil(abs(quantity.amount) * 10**9), 10**9)  # to the billionth, away from zero
    sign = "-" if quantity.amount < 0 else ""
    if suffix in _BINARY:
        size = min(size, Fraction(2**63 - 1))
        if size >= 1024 and size.denominator == 1:
            number, power = _powers(int(size), 1024)
            return f"{sign}{number}{['', *_BINARY][power]}"
    number, power = _powers(int(size * 10**9), 1000) if size else (0, 3)
    if _EXPONENT.fullmatch(suffix):
        return f"{sign}{number}e{3 * power - 9}" if power != 3 else f"{sign}{number}"
    return f"{sign}{number}{_UNITS.get(3 * power - 9, '')}"  # Go has no unit above E, and shows none


def rounded_to_milli(text: str) -> str:
    """``Quantity.RoundUp`` to thousandths, away from zero; a quantity without a smaller part stays as it is."""
    thousandths = parse(text).amount * 1000
    if thousandths.denominator == 1:
        return text
    return shown(f"{'-' if thousandths < 0 else ''}{ceil(abs(thousandths))}m")


_UNITS = {power: unit for unit, power in _DECIMAL.items()}


def _seems_canonical(number: str, suffix: str) -> bool:
    """By the digits of a number that Go reads without big numbers. The last three of some count, and not those ahead of them."""
    whole_part, _, part = number.partition(".")
    digits = whole_part.lstrip("0") or "0"
    if suffix in _BINARY:
        fast = not part and 15 - len(digits) - _BINARY[suffix] * 3 // 10 - 1 >= 0
        return fast and int(digits) % 8 != 0
    scale = _power(suffix) - len(part)
    fast = len(digits) + len(part) <= 18 and scale >= -9
    return fast and scale % 3 == 0 and not (digits + part).endswith("000") and digits[0] != "0"


def _powers(number: int, base: int) -> tuple[int, int]:
    """What is left of a number above 0 without its factors ``base``, and how many these are; at most six of 1,024."""
    power = 0
    while number % base == 0 and not (base == 1024 and power == 6):
        number, power = number // base, power + 1
    return number, power


# As the kubelet counts them: whole numbers, rounded up.


@lru_cache(maxsize=4096)
def milli(text: str) -> int:
    """In thousandths, as ``Quantity.MilliValue``; ``ValueError`` for an invalid quantity."""
    return ceil(parse(text).amount * 1000)


@lru_cache(maxsize=4096)
def whole(text: str) -> int:
    """As ``Quantity.Value``; ``ValueError`` for an invalid quantity."""
    return ceil(parse(text).amount)


def _power(suffix: str) -> int:
    if suffix in _DECIMAL:
        return _DECIMAL[suffix]
    match = _EXPONENT.fullmatch(suffix)
    if match is None:
        raise GoValueError("unable to parse quantity's suffix")
    digits = match[1].lstrip("+-0")
    size = int(digits or "0") if len(digits) < len(str(_MOST_EXPONENT)) else _MOST_EXPONENT
    return -size if match[1].startswith("-") else size


def _quantity(amount: Fraction, *, exact: bool) -> Quantity:
    return Quantity(amount, int(amount) if exact and abs(amount) < 2**63 else None)
