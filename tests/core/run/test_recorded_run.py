"""A journal always replays to the same state, or is refused: a replay depends on the machine's rules, which have a
number.
"""

from __future__ import annotations

import json

import pytest

from rollout.core.run.events import Answered, Trigger
from rollout.core.run.journal_codec import decode_event, decode_order, encode_event, encode_order
from rollout.core.run.machine import opening, step
from rollout.core.run.state import RULES, Ending, Verb
from rollout.errors import StateError
from tests.core.run.drawn import moves
from tests.core.run.recorded.make import FILE, MOVES, told


def test_a_run_that_was_recorded_with_these_rules_replays_to_its_recorded_state() -> None:
    first, *events, recorded = FILE.read_text().splitlines()
    state, _ = opening(decode_order(first), 1, 0.0)
    for text in events:
        state, _ = step(state, decode_event(text))
    assert state.ending is Ending.DONE
    assert told(state) == recorded, "other rules: raise RULES, then python -m tests.core.run.recorded.make"


@pytest.mark.no_cover
def test_the_moves_of_a_node_are_those_of_these_rules() -> None:
    """A recorded run takes only some of its moves; an earlier version may have journaled a run that took any other."""
    assert told(moves()) == MOVES.read_text().strip(), (
        "other rules: raise RULES, then python -m tests.core.run.recorded.make"
    )


def test_the_engine_is_away_at_the_recorded_opening() -> None:
    events = [decode_event(text) for text in FILE.read_text().splitlines()[1:-1]]
    first = next(event for event in events if isinstance(event, Answered))
    assert (first.verb, first.trigger) == (Verb.READ, Trigger.AWAY)


def test_a_recorded_journal_is_encoded_unchanged() -> None:
    """Names of code may change; names on disk do not."""
    order, *events, _ = FILE.read_text().splitlines()
    assert encode_order(decode_order(order)) == order
    for text in events:
        assert encode_event(decode_event(text)) == text, "a field or an event was renamed: see core.text.dataclass_json"


@pytest.mark.parametrize("rules", [RULES + 1, RULES - 1, None])
def test_a_run_of_other_rules_is_refused_with_a_message(rules: int | None) -> None:
    order = json.loads(FILE.read_text().splitlines()[0])
    order["rules"] = rules
    with pytest.raises(StateError, match=r"this run follows rules .*this one has rules") as error:
        decode_order(json.dumps({key: value for key, value in order.items() if value is not None}))
    assert error.value.reference == "another-version"
