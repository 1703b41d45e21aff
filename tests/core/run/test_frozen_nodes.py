"""Nodes that an operator froze: each is left as it is without a charge, but a canary that was frozen has shown nothing."""

from __future__ import annotations

from collections.abc import Callable

from rollout.core.model.freeze import FROZEN
from rollout.core.model.playbook import ALL_CAUSES, Budget, Limits, Scope, Share
from rollout.core.run.commands import Ask, Command
from rollout.core.run.events import Answered, Event, Trigger
from rollout.core.run.state import Ending, NodeState, Verb
from tests.orders import make_order
from tests.plays import Play

SPARE = (Budget(Scope.FLEET, ALL_CAUSES, Share(count=4)),)


class UnderFreeze(Play):
    """``frozen``: nodes that refuse their apply."""

    frozen: frozenset[str] = frozenset()

    def begin(self, command: Command, heard: Callable[[Event], None]) -> None:
        if isinstance(command, Ask) and command.verb is Verb.APPLY and command.node in self.frozen:
            self.timeline.after(0.5, lambda: heard(_refused(self.now, command)))
        else:
            super().begin(command, heard)


def _refused(at: float, ask: Ask) -> Answered:
    return Answered(at, ask.node, ask.serial, ask.verb, Trigger.REFUSED, FROZEN, "frozen by ann@desk: incident 4711")


def play(*canaries: str) -> UnderFreeze:
    limits = Limits(per_rack=Share(count=4), pace=10.0, preflight=Share(count=3))
    waves = (("canary", lambda name: name in canaries), ("rest", lambda _: True))
    return UnderFreeze(make_order({"a": 4}, waves=waves, budgets=SPARE, limits=limits))


def test_a_frozen_canary_has_shown_nothing_and_a_resume_after_the_unfreeze_changes_it_first() -> None:
    """A freeze of minutes, lifted before the next wave, must not skip the only test of the change."""
    game = play("a-1")
    game.frozen = frozenset({"a-1"})
    end = game.run()
    assert end.halt is not None
    assert (end.ending, end.halt.reference) == (Ending.HALTED, "nothing-shown")
    assert "a-1: 1 node left unchanged (frozen), and no other node of the same kind was changed" in end.halt.message
    assert not any(ask.verb is Verb.APPLY for ask in game.asked)
    assert end.nodes["a-1"].cause is None
    game.frozen = frozenset()
    game.resume()
    end = game.go_on()
    assert end.ending is Ending.DONE
    assert {record.state for record in end.nodes.values()} == {NodeState.CONFIRMED}
    assert next(ask.node for ask in game.asked if ask.verb is Verb.APPLY) == "a-1"
    assert game.replay() == end


def test_beside_a_canary_that_shows_the_change_a_frozen_one_does_not_halt_the_run() -> None:
    game = play("a-1", "a-2")
    game.frozen = frozenset({"a-1"})
    end = game.run()
    assert end.ending is Ending.DONE
    assert end.nodes["a-1"].state is NodeState.REFUSED
    assert {end.nodes[name].state for name in ("a-2", "a-3", "a-4")} == {NodeState.CONFIRMED}
