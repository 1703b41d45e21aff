"""A resume goes on with nodes that have not started or did not fail. A node that failed is planned again, repaired or not."""

from __future__ import annotations

from random import Random

import pytest

from rollout.core.presentation.pages.sections import next_steps
from rollout.core.presentation.summary import summarize
from rollout.core.presentation.summary_text import Afterwards, summary_lines
from rollout.core.run.retries import need_a_plan
from rollout.core.run.state import Ending, NodeState, Phase
from tests.orders import make_order
from tests.plays import SICK_WITH_NEW, Play

RACKS = {"a": 6, "b": 6}


def halted(seed: int) -> Play:
    """A run with one to three unhealthy nodes, which halts in most cases. These nodes are repaired afterwards."""
    dice = Random(seed)  # noqa: S311 - reproducible
    play = Play(make_order(RACKS), dice)
    sick = dice.sample(sorted(play.nodes), dice.randint(1, 3))
    play.sicken(*sick, with_files=SICK_WITH_NEW)
    play.run()
    for name in sick:
        play.nodes[name].kubelet.sick_with = frozenset()
    return play


@pytest.mark.parametrize("seed", range(12))
def test_what_needs_a_plan_is_what_a_resume_does_not_change(seed: int) -> None:
    play = halted(seed)
    for _ in range(4):
        named = need_a_plan(play.state)
        assert named, "a node failed"
        if play.state.ending is not Ending.HALTED:
            break
        play.crash_and_resume()
        play.go_on()
        after = play.state.nodes
        assert all(after[name].state is not NodeState.CONFIRMED for name in named), "it failed: a resume leaves it"
    assert play.state.ending is Ending.DONE
    left = need_a_plan(play.state)
    others = set(play.nodes) - set(left)
    assert {play.state.nodes[name].state for name in others} == {NodeState.CONFIRMED}, "all others have the change"
    assert set(named) <= set(left)


def test_the_command_is_printed_and_no_other_says_that_a_resume_retries_them() -> None:
    play = halted(1)
    assert play.state.phase is Phase.ENDED
    summary = summarize(play.state)
    command = f"rollout plan --cluster test --playbook small --limit {_quoted(summary.need_a_plan)}"
    after = Afterwards(playbook="small")
    same = "with the same --set options (if any)"
    assert f"  To change them once they are repaired, {same}: {command}" in list(summary_lines(summary, after))
    steps = dict(next_steps(play.state, after))
    assert steps[command] == f"plan the failed, reverted and refused nodes again, once they are repaired, {same}"
    assert command.replace("small", "NAME") in dict(next_steps(play.state)), "its playbook is not known"


def _quoted(nodes: str) -> str:
    return f"'{nodes}'" if "[" in nodes else nodes
