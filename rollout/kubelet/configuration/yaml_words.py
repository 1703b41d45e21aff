"""How Go's yaml.v2 resolves one scalar: every minor's kubelet reads YAML with it, through sigs.k8s.io/yaml.

YAML 1.1 with Go's own numbers: ``yes`` and ``on`` are true, ``010`` is 8, ``08`` is the float 8, ``0b11`` and ``1_000``
are numbers, ``1:30`` and dates stay text. Source: ``vendor/gopkg.in/yaml.v2/resolve.go`` of 1.20.2; sigs.k8s.io/yaml
1.4 and later contain a copy of the same rules.
"""

from __future__ import annotations

import base64
import binascii
import re

# Where Go's YAML scanner reads differently from libyaml. Go's scanner is an older copy of libyaml.
#
# * A colon ends a plain word in braces or brackets only before a blank: ``[fd00::]`` contains the text ``fd00::``.
#   libyaml ends the word there.
# * A question mark ends such a word everywhere: ``[a?b]`` is an error. libyaml reads it as a part of the word.
# * A byte order mark that begins a line is a part of the word behind it. libyaml skips it. (``is_bom`` in
#   ``yamlprivateh.go`` looks at the first bytes of the buffer, not at the place that is read.)
#
# So each such colon and each byte order mark after the first character is replaced by a letter of the private use
# area before libyaml reads, and restored afterwards. All positions stay. Where both scanners agree (in block style, in
# quotes, in comments) the replacement changes nothing, so it needs no context. Source:
# ``yaml_parser_scan_plain_scalar`` and ``yaml_parser_scan_to_next_token`` in ``vendor/gopkg.in/yaml.v2/scannerc.go`` of
# 1.20.2.


COLON, MARK = "\ue000", "\ue001"
STAND_INS = (COLON, MARK)
"""A document that contains one of these letters cannot be prepared."""
_COLON = re.compile(rb"""(?<=[^\s,\[\]{}"'?]):(?=[,\[\]{}])""")
BYTE_ORDER_MARK = "\ufeff".encode()


def prepared(content: bytes) -> bytes:
    """The input for libyaml in place of ``content``."""
    start = BYTE_ORDER_MARK if content.startswith(BYTE_ORDER_MARK) else b""
    rest = content.removeprefix(start).replace(BYTE_ORDER_MARK, MARK.encode())
    return start + _COLON.sub(COLON.encode(), rest)


def restored(text: str) -> str:
    """A word of a prepared document as it is in the original document."""
    return text.replace(COLON, ":").replace(MARK, "\ufeff")


def stops_at(text: str) -> bool:
    """Whether Go's scanner ends this plain word of a flow collection early; its parser refuses that."""
    return "?" in text


Scalar = str | int | float | bool | None

_PREFIX = "tag:yaml.org,2002:"
_STR, _BOOL, _INT, _FLOAT, _NULL, _TIMESTAMP, _BINARY = (
    _PREFIX + name for name in ("str", "bool", "int", "float", "null", "timestamp", "binary")
)
_RESOLVABLE = frozenset({"", _STR, _BOOL, _INT, _FLOAT, _NULL, _TIMESTAMP})
_TRUE = ("y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON")
_FALSE = ("n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF")
_WORDS: dict[str, tuple[str, Scalar]] = {
    **dict.fromkeys(_TRUE, (_BOOL, True)),
    **dict.fromkeys(_FALSE, (_BOOL, False)),
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), (_NULL, None)),
    **dict.fromkeys((".nan", ".NaN", ".NAN"), (_FLOAT, float("nan"))),
    **dict.fromkeys((".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF"), (_FLOAT, float("inf"))),
    **dict.fromkeys(("-.inf", "-.Inf", "-.INF"), (_FLOAT, float("-inf"))),
}
_HINTS = frozenset("+-0123456789yYnNtTfFoO~.")
_NUMBERS = frozenset("+-0123456789")
_DECIMAL = re.compile(r"[-+]?(?:0|[1-9][0-9]*)", re.ASCII)
_PREFIXED = re.compile(r"([-+]?)(?:0[xX]([0-9a-fA-F]+)|0[bB]([01]+)|0[oO]?([0-7]+))", re.ASCII)
_DECIMAL_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?", re.ASCII)
_LARGEST = 2**64 - 1
_SMALLEST = -(2**63)
_MOST_DIGITS = 4000  # Python does not read longer numbers; Go makes them a float that is too large, so: text


class ScalarError(ValueError):
    """A tag that does not match its value; the text is yaml.v2's."""


def resolve(tag: str, text: str) -> Scalar:
    """An unquoted or tagged scalar; ``tag`` is the long form or ``""``. ``ScalarError`` when the tag does not match."""
    if tag == _BINARY:
        try:
            return base64.b64decode("".join(text.splitlines()), validate=True).decode("utf-8", "replace")
        except binascii.Error:
            raise ScalarError("!!binary value contains invalid base64 data") from None
    if tag == _STR or tag not in _RESOLVABLE:
        return text
    found, value = _plain(text)
    if tag in {"", found}:
        return value
    if tag == _FLOAT and found == _INT and isinstance(value, int):
        return float(value)
    if tag == _TIMESTAMP and found == _STR:
        return value
    raise ScalarError(f"cannot decode {_short(found)} `{text}` as a {_short(tag)}")


def _plain(text: str) -> tuple[str, Scalar]:
    if text and text[0] not in _HINTS:
        return _STR, text
    if text in _WORDS:
        return _WORDS[text]
    if text[0] in _NUMBERS:
        plain = text.replace("_", "")
        if len(plain) > _MOST_DIGITS:
            return _STR, text
        whole = _whole(plain)
        if whole is not None and _SMALLEST <= whole <= _LARGEST and not (plain.startswith("+") and whole >= 2**63):
            return _INT, whole
        if _DECIMAL_FLOAT.fullmatch(plain):
            return _float(plain, text)
        return _STR, text
    if text[0] == "." and _DECIMAL_FLOAT.fullmatch(text):
        return _float(text, text)
    return _STR, text


def _whole(plain: str) -> int | None:
    """Go's ``ParseInt`` and ``ParseUint`` with base 0: a leading 0 is octal."""
    if _DECIMAL.fullmatch(plain):
        return int(plain)
    match = _PREFIXED.fullmatch(plain)
    if match is None:
        return None
    sign, hexadecimal, binary, octal = match.groups()
    number = int(hexadecimal, 16) if hexadecimal else int(binary, 2) if binary else int(octal, 8)
    return -number if sign == "-" else number


def _float(plain: str, text: str) -> tuple[str, Scalar]:
    number = float(plain)
    return (_STR, text) if number in {float("inf"), float("-inf")} else (_FLOAT, number)


def _short(tag: str) -> str:
    return "!!" + tag.removeprefix(_PREFIX) if tag.startswith(_PREFIX) else tag
