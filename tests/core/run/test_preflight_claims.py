"""A run says "nothing was touched" only if no node was changed in it, by any of its controllers."""

from __future__ import annotations

from rollout.core.run.state import Ending, NodeState
from tests.orders import make_order
from tests.plays import Play

CANARY = (("canary", lambda name: name == "a-1"), ("rest", lambda _: True))
MOST = ("a-5", "a-6", "a-7", "a-8", "a-9")


def test_a_resumed_run_does_not_claim_that_nothing_was_touched_after_a_guard_reverted_a_node() -> None:
    play = Play(make_order({"a": 10}, CANARY))
    play.run(until=lambda state: state.nodes["a-1"].state is NodeState.APPLIED)
    play.crash(away=120.0)
    play.cut_off(*MOST)
    play.resume()
    end = play.go_on()
    assert play.nodes["a-1"].transactions, "it was changed, and its guard reverted it"
    assert end.halt is not None
    assert (end.ending, end.halt.reference) == (Ending.HALTED, "budget-spent")
    assert "nothing was touched" not in end.halt.message


def test_a_run_that_no_node_was_changed_in_still_claims_it() -> None:
    play = Play(make_order({"a": 10}, CANARY))
    play.cut_off(*MOST)
    end = play.run()
    assert end.halt is not None
    assert (end.ending, end.halt.message.partition(":")[0]) == (Ending.PREFLIGHT, "nothing was touched")
    assert not any(node.transactions for node in play.nodes.values())
