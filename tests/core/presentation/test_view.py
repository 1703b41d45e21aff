"""What a person sees of a run at a glance: states by name, and the text for each."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

import pytest

from rollout.core.model.playbook import Budget, Cause, Limits, RevertScope, Scope, Share
from rollout.core.presentation.remaining import remaining
from rollout.core.presentation.view import View, WaveStanding, view
from rollout.core.run.events import ContinueAsked, InterruptAsked, PauseAsked
from rollout.core.run.state import Goal, NodeRecord, NodeState, Phase, RunState, Unknown, Verb
from rollout.core.text.terminal import seconds_text
from tests.orders import in_state, make_order
from tests.plays import Play, confirmed_before

S = NodeState
TWO_WAVES = (("canary", lambda name: name.endswith("-1")), ("rest", lambda _: True))
ROOMY = Limits(per_rack=Share(percent=50.0))


def play(racks: dict[str, int] | None = None, **how: Any) -> Play:
    return Play(make_order(racks or {"a": 20, "b": 20}, TWO_WAVES, limits=how.pop("limits", ROOMY), **how))


def seen(state: RunState, later: float = 0.0) -> View:
    return view(state, state.now + later)


def in_phase(phase: Phase, wave: int = 0) -> Callable[[RunState], bool]:
    return lambda state: state.phase is phase and state.wave == wave


def moving(count: int) -> Callable[[RunState], bool]:
    return lambda state: sum(record.state is S.APPLYING for record in state.nodes.values()) == count


def passed(state: RunState) -> bool:
    """Both canaries, once."""
    return [state.nodes[name].passes for name in ("a-1", "b-1")] == [1, 1]


# Several tests ask for most of these states, and none changes one: a run of 40 nodes is played once.


@cache
def opening() -> RunState:
    return play().run(until=lambda _: True)


@cache
def applying() -> RunState:
    return play().run(until=moving(2))


def paced() -> RunState:
    game = play(limits=replace(ROOMY, pace=1.0))
    return game.run(until=lambda s: s.wave == 1 and moving(1)(s))


def no_room() -> RunState:
    game = play(limits=replace(ROOMY, per_rack=Share(count=1)))
    return game.run(until=lambda s: s.wave == 1 and moving(2)(s))


@cache
def settling() -> RunState:
    game = play({"a": 20}, limits=replace(ROOMY, per_rack=Share(count=1)))
    return game.run(until=lambda s: s.wave == 1 and any(r.busy_until > s.now and not r.asked for r in s.nodes.values()))


@cache
def rehearsing() -> RunState:
    return play(rehearsal=True).run(until=lambda s: any(r.state is S.REVERTING for r in s.nodes.values()))


def baseline() -> RunState:
    return play(wave_gates=True).run(until=lambda s: s.gate_asked)


@cache
def soaking() -> RunState:
    return play().run(until=lambda s: s.phase is Phase.SOAKING and s.round == 1 and passed(s))


def measured() -> RunState:
    return play().run(until=lambda s: s.phase is Phase.SOAKING and s.nodes["a-1"].asked is Verb.MEASURE)


@cache
def silent() -> RunState:
    game = play()
    game.run(until=lambda s: s.wave == 1 and s.nodes["a-2"].state is S.APPLYING)
    game.cut_off("a-2")
    return game.go_on(until=lambda s: isinstance(at := s.nodes["a-2"].current, Unknown) and at.reads > 2)


@cache
def paused() -> RunState:
    game = play()
    game.run(until=moving(2))
    game.feed(PauseAsked(game.now, "ann@ops", "lunch \x1b[31mred", 1))
    return game.state


@cache
def held() -> RunState:
    return play(hold=frozenset({"canary"})).run(until=lambda s: s.paused is not None)


@cache
def promoted() -> RunState:
    game = play(hold=frozenset({"canary"}))
    game.run(until=lambda s: s.paused is not None)
    game.feed(ContinueAsked(game.now, "ann@ops", "", 1))
    return game.go_on(until=in_phase(Phase.RUNNING, 1))


@cache
def halting() -> RunState:
    game = play(budgets=(Budget(Scope.FLEET, frozenset(Cause), Share(count=1)),), on_failure=RevertScope.RUN)
    game.sicken("b-7")
    return game.run(until=in_phase(Phase.HALTING, 1))


@cache
def halted() -> RunState:
    game = play(budgets=(Budget(Scope.FLEET, frozenset(Cause), Share(count=1)),), on_failure=RevertScope.WAVE)
    game.sicken("b-7")
    return game.run()


def interrupted() -> RunState:
    game = play()
    game.run(until=moving(2))
    game.feed(InterruptAsked(game.now))
    return game.state


@cache
def going_back() -> RunState:
    game = confirmed_before(make_order({"a": 20}, goal=Goal.REVERT, limits=replace(ROOMY, pace=2.0)))
    return game.run(until=lambda s: sum(r.state is S.REVERTED for r in s.nodes.values()) >= 2)


@cache
def closing() -> RunState:
    return play().run(until=lambda s: s.phase is Phase.CLOSING)


@cache
def ended() -> RunState:
    return play().run()


WAITS: list[tuple[Callable[[], RunState], str]] = [
    (opening, "40 of 40 nodes to be claimed"),
    (applying, "2 nodes of 2 racks: applying"),
    (paced, "nodes pending, pace 1 restarts/s"),
    (no_room, "36 nodes pending: 2 racks are at their concurrency limit"),
    (settling, "rack a is at its concurrency limit; next slot in "),
    (rehearsing, "the rehearsal: 2 nodes of wave canary to be reverted and applied again"),
    (baseline, "the wave gates before wave canary: their results are its baseline"),
    (soaking, "the soak of wave canary: 1 of 3 rounds passed, next in "),
    (measured, "the soak of wave canary: 0 of 3 rounds passed, 2 nodes being measured"),
    (paused, "paused by ann@ops (lunch red): `rollout continue r1` continues it; 2 nodes of 2 racks: applying"),
    (held, "on hold: holds after wave canary; gates are still checked; `rollout continue r1` promotes"),
    (promoted, "pending"),
    (halting, "halting: "),
    (interrupted, "halting: 2 nodes of 2 racks: applying"),
    (going_back, "reverting: "),
    (closing, "40 of 40 nodes to be cleaned up"),
    (ended, "nothing: the run has ended"),
]


@pytest.mark.parametrize(("state", "words"), WAITS, ids=[state.__name__ for state, _ in WAITS])
def test_what_it_waits_for(state: Callable[[], RunState], words: str) -> None:
    found = seen(state()).waits
    assert words in found
    assert "\x1b" not in found


LEFT = [
    (opening, ""),
    (applying, "about "),
    (paused, " left once it continues"),
    (held, " left once it continues"),
    (halting, "about "),
    (going_back, "about "),
    (closing, ""),
    (ended, ""),
]


@pytest.mark.parametrize(("state", "words"), LEFT, ids=[state.__name__ for state, _ in LEFT])
def test_how_long_it_takes(state: Callable[[], RunState], words: str) -> None:
    found = seen(state()).left
    assert (words in found) if words else found == ""


def test_a_coming_hold_is_shown_with_the_time_left() -> None:
    state = play(hold=frozenset({"canary"})).run(until=moving(2))
    assert seen(state).left.endswith("left, and a hold after wave canary")


def test_the_time_left_uses_the_measured_times_of_this_run() -> None:
    slow, fast = soaking(), soaking()

    def took(state: RunState, seconds: float) -> RunState:
        return replace(state, nodes={n: replace(r, apply_seconds=seconds) for n, r in state.nodes.items()})

    assert "min" in seen(took(slow, 200.0)).left
    assert "min" not in seen(took(fast, 2.0)).left


def test_the_time_left_is_right_to_within_a_few_restarts_when_nothing_fails() -> None:
    game = play(limits=replace(ROOMY, pace=2.0))
    state = game.run(until=in_phase(Phase.RUNNING, 1))
    promised, began = remaining(state), game.now
    game.go_on(until=lambda s: s.phase is Phase.CLOSING)
    assert promised == pytest.approx(game.now - began, rel=0.5)


def test_a_node_without_an_answer_is_named_with_the_time_until_it_is_given_up() -> None:
    state = silent()
    (told,) = seen(state, later=10.0).silent
    since = state.nodes["a-2"].since
    assert told.startswith(f"1 node without an answer for {seconds_text(state.now + 10 - since)}, given up in ")
    assert "(a-2" in told
    assert "unknown, to be read again" in seen(state).waits or "pending" in seen(state).waits


def at_its_gates(reads: int = 0) -> RunState:
    """Right after its restart, a node's lease is not renewed yet: its gate is checked again."""
    state = applying()
    record = NodeRecord(
        Unknown(reads=reads), since=state.now, reference="gate-nodeReady", message="its lease was not renewed"
    )
    return replace(state, nodes={**state.nodes, "a-1": record})


