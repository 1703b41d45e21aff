"""Keys and values of labels and taints, with the errors of apimachinery: ``util/validation/validation.go``.

Sources: 1.25 to 1.36; from 1.35 on they are in ``api/validate/content``: one text names a label key, and others bytes.
"""

from __future__ import annotations

import re

_MOST, _MOST_IN_SUBDOMAIN = 63, 253
_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN = re.compile(rf"{_LABEL}(\.{_LABEL})*")
_KEY = re.compile("([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]")
_VALUE = re.compile(f"({_KEY.pattern})?")
_LETTERS = "alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character"
_KEY_NAMED_SINCE = 35


def key_errors(text: str, minor: int) -> list[str]:
    """``IsQualifiedName``; none for a valid key."""
    prefix, separated, name = text.partition("/")
    key = f"must consist of {_LETTERS}{_such_as(_KEY, 'MyName', 'my.name', '123-abc')}"
    if not separated:
        prefix, name = "", text
    if "/" in name:
        named = "a valid label key" if minor >= _KEY_NAMED_SINCE else "a qualified name"
        return [f"{named} {key} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"]
    errors = [f"prefix part {each}" for each in _prefix_errors(prefix, minor)] if separated else []
    if not name:
        errors.append("name part must be non-empty")
    elif _length(name) > _MOST:
        errors.append(f"name part {_too_long(_MOST, minor)}")
    return errors if _KEY.fullmatch(name) else [*errors, f"name part {key}"]


def value_errors(text: str, minor: int) -> list[str]:
    """``IsValidLabelValue``; none for a valid value."""
    errors = [_too_long(_MOST, minor)] if _length(text) > _MOST else []
    if not _VALUE.fullmatch(text):
        empty_or = f"a valid label must be an empty string or consist of {_LETTERS}"
        errors.append(empty_or + _such_as(_VALUE, "MyValue", "my_value", "12345"))
    return errors


def subdomain_errors(text: str, minor: int) -> list[str]:
    """``IsDNS1123Subdomain``: the name of a Node, or the prefix of a key."""
    errors = [_too_long(_MOST_IN_SUBDOMAIN, minor)] if _length(text) > _MOST_IN_SUBDOMAIN else []
    if not _SUBDOMAIN.fullmatch(text):
        letters = (
            "lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character"
        )
        errors.append(f"a lowercase RFC 1123 subdomain must consist of {letters}{_such_as(_SUBDOMAIN, 'example.com')}")
    return errors


def _prefix_errors(prefix: str, minor: int) -> list[str]:
    return subdomain_errors(prefix, minor) if prefix else ["must be non-empty"]


def _length(text: str) -> int:
    """Go counts bytes."""
    return len(text.encode("utf-8", "surrogateescape"))


def _too_long(most: int, minor: int) -> str:
    return f"must be no more than {most} {'bytes' if minor >= _KEY_NAMED_SINCE else 'characters'}"


def _such_as(pattern: re.Pattern[str], *examples: str) -> str:
    """``RegexError``, with its two blanks between examples."""
    listed = " or ".join(f"'{example}', " for example in examples)
    return f" (e.g. {listed}regex used for validation is '{pattern.pattern}')"
