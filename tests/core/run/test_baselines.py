"""A baseline that cannot be taken: the node is queued again, and in the end left alone without a charge."""

from __future__ import annotations

from rollout.core.model.playbook import Budget, Cause, Limits, Scope, Share
from rollout.core.model.verdict import Verdict
from rollout.core.presentation.summary import exit_code, summarize
from rollout.core.presentation.summary_text import summary_lines
from rollout.core.run.postponed import ASK_AGAIN, BASELINE_WITHIN
from rollout.core.run.state import Ending, NodeState, PostponedFor, RunState, Verb
from rollout.simulator.fleet import Spell
from rollout.simulator.machine import OLD
from tests.orders import make_order
from tests.plays import Play

EVER = float("inf")
TWO_WAVES = (("canary", lambda name: name == "a-1"), ("rest", lambda _: True))
ONE_MAY_GO_WRONG = (Budget(Scope.FLEET, frozenset(Cause), Share(count=1)),)


def play(unseen: tuple[str, ...], until: float = EVER) -> Play:
    """Eight nodes in two waves; for some the API server gives no baseline until then. One charge halts the run."""
    limits = Limits(per_rack=Share(percent=50.0))
    game = Play(make_order({"a": 8}, TWO_WAVES, limits=limits, budgets=ONE_MAY_GO_WRONG))
    game.fleet.spells += [Spell(name, Verdict.UNKNOWN, 0.0, until, before=True) for name in unseen]
    return game


def applies(game: Play, node: str) -> int:
    return sum(ask.verb is Verb.APPLY and ask.node == node for ask in game.asked)


def test_an_api_server_that_restarts_costs_nothing_but_time() -> None:
    game = play(("a-3", "a-4"), until=60.0)
    end = game.run()
    assert (end.ending, exit_code(end)) == (Ending.DONE, 0)
    assert all(record.state is NodeState.CONFIRMED and record.postponed is None for record in end.nodes.values())
    assert applies(game, "a-3") > 1


def test_a_node_without_a_baseline_is_left_alone_without_a_charge() -> None:
    game = play(("a-3", "a-4"))
    end = game.run()
    assert (end.ending, exit_code(end)) == (Ending.DONE, 4)
    for name in ("a-3", "a-4"):
        record = end.nodes[name]
        assert (record.state, record.reference, record.cause) == (NodeState.REFUSED, "baseline-unknown", None)
        assert (game.nodes[name].files, game.nodes[name].transactions) == (OLD, {})
        assert 1 < applies(game, name) <= BASELINE_WITHIN / ASK_AGAIN[PostponedFor.BASELINE] + 1
    assert len(end.started) == 6, "no restart is counted that was none"


def test_a_resume_tries_them_again() -> None:
    game = play(("a-3",), until=BASELINE_WITHIN * 3)
    end = game.run()
    assert end.nodes["a-3"].state is NodeState.REFUSED
    game.stand_still(BASELINE_WITHIN * 3)
    game.crash_and_resume()
    end = game.go_on()
    assert (end.nodes["a-3"].state, exit_code(end)) == (NodeState.CONFIRMED, 0)


def test_a_kind_of_which_no_node_could_be_changed_halts_the_run() -> None:
    end = play(("a-1",)).run()
    assert end.halt is not None
    assert (end.halt.reference, "left unchanged (no baseline)" in end.halt.message) == ("nothing-shown", True)


def test_the_wait_is_shown() -> None:
    def waits(state: RunState) -> bool:
        return state.nodes["a-3"].postponed is not None and state.nodes["a-3"].state is NodeState.PENDING

    said = " ".join(summary_lines(summarize(play(("a-3",)).run(until=waits))))
    assert "waits: 1 node (a-3): no baseline from the API server; asked again for" in said
