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
