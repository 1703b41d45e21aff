"""A run with a ConfigMap: written after its last wave, restored before the first revert, and asked for again after a death."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rollout.core.model.config_map import ConfigMapChange, ConfigMapOutcome
from rollout.core.model.playbook import RevertScope
from rollout.core.presentation.summary import exit_code, summarize
from rollout.core.presentation.summary_text import Afterwards, summary_lines
from rollout.core.run.commands import Command, PutConfigMap
from rollout.core.run.events import AbortAsked, InterruptAsked
from rollout.core.run.retries import resume_has_work
from rollout.core.run.state import Ending, Goal, NodeState, Phase, RunState
from tests.orders import make_order
from tests.plays import Play

CHANGE = ConfigMapChange("kube-system", "kubelet-config", "kubelet", "old", "new", "uid-1")
WAVES = (("canary", lambda n: n == "a-1"), ("rest", lambda _: True))


def play(goal: Goal = Goal.APPLY, change: ConfigMapChange = CHANGE, **words: object) -> Play:
    order = replace(make_order({"a": 3}, WAVES, goal=goal, **words), config_map=change)  # type: ignore[arg-type]
    if goal is Goal.REVERT:
        order = replace(order, transactions=dict.fromkeys(order.nodes, "r0-1"))
    return Play(order)


def shown(state: RunState) -> str:
    return "\n".join(summary_lines(summarize(state)))


def asked(state: RunState) -> bool:
    return state.config_map.asked


def test_it_is_written_after_the_last_soak_and_before_the_clean_up() -> None:
    game = play()
    state = game.run(until=asked)
    assert state.phase is Phase.CLOSING
    assert {record.state for record in state.nodes.values()} == {NodeState.CONFIRMED}
    state = game.go_on()
    assert (state.ending, exit_code(state), game.config_map) == (Ending.DONE, 0, "new")
    assert "ConfigMap kube-system/kubelet-config: written, and read back" in shown(state)
    assert not resume_has_work(state)


def test_a_run_that_halts_does_not_write_it() -> None:
    game = play()
    game.sicken("a-2", "a-3")
    state = game.run()
    assert (state.ending, game.config_map, state.config_map.sent) == (Ending.HALTED, "old", False)
    assert "ConfigMap kube-system/kubelet-config: not written: this run did not come to it" in shown(state)


def test_what_others_have_changed_is_reported_and_is_no_pending_recovery() -> None:
    game = play()
    game.config_map = "theirs"
    state = game.run()
    assert (state.ending, exit_code(state), game.config_map) == (Ending.DONE, 4, "theirs")
    assert "not written: others did [config-map-changed]" in shown(state)
    assert not state.owes_config_map


def test_without_an_answer_it_is_pending_and_the_next_controller_writes_it() -> None:
    game = play()
    game.config_map = None
    state = game.run()
    assert (state.ending, exit_code(state), state.owes_config_map) == (Ending.DONE, 4, True)
    assert "pending recovery (ConfigMap kube-system/kubelet-config is still to be written)" in shown(state)
    assert "rollout resume --recover-only r1" in shown(state)
    game.config_map = "old"
    game.crash_and_resume()
    state = game.go_on()
    assert (exit_code(state), game.config_map) == (0, "new")


@pytest.mark.parametrize("goal", Goal)
def test_a_controller_that_dies_after_it_has_asked_leaves_it_to_the_next_one(goal: Goal) -> None:
    """Whether the write was done is not in the journal: the next one asks again, and what it reads counts."""
    game = play(goal)
    state = game.run(until=asked)
    assert (game.config_map, state.config_map.outcome) == ("new", None)
    game.crash_and_resume()
    state = game.go_on()
    assert (state.ending, state.config_map.outcome) == (Ending.DONE, ConfigMapOutcome.WRITTEN)


def resumed_after_the_request(game: Play) -> None:
    """The controller died after it had asked. The next one reads the nodes, and has not asked yet."""
    game.run(until=asked)
    game.crash_and_resume()


def abort(game: Play, revert: RevertScope) -> RunState:
    game.feed(AbortAsked(game.now, "me", "bad", 1, revert))
    return game.go_on()


@pytest.mark.parametrize("revert", RevertScope)
def test_a_run_that_halts_after_it_has_asked_restores_it(revert: RevertScope) -> None:
    """It is written by a run that ends as done, and by no other: a node that joins gets no setting that the run has reverted."""
    game = play()
    resumed_after_the_request(game)
    state = abort(game, revert)
    assert (state.ending, exit_code(state), game.config_map) == (Ending.HALTED, 3, "old")
    text = shown(state)
    assert "ConfigMap kube-system/kubelet-config: restored, and read back" in text
    assert "pending recovery (ConfigMap" not in text
    assert summarize(state).can_roll_back is (revert is not RevertScope.RUN)
    assert game.replay() == state


def test_it_is_restored_before_healthy_nodes_are_reverted() -> None:
    game = play()
    resumed_after_the_request(game)
    game.feed(AbortAsked(game.now, "me", "bad", 1, RevertScope.RUN))
    state = game.go_on(until=asked)
    assert {record.state for record in state.nodes.values()} == {NodeState.CONFIRMED}
    state = game.go_on(until=lambda state: not asked(state))
    assert game.config_map == "old"
    assert NodeState.REVERTED not in {record.state for record in state.nodes.values()}
    assert {record.state for record in game.go_on().nodes.values()} == {NodeState.REVERTED}


def test_a_controller_that_dies_while_it_restores_it_leaves_that_to_the_next_one() -> None:
    game = play()
    resumed_after_the_request(game)
    game.config_map = None
    game.feed(AbortAsked(game.now, "me", "bad", 1, RevertScope.RUN))
    game.go_on(until=asked)
    game.config_map = "new"
    game.crash_and_resume()
    state = game.go_on()
    assert (state.ending, game.config_map) == (Ending.HALTED, "old")


def test_without_an_answer_a_halted_run_reverts_its_nodes_and_a_rollback_restores_it() -> None:
    game = play()
    resumed_after_the_request(game)
    game.config_map = None
    state = abort(game, RevertScope.RUN)
    assert {record.state for record in state.nodes.values()} == {NodeState.REVERTED}
    text = shown(state)
    assert "pending recovery (ConfigMap kube-system/kubelet-config is still to be restored): no answer [away]" in text
    assert "once the API server answers: rollout rollback r1" in text
    assert summarize(state).can_roll_back
    assert "once the API server" not in "\n".join(summary_lines(summarize(state), Afterwards(followed_by="r2")))


def test_what_others_have_changed_a_halted_run_leaves_to_them() -> None:
    game = play()
    resumed_after_the_request(game)
    game.config_map = "theirs"
    state = abort(game, RevertScope.RUN)
    assert (game.config_map, state.owes_config_map) == ("theirs", False)
    assert "ConfigMap kube-system/kubelet-config: not restored: others did [config-map-changed]" in shown(state)


def test_a_resume_of_the_halted_run_writes_it_after_the_last_soak() -> None:
    game = play()
    resumed_after_the_request(game)
    abort(game, RevertScope.NODE)
    game.crash_and_resume()
    state = game.go_on()
    assert (state.ending, exit_code(state), game.config_map) == (Ending.DONE, 0, "new")


def test_of_an_interrupted_run_it_is_not_known_and_both_ways_are_named() -> None:
    """Its nodes keep their change, and nobody has decided against it."""
    game = play()
    resumed_after_the_request(game)
    game.feed(InterruptAsked(game.now))
    state = game.go_on()
    assert (state.ending, game.config_map) == (Ending.INTERRUPTED, "new")
    text = shown(state)
    assert "ConfigMap kube-system/kubelet-config may have the new text" in text
    assert "to write it: rollout resume r1" in text
    assert "to restore it: rollout rollback r1" in text


def test_an_answer_that_is_outstanding_is_said_so_whoever_looks() -> None:
    assert "ConfigMap kube-system/kubelet-config: asked for the new text, no answer yet" in shown(
        play().run(until=asked)
    )
    back = play(Goal.REVERT, CHANGE.undone).run(until=asked)
    assert "ConfigMap kube-system/kubelet-config: asked for the old text, no answer yet" in shown(back)


def test_a_rollback_restores_it_before_it_reverts_a_node() -> None:
    game = play(Goal.REVERT, CHANGE.undone)
    game.config_map = "new"
    state = game.run(until=asked)
    assert state.phase is Phase.OPENING
    assert NodeState.REVERTING not in {record.state for record in state.nodes.values()}
    state = game.go_on()
    assert (state.ending, game.config_map) == (Ending.DONE, "old")
    assert "ConfigMap kube-system/kubelet-config: restored, and read back" in shown(state)


def test_a_rollback_without_the_api_server_reverts_the_nodes_and_owes_it() -> None:
    game = play(Goal.REVERT, CHANGE.undone)
    game.config_map = None
    state = game.run()
    assert (state.ending, exit_code(state), state.owes_config_map) == (Ending.DONE, 4, True)
    assert "is still to be restored" in shown(state)
    game.config_map = "new"
    game.crash_and_resume()
    state = game.go_on()
    assert (exit_code(state), game.config_map) == (0, "old")


def test_a_rollback_of_nothing_else_restores_it_too() -> None:
    """Its nodes were reverted in an emergency, which asks no API server."""
    order = replace(
        make_order({"a": 3}, goal=Goal.REVERT), config_map=CHANGE.undone, nodes={}, waves=make_order({"a": 0}).waves
    )
    game = Play(order)
    game.config_map = "new"
    state = game.run()
    assert (state.ending, exit_code(state), game.config_map) == (Ending.DONE, 0, "old")


def test_only_a_rollback_makes_writes_of_earlier_controllers_fail() -> None:
    found: list[Command] = []

    class Told(Play):
        def begin(self, command: Command, heard: object) -> None:
            found.append(command)
            super().begin(command, heard)  # type: ignore[arg-type]

    for goal in Goal:
        Told(replace(play(goal).order)).run()
    assert [each.void for each in found if isinstance(each, PutConfigMap)] == [False, True]
