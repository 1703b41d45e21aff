"""Events and orders survive the journal; anything unknown is refused, never guessed."""

from __future__ import annotations

import json
import types
import typing
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rollout.core.model.verdict import Verdict
from rollout.core.run.events import (
    Answered,
    CordonsLifted,
    Event,
    FleetRead,
    InterruptAsked,
    Resumed,
    Ticked,
    Trigger,
    WaveJudged,
)
from rollout.core.run.journal_codec import (
    EVENTS as KINDS,
)
from rollout.core.run.journal_codec import (
    GENESIS,
    chain,
    decode_event,
    decode_events,
    decode_order,
    encode_event,
    encode_order,
)
from rollout.core.run.state import RULES, Goal, Verb
from rollout.core.text import json_text
from rollout.errors import StateError
from tests.orders import make_order

EVENTS: list[Event] = [
    Ticked(1.5),
    Answered(2.0, "n", 3, Verb.APPLY, Trigger.REFUSED, "drifted", "é", 7, ("a", "b")),
    WaveJudged(3.0, 1, Verdict.UNKNOWN, "request failed"),
    CordonsLifted(3.5, ("n", "m"), "me@here", "OPS-7"),
    InterruptAsked(4.0),
    Resumed(5.0, 9),
    FleetRead(5.0, {"n": "gone"}, {"r": 3}, {}),
]


@pytest.mark.parametrize("event", EVENTS, ids=lambda event: type(event).__name__)
def test_an_event_is_read_as_it_was_written(event: Event) -> None:
    assert decode_event(encode_event(event)) == event


def drawn(kind: Any) -> st.SearchStrategy[Any]:
    """Any value of a type that an event may have in it."""
    if is_dataclass(kind):
        hints = typing.get_type_hints(kind)
        return st.tuples(*(drawn(hints[each.name]) for each in fields(kind))).map(lambda parts: kind(*parts))  # type: ignore[operator]
    if isinstance(kind, type) and issubclass(kind, Enum):
        return st.sampled_from(list(kind))
    origin, inner = typing.get_origin(kind), typing.get_args(kind)
    if origin is tuple:
        return st.lists(drawn(inner[0]), max_size=3).map(tuple)
    if origin is Mapping:
        return st.dictionaries(st.text(), drawn(inner[1]), max_size=3)
    if origin in (types.UnionType, typing.Union):
        return st.one_of(*map(drawn, inner))
    return {
        str: st.one_of(st.just(""), st.text(), st.text(st.characters(categories=["Cs", "Cc", "So"]), max_size=4)),
        int: st.integers(), float: st.one_of(st.just(0.0), st.floats(), st.integers()), types.NoneType: st.none(),
    }[kind]  # fmt: skip


@given(st.sampled_from(list(KINDS.items())).flatmap(lambda kind: st.tuples(st.just(kind[0]), drawn(kind[1]))))
def test_the_line_of_any_event_is_its_values_with_sorted_keys(event: tuple[str, Event]) -> None:
    name, value = event
    assert encode_event(value) == json.dumps(json_text.encode(value) | {"event": name}, sort_keys=True)


def test_so_is_the_line_of_an_event_with_defaults_and_with_numbers_that_json_lacks() -> None:
    ticked = Answered(1.0, "n", 1, Verb.READ, Trigger.UNTOUCHED)
    for value, name in ((ticked, "Answered"), (Ticked(float("nan")), "Ticked"), (Ticked(float("-inf")), "Ticked")):
        assert encode_event(value) == json.dumps(json_text.encode(value) | {"event": name}, sort_keys=True)


def test_many_events_are_read_as_each_of_them() -> None:
    many = EVENTS * 300
    assert list(decode_events([encode_event(event) for event in many])) == many
    assert list(decode_events([])) == []


@pytest.mark.parametrize(
    "wrong", ["", "{", "{}", "[1]", '{"event": "Ticked", "at": 1.0}, {"event": "Ticked", "at": 2.0}']
)
def test_of_many_events_the_one_that_cannot_be_read_is_named(wrong: str) -> None:
    read = decode_events([encode_event(Ticked(1.0)), wrong, encode_event(Ticked(2.0))])
    assert next(read) == Ticked(1.0)
    with pytest.raises(StateError) as found:
        next(read)
    assert found.value.message.endswith(f"cannot be read: {wrong}")


@pytest.mark.parametrize("goal", list(Goal))
def test_an_order_is_read_as_it_was_written(goal: Goal) -> None:
    order = make_order({"a": 3}, goal=goal)
    assert decode_order(encode_order(order)) == order


@pytest.mark.parametrize(
    "text",
    ["", "[]", "{}", '{"event": "Eaten"}', '{"event": "Ticked", "at": "x"}', '{"event": "Ticked", "at": 1.0, "by": 2}'],
)
def test_an_unknown_event_is_refused(text: str) -> None:
    with pytest.raises(StateError, match="cannot be read"):
        decode_event(text)


@pytest.mark.parametrize("text", ["", "[]", f'{{"run": 1, "rules": {RULES}}}'])
def test_an_unknown_order_is_refused(text: str) -> None:
    with pytest.raises(StateError, match="cannot be read"):
        decode_order(text)


def test_the_chain_depends_on_every_event_before() -> None:
    one, other = chain(chain(GENESIS, "a"), "b"), chain(chain(GENESIS, "x"), "b")
    assert one != other
    assert len(one) == len(GENESIS)