def test_a_node_with_unknown_gates_counts_neither_as_unanswered_nor_as_failed() -> None:
    found = seen(at_its_gates())
    assert not found.silent
    assert not found.troubles
    assert "1 waiting for gates and confirm" in found.waits
    (told,) = seen(at_its_gates(), later=20.0).silent
    assert told == "1 node with unknown gates for 20 s, checked again (a-1: its lease was not renewed)"


def test_a_node_that_then_does_not_answer_counts_as_both() -> None:
    found = seen(at_its_gates(reads=1))
    assert found.silent[0].startswith("1 node without an answer for 0 s")
    assert found.troubles[0].nodes == "a-1"


def test_the_time_left_is_no_more_exact_than_an_estimate() -> None:
    def said(seconds: float) -> str:
        state = soaking()
        nodes = {n: replace(r, apply_seconds=seconds) for n, r in state.nodes.items()}
        return seen(replace(state, nodes=nodes)).left

    assert re.fullmatch(r"about \d+ min left", said(300.0))
    assert re.fullmatch(r"about \d+ min( \d0 s)? left", said(20.0))


def test_a_rack_in_the_middle_of_its_wave_stays_listed_without_nodes_in_flight() -> None:
    state = settling()
    assert all(record.state is not S.APPLYING for record in state.nodes.values())
    assert [rack.name for rack in seen(state).racks] == ["a"]


