"""Whatever a node answers, the run has a move for it; approvals that are used up only keep nodes from being changed."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rollout.app.node_access import NodeAccess
from rollout.app.ports import Target
from rollout.core.model.approvals import USED
from rollout.core.model.playbook import Cause
from rollout.core.model.report import RemoteAnswer
from rollout.core.model.snapshot import ReceiptState
from rollout.core.run.commands import Ask
from rollout.core.run.events import FENCES
from rollout.core.run.machine import opening, step
from rollout.core.run.state import NodeRecord, NodeState, Phase, Verb, altered
from rollout.kubelet.explained.references import references
from tests.app.agents import answer
from tests.app.test_node_worker import Outside, worker
from tests.orders import in_state, make_order

ORDER = make_order({"n": 4}, budgets=())
NODE, TX = "n-1", "r1-1"
ASKED = {
    NodeState.PENDING: Verb.READ,
    NodeState.UNKNOWN: Verb.READ,
    NodeState.CONFIRMED: Verb.READ,
    NodeState.APPLIED: Verb.CONFIRM,
    NodeState.REVERTING: Verb.REVERT,
}
"""What is outstanding in each state in which an answer with the state of a transaction may come."""

REFUSALS = sorted(references().keys() - {USED})  # which is the controller's

NEWER = "history tx=r9-1 run=r9 counter=4 seq=2 state=confirmed cause=- left=0 finished=1 kubelet=-"


@st.composite
def answers(draw: st.DrawFn) -> list[str]:
    """The lines of an agent: a refusal or not, its token, whether it voided the transaction, receipts of ours and of others."""
    return [
        *draw(st.lists(st.sampled_from(REFUSALS).map(lambda each: f"refused {each} said by a test"), max_size=1)),
        *draw(st.lists(st.sampled_from(["token 5 r1 live", "token 7 r9 live", "token 99999999999 r9 live"]), max_size=1)),
        *draw(st.lists(st.just(f"voided {TX}"), max_size=1)),
        *draw(st.lists(RECEIPTS, max_size=1)),
        *draw(st.lists(st.just(NEWER), max_size=1)),
    ]  # fmt: skip


RECEIPTS = st.builds(
    lambda state, cause, finished: (
        f"receipt tx={TX} run=r1 counter=3 seq=1 state={state} cause={cause} left=20 finished={finished} kubelet=-"
    ),
    st.sampled_from([each.value for each in ReceiptState]),
    st.sampled_from(["-", "guard", "boot", "health", "asked"]),
    st.integers(0, 1),
)


@st.composite
def records(draw: st.DrawFn) -> NodeRecord:
    state = draw(st.sampled_from(sorted(ASKED)))
    under_way = state is not NodeState.PENDING
    return in_state(
        state, asked=ASKED[state], serial=9, touched=under_way, orphaned=draw(st.booleans()),
        owed=under_way and draw(st.booleans()), to_revert=under_way and draw(st.booleans()),
        cause=draw(st.sampled_from([None, Cause.UNREACHABLE])) if under_way else None,
    )  # fmt: skip


def after(record: NodeRecord, said: RemoteAnswer, *, approved: bool) -> NodeRecord:
    """The node's record after this answer to what it was asked."""
    state, _ = opening(ORDER, 5, 0.0)
    state = altered(state, {"phase": Phase.RUNNING, "nodes": {**state.nodes, NODE: record}})
    asked = Ask(NODE, ASKED[record.state], 9, TX, 5, void=record.state is NodeState.UNKNOWN)
    does = worker(Outside([said] * 2))
    does.access = NodeAccess("program", {NODE: Target(NODE, NODE)}, {NODE: False})
    does.approved = approved
    return step(state, does(asked))[0].nodes[NODE]


@given(records(), answers())
def test_used_approvals_keep_a_node_from_its_change_and_alter_nothing_else(
    record: NodeRecord, lines: list[str]
) -> None:
    check_used_approvals(record, lines)


@pytest.mark.parametrize("voided", [(), (f"voided {TX}",)], ids=["", "voided"])
@pytest.mark.parametrize("state", ASKED)
def test_a_newer_change_on_a_node_without_ours_means_the_right_thing_in_every_state(
    state: NodeState, voided: tuple[str, ...]
) -> None:
    check_used_approvals(in_state(state, asked=ASKED[state], serial=9), [*voided, NEWER])


def check_used_approvals(record: NodeRecord, lines: list[str]) -> None:
    verb = ASKED[record.state]
    said = answer("status" if verb is Verb.READ else verb.value, *lines)
    without, found = after(record, said, approved=False), after(record, said, approved=True)
    if found.state is NodeState.REFUSED and found.reference == USED:
        assert without.state is NodeState.PENDING
        assert (found.cause, found.owed, found.touched, found.asked) == (Cause.FAILED, False, False, None)
        return
    assert (found.state, found.cause, found.owed, found.asked) == (
        without.state,
        without.cause,
        without.owed,
        without.asked,
    )


@given(records().filter(lambda each: each.state is NodeState.UNKNOWN), answers())
def test_a_node_that_tells_what_it_has_is_unknown_no_longer(record: NodeRecord, lines: list[str]) -> None:
    """Else it would be read until its guard must long have fired, and then be unreachable, although it answers."""
    says_all = not any(line.startswith("refused") or "99999999999" in line for line in lines)
    busy = any("state=reverting" in line or ("state=armed" in line and "finished=0" in line) for line in lines)
    has = any(line.startswith(("voided", "receipt")) for line in lines)
    for approved in (False, True):
        found = after(record, answer("status", *lines), approved=approved)
        if says_all and has and not busy:
            assert found.state is not NodeState.UNKNOWN, (found, approved)
        assert found.reference in FENCES or found.state is not NodeState.UNREACHABLE
