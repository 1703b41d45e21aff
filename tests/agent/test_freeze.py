"""A frozen node refuses every apply, of any controller, until an unfreeze with a newer token. All else goes on."""

from __future__ import annotations

import pytest

from rollout.core.model.freeze import NodeFreeze, of_fact
from rollout.core.model.report import Outcome
from rollout.core.model.snapshot import ReceiptState, Snapshot, Token
from rollout.kubelet.agent import agent_call
from rollout.kubelet.agent.agent_call import Claim
from tests.agent.instrument import instrumented, moments
from tests.agent.node import NEW, OLD, PROGRAM, Node, killed, order
from tests.sampling import sample

pytestmark = pytest.mark.process

MARK = "/var/lib/rollout/freeze"
FROZEN = NodeFreeze(2, "f-1", "ann@desk", "year end")


def test_no_controller_applies_until_the_unfreeze(node: Node) -> None:
    assert node.freeze().frozen == FROZEN
    for refused in (node.apply(), node.apply(order("t9", "run-9", 9))):
        assert (refused.outcome, refused.reference) == (Outcome.REFUSED, "frozen")
        assert refused.message == "frozen by ann@desk: year end (token 2 of f-1)"
    assert (node.files(), node.strays()) == (OLD, [])
    assert node.unfreeze().frozen is None
    assert node.apply(order("t9", "run-9", 9)).healthy
    assert node.files() == NEW


def test_status_and_snapshot_report_it_and_change_nothing(node: Node) -> None:
    node.freeze()
    before = node.tree()
    read = node.snapshot()
    assert isinstance(read, Snapshot)
    assert of_fact(read.facts) == node.status().frozen == FROZEN
    assert node.tree() == before


@pytest.mark.telling
def test_what_began_before_ends_as_usual(node: Node) -> None:
    """Confirm, revert, guard and cleanup pass it, and the freeze survives them."""
    for ending in (node.confirm, node.revert, lambda: node.trigger("guard")):
        assert node.apply().healthy
        node.freeze()
        assert node.apply().outcome is Outcome.DONE, "a repeated apply reports what it did"
        ending()
        assert node.cleanup().outcome is Outcome.DONE
        assert node.status().frozen == FROZEN
        if node.receipt()["state"] == ReceiptState.CONFIRMED:
            assert node.files() == NEW
            assert node.revert(counter=2, run="run-2").receipt is not None, "a later rollback passes it, too"
            assert node.cleanup("run-2", 2).outcome is Outcome.DONE
        assert node.files() == OLD
        node.unfreeze()
        node.at(MARK).unlink()
        assert node.forget("run-3", 3).outcome is Outcome.DONE


def test_the_boot_unit_reverts_a_frozen_node(node: Node) -> None:
    node.apply()
    node.freeze()
    node.reboot()
    assert node.trigger("boot") == 0
    assert node.files() == OLD
    assert node.status().frozen == FROZEN


def test_it_fences_no_run_and_takes_no_claim(node: Node) -> None:
    """A run in progress ends its nodes in flight with its own, older token."""
    node.apply()
    assert node.freeze(7).outcome is Outcome.DONE
    assert node.status().token == Token(1, "run-1", live=True)
    assert node.confirm().outcome is Outcome.DONE


def test_an_older_token_is_fenced(node: Node) -> None:
    node.status(claim=Claim(5, "run-5"))
    assert node.freeze(4).reference == "fenced"
    assert node.freeze(5).outcome is Outcome.DONE
    assert node.freeze(5).outcome is Outcome.DONE, "it may be repeated"
    assert node.freeze(5, "f-other").reference == "fenced"
    assert node.unfreeze(4).reference == "fenced"
    assert node.unfreeze(6).outcome is Outcome.DONE
    assert node.freeze(5).reference == "fenced", "a freeze that was delayed until after the unfreeze"
    assert node.status().frozen is None


def test_a_reason_is_text_and_never_a_command(node: Node) -> None:
    why = "$(touch /tmp/x); `id` 'quoted' \"twice\"\nrefused\tfrozen"
    assert node.freeze(why=why).frozen == NodeFreeze(2, "f-1", "ann@desk", why.replace("\n", "?").replace("\t", "?"))


def test_a_forget_needs_an_unfreeze_first(node: Node) -> None:
    node.freeze()
    assert node.forget("run-3", 3).reference == "frozen"
    node.unfreeze()
    assert node.forget("run-3", 3).outcome is Outcome.DONE
    assert node.strays() == []


def test_a_record_that_cannot_be_read_counts_as_a_freeze(node: Node) -> None:
    node.freeze()
    for broken in (b"", b"x y z\n", b"2 f-1 thawed - -\n"):
        node.write(MARK, broken)
        refused = node.apply()
        assert (refused.reference, refused.message) == ("frozen", "frozen, and the node's record of it is unreadable")
    assert node.unfreeze().outcome is Outcome.DONE
    assert node.apply().healthy


def test_on_a_full_disk_the_old_mark_stays_in_force(node: Node) -> None:
    node.freeze()
    assert node.unfreeze(full_disk=True).reference == "state-not-writable"
    assert node.status().frozen == FROZEN


@pytest.mark.parametrize("verb", ["freeze", "unfreeze"])
def test_killed_at_any_line_it_is_in_force_or_not(node: Node, verb: str) -> None:
    """And repeated, it is."""
    program = instrumented(PROGRAM)
    call = {"freeze": agent_call.freeze, "unfreeze": agent_call.unfreeze}[verb]
    newer = NodeFreeze(6, "f-6", "ann@desk", "again")
    command = call(program, newer, sudo=False, deadline=60)
    trace = node.root / "trace"
    node.run(command, extra={"ROLLOUT_TRACE": str(trace)})
    for moment in sample(f"{verb} under {node.shell}", moments(trace), 12):
        node.at(MARK).unlink()
        node.freeze()
        answer = node.run(command, extra=moment.kill(node.root.parent))
        assert killed(answer) or b"end " in answer.stdout
        assert node.status().frozen in (FROZEN, newer if verb == "freeze" else None)
        assert node.report(verb, command).outcome is Outcome.DONE
        assert node.status().frozen == (newer if verb == "freeze" else None)
