"""Pulls in flight before a change: a node that pulls is queued again, and in the end left alone or changed anyway."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest

from rollout.core.model.playbook import Budget, Busy, Cause, Limits, PullsInFlight, Scope, Share
from rollout.core.presentation.summary import exit_code, summarize
from rollout.core.presentation.summary_text import summary_lines
from rollout.core.presentation.waiting import waits_for
from rollout.core.presentation.waiting_nodes import pulling
from rollout.core.run.events import AbortAsked, ContinueAsked, PauseAsked
from rollout.core.run.facts import unavailable
from rollout.core.run.journal_codec import decode_event, encode_event
from rollout.core.run.postponed import ASK_AGAIN
from rollout.core.run.state import Ending, Goal, NodeState, Pending, Phase, PostponedFor, RunState, Verb
from rollout.simulator.machine import NEW, OLD
from tests.orders import make_order
from tests.plays import Play, confirmed_before

WITHIN = 120.0
SKIP, OVERRIDE = PullsInFlight(WITHIN, Busy.SKIP), PullsInFlight(WITHIN, Busy.OVERRIDE)
TWO_WAVES = (("canary", lambda name: name == "a-1"), ("rest", lambda _: True))
IMAGES = ("docker.io/library/redis:7", "quay.io/big/model:1")


def play(busy: Iterable[str], how: PullsInFlight = SKIP, *, until: float = float("inf"), **order: Any) -> Play:
    """Eight nodes of a rack in two waves; some of them pull images."""
    limits = order.pop("limits", Limits(per_rack=Share(percent=50.0)))
    game = Play(
        make_order(order.pop("racks", {"a": 8}), order.pop("waves", TWO_WAVES), limits=limits, pulls=how, **order)
    )
    for name in busy:
        game.pull(name, IMAGES, until)
    return game


def applies(game: Play, node: str) -> list[bool]:
    """The applies a node was asked for: whether each was regardless of what it pulls."""
    return [ask.regardless for ask in game.asked if ask.verb is Verb.APPLY and ask.node == node]


def waiting(state: RunState) -> set[str]:
    return {name for name, record in state.nodes.items() if record.postponed and record.state is NodeState.PENDING}


def since(state: RunState) -> float:
    """When a-3 was first found pulling."""
    wait = state.nodes["a-3"].postponed
    return wait.since[PostponedFor.PULLS] if wait else state.now


def test_a_node_that_pulls_goes_when_its_pulls_have_ended() -> None:
    game = play(["a-3"], until=60.0)
    end = game.run()
    assert (end.ending, exit_code(end)) == (Ending.DONE, 0)
    assert end.nodes["a-3"].state is NodeState.CONFIRMED
    assert end.nodes["a-3"].postponed is None
    assert end.nodes["a-3"].attempt == 1, "nothing was tried: it was not changed"
    assert applies(game, "a-3") == [False] * len(applies(game, "a-3"))
    assert len(applies(game, "a-3")) > 1


def test_others_go_first_and_it_is_asked_again_after_a_pause() -> None:
    game = play(["a-2"], until=90.0, limits=Limits(per_rack=Share(count=1)))
    game.run()
    order = [ask.node for ask in game.asked if ask.verb is Verb.APPLY]
    again = [at for at, node in enumerate(order) if node == "a-2"][1:]
    assert {"a-3", "a-4"} <= set(order[: again[0]])
    asked = [event.at for event in game.journal if getattr(event, "pulls", ()) and getattr(event, "node", "") == "a-2"]
    assert all(later - earlier >= ASK_AGAIN[PostponedFor.PULLS] for earlier, later in pairwise(asked))


def test_a_waiting_node_takes_no_room_from_any_limit() -> None:
    busy = ["a-2", "a-3", "a-4", "a-5"]
    game = play(busy, limits=Limits(per_rack=Share(count=1), in_flight=1, pace=50.0))
    state = game.run(until=lambda s: all(s.nodes[f"a-{n}"].state is NodeState.CONFIRMED for n in (6, 7, 8)))
    assert waiting(state) <= set(busy)
    assert waiting(state)
    assert not any(unavailable(state.nodes[name], state.now) for name in waiting(state))
    changed = sum(record.state is NodeState.CONFIRMED for record in state.nodes.values())
    assert len(state.started) == changed, "no restart is counted that was none"


def test_a_wave_does_not_end_while_a_node_of_it_waits() -> None:
    game = play(["a-1"], until=100.0)
    state = game.run(until=lambda s: s.wave == 1)
    assert state.now > 100.0
    assert game.go_on().ending is Ending.DONE


def test_a_node_that_keeps_pulling_is_left_alone_without_a_charge_with_its_images() -> None:
    game = play(["a-3"], budgets=(Budget(Scope.FLEET, frozenset(Cause), Share(count=1)),))
    end = game.run()
    record = end.nodes["a-3"]
    assert (record.state, record.reference, record.cause) == (NodeState.REFUSED, "pulls-in-flight", None)
    assert record.message == f"it is pulling {IMAGES[0]}, {IMAGES[1]}"
    assert (game.nodes["a-3"].files, game.nodes["a-3"].transactions) == (OLD, {})
    assert (end.ending, exit_code(end)) == (Ending.DONE, 4)
    first, *_, last = (event for event in game.journal if getattr(event, "pulls", ()))
    assert WITHIN <= last.at - first.at < WITHIN + 2 * ASK_AGAIN[PostponedFor.PULLS]
    assert [ask.verb for ask in game.asked if ask.node == "a-3"][-1] is Verb.CLEAN


def test_with_override_it_is_changed_anyway_and_cancelled_pulls_are_recorded() -> None:
    game = play(["a-3"], OVERRIDE)
    end = game.run()
    assert (end.ending, exit_code(end)) == (Ending.DONE, 0)
    assert end.nodes["a-3"].state is NodeState.CONFIRMED
    assert end.nodes["a-3"].cancelled == IMAGES
    said = list(summary_lines(summarize(end)))
    assert "  changed while they pulled images; the pulls were cancelled: a-3" in said
    *asked, last = applies(game, "a-3")
    assert asked
    assert not any(asked)
    assert last
    assert not any(applies(game, "a-4")), "a node that did not pull was not overridden"


@pytest.mark.parametrize("then", list(Busy))
def test_without_any_time_it_is_decided_at_once(then: Busy) -> None:
    game = play(["a-3"], PullsInFlight(0.0, then))
    assert game.run().nodes["a-3"].state is (NodeState.REFUSED if then is Busy.SKIP else NodeState.CONFIRMED)
    assert applies(game, "a-3") == [then is Busy.OVERRIDE]


def test_a_node_with_unknown_pulls_waits_too() -> None:
    game = play([])
    game.pull("a-3", None)
    state = game.run(until=lambda s: bool(waiting(s)))
    assert state.nodes["a-3"].postponed is not None
    assert state.nodes["a-3"].postponed.images == ()
    end = game.go_on()
    assert (end.nodes["a-3"].state, end.nodes["a-3"].message) == (
        NodeState.REFUSED,
        "it does not know whether it is pulling images; `pullsInFlight: override` skips this check",
    )


# A change must be tested before more nodes get it.


def test_a_change_that_was_tested_on_no_node_goes_to_no_more_nodes() -> None:
    game = play(["a-1"])
    end = game.run()
    assert end.halt is not None
    assert (end.ending, end.halt.reference) == (Ending.HALTED, "nothing-shown")
    assert {ask.node for ask in game.asked if ask.verb is Verb.APPLY} == {"a-1"}


def test_an_untested_change_goes_to_no_more_nodes_of_its_kind() -> None:
    waves = (("canary", lambda name: name in ("a-1", "b-1")), ("rest", lambda _: True))
    racks = {"a": 4, "b": 4}
    game = play(["b-1"], racks=racks, waves=waves, kind_of=lambda name: name[0])
    end = game.run()
    assert end.halt is not None
    assert end.halt.reference == "nothing-shown"
    assert "b-1" in end.halt.message
    assert game.nodes["a-1"].files == NEW, "the other kind's canary did not fail"
    alike = play(["b-1"], racks=racks, waves=waves)
    assert alike.run().ending is Ending.DONE, "a-1 is of the same kind and has shown it"


def test_after_a_tested_change_nodes_left_alone_hold_up_no_node() -> None:
    waves = (TWO_WAVES[0], ("second", lambda name: name == "a-2"), ("rest", lambda _: True))
    end = play(["a-2"], waves=waves).run()
    assert end.ending is Ending.DONE
    assert end.nodes["a-2"].state is NodeState.REFUSED


def test_a_node_that_was_left_alone_is_asked_again_by_a_new_controller() -> None:
    game = play(["a-1"])
    assert game.run().ending is Ending.HALTED
    game.pull("a-1", ())
    game.crash_and_resume()
    end = game.go_on()
    assert end.ending is Ending.DONE
    assert {record.state for record in end.nodes.values()} == {NodeState.CONFIRMED}


# Pause, end and crash while nodes wait.


def test_a_new_controller_continues_to_wait_from_the_journal_and_the_time_starts_again() -> None:
    game = play(["a-3"])
    game.run(until=lambda s: bool(waiting(s)) and s.now - since(s) > WITHIN / 2)
    game.crash_and_resume(away=3600.0)
    assert game.state.nodes["a-3"].postponed is None
    state = game.go_on(until=lambda s: bool(waiting(s)))
    assert state.halt is None, "an hour without a controller does not count against its pulls"
    assert state.nodes["a-3"].attempt == 1
    assert game.go_on().nodes["a-3"].state is NodeState.REFUSED


def test_a_controller_that_dies_while_it_asks_reads_the_node_back_first() -> None:
    game = play(["a-3"], until=100.0)
    game.run(until=lambda s: bool(waiting(s)))
    game.go_on(until=lambda s: s.nodes["a-3"].state is NodeState.APPLYING)
    game.crash_and_resume()
    assert game.go_on().ending is Ending.DONE
    assert game.nodes["a-3"].files == NEW


def test_a_run_that_is_ended_leaves_waiting_nodes_unchanged() -> None:
    game = play(["a-3", "a-4"])
    game.run(until=lambda s: len(waiting(s)) == 2)
    game.feed(AbortAsked(game.now, "me", "enough", 1))
    end = game.go_on()
    assert end.ending is Ending.HALTED
    for name in ("a-3", "a-4"):
        assert (end.nodes[name].state, game.nodes[name].files) == (NodeState.PENDING, OLD)
        assert Verb.CLEAN in {ask.verb for ask in game.asked if ask.node == name}


def test_a_node_that_reports_pulls_after_the_run_was_ended_is_not_asked_again() -> None:
    game = play(["a-3"])
    game.run(until=lambda s: s.nodes["a-3"].state is NodeState.APPLYING)
    game.feed(AbortAsked(game.now, "me", "", 1))
    end = game.go_on()
    assert (end.nodes["a-3"].state, end.nodes["a-3"].to_revert) == (NodeState.PENDING, False)
    assert len(applies(game, "a-3")) == 1


def test_no_node_is_asked_while_the_run_is_paused_and_that_time_does_not_count() -> None:
    game = play(["a-3"])
    game.run(until=lambda s: bool(waiting(s)))
    game.feed(PauseAsked(game.now, "me", "", 1))
    asked, paused = len(applies(game, "a-3")), game.now
    game.go_on(until=lambda s: s.now > paused + 2 * WITHIN)
    assert len(applies(game, "a-3")) == asked
    game.feed(ContinueAsked(game.now, "me", "", 2))
    game.go_on(until=lambda _: len(applies(game, "a-3")) > asked + 1)
    assert game.state.nodes["a-3"].state is not NodeState.REFUSED


def test_a_rehearsed_node_waits_for_pulls_again_before_its_second_change() -> None:
    game = play([], rehearsal=True)
    game.run(until=lambda s: s.nodes["a-1"].state is NodeState.REVERTING)
    game.go_on(until=lambda s: s.nodes["a-1"].state is not NodeState.REVERTING)
    game.pull("a-1", IMAGES, until=game.now + 60.0)
    state = game.go_on(until=lambda s: bool(waiting(s)))
    assert waiting(state) == {"a-1"}
    assert game.go_on().ending is Ending.DONE


def test_a_revert_waits_for_no_pulls() -> None:
    game = confirmed_before(make_order({"a": 4}, goal=Goal.REVERT))
    for name in game.nodes:
        game.pull(name, IMAGES)
    end = game.run()
    assert {record.state for record in end.nodes.values()} == {NodeState.REVERTED}
    assert [ask.verb for ask in game.asked if ask.node == "a-1"] == [Verb.READ, Verb.REVERT, Verb.CLEAN]


# The output.


def test_the_run_shows_which_nodes_it_waits_for_and_until_when() -> None:
    game = play(["a-3", "a-4", "a-5"])
    state = game.run(until=lambda s: len(waiting(s)) == 3 and not any(r.asked for r in s.nodes.values()))
    said = waits_for(state, state.now)
    assert f"3 nodes pull images (a-[3-5]): {IMAGES[0]}, {IMAGES[1]}; asked again for " in said
    assert said.endswith("at most, then left alone")
    assert f"  waits: {pulling(state, state.now)}" in summary_lines(summarize(state))
    override = replace(state, order=replace(state.order, pulls=OVERRIDE))
    assert waits_for(override, state.now + 2 * WITHIN).endswith("asked once more, then changed anyway")
    wait = state.nodes["a-3"].postponed
    assert wait is not None
    unknown = replace(state.nodes["a-3"], current=Pending(replace(wait, images=())))
    one = replace(state, nodes={name: record for name, record in state.nodes.items() if not record.postponed})
    one = replace(one, nodes={**one.nodes, "a-3": unknown, "a-4": one.nodes["a-1"], "a-5": one.nodes["a-1"]})
    assert "1 node pulls images (a-3): images not known; " in waits_for(one, state.now)


def test_waiting_for_pulls_is_journaled() -> None:
    game = play(["a-3"])
    game.run(until=lambda s: bool(waiting(s)))
    told = [event for event in game.journal if getattr(event, "pulls", ())]
    assert [decode_event(encode_event(event)) for event in told] == told
    assert game.state.phase is Phase.RUNNING