def test_waves_show_their_standing() -> None:
    first, second = seen(promoted()).waves
    assert (first.name, first.total, first.done, first.standing) == ("canary", 2, 2, WaveStanding.PASSED)
    assert (second.total, second.done, second.standing) == (38, 0, WaveStanding.NOW)
    assert [wave.standing for wave in seen(opening()).waves] == [WaveStanding.TO_COME] * 2
    assert [wave.standing for wave in seen(soaking()).waves] == [WaveStanding.NOW, WaveStanding.TO_COME]
    assert [wave.standing for wave in seen(ended()).waves] == [WaveStanding.PASSED] * 2
    assert seen(halted()).waves[1].standing is WaveStanding.STOPPED
    refused = {name: in_state(S.REFUSED) for name in ended().order.waves[0].nodes}
    without = replace(ended(), nodes={**ended().nodes, **refused})
    assert [wave.standing for wave in seen(without).waves] == [WaveStanding.OVER, WaveStanding.PASSED]
    assert seen(promoted()).counts == ((S.PENDING, 38), (S.CONFIRMED, 2))


def test_racks_that_are_done_or_unchanged_are_not_shown() -> None:
    assert seen(soaking()).racks == ()
    (bad,) = seen(halted()).racks
    assert (bad.name, bad.total, bad.wrong) == ("b", 20, 1)


def test_many_racks_are_folded_the_worst_first() -> None:
    game = play({f"rack{n:02}": 4 for n in range(1, 21)}, limits=replace(ROOMY, pace=100.0))
    game.sicken("rack13-1")
    state = game.run(until=lambda s: s.wave == 0 and s.nodes["rack20-1"].state is S.APPLYING)
    found = seen(replace(state, nodes={**state.nodes, "rack13-1": in_state(S.REVERTED, cause=Cause.UNHEALTHY)}))
    assert found.racks[0].name == "rack13"
    assert len(found.racks) == 8
    assert found.more_racks == "and 12 more racks: 12 in flight, 0 failed"


def test_budgets_are_distances_from_halting_the_nearest_first() -> None:
    state = soaking()
    bad = in_state(S.REVERTED, cause=Cause.UNHEALTHY)
    budgets = (
        Budget(Scope.FLEET, frozenset(Cause), Share(count=17)),
        Budget(Scope.WAVE, frozenset({Cause.FAILED}), Share(count=2)),
        Budget(Scope.RACK, frozenset(Cause), Share(count=2)),
    )
    state = replace(state, order=replace(state.order, budgets=budgets), nodes={**state.nodes, "b-1": bad})
    found = seen(state).distances
    assert [each.short for each in found] == ["rack b 1 of 2", "wave 'canary' 0 of 2", "the fleet 1 of 17"]
    assert [each.left for each in found] == [1, 2, 16]


def test_a_halted_run_shows_why_which_nodes_failed_and_which_are_pending_recovery() -> None:
    found = seen(halted())
    assert "1 of 40 nodes of the fleet failed" in found.halt
    assert found.troubles[0].message in ("the run halted", "")
    assert found.owed == ""
    assert seen(silent()).owed == ""


def test_the_rehearsal_shows_its_time_and_the_time_for_the_fleet() -> None:
    state = play(rehearsal=True).run()
    times = {n: replace(r, revert_seconds=12.0) for n, r in state.nodes.items()}
    found = seen(replace(state, nodes=times)).rehearsal
    assert found is not None
    assert (found.nodes, found.done, found.reverting, found.revert_seconds) == (2, 2, 0, 12.0)
    assert str(found).startswith(
        "rehearsal: 2 of 2 nodes reverted once, healthy, in at most 12 s per node; an emergency"
    )
    assert str(seen(rehearsing()).rehearsal) == "rehearsal: 2 of 2 nodes being reverted"
    assert seen(ended()).rehearsal is None


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(-3, "0 s"), (0.44, "0.4 s"), (9.0, "9 s"), (14.4, "14 s"), (89, "89 s"), (200, "3 min 20 s"), (240, "4 min"),
     (1500, "25 min"), (7500, "2 h 5 min"), (7200, "2 h")],
)  # fmt: skip
def test_times_are_no_more_exact_than_they_are(seconds: float, text: str) -> None:
    assert seconds_text(seconds) == text
