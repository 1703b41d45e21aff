"""Events and orders as JSON text, and the hash chain over them. Strict both ways: what is not known is an error."""

from __future__ import annotations

import hashlib
import json

from rollout.core.run.events import (
    AbortAsked,
    Answered,
    ContinueAsked,
    CordonsLifted,
    Event,
    InterruptAsked,
    PauseAsked,
    Resumed,
    SilencesLifted,
    Ticked,
    WaveJudged,
    WaveOpened,
)
from rollout.core.run.state import RULES, Order
from rollout.core.text import dataclass_json, json_text
from rollout.core.text.terminal import printable
from rollout.errors import StateError

_EVENTS = {
    kind.__name__: kind
    for kind in (
        Ticked,
        Answered,
        WaveOpened,
        WaveJudged,
        SilencesLifted,
        CordonsLifted,
        InterruptAsked,
        PauseAsked,
        ContinueAsked,
        AbortAsked,
        Resumed,
    )
}

GENESIS = "0" * 64
"""The hash before the first event of a run."""


def encode_event(event: Event) -> str:
    """One line of JSON: ``{"event": NAME, …}``."""
    return json.dumps({"event": type(event).__name__, **dataclass_json.encode(event)}, sort_keys=True)


def decode_event(text: str) -> Event:
    """The reverse; raises ``StateError`` for what this version does not know."""
    try:
        body = json_text.parse(text)
        event: Event = dataclass_json.decode(_EVENTS[body.pop("event")], body)
    except (ValueError, LookupError, TypeError, AttributeError) as exc:
        raise StateError(
            "journal-unreadable", f"an event of the journal cannot be read: {printable(text, 120)}"
        ) from exc
    return event


def encode_order(order: Order) -> str:
    return json.dumps(dataclass_json.encode(order), sort_keys=True)


def decode_order(text: str) -> Order:
    """The reverse; ``StateError`` for an order of a version that has other rules, or other words."""
    try:
        body = json_text.parse(text)
        rules = body.get("rules") if isinstance(body, dict) else RULES
        if rules != RULES:
            raise StateError(
                "another-version",
                f"this run went by rules {rules or 'of an older version'} of rollout, this one has rules {RULES}",
                hint="the rollout that began it can tell; the nodes can too: `rollout rollback --cluster C --emergency`",
            )
        order: Order = dataclass_json.decode(Order, body)
    except ValueError as exc:
        raise StateError("journal-unreadable", "the order of this run cannot be read by this version") from exc
    return order


def chain(previous: str, text: str) -> str:
    """The hash of an event, over the one before it and its own text."""
    return hashlib.sha256(f"{previous}\n{text}".encode()).hexdigest()
