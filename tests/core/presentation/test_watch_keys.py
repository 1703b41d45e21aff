"""The keys of ``rollout watch``: what stops harm is sent at once, and nothing else without a ``y``."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from rollout.core.presentation.watch_keys import (
    GateReading,
    Keyboard,
    Panel,
    gate_lines,
    key_list,
    newest_readings,
    node_lines,
    pressed,
    question,
)
from rollout.core.run.events import RequestWord
from rollout.core.run.state import NodeState, RunState
from tests.core.presentation import journals
from tests.core.presentation import test_view as states


def typed(keys: str, state: RunState) -> tuple[Keyboard, list[RequestWord]]:
    """The keyboard after ``keys``, and the requests that they sent."""
    keyboard, sent = Keyboard(), []
    for key in keys:
        found = pressed(keyboard, key, state)
        keyboard = found.keyboard
        sent += [found.request] if found.request else []
    return keyboard, sent


@pytest.mark.parametrize(
    ("keys", "sent"),
    [
        ("p", [RequestWord.PAUSE]),
        ("a", [RequestWord.ABORT]),
        ("cy", []),  # it is not paused
        ("y", []),
        ("xzqny", []),
    ],
)
def test_what_stops_harm_does_not_wait_for_an_answer(keys: str, sent: list[RequestWord]) -> None:
    assert typed(keys, states.applying())[1] == sent


@pytest.mark.parametrize("keys", ["c", "cn", "cq", "cay"])
def test_a_run_is_continued_only_after_a_yes(keys: str) -> None:
    assert typed(keys, states.held())[1] == []


def test_a_key_of_a_typed_text_sends_nothing() -> None:
    found = pressed(Keyboard(), "a", states.applying(), alone=False)
    assert (found.request, found.keyboard.said) == (None, "abort: not sent, other keys came with it: press a alone")
    asked = pressed(Keyboard(asking=RequestWord.CONTINUE), "y", states.held(), alone=False)
    assert (asked.request, asked.keyboard.said) == (None, "continue: nothing was done")


def test_a_held_run_can_be_continued_and_a_halting_one_nothing() -> None:
    assert typed("cy", states.held())[1] == [RequestWord.CONTINUE]
    assert key_list(states.held()) == "c continue · a abort · n nodes · g gates · q leave"
    assert key_list(states.halting()) == "n nodes · g gates · q leave"
    keyboard, sent = typed("ay", states.halting())
    assert (keyboard.said, sent) == ("abort: not possible now", [])


def test_the_question_names_the_run_its_cluster_and_what_happens() -> None:
    assert question(RequestWord.CONTINUE, states.held()) == (
        "continue run r1 on test? y: yes, any other key: no (more nodes are started)"
    )


def test_leaving_is_not_asked_back_but_a_q_in_a_question_only_drops_it() -> None:
    assert pressed(Keyboard(), "q", states.applying()).leave
    assert not pressed(Keyboard(asking=RequestWord.CONTINUE), "q", states.applying()).leave


def test_a_list_is_shown_and_hidden_by_the_same_key() -> None:
    assert typed("n", states.applying())[0].panel is Panel.NODES
    assert typed("ng", states.applying())[0].panel is Panel.GATES
    assert typed("nn", states.applying())[0].panel is None


def test_the_list_of_nodes_begins_with_the_culprit() -> None:
    state = states.halted()
    first, *rest = node_lines(state)
    assert first.startswith("b-7")
    assert state.nodes["b-7"].cause is not None
    assert any(NodeState.REVERTED.value in line for line in rest)


def test_the_list_of_gates_has_the_newest_reading_of_each() -> None:
    _, play = journals.gate_failed()
    known: Mapping[str, GateReading] = {}
    for event in play.journal:
        known = newest_readings(known, event)
    lines = list(gate_lines(play.state, known))
    assert any(line.startswith("FAIL    pull errors, wave") and "is worse" in line for line in lines)
    assert list(gate_lines(play.state, {})) == ["no gate of a wave was checked yet"]
