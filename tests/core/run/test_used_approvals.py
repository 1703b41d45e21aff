"""Nodes that another run has changed since people approved the plan: each is left as it is, and the run goes on without it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rollout.core.model.approvals import USED
from rollout.core.model.playbook import ALL_CAUSES, Budget, Cause, Limits, Scope, Share
from rollout.core.run.commands import Ask
from rollout.core.run.events import Answered, Trigger
from rollout.core.run.state import Ending, NodeState, Verb
from tests.orders import make_order
from tests.plays import Play

CHANGED = "run r9 changed it since the plan was made"
SPARE = (Budget(Scope.FLEET, ALL_CAUSES, Share(count=4)),)


class Approved(Play):
    """A run with approvals. ``changed``: nodes that tell of a newer run whenever they have nothing of this one."""

    changed: frozenset[str] = frozenset()

    def said(self, ask: Ask, event: Answered) -> Answered:
        untouched = event.trigger is (Trigger.VOIDED if ask.void else Trigger.UNTOUCHED)
        if ask.node in self.changed and untouched and ask.verb is not Verb.CLEAN:
            return replace(event, trigger=Trigger.REFUSED, reference=USED, message=CHANGED)
        return event


def approved(guard: float = 120.0) -> Approved:
    limits = Limits(per_rack=Share(count=4), pace=10.0, preflight=Share(count=3))
    return Approved(replace(make_order({"a": 4, "b": 4}, budgets=SPARE, limits=limits), guard=guard))


@pytest.mark.parametrize("away", ["silent-at-the-opening", "before-its-apply"])
def test_a_resume_that_finds_a_newer_change_refuses_the_node_at_its_first_answer(away: str) -> None:
    """It answers: so it is not read until its guard must have fired, is not unreachable, and no recovery is pending."""
    play = approved(guard=1000.0)
    name = "b-4"
    if away == "before-its-apply":
        play.run(until=lambda s: s.nodes[name].asked is None)
        play.cut_off(name)
        play.go_on(until=lambda s: s.nodes[name].state is NodeState.APPLYING)
    else:
        play.cut_off(name)
        play.run(until=lambda s: s.nodes[name].state is NodeState.UNREACHABLE and s.nodes["a-1"].asked is Verb.APPLY)
    play.crash()
    play.reconnect(name)
    play.changed = frozenset({name})
    play.resume()
    end = play.go_on()
    record = end.nodes[name]
    assert (record.state, record.reference, record.message) == (NodeState.REFUSED, USED, CHANGED)
    assert (record.cause, record.owed, record.touched) == (Cause.FAILED, False, False)
    assert end.ending is Ending.DONE
    assert {each.state for other, each in end.nodes.items() if other != name} == {NodeState.CONFIRMED}
    assert end.now < play.order.guard
    assert play.replay() == end


def test_a_canary_with_used_approvals_has_shown_nothing() -> None:
    """A run of the same plan by another journal may have been rolled back for the harm that its canary showed."""
    limits = Limits(per_rack=Share(count=4), pace=10.0, preflight=Share(count=3))
    waves = (("canary", lambda name: name == "a-1"), ("rest", lambda _: True))
    play = Approved(make_order({"a": 4}, waves=waves, budgets=SPARE, limits=limits))
    play.changed = frozenset({"a-1"})
    end = play.run()
    assert end.halt is not None
    assert (end.ending, end.halt.reference) == (Ending.HALTED, "nothing-shown")
    assert "a-1: 1 node left unchanged (approvals used up), and no other node of the same kind" in end.halt.message
    assert not any(ask.verb is Verb.APPLY for ask in play.asked)
