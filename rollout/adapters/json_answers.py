"""Strict decoding of JSON from back ends. The reader of the answer limits its size."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rollout.adapters.http import HttpAnswer
from rollout.core.text import json_text
from rollout.errors import RemoteError


def decoded(answer: HttpAnswer) -> Any:
    """The JSON in an answer's body, or ``RemoteError``."""
    if not answer.whole:
        raise RemoteError("too-large", f"the answer is larger than {len(answer.body) >> 20} MiB")
    try:
        return json_text.parse(answer.body)
    except ValueError:
        raise RemoteError("bad-answer", "the answer is not JSON") from None


def mapping(value: object, what: str) -> Mapping[str, Any]:
    """``value`` as a map; ``None``, as Go writes an empty one, is empty."""
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise RemoteError("bad-answer", f"{what} is not a map")
    return value


def listing(value: object, what: str) -> list[Any]:
    """``value`` as a list; ``None``, as Go writes an empty one, is empty."""
    if value is None:
        return []
    if not isinstance(value, list):
        raise RemoteError("bad-answer", f"{what} is not a list")
    return value


def text(value: object, what: str) -> str:
    """``value`` as text; ``None`` is empty."""
    if value is None:
        return ""
    if not isinstance(value, str):
        raise RemoteError("bad-answer", f"{what} is not text")
    return value


def pairs(document: Mapping[str, Any], key: str) -> tuple[tuple[str, str], ...]:
    """A map of texts below ``key``, in its order."""
    return tuple((name, text(value, name)) for name, value in mapping(document.get(key), key).items())
