"""Nodes that another journal's run has reverted have shown nothing: a resume halts before it changes more nodes of their kind."""

from __future__ import annotations

from random import Random

import pytest

from rollout.core.model.playbook import ALL_CAUSES, Budget, Limits, Scope, Share
from rollout.core.model.snapshot import ReceiptState, Token
from rollout.core.run.state import Ending, NodeState, Verb
from tests.orders import make_order
from tests.plays import FILES_WITH, Play

SPARE = (Budget(Scope.FLEET, ALL_CAUSES, Share(count=20)),)
CANARY_THEN_ALL = (
    ("canary", lambda n: n.endswith("-1")),
    ("half", lambda n: n.endswith("-2")),
    ("rest", lambda _: True),
)


def play(*, kinds: int = 1, budgets: tuple[Budget, ...] = SPARE) -> Play:
    limits = Limits(per_rack=Share(count=4), pace=10.0, preflight=Share(count=8))
    kind_of = (lambda name: name[0]) if kinds > 1 else (lambda _: "g")
    return Play(make_order({"a": 4, "b": 4}, waves=CANARY_THEN_ALL, budgets=budgets, limits=limits, kind_of=kind_of))


def reverted_by_an_emergency(game: Play, *names: str) -> None:
    """Another machine has reverted the change of these nodes, and has claimed all nodes of the run meanwhile."""
    counter = max(game.state.counter, game.state.highest) + 3
    for name, node in game.nodes.items():
        node.token = Token(counter, "r9", live=False)
        if name in names:
            found = node.transactions[f"{game.order.run}-1"]
            found.state, found.cause = ReceiptState.REVERTED, "asked"
            node.files = FILES_WITH[ReceiptState.REVERTED]


def until_fenced(game: Play, *names: str) -> None:
    """The run dies with its canaries confirmed; an emergency reverts some of them; the first resume finds the other run."""
    game.run(until=lambda s: s.wave == 1 and all(s.nodes[name].state is NodeState.CONFIRMED for name in ("a-1", "b-1")))
    game.crash()
    reverted_by_an_emergency(game, *names)
    game.resume()
    assert game.go_on().ending is Ending.CLAIMED


@pytest.mark.parametrize("budget", [0, 20])
def test_a_second_resume_halts_before_it_changes_what_no_canary_has_shown(budget: int) -> None:
    game = play(budgets=(Budget(Scope.FLEET, ALL_CAUSES, Share(count=budget)),))
    until_fenced(game, "a-1", "b-1")
    for _ in range(3):
        asked = len(game.asked)
        game.resume()
        end = game.go_on()
        assert end.halt is not None
        assert (end.ending, end.halt.reference) == (Ending.HALTED, "nothing-shown")
        assert "a-1,b-1: " in end.halt.message
        assert "2 nodes reverted by another run; no node of that kind has the change" in end.halt.message
        assert not any(ask.verb is Verb.APPLY for ask in game.asked[asked:])
        assert game.replay() == end


def test_a_canary_of_the_same_kind_that_still_has_the_change_has_shown_it() -> None:
    game = play()
    until_fenced(game, "a-1")
    game.resume()
    end = game.go_on()
    assert end.ending is Ending.DONE
    assert end.nodes["a-1"].reference == "taken-back-by-others"
    assert {record.state for name, record in end.nodes.items() if name != "a-1"} == {NodeState.CONFIRMED}


def test_canaries_without_the_receipt_of_their_change_prove_nothing_any_more() -> None:
    """Another machine ran ``forget`` on them: they may have the change, and nothing says so."""
    game = play()
    game.run(until=lambda s: s.wave == 1 and all(s.nodes[n].state is NodeState.CONFIRMED for n in ("a-1", "b-1")))
    game.crash()
    reverted_by_an_emergency(game)
    for name in ("a-1", "b-1"):
        game.nodes[name].transactions.clear()
    game.resume()
    assert game.go_on().ending is Ending.CLAIMED
    for _ in range(2):
        asked = len(game.asked)
        game.resume()
        end = game.go_on()
        assert end.halt is not None
        assert (end.ending, end.halt.reference) == (Ending.HALTED, "nothing-shown")
        assert "a-1,b-1: 2 nodes without the receipt of the change; no node of that kind" in end.halt.message
        assert (end.nodes["a-1"].state, end.nodes["a-1"].reference) == (NodeState.FAILED, "no-transaction")
        assert "no longer has the receipt" in end.nodes["a-1"].message
        assert not any(ask.verb is Verb.APPLY for ask in game.asked[asked:])


@pytest.mark.drawn(8)
@pytest.mark.parametrize("seed", range(200))
def test_no_kind_is_changed_further_without_a_node_that_shows_the_change(seed: int) -> None:
    """At a drawn moment the controller dies, and an emergency reverts drawn nodes; then come up to three resumes."""
    dice = Random(seed)  # noqa: S311 - reproducible
    game = play(kinds=dice.choice((1, 2)))
    steps = dice.randint(20, 150)
    game.run(until=lambda _: len(game.journal) >= steps)
    game.crash()
    confirmed = [name for name, record in game.state.nodes.items() if record.state is NodeState.CONFIRMED]
    reverted_by_an_emergency(game, *dice.sample(confirmed, dice.randint(0, len(confirmed))))
    for _ in range(3):
        if game.state.ending is Ending.DONE:
            break
        game.asked.clear()
        game.resume()
        game.go_on(until=lambda _: any(ask.verb is Verb.APPLY for ask in game.asked))
        orders = game.order.nodes
        for ask in game.asked:
            kind, wave = orders[ask.node].kind, orders[ask.node].wave
            if ask.verb is Verb.APPLY and wave > 0:
                shown = [
                    name
                    for name, record in game.state.nodes.items()
                    if orders[name].kind == kind and orders[name].wave < wave and record.state is NodeState.CONFIRMED
                ]
                assert shown, f"{ask.node} is changed, and nothing of its kind was"
        game.go_on()
