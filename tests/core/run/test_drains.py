"""Draining before a change: pods go first, the cordon is lifted afterwards, and no event in between leaves a cordon behind."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rollout.core.model.playbook import Budget, Busy, Cause, Limits, PullsInFlight, RevertScope, Scope, Share
from rollout.core.presentation.summary import summarize
from rollout.core.run.drains import AGAIN_EVERY, KEPT, MOST_TRIES, kept
from rollout.core.run.events import (
    AbortAsked,
    Answered,
    ContinueAsked,
    CordonsLifted,
    Event,
    InterruptAsked,
    PauseAsked,
    Trigger,
)
from rollout.core.run.facts import unavailable
from rollout.core.run.state import Drained, Draining, Ending, Goal, NodeRecord, NodeState, Phase, RunState, Verb
from rollout.simulator.machine import OLD
from tests.orders import in_state, make_order, to_change, to_revert
from tests.plays import EVER, Play, confirmed_before
from tests.sampling import examples

pytestmark = pytest.mark.no_cover  # whole runs: a count makes them slow, and other tests count the same lines

WITHIN = 60.0
S = NodeState


def play(racks: dict[str, int] | None = None, **order: object) -> Play:
    order = {"drain": WITHIN, "limits": Limits(per_rack=Share(count=1)), "budgets": (), **order}
    return Play(make_order(racks or {"a": 3, "b": 3}, **order))  # type: ignore[arg-type]


def verbs(game: Play, node: str) -> list[Verb]:
    return [ask.verb for ask in game.asked if ask.node == node]


def draining(state: RunState) -> bool:
    return any(isinstance(record.current, Draining | Drained) for record in state.nodes.values())


def as_found(game: Play) -> None:
    """No cordon of ours is left, and the report agrees. ``Play`` checks the law that no pod is lost to a restart."""
    assert not any(node.cordoned for node in game.nodes.values())
    assert not any(record.cordoned for record in game.state.nodes.values())


# Drain, change and uncordon.


def test_a_node_is_emptied_changed_confirmed_and_then_uncordoned() -> None:
    game = play({"a": 1})
    end = game.run()
    assert end.ending is Ending.DONE
    first = [verb for verb in verbs(game, "a-1") if verb is not Verb.MEASURE]
    assert [first[0], *dict.fromkeys(first[1:])] == [
        Verb.READ, Verb.DRAIN, Verb.APPLY, Verb.CONFIRM, Verb.UNCORDON, Verb.CLEAN,
    ]  # fmt: skip
    assert end.nodes["a-1"].drained_seconds > 0
    as_found(game)


def test_only_nodes_that_need_it_are_drained() -> None:
    game = play({"a": 4}, drained=lambda name: name == "a-2")
    game.run()
    assert [name for name in game.nodes if Verb.DRAIN in verbs(game, name)] == ["a-2"]
    assert [name for name in game.nodes if Verb.UNCORDON in verbs(game, name)] == ["a-2"]


def test_the_restart_waits_until_evicted_pods_are_gone() -> None:
    game = play({"a": 1})
    game.nodes["a-1"].pods_end_in = WITHIN - 5.0
    end = game.run()
    assert end.nodes["a-1"].state is S.CONFIRMED
    assert verbs(game, "a-1").count(Verb.DRAIN) > 5
    as_found(game)


def test_every_round_gets_the_time_that_is_really_left() -> None:
    game = play({"a": 1})
    game.nodes["a-1"].evictions_from = EVER
    game.run()
    left = [ask.left for ask in game.asked if ask.verb is Verb.DRAIN]
    assert left[0] == WITHIN
    assert left == sorted(left, reverse=True)
    assert left[-1] == 0.0


def test_a_node_with_blocked_pods_is_left_alone_uncharged_and_uncordoned_and_others_continue() -> None:
    game = play(budgets=(Budget(Scope.FLEET, frozenset(Cause), Share(count=1)),))
    game.nodes["a-2"].evictions_from = EVER
    end = game.run()
    record = end.nodes["a-2"]
    assert (record.state, record.reference, record.cause) == (S.REFUSED, "not-drained", None)
    assert Counter(record.state for record in end.nodes.values()) == {S.CONFIRMED: 5, S.REFUSED: 1}
    assert game.nodes["a-2"].files == OLD
    as_found(game)


def test_a_cordon_of_others_is_neither_touched_nor_lifted() -> None:
    game = play()
    game.nodes["a-2"].cordoned_by_others = True
    end = game.run()
    assert end.nodes["a-2"].state is S.REFUSED
    assert game.nodes["a-2"].cordoned_by_others
    assert not game.nodes["a-2"].cordoned
    as_found(game)


def test_no_node_that_does_not_answer_is_drained() -> None:
    """Its worker reads the node before it cordons it, and reports what it found."""
    game = play({"a": 2})
    game.run(until=lambda s: s.nodes["a-2"].asked is Verb.DRAIN)
    game.lose_answers()
    game.nodes["a-2"].cordoned = False
    game.cut_off("a-2")
    game.feed(Answered(game.now, "a-2", game.state.nodes["a-2"].serial, Verb.DRAIN, Trigger.UNREACHED))
    end = game.go_on()
    assert (end.nodes["a-2"].state, end.nodes["a-2"].cordoned) == (S.UNREACHABLE, False)
    as_found(game)


def test_a_node_with_an_unknown_cordon_is_read_and_drained_again() -> None:
    game = play({"a": 2})
    game.links["a-2"].loses = {Verb.DRAIN}
    end = game.run()
    assert (end.ending, end.nodes["a-2"].state) == (Ending.DONE, S.CONFIRMED)
    drain, read = [verb for verb in verbs(game, "a-2") if verb in (Verb.DRAIN, Verb.READ)][1:3]
    assert (drain, read) == (Verb.DRAIN, Verb.READ)
    as_found(game)


# Limits.


def test_a_drained_node_takes_room_from_its_first_round_until_it_is_uncordoned() -> None:
    game = play({"a": 6}, limits=Limits(per_rack=Share(count=2)))
    most = 0
    game.run(until=draining)
    while game.state.phase is not Phase.ENDED:
        game.go_on(until=lambda s, now=game.now: s.now > now)  # type: ignore[misc]
        most = max(most, sum(node.cordoned for node in game.nodes.values()))
    assert most == 2


def test_restarts_after_drains_keep_the_pace() -> None:
    game = play({"a": 12}, limits=Limits(per_rack=Share(count=12), pace=0.5), budgets=())
    end = game.run()
    assert end.ending is Ending.DONE
    restarts = sorted(restart.asked_at for node in game.nodes.values() for restart in node.restarts)
    assert min(later - sooner for sooner, later in pairwise(restarts)) >= 2.0


def test_a_cordoned_node_goes_before_others_and_needs_no_second_room() -> None:
    order = make_order({"a": 10}, limits=Limits(per_rack=Share(count=1), in_flight=1), budgets=(), drain=WITHIN)
    nodes = {name: NodeRecord() for name in order.nodes} | {"a-7": NodeRecord(cordoned=True)}
    assert to_change(order, nodes, list(nodes), 0.0) == (("a-7",), 1)
    assert to_change(order, nodes, ["a-1"], 0.0) == ((), 0)
    assert unavailable(nodes["a-7"], 0.0)


def test_a_cordon_that_cannot_be_lifted_never_keeps_the_rest_from_being_reverted() -> None:
    order = make_order({"a": 10}, limits=Limits(per_rack=Share(count=1), in_flight=1), drain=WITHIN)
    nodes = {name: in_state(S.CONFIRMED) for name in order.nodes}
    nodes["a-7"] = in_state(S.CONFIRMED, cordoned=True)
    assert to_revert(order, nodes, ["a-1"], 0.0) == ((), 0), "it will be lifted in a moment"
    nodes["a-7"] = in_state(S.CONFIRMED, cordoned=True, uncordons=1)
    assert to_revert(order, nodes, ["a-1"], 0.0) == (("a-1",), 1)
    assert to_change(order, nodes, ["a-1"], 0.0) == ((), 0), "a change waits for it"


def test_a_broken_nodes_cordon_does_not_take_its_room_again() -> None:
    """While it was unreachable another node was reverted in its room. Then the controller died, and it answers again."""
    game = play(
        {"a": 2}, limits=Limits(per_rack=Share(count=1), in_flight=1), on_failure=RevertScope.RUN,
        budgets=(Budget(Scope.FLEET, frozenset(Cause), Share(count=1)),),
    )  # fmt: skip
    game.run(until=lambda s: isinstance(s.nodes["a-2"].current, Draining))
    game.cut_off("a-2")
    game.go_on(until=lambda s: s.nodes["a-1"].asked is Verb.REVERT)
    assert (game.state.nodes["a-2"].state, game.state.nodes["a-2"].cordoned) == (S.UNREACHABLE, True)
    game.reconnect("a-2")
    game.crash_and_resume()
    game.go_on(until=lambda s: s.nodes["a-2"].state is S.PENDING)
    assert game.state.nodes["a-2"].uncordons == 1
    assert game.go_on().ending is Ending.HALTED
    as_found(game)


@pytest.mark.parametrize("late", [40.0, 300.0])
def test_a_node_that_was_given_up_keeps_its_cordon_until_it_is_read_because_its_apply_may_still_come(
    late: float,
) -> None:
    """It comes before the run ends, or after. ``Play`` stops at a restart with pods on the node."""
    game = play({"a": 1}, budgets=(Budget(Scope.FLEET, frozenset(Cause), Share(count=1)),))
    game.links["a-1"].late_applies.append(late)
    game.run(until=lambda s: s.nodes["a-1"].asked is Verb.APPLY)
    game.cut_off("a-1")
    assert game.go_on().ending is Ending.HALTED
    assert (game.state.nodes["a-1"].state, game.nodes["a-1"].cordoned) == (S.UNREACHABLE, True)
    assert f"a-1: {KEPT}" in [str(left) for left in summarize(game.state).leftovers]
    game.stand_still(late)
    assert game.nodes["a-1"].restarts, "its apply, and its guard"
    game.reconnect("a-1")
    game.crash_and_resume()
    assert game.go_on().ending is Ending.DONE
    as_found(game)
    assert not summarize(game.state).leftovers


def test_a_node_that_was_given_up_before_its_apply_is_uncordoned() -> None:
    game = play({"a": 1}, budgets=(Budget(Scope.FLEET, frozenset(Cause), Share(count=1)),))
    game.links["a-1"].loses = {Verb.DRAIN}
    game.run(until=lambda s: isinstance(s.nodes["a-1"].current, Draining))
    game.cut_off("a-1")
    assert game.go_on().nodes["a-1"].state is S.UNREACHABLE
    assert verbs(game, "a-1")[-1] is Verb.UNCORDON
    as_found(game)


# Anything that stops releases ends drains.


@pytest.mark.parametrize("when", ["draining", "empty"])
@pytest.mark.parametrize("word", ["interrupt", "abort", "pause"])
def test_a_drain_ends_without_a_change_when_releases_stop(word: str, when: str) -> None:
    game = play(limits=Limits(per_rack=Share(count=1), pace=0.01))
    game.nodes["b-1"].pods_end_in = 30.0
    game.run(until=lambda s: isinstance(s.nodes["b-1"].current, Draining))
    if when == "empty":
        game.go_on(until=lambda s: isinstance(s.nodes["b-1"].current, Drained))
    told: dict[str, Event] = {
        "interrupt": InterruptAsked(game.now),
        "abort": AbortAsked(game.now, "me", "", 1, RevertScope.RUN),
        "pause": PauseAsked(game.now, "me", "", 1),
    }
    game.feed(told[word])
    game.go_on(until=lambda s: not any(record.cordoned for record in s.nodes.values()))
    record = game.state.nodes["b-1"]
    assert (record.state, record.to_revert, record.reference) == (S.PENDING, False, "")
    assert not game.nodes["b-1"].cordoned
    if word == "pause":
        game.feed(ContinueAsked(game.now, "me", "", 2))
    else:
        game.go_on()
        game.crash_and_resume()
    end = game.go_on()
    assert {record.state for record in end.nodes.values()} == {S.CONFIRMED}
    as_found(game)


def test_a_budget_that_halts_leaves_drained_nodes_unchanged() -> None:
    game = play(
        {"a": 3, "b": 3}, limits=Limits(per_rack=Share(count=1)), on_failure=RevertScope.RUN,
        budgets=(Budget(Scope.FLEET, frozenset(Cause), Share(count=1)),),
    )  # fmt: skip
    game.sicken("a-1")
    game.nodes["b-1"].pods_end_in = 30.0
    end = game.run()
    assert end.ending is Ending.HALTED
    assert end.nodes["b-1"].state is S.PENDING
    assert game.nodes["b-1"].files == OLD
    as_found(game)


# The controller dies.


@pytest.mark.parametrize("at", range(1, 40, 3))
def test_the_controller_after_one_that_died_in_a_drain_recognises_its_cordon(at: int) -> None:
    game = play({"a": 2}, rehearsal=True)
    game.run(until=lambda _: len(game.journal) >= at)
    game.crash_and_resume()
    end = game.go_on()
    assert end.ending is Ending.DONE
    assert {record.state for record in end.nodes.values()} == {S.CONFIRMED}
    as_found(game)


def test_a_node_left_alone_because_of_its_pods_is_drained_again_by_a_new_controller() -> None:
    game = play({"a": 1})
    game.nodes["a-1"].evictions_from = EVER
    assert game.run().ending is Ending.DONE
    game = play(waves=(("canary", lambda n: n == "a-1"), ("rest", lambda _: True)))
    game.nodes["a-1"].evictions_from = EVER
    end = game.run()
    assert end.halt is not None
    assert (end.halt.reference, end.ending) == ("nothing-shown", Ending.HALTED)
    assert "1 node left unchanged (not drained), and no other node of the same kind was changed" in end.halt.message
    game.nodes["a-1"].evictions_from = 0.0
    game.crash_and_resume()
    assert {record.state for record in game.go_on().nodes.values()} == {S.CONFIRMED}


# The rehearsal, and pulls.


def test_a_canary_stays_cordoned_through_its_rehearsal_and_is_found_empty_the_second_time() -> None:
    game = play({"a": 1}, rehearsal=True)
    game.run()
    found = [verb for verb in verbs(game, "a-1") if verb in (Verb.DRAIN, Verb.APPLY, Verb.REVERT, Verb.UNCORDON)]
    second = found[found.index(Verb.REVERT) :]
    assert second == [Verb.REVERT, Verb.DRAIN, Verb.APPLY, Verb.UNCORDON]
    assert found.count(Verb.UNCORDON) == 1
    as_found(game)


def test_an_empty_node_that_pulls_keeps_its_place_and_goes_once_it_has_ended() -> None:
    game = play(pulls=PullsInFlight(600.0, Busy.SKIP))
    game.pull("a-1", ("redis",), until=60.0)
    state = game.run(until=lambda s: s.nodes["a-1"].postponed is not None)
    assert (state.nodes["a-1"].state, game.nodes["a-1"].cordoned) == (S.APPLYING, True)
    end = game.go_on()
    assert end.ending is Ending.DONE
    assert verbs(game, "a-1").count(Verb.APPLY) > 1
    assert verbs(game, "a-1").count(Verb.DRAIN) < 5, "it is not drained again"
    as_found(game)


def test_an_empty_node_with_pulls_that_never_end_is_left_alone_and_uncordoned() -> None:
    game = play(pulls=PullsInFlight(30.0, Busy.SKIP))
    game.pull("a-1", ("redis",))
    end = game.run()
    assert (end.nodes["a-1"].state, end.nodes["a-1"].reference) == (S.REFUSED, "pulls-in-flight")
    as_found(game)


def test_a_node_with_new_pods_since_the_plan_is_left_alone_uncharged_and_frees_its_place_in_the_pace() -> None:
    game = play({"a": 1, "b": 1}, drain=0.0)
    game.run(until=lambda s: s.nodes["a-1"].asked is Verb.APPLY)
    asked = game.state.nodes["a-1"]
    began = len(game.state.started)
    game.feed(
        Answered(game.now, "a-1", asked.serial, Verb.APPLY, Trigger.NOT_DRAINED, "not-drained", "pods came to it")
    )
    record = game.state.nodes["a-1"]
    assert (record.state, record.reference, record.cause, record.to_revert) == (S.REFUSED, "not-drained", None, False)
    assert len(game.state.started) == began - 1


# Cordons that cannot be lifted.


def test_lifting_a_cordon_is_retried() -> None:
    game = play({"a": 3})
    game.nodes["a-1"].cordon_stays_until = 60.0
    end = game.run()
    assert end.ending is Ending.DONE
    assert 1 < verbs(game, "a-1").count(Verb.UNCORDON) < MOST_TRIES
    as_found(game)


def test_a_cordon_that_cannot_be_lifted_is_pending_recovery_and_named_and_the_run_ends() -> None:
    game = play({"a": 1})
    game.nodes["a-1"].cordon_stays_until = EVER
    end = game.run()
    record = end.nodes["a-1"]
    assert (record.state, record.owed, record.cordoned) == (S.CONFIRMED, True, True)
    assert [left.split(":")[0] for left in record.leftovers] == ["its cordon could not be lifted"]
    assert record.uncordons >= MOST_TRIES
    assert end.now < MOST_TRIES * AGAIN_EVERY + 60.0
    game.nodes["a-1"].cordon_stays_until = 0.0
    game.crash_and_resume()
    end = game.go_on()
    assert (end.nodes["a-1"].owed, end.nodes["a-1"].leftovers) == (False, ())
    as_found(game)


def test_a_cordon_lifted_by_others_after_the_end_is_no_longer_pending_recovery() -> None:
    game = play({"a": 1, "b": 1})
    for name in ("a-1", "b-1"):
        game.nodes[name].cordon_stays_until = EVER
    end = game.run()
    assert [record.owed for record in end.nodes.values()] == [True, True]
    game.feed(CordonsLifted(game.now + 600.0, ("a-1", "no-node"), "ann@desk", "OPS-7"))
    one, other = game.state.nodes["a-1"], game.state.nodes["b-1"]
    assert (one.cordoned, one.owed, one.leftovers, one.state) == (False, False, (), S.CONFIRMED)
    assert (other.cordoned, other.owed) == (True, True)
    assert (game.state.phase, game.state.ending) == (Phase.ENDED, Ending.DONE)


def test_a_run_that_continues_takes_no_cordon_news_from_others() -> None:
    game = play({"a": 1})
    game.run(until=lambda state: state.nodes["a-1"].cordoned)
    game.feed(CordonsLifted(game.now, ("a-1",), "ann@desk"))
    assert game.state.nodes["a-1"].cordoned
    game.go_on()
    as_found(game)


def test_the_time_for_a_cordon_is_counted_from_the_end_and_not_from_the_first_try() -> None:
    """The API was unreachable during a long soak, and came back a little after it."""
    soak = MOST_TRIES * AGAIN_EVERY + 120.0
    game = play({"a": 1}, soak=soak)
    game.nodes["a-1"].cordon_stays_until = EVER
    state = game.run(until=lambda s: s.phase is Phase.CLOSING)
    assert verbs(game, "a-1").count(Verb.UNCORDON) > MOST_TRIES, "it was tried the whole time"
    ended = state.now
    game.nodes["a-1"].cordon_stays_until = ended + (MOST_TRIES - 2) * AGAIN_EVERY
    end = game.go_on()
    assert (end.nodes["a-1"].owed, end.nodes["a-1"].leftovers) == (False, ())
    assert end.now > ended + AGAIN_EVERY
    as_found(game)


@pytest.mark.parametrize("word", ["abort", "interrupt"])
def test_the_time_for_a_cordon_is_the_same_in_a_stopped_run(word: str) -> None:
    game = play({"a": 1}, soak=MOST_TRIES * AGAIN_EVERY + 120.0)
    game.nodes["a-1"].cordon_stays_until = EVER
    state = game.run(until=lambda s: s.nodes["a-1"].uncordons > MOST_TRIES)
    game.feed(AbortAsked(game.now, "me", "", 1) if word == "abort" else InterruptAsked(game.now))
    game.nodes["a-1"].cordon_stays_until = state.now + 3 * AGAIN_EVERY
    end = game.go_on()
    assert end.ending in (Ending.HALTED, Ending.INTERRUPTED)
    assert not end.nodes["a-1"].owed
    as_found(game)


def test_a_pending_recovery_stays_whatever_else_the_node_answers() -> None:
    """A soak that continues after the last attempt measures it, and a new controller reads it."""
    game = play({"a": 1}, soak=MOST_TRIES * AGAIN_EVERY + 120.0)
    game.nodes["a-1"].cordon_stays_until = EVER
    end = game.run()
    assert (end.nodes["a-1"].owed, end.nodes["a-1"].state) == (True, S.CONFIRMED)
    game.crash_and_resume()
    assert game.go_on().nodes["a-1"].owed, "it could still not be lifted"
    game.nodes["a-1"].cordon_stays_until = 0.0
    game.crash_and_resume()
    end = game.go_on()
    assert (end.nodes["a-1"].owed, end.nodes["a-1"].leftovers) == (False, ())


def test_a_node_not_drained_at_the_halt_is_changed_for_good_after_a_resume() -> None:
    """It was to be reverted with its wave if it had been changed by then; it was not."""
    game = play({"a": 1, "b": 1}, on_failure=RevertScope.WAVE)
    game.nodes["a-1"].evictions_from = EVER
    game.run(until=lambda _: any(ask.node == "a-1" and ask.verb is Verb.DRAIN and not ask.left for ask in game.asked))
    game.feed(AbortAsked(game.now, "me", "", 1, RevertScope.WAVE))
    game.go_on()
    game.nodes["a-1"].evictions_from = 0.0
    game.crash_and_resume()
    end = game.go_on()
    assert {record.state for record in end.nodes.values()} == {S.CONFIRMED}
    assert Verb.REVERT not in verbs(game, "a-1")
    as_found(game)


def test_a_change_waits_for_a_cordon_and_reports_a_permanent_one() -> None:
    game = play({"a": 2})
    game.nodes["a-1"].cordon_stays_until = EVER
    end = game.run()
    assert end.halt is not None
    assert end.halt.reference == "no-room-left"
    assert end.nodes["a-2"].state is S.PENDING


def test_a_rollback_drains_no_node() -> None:
    game = confirmed_before(make_order({"a": 4}, goal=Goal.REVERT))
    game.run()
    assert not {Verb.DRAIN, Verb.UNCORDON} & {ask.verb for ask in game.asked}


# Any fleet, any event.


STRIKES: Mapping[str, Callable[[Play, str], None]] = {
    "blocked": lambda game, name: setattr(game.nodes[name], "evictions_from", EVER),
    "slow": lambda game, name: setattr(game.nodes[name], "pods_end_in", 2 * WITHIN),
    "others": lambda game, name: setattr(game.nodes[name], "cordoned_by_others", True),
    "sick": lambda game, name: game.sicken(name),
    "deaf": lambda game, name: game.cut_off(name),
    "pulls": lambda game, name: game.pull(name, ("redis",)),
    "lost": lambda game, name: game.links[name].loses.update({Verb.DRAIN, Verb.APPLY, Verb.CONFIRM}),
}


@pytest.mark.no_cover  # three times as fast; the written tests count
@settings(max_examples=examples(150))
@given(data=st.data())
def test_whatever_happens_no_pod_is_lost_and_no_cordon_is_left(data: st.DataObject) -> None:
    """The laws are checked after every event by ``Play``."""
    some = st.sampled_from(["well"] * 6 + ["fails", *STRIKES])
    game = play(
        {"a": 4, "b": 4}, drained=lambda name: name != "b-4", rehearsal=data.draw(st.booleans()),
        waves=(("canary", lambda n: n in ("a-1", "b-4")), ("rest", lambda _: True)),
        limits=Limits(per_rack=Share(count=data.draw(st.integers(1, 3))), in_flight=data.draw(st.integers(1, 6))),
        pulls=PullsInFlight(20.0, data.draw(st.sampled_from(list(Busy)))),
        on_failure=data.draw(st.sampled_from(list(RevertScope))), wave_gates=data.draw(st.booleans()),
        budgets=(Budget(Scope.FLEET, frozenset(Cause), Share(count=data.draw(st.integers(1, 4)))),),
    )  # fmt: skip
    for name in game.nodes:
        kind = data.draw(some)
        if kind == "fails":
            game.nodes[name].cordon_stays_until = data.draw(st.integers(1, 3 * MOST_TRIES)) * AGAIN_EVERY
        elif kind != "well":
            STRIKES[kind](game, name)
    words = st.tuples(st.integers(1, 80), st.sampled_from(["pause", "continue", "abort", "interrupt"]))
    game.words = sorted(data.draw(st.lists(words, max_size=3)))
    moments = sorted(data.draw(st.lists(st.integers(1, 120), max_size=3)))
    game.run(until=lambda _: True)
    for moment in (*moments, 10**6):
        while game.state.phase is not Phase.ENDED and len(game.journal) < moment:
            game.go_on(until=lambda s, most=moment: stuck(s) or len(game.journal) >= most)  # type: ignore[misc]
            lift_pause(game)
        if moment in moments:
            game.crash_and_resume()
    end = game.state
    for name, record in end.nodes.items():
        node = game.nodes[name]
        assert not node.cordoned or record.cordoned, name
        assert not record.cordoned or record.leftovers or kept(record), name


def stuck(state: RunState) -> bool:
    """Waits for a request; once it halts it may only wait for a cordon."""
    return (
        state.halt is None
        and state.paused is not None
        and not any(record.asked or isinstance(record.current, Draining | Drained) for record in state.nodes.values())
    )


def lift_pause(game: Play) -> None:
    if game.state.paused is not None:
        game.requests += 1
        game.feed(ContinueAsked(game.now, "me", "", game.requests))
