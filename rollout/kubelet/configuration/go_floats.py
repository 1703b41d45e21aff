"""Floats as Go prints them where a YAML key is one."""

from __future__ import annotations

import math
import struct


def float_key(value: float) -> str:
    """``FormatFloat(f, 'g', -1, 32)``: the shortest text that gives the same 32-bit float; exponents from 21 on."""
    if not math.isfinite(value):
        return {math.inf: ".inf", -math.inf: "-.inf"}.get(value, ".nan")
    short = next(text for digits in range(1, 18) if _same_32((text := f"{value:.{digits}g}"), value) or digits == 17)
    number = float(short)
    exponent = math.floor(math.log10(abs(number))) if number else 0
    if exponent < -4 or exponent >= 21:
        return f"{number:e}" if "e" not in short else short
    return str(int(number)) if number.is_integer() else short


def _same_32(text: str, value: float) -> bool:
    try:
        return struct.pack("f", float(text)) == struct.pack("f", value)
    except OverflowError:
        return False
