"""An engine that is away says nothing of its nodes: for a minute it charges none, and then it does."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from rollout.core.model.playbook import ALL_CAUSES, Budget, Limits, Scope, Share
from rollout.core.run.state import Ending, NodeState, RunState, Verb
from rollout.core.run.transitions import ENGINE_PATIENCE
from tests.orders import make_order
from tests.plays import Play, never

STRICT = (Budget(Scope.FLEET, ALL_CAUSES, Share(count=0)),)
"""The first charge halts."""

STRUCK = (Verb.APPLY, Verb.MEASURE, Verb.CONFIRM)


def away_from(verb: Verb, seconds: float, guard: float = 120.0) -> Play:
    """Four nodes at once; the engine goes away when the first of them has been sent this verb."""
    limits = Limits(per_rack=Share(count=4), pace=10.0)
    play = Play(replace(make_order({"a": 4}, budgets=STRICT, limits=limits), guard=guard))
    play.run(until=lambda s: any(record.asked is verb for record in s.nodes.values()))
    play.fleet.engine_away.append((play.timeline.now, play.timeline.now + seconds))
    return play


@pytest.mark.parametrize("seconds", [0.5, 5.0, ENGINE_PATIENCE - 5])
@pytest.mark.parametrize("verb", STRUCK)
def test_an_engine_that_is_back_within_its_patience_charges_no_node(verb: Verb, seconds: float) -> None:
    play = away_from(verb, seconds)
    end = play.go_on()
    assert end.ending is Ending.DONE, end.halt
    assert {(record.state, record.cause) for record in end.nodes.values()} == {(NodeState.CONFIRMED, None)}


@pytest.mark.parametrize("verb", STRUCK)
def test_an_engine_that_stays_away_ends_the_run(verb: Verb) -> None:
    play = away_from(verb, 10_000.0)
    play.go_on(until=lambda s: s.halt is not None)
    assert ENGINE_PATIENCE < play.now < 2 * ENGINE_PATIENCE + 60
    end = play.go_on()
    assert end.ending is Ending.HALTED
    assert all(record.owed for record in end.nodes.values() if record.state is NodeState.UNREACHABLE)


def test_an_engine_that_comes_and_goes_is_waited_for_each_time() -> None:
    play = away_from(Verb.APPLY, 40.0)
    for begin in (60.0, 120.0):
        play.fleet.engine_away.append((play.timeline.now + begin, play.timeline.now + begin + 40.0))
    end = play.go_on()
    assert end.ending is Ending.DONE, end.halt


def opened_while_away(seconds: float, *, resumed: bool) -> Play:
    """A run that claims its nodes, or a new controller that claims them again, while the engine is away."""
    limits = Limits(per_rack=Share(count=4), pace=10.0)
    play = Play(make_order({"a": 4, "b": 4}, budgets=STRICT, limits=limits))
    if resumed:
        play.run(until=lambda s: any(record.state is NodeState.CONFIRMED for record in s.nodes.values()))
        play.lose_answers()
    play.fleet.engine_away.append((play.timeline.now, play.timeline.now + seconds))
    return play


def carried_on(play: Play, until: Callable[[RunState], bool] = never, *, resumed: bool) -> RunState:
    if not resumed:
        return play.run(until=until)
    play.resume()
    return play.go_on(until=until)


@pytest.mark.parametrize("resumed", [False, True], ids=["begun", "resumed"])
@pytest.mark.parametrize("seconds", [0.5, 5.0, ENGINE_PATIENCE - 5])
def test_a_run_that_is_begun_or_resumed_while_the_engine_is_away_waits_and_charges_no_node(
    seconds: float, *, resumed: bool
) -> None:
    play = opened_while_away(seconds, resumed=resumed)
    end = carried_on(play, resumed=resumed)
    assert end.ending is Ending.DONE, end.halt
    assert {(record.state, record.cause) for record in end.nodes.values()} == {(NodeState.CONFIRMED, None)}


@pytest.mark.parametrize("resumed", [False, True], ids=["begun", "resumed"])
def test_an_engine_that_stays_away_from_the_opening_on_ends_the_run(*, resumed: bool) -> None:
    play = opened_while_away(10_000.0, resumed=resumed)
    before = play.now
    carried_on(play, lambda s: s.halt is not None, resumed=resumed)
    assert ENGINE_PATIENCE < play.now - before < 2 * ENGINE_PATIENCE
    assert play.go_on().ending is (Ending.HALTED if resumed else Ending.PREFLIGHT)
    assert resumed or not any(ask.verb is Verb.APPLY for ask in play.asked)
