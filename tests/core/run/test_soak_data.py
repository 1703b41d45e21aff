"""A soak that must have data: it ends when enough pods started since the change; without them in time the run halts."""

from __future__ import annotations

from dataclasses import replace

from rollout.core.model.playbook import SoakData
from rollout.core.presentation.summary import summarize
from rollout.core.presentation.summary_text import SummaryDocument, summary_lines
from rollout.core.presentation.waiting import waits_for
from rollout.core.run.events import Answered, ContinueAsked, Event, PauseAsked
from rollout.core.run.state import Ending, NodeState, Order, Phase, RunState, Verb
from rollout.core.text.documents import instant
from rollout.core.text.terminal import wall
from rollout.simulator.node import POD_EVERY, PULL_EVERY
from tests.documents import as_printed
from tests.orders import make_order
from tests.plays import Play

TWO_WAVES = (("canary", lambda name: name == "a-1"), ("rest", lambda _: True))


def order(data: SoakData, hold: frozenset[str] = frozenset()) -> Order:
    """One node, then three; the first wave needs data. A node of the simulator starts a pod every ten seconds."""
    made = make_order({"a": 4}, TWO_WAVES, hold=hold)
    return replace(made, waves=(replace(made.waves[0], data=data), *made.waves[1:]))


def soaks(state: RunState) -> bool:
    return state.phase is Phase.SOAKING


class Unseen(Play):
    """No pod start and no pull is known of any node."""

    def feed(self, heard: Event) -> None:
        super().feed(replace(heard, pod_starts=None, pulls_done=None) if isinstance(heard, Answered) else heard)


def test_a_wave_soaks_until_its_nodes_have_started_enough_pods() -> None:
    game = Play(order(SoakData(6)))
    end = game.run(until=lambda state: state.wave == 1)
    assert game.now - game.nodes["a-1"].changed_at >= 6 * POD_EVERY
    assert (end.nodes["a-1"].pod_starts or 0) >= 6
    assert game.go_on().ending is Ending.DONE


def test_too_few_pod_starts_in_time_halt_the_run_and_its_nodes_keep_their_change() -> None:
    game = Play(order(SoakData(1000, within=90.0)))
    end = game.run()
    assert end.halt is not None
    assert (end.ending, end.halt.reference) == (Ending.HALTED, "not-enough-data")
    assert "of 1,000 pod starts since the change after 90 s" in end.halt.message
    assert end.nodes["a-1"].state is NodeState.CONFIRMED
    assert {end.nodes[name].state for name in ("a-2", "a-3", "a-4")} == {NodeState.PENDING}


def test_an_unknown_number_is_no_data() -> None:
    end = Unseen(order(SoakData(1, within=90.0))).run()
    assert end.halt is not None
    assert end.halt.reference == "not-enough-data"
    assert "0 of 1 pod start, 1 node not known" in end.halt.message


def test_a_wave_soaks_until_its_nodes_have_pulled_enough_images() -> None:
    game = Play(order(SoakData(pulls=4)))
    end = game.run(until=lambda state: state.wave == 1)
    assert game.now - game.nodes["a-1"].changed_at >= 4 * PULL_EVERY
    assert (end.nodes["a-1"].pulls_done or 0) >= 4
    assert game.go_on().ending is Ending.DONE


def test_both_must_be_there_and_what_is_missing_is_named() -> None:
    end = Play(order(SoakData(2, within=90.0, pulls=1000))).run()
    assert end.halt is not None
    assert end.halt.reference == "not-enough-data"
    assert "of 1,000 pulls since the change" in end.halt.message
    assert "pod start" not in end.halt.message
    unseen = Unseen(order(SoakData(2, within=90.0, pulls=3))).run()
    assert unseen.halt is not None
    assert "0 of 2 pod starts, 1 node not known and 0 of 3 pulls, 1 node not known" in unseen.halt.message


def test_pulls_are_counted_only_while_the_wave_is_short_of_them() -> None:
    game = Play(order(SoakData(30, pulls=2)))
    game.run(until=lambda state: state.wave == 1)
    counts = [ask.count_pulls for ask in game.asked if ask.node == "a-1" and ask.verb is Verb.MEASURE]
    soak = counts[counts.index(True) :]
    assert soak == sorted(soak, reverse=True)
    assert False in soak
    assert not any(ask.count_pulls for ask in game.asked if ask.verb is not Verb.MEASURE)


def test_it_is_shown_what_a_soak_has_and_until_when_it_waits() -> None:
    game = Play(order(SoakData(1000, within=600.0, pulls=2)))
    state = game.run(until=lambda state: soaks(state) and (state.nodes["a-1"].pulls_done or 0) >= 3)
    starts, pulls = state.nodes["a-1"].pod_starts, state.nodes["a-1"].pulls_done
    has, until = f"{starts} of 1,000 pod starts, {pulls} of 2 pulls", wall(state.data_by)
    assert f"; {has}; it waits until {until}" in waits_for(state, game.now)
    assert f"  wave canary soaks: {has}; it waits until {until}" in summary_lines(summarize(state))
    game.feed(PauseAsked(game.now, "me", "", 1))
    assert f"  wave canary soaks: {has}" in summary_lines(summarize(game.state)), "a pause uses up no time"
    quiet = replace(game.state, paused=None, phase=Phase.RUNNING)
    assert not any("soaks" in line for line in summary_lines(summarize(quiet)))


def test_programs_get_the_numbers_too() -> None:
    game = Play(order(SoakData(1000, within=600.0)))
    state = game.run(until=lambda state: soaks(state) and (state.nodes["a-1"].pod_starts or 0) >= 3)
    found = as_printed(SummaryDocument(summarize(state)))["soak"]
    known = state.nodes["a-1"].pod_starts
    assert found["data"] == [{"kind": "podStarts", "known": known, "needed": 1000, "nodesUnknown": 0}]
    assert (found["wave"], found["until"]) == ("canary", instant(state.data_by))


def test_its_gates_are_checked_while_it_waits_for_data() -> None:
    game = Play(order(SoakData(1000, within=600.0)))
    game.run(until=lambda state: soaks(state) and state.nodes["a-1"].passes >= 5)
    game.nodes["a-1"].kubelet.sick_with = frozenset({"new"})
    end = game.go_on()
    assert end.nodes["a-1"].state in (NodeState.REVERTED, NodeState.FAILED)


def test_a_pause_does_not_use_up_the_time_for_data() -> None:
    game = Play(order(SoakData(1000, within=90.0)))
    game.run(until=soaks)
    game.feed(PauseAsked(game.now, "me", "", 1))
    began = game.now
    game.go_on(until=lambda state: state.now > began + 300.0)
    game.feed(ContinueAsked(game.now, "me", "", 2))
    continued = game.now
    end = game.go_on()
    assert end.halt is not None
    assert end.halt.reference == "not-enough-data"
    assert end.halt.at >= continued + 90.0


def test_a_new_controller_soaks_again_and_keeps_what_is_known() -> None:
    game = Play(order(SoakData(12, within=300.0)))
    game.run(until=lambda state: soaks(state) and (state.nodes["a-1"].pod_starts or 0) >= 3)
    game.crash_and_resume(10.0)
    assert (game.state.nodes["a-1"].pod_starts or 0) >= 3
    assert game.go_on().ending is Ending.DONE


def test_a_wave_that_holds_has_its_data_before_it_waits_for_an_operator() -> None:
    game = Play(order(SoakData(6), hold=frozenset({"canary"})))
    state = game.run(until=lambda state: state.paused is not None)
    assert (state.nodes["a-1"].pod_starts or 0) >= 6
