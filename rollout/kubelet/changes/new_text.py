"""New values as text: YAML on one line or in lines of their own, or JSON."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

from rollout.core.model.settings import Value
from rollout.kubelet.configuration.yaml_words import resolve

_DATE = re.compile(r"\d{4}-\d{1,2}-\d{1,2}(?:[Tt ].*)?|[-+]?[0-9][0-9_]*(?::[0-5]?[0-9])+(?:\.[0-9_]*)?")
_PLAIN = re.compile(r"[A-Za-z0-9_./][A-Za-z0-9_./%+-]*")
_LAST_OF_ONE = 0xFFFF


def written(document: Mapping[str, Value]) -> bytes:
    """``document`` as YAML text: overlays are made of it."""
    return flow(dict(document)).encode()


def flow(value: Value) -> str:
    """A value on one line: bare if every YAML reader reads the bare text as this exact text, else as JSON."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{flow(name)}: {flow(entry)}" for name, entry in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(flow(entry) for entry in value) + "]"
    if isinstance(value, str):
        return value if _bare(value) else f'"{"".join(map(_escaped, value))}"'
    return json.dumps(value)


def as_json(value: Value) -> str:
    """As one line of JSON, which is what a kubelet reads where a file begins with a brace."""
    return json.dumps(value, ensure_ascii=False)


def block(values: Mapping[str, Value], indent: str) -> list[str]:
    """In lines of their own, without ends of lines. Maps and lists inside of a list are on one line."""
    lines: list[str] = []
    for name, value in values.items():
        if isinstance(value, dict) and value:
            lines += [f"{indent}{flow(name)}:", *block(value, indent + "  ")]
        elif isinstance(value, list) and value:
            lines += [f"{indent}{flow(name)}:", *(f"{indent}- {flow(entry)}" for entry in value)]
        else:
            lines.append(f"{indent}{flow(name)}: {flow(value)}")
    return lines


def _escaped(letter: str) -> str:
    """As in JSON, except for characters that JSON writes as two: YAML has no surrogates."""
    return letter if ord(letter) > _LAST_OF_ONE else json.dumps(letter)[1:-1]


def _bare(text: str) -> bool:
    return bool(_PLAIN.fullmatch(text)) and resolve("", text) == text and not _DATE.fullmatch(text)
