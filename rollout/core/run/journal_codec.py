"""Events and orders as JSON text, and the hash chain over them. Strict in both directions: anything unknown is an error."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any

from rollout.core.run.events import (
    AbortAsked,
    Answered,
    Approved,
    ConfigMapRead,
    ContinueAsked,
    CordonsLifted,
    Event,
    FleetRead,
    InterruptAsked,
    PauseAsked,
    Resumed,
    SilencesLifted,
    Ticked,
    WaveJudged,
    WaveOpened,
    WindowClosed,
    WindowOpened,
)
from rollout.core.run.state import RULES, Order
from rollout.core.text import json_text
from rollout.core.text.terminal import printable
from rollout.errors import StateError

EVENTS: Mapping[str, type[Event]] = {
    "Ticked": Ticked,
    "Answered": Answered,
    "WaveOpened": WaveOpened,
    "WaveJudged": WaveJudged,
    "SilencesLifted": SilencesLifted,
    "ConfigMapRead": ConfigMapRead,
    "CordonsLifted": CordonsLifted,
    "InterruptAsked": InterruptAsked,
    "PauseAsked": PauseAsked,
    "ContinueAsked": ContinueAsked,
    "AbortAsked": AbortAsked,
    "Resumed": Resumed,
    "FleetRead": FleetRead,
    "Approved": Approved,
    "WindowClosed": WindowClosed,
    "WindowOpened": WindowOpened,
}
"""Name in journals → event. The name stays even if the class is renamed."""

_NAMES = {kind: name for name, kind in EVENTS.items()}

GENESIS = "0" * 64
"""The hash before the first event of a run."""


def encode_event(event: Event) -> str:
    """One line of JSON: ``{"event": NAME, …}``."""
    kind: Any = type(event)
    return _writer(kind)(event)


@cache
def _writer(kind: type[Event]) -> Callable[[Any], str]:
    return json_text.line_writer(kind, {"event": _NAMES[kind]})


def decode_event(text: str) -> Event:
    """The reverse; raises ``StateError`` for an event that this version does not know."""
    try:
        body = json_text.parse(text)
    except ValueError as exc:
        raise _unreadable(text) from exc
    return _event(text, body)


def decode_events(texts: Sequence[str]) -> Iterator[Event]:
    """``decode_event`` of each. JSON that is parsed together takes two thirds of the time: all events have the same keys."""
    for at in range(0, len(texts), _TOGETHER):
        some = texts[at : at + _TOGETHER]
        try:
            bodies = json_text.parse(f"[{','.join(some)}]")
        except ValueError:
            bodies = []
        yield from map(_event, some, bodies) if len(bodies) == len(some) else map(decode_event, some)


_TOGETHER = 500


def _event(text: str, body: Any) -> Event:
    try:
        event: Event = json_text.decode(EVENTS[body.pop("event")], body)
    except (ValueError, LookupError, TypeError, AttributeError) as exc:
        raise _unreadable(text) from exc
    return event


def _unreadable(text: str) -> StateError:
    return StateError("journal-unreadable", f"an event of the journal cannot be read: {printable(text, 120)}")


def encode_order(order: Order) -> str:
    return json.dumps(json_text.encode(order), sort_keys=True)


def rules_of(order: str) -> int | None:
    """The rules version of an order; ``None``: its rollout version did not record it."""
    return _rules_in(_object(order))


def _rules_in(body: object) -> int | None:
    rules = body.get("rules") if isinstance(body, dict) else RULES
    return rules if type(rules) is int else None


def transactions_in(order: str) -> frozenset[str]:
    """The transactions that an order reverts, also of an order with other rules. None, if it cannot be read."""
    body = _object(order)
    transactions = body.get("transactions") if isinstance(body, dict) else None
    return (
        frozenset(tx for tx in transactions.values() if isinstance(tx, str))
        if isinstance(transactions, dict)
        else frozenset()
    )


def decode_order(text: str) -> Order:
    """The reverse; ``StateError`` for an order with other rules or unknown words."""
    body = _object(text)
    if (rules := _rules_in(body)) != RULES:
        raise StateError(
            "another-version",
            f"this run follows rules {rules or 'of an older version'} of rollout, this one has rules {RULES}",
            hint="use the version of rollout that started it, or `rollout rollback --cluster C --emergency`",
        )
    try:
        order: Order = json_text.decode(Order, body)
    except ValueError as exc:
        raise StateError("journal-unreadable", "the order of this run cannot be read by this version") from exc
    return order


def _object(text: str) -> object:
    """``None``: not JSON."""
    try:
        return json_text.parse(text)
    except ValueError:
        return None


def chain(previous: str, text: str) -> str:
    """The hash of an event, over the one before it and its own text."""
    return hashlib.sha256(f"{previous}\n{text}".encode()).hexdigest()
