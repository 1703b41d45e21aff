"""Which run may be resumed, and what is checked again under the lease: others may act during the confirmation."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from rollout.adapters.journal import SqlJournal
from rollout.app.following import last_that_acted
from rollout.app.runs import Tools, begin, go_on, highest_counter, with_pending_recovery
from rollout.core.model.playbook import Budget, Cause, Limits, Scope, Share
from rollout.core.run.state import Ending, NodeState, RunState
from rollout.errors import StateError
from rollout.simulator.machine import OLD
from tests.app.test_driver import Log, unasked
from tests.orders import make_order

FORGIVING = (Budget(Scope.FLEET, frozenset(Cause), Share(count=5)),)


@dataclass
class Desk:
    """Runs on the same simulated nodes, in a real journal."""

    journal: SqlJournal
    order = make_order({"a": 6}, budgets=FORGIVING, limits=Limits(per_rack=Share(count=3)))

    def __post_init__(self) -> None:
        self.log = Log(self.order)
        self.play = self.log.play

    def tools(self) -> Tools:
        return Tools(
            journal=self.journal,
            engine=self.log,
            nodes=None,  # type: ignore[arg-type]  # simulated nodes are not reached by name
            local=None,  # type: ignore[arg-type]
            clock=self.log,
            observers=(),
            interrupted=lambda: False,
            who="me@here",
            reason="",
            new_run_id=lambda: "r1",
        )

    def begin(self, run: str) -> RunState:
        """A plan changes what it finds on its nodes."""
        for node in self.play.nodes.values():
            node.files = OLD
        self.play.carry_out(replace(self.order, run=run))
        counter = highest_counter(self.journal, self.order.cluster) + 1
        return begin(self.play.order, counter, b"", unasked, self.tools())

    def go_on(self, run: str) -> RunState:
        self.play.carry_out(replace(self.order, run=run))
        return go_on(self.play.order, unasked, self.tools())

    def with_pending_recovery(self, run: str) -> RunState:
        """A run that ended with a pending recovery of one node that answers again."""
        self.play.cut_off("a-3")
        end = self.begin(run)
        assert (end.ending, end.nodes["a-3"].owed) == (Ending.DONE, True)
        self.play.reconnect("a-3")
        return end


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(SqlJournal(tmp_path))


def test_a_request_that_was_not_handled_before_the_end_does_not_end_a_recovery(desk: Desk) -> None:
    """The sender was told that it was too late, or not handled."""
    end = desk.with_pending_recovery("r1")
    desk.journal.ask("r1", "abort", "anna@laptop", "slow pulls", "run")
    caught_up = desk.go_on("r1")
    assert caught_up.ending is Ending.DONE
    assert {record.state for record in caught_up.nodes.values()} == {NodeState.CONFIRMED}
    assert caught_up.heard == end.heard
    assert desk.journal.requests("r1", 0) == ()


def test_a_run_that_was_superseded_during_the_confirmation_is_not_resumed(desk: Desk) -> None:
    desk.with_pending_recovery("r1")
    with_pending_recovery(desk.journal, "r1")
    desk.begin("r2")
    before = desk.journal.events("r1")
    with pytest.raises(StateError) as raised:
        desk.go_on("r1")
    assert raised.value.reference == "superseded"
    assert desk.journal.events("r1") == before
    assert desk.journal.holder("test") is None


@pytest.mark.parametrize("acts", [False, True])
def test_only_a_run_that_touched_nothing_is_skipped(desk: Desk, acts: bool) -> None:
    """A run of another journal takes over: at once, or after the first node was changed."""
    desk.with_pending_recovery("r1")

    def take_over(*_: object) -> None:
        desk.play.claim_for_another(*desk.play.nodes)

    if acts:
        for node in desk.play.nodes.values():
            node.restarted = take_over
    else:
        take_over()
    assert desk.begin("r2").ending is Ending.CLAIMED
    assert last_that_acted(desk.journal, "test", or_else="r1").order.run == ("r2" if acts else "r1")
    if acts:
        with pytest.raises(StateError, match="followed by r2"):
            with_pending_recovery(desk.journal, "r1")
    else:
        assert with_pending_recovery(desk.journal, "r1").order.run == "r1"
