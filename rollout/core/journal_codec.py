"""Events and orders as JSON text, and the hash chain over them. Strict both ways: what is not known is an error."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from pydantic import TypeAdapter, ValidationError

from rollout.core.events import Answered, Event, InterruptAsked, Resumed, Ticked, WaveJudged
from rollout.core.state import Order
from rollout.errors import StateError

_EVENTS: dict[str, TypeAdapter[Any]] = {
    kind.__name__: TypeAdapter(kind) for kind in (Ticked, Answered, WaveJudged, InterruptAsked, Resumed)
}
_ORDER = TypeAdapter(Order)

GENESIS = "0" * 64
"""The hash before the first event of a run."""


def encode_event(event: Event) -> str:
    """One line of JSON: ``{"event": NAME, …}``."""
    name = type(event).__name__
    return json.dumps({"event": name, **_EVENTS[name].dump_python(event, mode="json")}, sort_keys=True)


def decode_event(text: str) -> Event:
    """The reverse; raises ``StateError`` for what this version does not know."""
    try:
        body = json.loads(text)
        event: Event = _EVENTS[body.pop("event")].validate_python(body)
    except (ValueError, KeyError, ValidationError) as exc:
        raise StateError("journal-unreadable", f"an event of the journal cannot be read: {text[:120]}") from exc
    return event


def encode_order(order: Order) -> str:
    return _ORDER.dump_json(order).decode()


def decode_order(text: str) -> Order:
    try:
        return _ORDER.validate_json(text)
    except ValidationError as exc:
        raise StateError("journal-unreadable", "the order of this run cannot be read by this version") from exc


def chain(previous: str, text: str) -> str:
    """The hash of an event, over the one before it and its own text."""
    return hashlib.sha256(f"{previous}\n{text}".encode()).hexdigest()
