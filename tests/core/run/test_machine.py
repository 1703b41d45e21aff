"""The machine as a story: releases, gates, halts, reverts, crashes; the laws are checked after every event."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rollout.core.model.playbook import Budget, Busy, Cause, Limits, PullsInFlight, RevertScope, Scope, Share
from rollout.core.model.report import LastLog
from rollout.core.model.snapshot import ReceiptState, Token
from rollout.core.model.verdict import Verdict
from rollout.core.run.commands import Ask
from rollout.core.run.events import AWAY, Answered, ContinueAsked, InterruptAsked, Ticked, Trigger
from rollout.core.run.machine import opening
from rollout.core.run.phases import MOST_CLAIMS
from rollout.core.run.state import Ending, Goal, NodeState, Order, Phase, RunState, Verb
from rollout.core.run.transitions import Circumstances, Heard, IllegalMoveError, move, moved
from rollout.simulator.fleet import CONNECT_SECONDS, Sender, Spell
from rollout.simulator.machine import FOREIGN, NEW
from tests.orders import in_state, make_order
from tests.plays import ANOTHER_RUN, EVER, SICK_WITH_BOTH, Play, confirmed_before, leave
from tests.sampling import examples

RACKS = {"a": 20, "b": 20, "c": 5}
THREE_WAVES = (("canary", lambda n: n == "a-1"), ("first", lambda n: n.endswith("-2")), ("rest", lambda _: True))


def states(state: RunState) -> Counter[NodeState]:
    return Counter(record.state for record in state.nodes.values())


def files(play: Play) -> Counter[str]:
    return Counter(node.files for node in play.nodes.values())


def files_of(play: Play) -> dict[str, str]:
    return {name: node.files for name, node in play.nodes.items()}


def test_a_healthy_fleet_is_confirmed_wave_after_wave() -> None:
    play = Play(make_order(RACKS, THREE_WAVES))
    end = play.run()
    assert end.ending is Ending.DONE
    assert states(end) == {NodeState.CONFIRMED: 45}
    assert files(play) == {"new": 45}


@pytest.mark.parametrize(("soak", "passes", "measured"), [(9.0, 1, 2), (9.0, 3, 4), (0.0, 1, 1), (0.0, 3, 3)])
def test_without_a_soak_the_pass_right_before_the_confirm_is_the_first(soak: float, passes: int, measured: int) -> None:
    play = Play(replace(make_order({"a": 2}, soak=soak), passes=passes))
    end = play.run()
    assert states(end) == {NodeState.CONFIRMED: 2}
    assert Counter(ask.node for ask in play.asked if ask.verb is Verb.MEASURE) == {"a-1": measured, "a-2": measured}


def test_a_node_whose_confirm_was_read_back_is_measured_even_without_a_soak() -> None:
    run = Circumstances(0.0, Goal.APPLY, 180.0, soaks=False)
    assert moved(in_state(NodeState.APPLIED), Heard(Trigger.CONFIRMED), run)[0].passes == 1
    assert moved(in_state(NodeState.UNKNOWN), Heard(Trigger.CONFIRMED), run)[0].passes == 0


def test_the_first_measurement_after_an_apply_has_the_baseline_from_right_before_it() -> None:
    play = Told(make_order({"a": 1}, rehearsal=True))
    play.run()
    measured = [(ask.tx, ask.baseline) for ask in play.asked if ask.verb is Verb.MEASURE]
    assert len({tx for tx, _ in measured}) == 2, "changed, reverted once, changed again"
    assert all(baseline == f"before {tx}" for tx, baseline in measured)


class Told(Play):
    """A fleet with an API baseline in the answers to its applies."""

    def said(self, ask: Ask, event: Answered) -> Answered:
        return replace(event, baseline=f"before {ask.tx}") if ask.verb is Verb.APPLY else event


def test_no_rack_has_more_in_flight_than_its_limit() -> None:
    play = Play(make_order({"a": 20, "b": 20}, limits=Limits(per_rack=Share(count=2), pace=100.0)))
    most: Counter[str] = Counter()

    def watch(state: RunState) -> bool:
        moving = Counter(
            state.order.nodes[n].rack
            for n, r in state.nodes.items()
            if r.state in (NodeState.APPLYING, NodeState.APPLIED) or state.now < r.busy_until
        )
        most.update({rack: max(0, moving[rack] - most[rack]) for rack in moving})
        return False

    assert play.run(until=watch).ending is Ending.DONE
    assert most == {"a": 2, "b": 2}


@pytest.mark.parametrize(
    ("scope", "kept"),
    [
        (RevertScope.NODE, {"new": 4, "old": 41}),
        (RevertScope.WAVE, {"new": 1, "old": 44}),
        (RevertScope.RUN, {"old": 45}),
    ],
)
def test_an_unhealthy_node_reverts_itself_and_the_run_halts(scope: RevertScope, kept: dict[str, int]) -> None:
    play = Play(make_order(RACKS, THREE_WAVES, on_failure=scope))
    play.sicken("c-2")
    end = play.run()
    assert end.ending is Ending.HALTED
    assert end.halt is not None
    assert end.halt.reference == "budget-spent"
    assert end.nodes["c-2"].state is NodeState.REVERTED
    assert end.nodes["c-2"].cause is Cause.UNHEALTHY
    expected = dict(kept)
    if scope is RevertScope.NODE:
        expected = {"new": 3, "old": 42}
    assert files(play) == expected


def test_a_failing_rack_never_loses_more_than_its_budget() -> None:
    play = Play(make_order({"a": 40, "bad": 40}, limits=Limits(per_rack=Share(percent=50.0), pace=100.0)))
    play.sicken(*(name for name in play.nodes if name.startswith("bad")))
    end = play.run()
    assert end.ending is Ending.HALTED
    touched = {ask.node for ask in play.asked if ask.verb is Verb.APPLY and ask.node.startswith("bad")}
    assert len(touched) <= 2


def test_an_unhealthy_node_in_the_soak_is_reverted_and_halts_the_run() -> None:
    play = Play(make_order(RACKS, THREE_WAVES))
    play.run(until=lambda s: s.phase is Phase.SOAKING)
    play.fall_sick("a-1")
    end = play.go_on()
    assert end.nodes["a-1"].state is NodeState.REVERTED
    assert end.ending is Ending.HALTED
    assert end.wave == 0
    assert {ask.node for ask in play.asked if ask.verb is Verb.REVERT and ask.evidence} == {"a-1"}


def test_the_log_of_a_node_that_failed_is_kept_and_others_are_not_asked_for_theirs() -> None:
    play = Play(make_order(RACKS, THREE_WAVES, on_failure=RevertScope.RUN))
    play.run(until=lambda s: s.wave == 1)
    state, log = play.state, LastLog("code=exited, status=1/FAILURE", ("kubelet[7]: bad",))
    name, record = next((name, each) for name, each in state.nodes.items() if each.asked is Verb.APPLY)
    unhealthy = Answered(state.now, name, record.serial, Verb.APPLY, Trigger.REVERTED_UNHEALTHY, "unhealthy", log=log)
    play.feed(unhealthy)
    assert play.state.nodes[name].log == log
    end = play.go_on()
    assert end.nodes[name].log == log
    reverts = [ask for ask in play.asked if ask.verb is Verb.REVERT]
    assert reverts
    assert not any(ask.evidence for ask in reverts)


def test_one_hung_node_never_holds_up_the_others() -> None:
    play = Play(make_order({"a": 30}, limits=Limits(per_rack=Share(count=3), pace=50.0)))
    play.links["a-1"].loses = {Verb.APPLY}
    play.run(until=lambda s: s.nodes["a-1"].state is NodeState.APPLYING)
    play.cut_off("a-1")
    state = play.go_on(until=lambda s: states(s)[NodeState.CONFIRMED] > 10 or s.halt is not None)
    assert state.nodes["a-1"].state is NodeState.UNKNOWN or state.halt is not None


def test_an_unreachable_node_is_charged_and_pending_recovery() -> None:
    play = Play(make_order({"a": 60}))
    play.cut_off("a-60")
    end = play.run()
    assert end.ending is Ending.PREFLIGHT
    assert end.nodes["a-60"].state is NodeState.UNREACHABLE
    assert end.nodes["a-60"].owed
    assert files(play) == {"old": 60}


@pytest.mark.parametrize("verdict", [Verdict.FAIL, Verdict.UNKNOWN])
def test_a_wave_gate_that_does_not_pass_halts(verdict: Verdict) -> None:
    play = Play(make_order(RACKS, THREE_WAVES, wave_gates=True))
    play.wave_verdict = verdict
    end = play.run()
    assert end.ending is Ending.HALTED
    assert end.halt is not None
    assert end.halt.reference == f"wave-gate-{verdict}"
    assert files(play) == {"new": 1, "old": 44}


def test_the_first_interrupt_lets_nodes_in_flight_finish_and_releases_nothing_new() -> None:
    play = Play(make_order({"a": 40}, limits=Limits(per_rack=Share(count=4))))
    play.run(until=lambda s: NodeState.APPLYING in states(s))
    asked = len([ask for ask in play.asked if ask.verb is Verb.APPLY])
    play.feed(InterruptAsked(play.now))
    end = play.go_on()
    assert end.ending is Ending.INTERRUPTED
    assert len([ask for ask in play.asked if ask.verb is Verb.APPLY]) == asked
    assert states(end) == {NodeState.CONFIRMED: asked, NodeState.PENDING: 40 - asked}


def test_an_interrupted_run_is_resumed_to_its_end() -> None:
    play = Play(make_order(RACKS, THREE_WAVES))
    play.run(until=lambda s: s.wave == 1)
    play.feed(InterruptAsked(play.now))
    play.go_on()
    play.crash_and_resume()
    end = play.go_on()
    assert end.ending is Ending.DONE
    assert files(play) == {"new": 45}


def test_a_guard_that_fired_because_the_controller_died_is_not_the_nodes_fault() -> None:
    play = Play(make_order({"a": 20}))
    play.run(until=lambda s: NodeState.APPLIED in states(s))
    play.crash_and_resume(away=100.0)  # longer than the guard's time
    end = play.go_on()
    assert end.ending is Ending.DONE
    assert states(end) == {NodeState.CONFIRMED: 20}


def test_a_halted_run_that_is_resumed_continues_without_its_reverted_node() -> None:
    play = Play(make_order(RACKS, THREE_WAVES, on_failure=RevertScope.WAVE))
    play.sicken("c-2")
    play.run()
    play.crash_and_resume()
    end = play.go_on()
    assert end.ending is Ending.DONE
    assert states(end) == {NodeState.CONFIRMED: 44, NodeState.REVERTED: 1}


def test_a_controller_that_dies_while_halting_does_not_cancel_the_halt() -> None:
    play = Play(make_order(RACKS, THREE_WAVES, on_failure=RevertScope.RUN))
    play.sicken("c-2")
    play.run(until=lambda s: s.phase is Phase.HALTING)
    play.crash_and_resume()
    end = play.go_on()
    assert end.ending is Ending.HALTED
    assert files(play) == {"old": 45}


def revert_order(**changes: object) -> Order:
    return make_order({"a": 20, "b": 20}, goal=Goal.REVERT, limits=Limits(per_rack=Share(count=5), pace=50.0))


def besiege(play: Play, names: set[str], word: str = "fenced") -> None:
    """Another controller repeatedly claims these nodes, right before each of our requests, with a higher token than ours; or
    (``claimed``) once, with a lower one.
    """

    def claim(_sender: Sender, ask: Ask) -> None:
        if ask.node in names:
            counter = ask.counter + 1 if word == "fenced" else 0
            play.nodes[ask.node].token = Token(counter, ANOTHER_RUN, live=True)

    play.fleet.begun = claim


def test_a_rollback_reverts_confirmed_nodes_and_nothing_else() -> None:
    play = confirmed_before(revert_order(), but=("a-1",))
    end = play.run()
    assert end.ending is Ending.DONE
    assert states(end) == {NodeState.REVERTED: 39, NodeState.SKIPPED: 1}
    assert files(play) == {"old": 40}


def test_a_rollback_continues_around_unreachable_nodes() -> None:
    play = confirmed_before(revert_order())
    play.cut_off(*(f"a-{n}" for n in range(1, 9)))
    end = play.run()
    assert states(end) == {NodeState.REVERTED: 32, NodeState.UNREACHABLE: 8}
    assert all(record.owed for record in end.nodes.values() if record.state is NodeState.UNREACHABLE)


def test_a_revert_is_completed_after_its_agent_died() -> None:
    """A confirmed change has no guard: a receipt in state `reverting` stays so until the revert is requested again."""
    play = confirmed_before(revert_order())
    play.kill_reverts("a-1", 2)
    end = play.run()
    assert states(end) == {NodeState.REVERTED: 40}
    assert files(play) == {"old": 40}


def test_the_next_rollback_completes_half_done_reverts() -> None:
    play = Play(revert_order())
    for node in play.nodes.values():
        leave(node, "r0-1", ReceiptState.REVERTING)
    assert states(play.run()) == {NodeState.REVERTED: 40}
    assert files(play) == {"old": 40}


def test_a_revert_that_dies_every_time_is_given_up_and_pending_recovery() -> None:
    play = confirmed_before(revert_order())
    play.kill_reverts("a-1", 10**6)
    end = play.run()
    assert states(end) == {NodeState.REVERTED: 39, NodeState.UNREACHABLE: 1}
    assert end.nodes["a-1"].owed


def test_a_revert_waits_for_a_guard_that_is_reverting() -> None:
    play = Play(make_order({"a": 1}))
    play.fleet.spells.append(Spell("a-1", Verdict.FAIL, 0.0, EVER))
    play.run(until=lambda s: s.nodes["a-1"].asked is Verb.REVERT)
    play.lose_answers()
    reply = Answered(play.now, "a-1", play.state.nodes["a-1"].serial, Verb.REVERT, Trigger.REFUSED, "locked", "at work")
    play.feed(reply)
    assert play.state.nodes["a-1"].state is NodeState.UNKNOWN
    assert play.go_on().nodes["a-1"].state is NodeState.REVERTED


@pytest.mark.parametrize("misses", [False, True])
def test_a_node_that_was_reverting_when_the_controller_died_gets_the_next_ones_full_time(misses: bool) -> None:
    """Resumed an hour later, it is half reverted, nothing works on it, and it may miss one more read."""
    play = confirmed_before(revert_order())
    play.run(until=lambda s: s.nodes["a-1"].asked is Verb.REVERT)
    lost = Answered(play.now, "a-1", play.state.nodes["a-1"].serial, Verb.REVERT, Trigger.LOST)
    play.feed(lost)
    assert (play.state.nodes["a-1"].state, play.state.nodes["a-1"].owed) == (NodeState.UNKNOWN, True)
    play.crash(away=3600.0)
    leave(play.nodes["a-1"], "r0-1", ReceiptState.REVERTING)
    play.resume()
    if misses:
        play.links["a-1"].loses = {Verb.READ}
    end = play.go_on()
    assert (states(end), files(play)) == ({NodeState.REVERTED: 40}, {"old": 40})
    assert not any(record.owed for record in end.nodes.values())


def test_a_node_that_was_reverting_when_the_controller_died_and_never_answers_is_given_up_once() -> None:
    play = confirmed_before(revert_order())
    play.run(until=lambda s: s.nodes["a-1"].asked is Verb.REVERT)
    play.cut_off("a-1")
    play.crash_and_resume()
    resumed = play.now
    end = play.go_on()
    assert states(end) == {NodeState.REVERTED: 39, NodeState.UNREACHABLE: 1}
    assert end.nodes["a-1"].owed
    assert not end.nodes["a-1"].accepted, "we may have caused it: it reduces the limits"
    waited = end.nodes["a-1"].since - resumed - end.order.guard
    assert 60.0 <= waited < 60.0 + CONNECT_SECONDS + 5.0, "until the first read after its time failed"
    play.crash_and_resume()
    resumed = play.now
    assert play.go_on().nodes["a-1"].accepted
    assert play.now - resumed < CONNECT_SECONDS + 5.0, "a node that was given up delays no other node"


@pytest.mark.parametrize("word", ["fenced", "claimed"])
def test_a_rollback_leaves_the_few_nodes_that_keep_reporting_a_higher_token_and_reverts_all_others(word: str) -> None:
    play = confirmed_before(revert_order())
    liars = {f"a-{n}" for n in range(1, 20)}
    besiege(play, liars, word)
    end = play.run()
    assert end.ending is Ending.DONE
    assert states(end) == {NodeState.REVERTED: 21, NodeState.UNREACHABLE: 19}
    assert all(end.nodes[name].owed and end.nodes[name].reference == word for name in liars)
    assert end.claims == MOST_CLAIMS
    assert not [ask for ask in play.asked if ask.node in liars and ask.verb is not Verb.READ]


def test_nodes_left_to_another_run_from_the_start_slow_no_node_down() -> None:
    honest, besieged = confirmed_before(revert_order()), confirmed_before(revert_order())
    besiege(besieged, {f"{rack}-{n}" for rack in "ab" for n in range(1, 6)})
    honest.run()
    besieged.run()
    assert besieged.now <= honest.now + MOST_CLAIMS * 2.0, "as many as a rack's limit"


def test_a_rollback_continues_without_a_node_that_reports_another_run_in_the_middle() -> None:
    play = confirmed_before(revert_order())
    play.run(until=lambda s: any(record.asked is Verb.REVERT for record in s.nodes.values()))
    liars = {name for name, node in play.nodes.items() if node.files == NEW} & {"a-7", "a-20", "b-9"}
    assert liars
    besiege(play, liars)
    end = play.go_on()
    assert end.ending is Ending.DONE
    assert {name for name, record in end.nodes.items() if record.owed} == liars
    assert files(play) == {"old": 40 - len(liars), "new": len(liars)}


@pytest.mark.parametrize("early", [True, False])
def test_a_rollback_ends_if_most_nodes_report_a_takeover(early: bool) -> None:
    play = confirmed_before(revert_order())
    if not early:
        play.run(until=lambda s: any(record.asked is Verb.REVERT for record in s.nodes.values()))
    besiege(play, set(play.nodes))
    end = play.run() if early else play.go_on()
    assert end.ending is Ending.CLAIMED


def test_a_node_left_to_another_run_is_asked_again_by_the_next_controller() -> None:
    play = confirmed_before(revert_order())
    besiege(play, {"a-1"})
    assert play.run().nodes["a-1"].owed
    besiege(play, set())
    play.nodes["a-1"].token = Token()  # as `rollout cluster unlock` leaves it
    play.crash_and_resume()
    assert states(play.go_on()) == {NodeState.REVERTED: 40}
    assert files(play) == {"old": 40}


def test_one_node_that_keeps_reporting_a_higher_token_ends_a_change_before_it_begins() -> None:
    """Unlike a rollback: another controller may be active, and waiting costs nothing."""
    play = Play(make_order({"a": 20}))
    besiege(play, {"a-1"})
    assert play.run().ending is Ending.CLAIMED
    assert files(play) == {"old": 20}
    assert not [ask for ask in play.asked if ask.verb is Verb.APPLY]


def test_a_run_does_not_continue_on_nodes_that_another_run_has_changed() -> None:
    """The first claim of its new controller shows it. A run that begins may take a higher token and try again."""
    play = Play(make_order({"a": 20}, limits=Limits(per_rack=Share(count=2))))
    play.run(until=lambda s: states(s)[NodeState.CONFIRMED] > 2)
    done = states(play.state)[NodeState.CONFIRMED]
    play.claim_for_another(*play.nodes)
    asked = len(play.asked)
    play.crash_and_resume()
    end = play.go_on(patience=30.0)
    assert (end.ending, end.claims) == (Ending.CLAIMED, 1)
    assert {ask.verb for ask in play.asked[asked:]} <= {Verb.READ, Verb.CLEAN}
    assert states(end)[NodeState.CONFIRMED] == done


def test_a_run_that_is_taken_over_while_it_halts_ends() -> None:
    """An emergency rollback from elsewhere has the nodes now: the answers that this run waits for will never come."""
    play = Play(make_order({"a": 40}, limits=Limits(per_rack=Share(count=4))))
    play.run(until=lambda s: any(record.asked is Verb.MEASURE for record in s.nodes.values()))
    play.feed(InterruptAsked(play.now))
    play.claim_for_another(*play.nodes)
    end = play.go_on(patience=30.0)
    assert end.ending is Ending.CLAIMED


def test_a_run_that_was_taken_over_confirms_nothing_more() -> None:
    """Armed nodes are left to their guards: the run that has the nodes now may not have reached this one yet."""
    play = Play(make_order({"a": 10, "b": 10}, budgets=()))
    play.run(until=lambda s: all(s.nodes[name].asked is Verb.MEASURE for name in ("a-1", "b-1")))
    told = {
        name: Answered(play.now, name, play.state.nodes[name].serial, Verb.MEASURE, Trigger.GATES_PASSED)
        for name in ("a-1", "b-1")
    }
    play.feed(replace(told["a-1"], trigger=Trigger.REFUSED, reference="fenced"))
    play.feed(told["b-1"])
    assert play.state.halt is not None
    assert play.state.halt.ending is Ending.CLAIMED
    assert not [ask for ask in play.asked if ask.verb is Verb.CONFIRM]


def test_hundreds_of_restarts_a_second_are_paced_too() -> None:
    play = Play(make_order({"a": 160}, limits=Limits(per_rack=Share(count=160), in_flight=160, pace=150.0), budgets=()))
    play.longest = 0.25
    play.run(until=lambda _: any(ask.verb is Verb.APPLY for ask in play.asked))
    first = play.now
    play.go_on(until=lambda _: play.now >= first + 0.5)
    assert sum(ask.verb is Verb.APPLY for ask in play.asked) == 150


def test_a_node_left_armed_without_time_to_confirm_is_changed_again() -> None:
    play = Play(make_order({"a": 20}))
    play.run(until=lambda s: NodeState.APPLIED in states(s))
    play.crash_and_resume(away=27.0)  # of the guard's 30 s; reading and measuring it again takes two more
    end = play.go_on()
    assert end.ending is Ending.DONE
    assert states(end) == {NodeState.CONFIRMED: 20}
    assert "guard" in {found.cause for found in play.nodes["a-1"].transactions.values()}, "its guard did fire"


def test_a_guard_that_fires_under_the_new_controller_is_the_nodes_fault() -> None:
    budget = Budget(Scope.FLEET, frozenset(Cause), Share(count=5))
    play = Play(make_order({"a": 3}, budgets=(budget,)))
    play.run(until=lambda s: s.phase is Phase.RUNNING)
    play.crash_and_resume()
    play.go_on(until=lambda s: s.nodes["a-3"].asked is Verb.APPLY)
    for verb, trigger in ((Verb.APPLY, Trigger.LOST), (Verb.READ, Trigger.REVERTED_BY_GUARD)):
        play.lose_answers()
        play.feed(Answered(play.now, "a-3", play.state.nodes["a-3"].serial, verb, trigger))
    assert play.state.nodes["a-3"].state is NodeState.REVERTED
    assert play.state.nodes["a-3"].cause is Cause.UNREACHABLE


def test_a_node_lost_before_its_wave_began_counts_before_any_node_of_it_is_released() -> None:
    budget = Budget(Scope.WAVE, frozenset(Cause), Share(count=2))
    limits = Limits(per_rack=Share(count=5), preflight=Share(percent=50.0))
    waves = (("canary", lambda n: n == "a-1"), ("rest", lambda _: True))
    play = Play(make_order({"a": 20}, waves, limits=limits, budgets=(budget,)))
    play.cut_off("a-19", "a-20")
    play.run(until=lambda s: s.nodes["a-1"].state is NodeState.APPLIED)
    play.cut_off("a-1")  # until it is given up, on a tick, which ends its wave
    end = play.go_on()
    assert end.ending is Ending.HALTED
    assert {ask.node for ask in play.asked if ask.verb is Verb.APPLY} == {"a-1"}


def test_a_controller_with_a_clock_that_is_behind_takes_over_at_once() -> None:
    play = Play(make_order({"a": 10}))
    play.set_clock(100_000.0)
    play.run(until=lambda s: NodeState.CONFIRMED in states(s))
    play.set_clock(50.0)
    play.crash_and_resume()
    assert play.go_on(patience=600.0).ending is Ending.DONE


def test_a_rollback_keeps_its_limits_when_more_is_down_than_they_allow() -> None:
    order = make_order(
        {"a": 20, "b": 20}, goal=Goal.REVERT, limits=Limits(per_rack=Share(count=9), in_flight=2, pace=50.0)
    )
    play = confirmed_before(order)
    for name in ("a-1", "a-2", "a-3", "b-1"):
        play.nodes[name].hang()
    assert states(play.run(patience=20_000.0))[NodeState.REVERTED] == 36


class AwayThenFenced(Play):
    """At its first two questions, each node is behind an engine that is away, and then knows a higher token."""

    reference = "fenced"

    def said(self, ask: Ask, event: Answered) -> Answered:
        if ask.verb is not Verb.READ or ask.serial > 2:
            return super().said(ask, event)
        if ask.serial == 1:
            return replace(event, trigger=Trigger.AWAY, reference=AWAY, message="no worker")
        return replace(event, trigger=Trigger.REFUSED, reference=self.reference, message="older token", counter=7)


@pytest.mark.parametrize("reference", ["fenced", "ended-here"])
def test_a_higher_token_is_overtaken_after_the_engine_was_away(reference: str) -> None:
    """Once, the run waited for these nodes without an end."""
    play = AwayThenFenced(make_order({"a": 3}))
    play.reference = reference
    end = play.run()
    assert (end.ending, end.counter) == (Ending.DONE, 8)


def test_nodes_that_do_not_answer_while_others_know_a_higher_token() -> None:
    play = Play(make_order({"a": 40}, limits=Limits(preflight=Share(percent=50.0)), budgets=()))
    play.cut_off("a-1")
    play.state, commands = opening(play.order, 1, 0.0)
    for command in commands:
        assert isinstance(command, Ask)
        away = command.node == "a-1"
        trigger, reference = (Trigger.UNREACHED, "refused") if away else (Trigger.REFUSED, "fenced")
        play.feed(Answered(1.0, command.node, command.serial, Verb.READ, trigger, reference, "as told", 7))
    end = play.go_on()
    assert end.counter == 8
    assert states(end) == {NodeState.CONFIRMED: 39, NodeState.UNREACHABLE: 1}


def test_a_run_is_resumed_when_nodes_of_another_run_are_free_again() -> None:
    play = Play(make_order({"a": 3}))
    play.run(until=lambda s: any(record.asked is Verb.MEASURE for record in s.nodes.values()))
    play.claim_for_another(*play.nodes)
    assert play.go_on().ending is Ending.CLAIMED
    for node in play.nodes.values():
        node.token = replace(node.token, live=False)
    play.crash_and_resume()
    assert play.go_on().ending is Ending.DONE


@pytest.mark.parametrize("guard", [1.0, 600.0], ids=["reverted-by-its-guard", "confirmed-again"])
def test_a_resume_that_finds_a_confirmed_node_armed_again_goes_on(guard: float) -> None:
    """Its disk was set back, or it lies: no answer of one node ends the controller."""
    play = Play(make_order({"a": 4}, budgets=()))
    state = play.run(until=lambda s: s.nodes["a-1"].state is NodeState.CONFIRMED and s.nodes["a-1"].asked is None)
    play.crash()
    leave(play.nodes["a-1"], state.transaction("a-1"), ReceiptState.ARMED, guard)
    play.resume()
    play.go_on(until=lambda s: s.nodes["a-1"].state is NodeState.APPLIED)
    end = play.go_on()
    assert end.phase is Phase.ENDED
    assert end.nodes["a-1"].state is (NodeState.CONFIRMED if guard > 60 else NodeState.REVERTED)
    assert end.nodes["a-4"].state is NodeState.CONFIRMED


def test_a_run_resumed_while_closing_waits_for_nodes_that_do_not_answer_at_once() -> None:
    play = Play(make_order({"a": 3}, THREE_WAVES))
    play.run(until=lambda s: s.phase is Phase.CLOSING)
    play.links["a-1"].loses = {Verb.READ}
    play.crash_and_resume()
    end = play.go_on()
    assert end.ending is Ending.DONE
    assert states(end) == {NodeState.CONFIRMED: 3}


def test_a_node_that_reported_a_higher_token_is_not_asked_again_until_all_have_answered() -> None:
    """Found in use: a rollback after a resume read its nodes 25 times per second until it gave them up."""
    play = confirmed_before(revert_order())
    play.state, commands = opening(play.order, 1, 0.0)
    for number, command in enumerate(commands):
        assert isinstance(command, Ask)
        play.feed(Answered(1.0 + number, command.node, command.serial, Verb.READ, Trigger.REFUSED, "fenced", "old", 7))
        play.feed(Ticked(1.5 + number))
    assert len(play.asked) == len(play.order.nodes), "each once more, under token 8"
    play.stand_still(100.0)
    end = play.go_on()
    assert (end.ending, end.counter, files(play)) == (Ending.DONE, 8, {"old": 40})


def test_a_gate_that_could_not_be_asked_is_recorded_when_the_guard_fires() -> None:
    play = Play(make_order({"a": 1}))
    play.run(until=lambda s: s.nodes["a-1"].asked is Verb.MEASURE)
    serial = play.state.nodes["a-1"].serial
    play.lose_answers()
    play.feed(Answered(play.now, "a-1", serial, Verb.MEASURE, Trigger.GATES_UNKNOWN, "gate-disk", "not found"))
    play.stand_still(31.0)
    end = play.go_on()
    said = "not confirmed in time, so the node reverted the change: not found [gate-disk]"
    assert end.nodes["a-1"].message == said


def test_a_soak_with_gates_that_cannot_be_asked_names_them_in_its_halt() -> None:
    play = Play(make_order({"a": 1}))
    play.run(until=lambda s: s.phase is Phase.SOAKING)
    while play.state.halt is None:
        play.go_on(until=lambda s: s.halt is not None or s.nodes["a-1"].asked is Verb.MEASURE)
        if play.state.halt is None:
            serial = play.state.nodes["a-1"].serial
            play.lose_answers()
            answer = Answered(
                play.now, "a-1", serial, Verb.MEASURE, Trigger.GATES_UNKNOWN, "gate-ready", "the API is away"
            )
            play.feed(answer)
            play.go_on(until=lambda s: s.nodes["a-1"].state is not NodeState.UNKNOWN)
    assert play.state.halt.reference == "never-steady"
    assert play.state.halt.message == "1 node never passed their gates 3 times in a row; a-1: the API is away"


def test_an_impossible_move_is_a_bug_and_raises() -> None:
    with pytest.raises(IllegalMoveError):
        move(in_state(NodeState.SKIPPED), Heard(Trigger.ARMED), Circumstances(0.0, Goal.APPLY, 180.0))


FEW = {"a": 6, "b": 5, "c": 2}
NODES = [f"{rack}-{n}" for rack, size in FEW.items() for n in range(1, size + 1)]
STRIKES: Mapping[str, Callable[[Play, str], None]] = {
    "sick": lambda play, name: play.sicken(name),
    "still-sick": lambda play, name: play.sicken(name, with_files=SICK_WITH_BOTH),
    "soak": lambda play, name: play.fall_sick(name, after=20.0),
    "gone": lambda play, name: play.cut_off(name),
    "drifts": lambda play, name: setattr(play.nodes[name], "files", FOREIGN),
    "lose-apply": lambda play, name: play.links[name].loses.add(Verb.APPLY),
    "lose-confirm": lambda play, name: play.links[name].loses.add(Verb.CONFIRM),
    "lose-revert": lambda play, name: play.links[name].loses.add(Verb.REVERT),
    "stuck": lambda play, name: play.stick(name, until=300.0),
    "pulls": lambda play, name: play.pull(name, ("img",), until=40.0),
    "pulls-on": lambda play, name: play.pull(name, ("img",)),
}
FAULTS = st.sampled_from(sorted(STRIKES))


def to_the_end(play: Play) -> RunState:
    """Each hold and each pause is lifted, a minute after it began."""
    while play.go_on(until=lambda s: s.paused is not None).phase is not Phase.ENDED:
        until = play.now + 60.0
        play.go_on(until=lambda s, until=until: play.now >= until or s.paused is None)  # type: ignore[misc]
        play.words = []
        play.requests += 1
        play.feed(ContinueAsked(play.now, "me", "", play.requests))
    return play.state


@settings(max_examples=examples(40))
@given(
    faults=st.dictionaries(st.sampled_from(NODES), FAULTS, max_size=6),
    scope=st.sampled_from(list(RevertScope)),
    crash_at=st.lists(st.integers(1, 150), max_size=2),
    away=st.sampled_from([0.0, 10.0, 60.0]),
    delays=st.randoms(use_true_random=False),
    rehearsal=st.booleans(),
    wave_gates=st.booleans(),
    words=st.lists(
        st.tuples(st.integers(1, 200), st.sampled_from(["pause", "continue", "abort", "interrupt"])), max_size=3
    ),
    hold=st.frozensets(st.sampled_from(["canary", "first", "rest"])),
    per_zone=st.sampled_from([None, Share(count=1), Share(percent=50.0)]),
    at_once=st.sampled_from([{}, {"rest": 1}]),
    then=st.sampled_from(list(Busy)),
)
def test_whatever_happens_every_node_ends_old_or_new_and_the_journal_shows_which(
    faults: dict[str, str],
    scope: RevertScope,
    crash_at: list[int],
    away: float,
    delays: Random,
    rehearsal: bool,
    wave_gates: bool,
    words: list[tuple[int, str]],
    hold: frozenset[str],
    per_zone: Share | None,
    at_once: dict[str, int],
    then: Busy,
) -> None:
    order = make_order(
        FEW, THREE_WAVES, on_failure=scope, rehearsal=rehearsal, wave_gates=wave_gates, hold=hold, at_once=at_once,
        limits=Limits(per_rack=Share(percent=50.0), per_zone=per_zone), zone_of={"a": "north"},
        pulls=PullsInFlight(60.0, then), kind_of=lambda name: name[0],
    )  # fmt: skip
    play = Play(order, delays, latency=1.5)
    play.silences = ("s",)
    play.words = sorted(words)
    for name, fault in faults.items():
        STRIKES[fault](play, name)
    found = files_of(play)
    play.run(until=lambda s: len(play.journal) >= min(crash_at, default=10**9) or s.paused is not None)
    for _ in crash_at:
        play.crash_and_resume(away)
        more = len(play.journal) + 40
        play.go_on(until=lambda s, more=more: len(play.journal) >= more or s.paused is not None)  # type: ignore[misc]
    end = to_the_end(play)
    if end.ending is Ending.INTERRUPTED:
        play.crash_and_resume()
        end = to_the_end(play)
    assert play.standing == [], "a silence is left"
    assert end.phase is Phase.ENDED
    for name, record in end.nodes.items():
        on_disk = play.nodes[name].files
        if record.state is NodeState.CONFIRMED:
            assert on_disk == NEW, name
        elif record.state in (NodeState.PENDING, NodeState.REVERTED, NodeState.FAILED, NodeState.REFUSED):
            assert on_disk == found[name], name


# Found by thousands of simulated days.


def test_a_rollback_reverts_a_transaction_made_between_the_read_and_the_claim() -> None:
    """A rehearsal or a second try by a controller that was alive until the claim: its first transaction is already over."""
    game = Play(make_order({"a": 2}, goal=Goal.REVERT))
    for node in game.nodes.values():
        leave(node, "r0-1", ReceiptState.REVERTED)
        leave(node, "r0-2")
    game.run(until=lambda s: s.nodes["a-1"].asked is Verb.READ)
    record = game.state.nodes["a-1"]
    for name in ("a-1", "a-2"):
        serial = game.state.nodes[name].serial
        answer = Answered(game.now, name, serial, Verb.READ, Trigger.REVERTED_ON_REQUEST, newer="r0-2")
        game.feed(answer)
    assert game.state.nodes["a-1"].asked is Verb.READ
    assert game.state.nodes["a-1"].serial == record.serial + 1
    end = game.go_on()
    assert {record.state for record in end.nodes.values()} == {NodeState.REVERTED}
    assert {node.files for node in game.nodes.values()} == {"old"}
    assert {ask.tx for ask in game.asked if ask.verb is Verb.REVERT} == {"r0-2"}


def test_a_node_that_always_names_another_transaction_is_asked_again_once() -> None:
    game = Play(make_order({"a": 1}, goal=Goal.REVERT))
    game.run(until=lambda s: s.nodes["a-1"].asked is Verb.READ)
    for number in (2, 3, 4):
        record = game.state.nodes["a-1"]
        if record.asked is Verb.READ:
            game.feed(
                Answered(game.now, "a-1", record.serial, Verb.READ, Trigger.REVERTED_ON_REQUEST, newer=f"r0-{number}")
            )
    assert game.state.nodes["a-1"].tx == "r0-2"
    assert game.state.nodes["a-1"].state is NodeState.REVERTED


def test_an_accepted_node_that_is_tried_again_counts_again() -> None:
    """An operator resumed after the halt that it caused; from then on its change counts for this run again."""
    budget = Budget(Scope.FLEET, frozenset(Cause), Share(count=2))
    limits = Limits(per_rack=Share(count=1), preflight=Share(percent=50.0))
    game = Play(make_order({"a": 4}, limits=limits, budgets=(budget,)))
    game.cut_off("a-1")
    game.sicken("a-2")
    assert game.run().ending is Ending.HALTED
    game.reconnect("a-1")
    game.crash_and_resume()
    assert game.state.nodes["a-1"].accepted
    game.go_on(until=lambda s: s.nodes["a-1"].state in (NodeState.APPLYING, NodeState.APPLIED, NodeState.CONFIRMED))
    assert not game.state.nodes["a-1"].accepted


def test_a_new_controller_keeps_its_distance_from_the_last_restarts_of_the_old_one() -> None:
    game = Play(make_order({"a": 6, "b": 6}, limits=Limits(per_rack=Share(count=6), pace=0.1)))
    game.run(until=lambda s: any(record.asked is Verb.APPLY for record in s.nodes.values()))
    before = game.now
    game.crash_and_resume()
    game.go_on(until=lambda _: sum(ask.verb is Verb.APPLY for ask in game.asked) > 1)
    assert game.now - before >= 10.0


def test_a_node_that_a_rollback_finds_armed_is_pending_recovery_until_it_is_reverted() -> None:
    game = Play(make_order({"a": 3}, goal=Goal.REVERT, limits=Limits(per_rack=Share(count=1))))
    for node in game.nodes.values():
        leave(node, "r0-1", ReceiptState.ARMED, guard=1000.0)
    game.run(until=lambda s: any(record.state is NodeState.REVERTING for record in s.nodes.values()))
    assert all(record.owed for record in game.state.nodes.values() if record.state is NodeState.REVERTING)
    assert not any(record.owed for record in game.go_on().nodes.values())
