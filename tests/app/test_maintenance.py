"""Maintenance of nodes outside of runs: differences from the receipts and the journal, forget, and unlock."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rollout.app.maintenance import Freed, Known, forget_fleet, holders, littered, set_free, under_way, verify_fleet
from rollout.app.reading import read_receipts
from rollout.core.model.report import Outcome, RemoteAnswer
from rollout.core.model.snapshot import Unread, digest
from rollout.core.model.transactions import FileVersions
from rollout.core.model.verification import ChangeStanding, NodeCheck
from tests.app.agents import CONFIG, MACHINE, NEW, SILENT, Agents, access_to, answer, holds, receipt, well

OLD = b"maxPods: 110\n"
KNOWN = Known("r1", MACHINE, 1000.0, {CONFIG: digest(OLD)})


def verified(*lines: str, machine: str = MACHINE) -> RemoteAnswer:
    """The answer of a node that run r1 confirmed."""
    expected = f"expected r1-1 confirmed 1 0 {digest(OLD)} {digest(NEW)} 644 0:0 {CONFIG}"
    return answer("verify", f"fact machine-id {machine}", expected, *lines, *well())


CONFIRMED = receipt("r1-1", "confirmed")


def found(said: RemoteAnswer, known: Known | None = KNOWN) -> list[tuple[str, str]]:
    """Reference and place of each difference."""
    nodes = Agents({("n1", "verify"): said})
    drifts, unread = verify_fleet(access_to("n1"), nodes, {"n1": known} if known else {})
    assert unread == ()
    assert nodes.released == ["n1"]
    return [(drift.reference, drift.place) for drift in drifts["n1"].drifts]


# --------------------------------------------------------------------------------------------------- verify


def test_a_node_that_matches_its_receipts_and_the_journal_has_not_drifted() -> None:
    assert found(verified(CONFIRMED, holds(NEW))) == []
    assert found(verified(CONFIRMED, holds(NEW)), None) == []


def test_a_file_that_changed_since_has_drifted() -> None:
    assert found(verified(CONFIRMED, holds(OLD))) == [("content-differs", CONFIG)]
    assert found(verified(CONFIRMED, holds(OLD)), None) == [("content-differs", CONFIG)]


def test_a_replaced_machine_is_detected_by_the_journal() -> None:
    other = verified(CONFIRMED, holds(NEW), machine="1" * 32)
    assert found(other) == [("machine-replaced", "node")]
    assert found(other, None) == []


def test_removed_receipts_are_detected_by_the_journal() -> None:
    bare = answer("verify", f"fact machine-id {MACHINE}", *well())
    assert found(bare) == [("receipts-gone", "node")]
    assert found(bare, None) == []


def test_a_file_whose_last_receipt_was_removed_is_named() -> None:
    """Of r1 the node has a receipt, of r0 and r2 it has none: r2 changed a file that no receipt names."""
    known = replace(KNOWN, run="r2", standing=frozenset({"r0", "r1", "r2"}))
    files = {"r0": {"n1": (FileVersions(CONFIG, "", ""),)}, "r2": {"n1": (FileVersions("/etc/z", "", ""),)}}
    for said, gap in (
        (verified(CONFIRMED, holds(NEW)), False),
        (
            verified(CONFIRMED, holds(NEW), f"expected r3-1 confirmed 3 0 {digest(OLD)} {digest(NEW)} 644 0:0 /etc/b"),
            True,
        ),
    ):
        checks, _ = verify_fleet(
            access_to("n1"), Agents({("n1", "verify"): said}), {"n1": known}, files_of=lambda run: files.get(run, {})
        )
        assert checks["n1"].not_checked == (("/etc/z", CONFIG) if gap else ("/etc/z",))
        assert checks["n1"].removed == gap
    checks, _ = verify_fleet(access_to("n1"), Agents({("n1", "verify"): said}), {})
    assert (checks["n1"].not_checked, checks["n1"].removed) == ((CONFIG,), True), "by the node's receipts alone"


def test_kubeadm_is_named_if_it_rewrote_the_file_after_the_run() -> None:
    upgraded = "fact kubeadm-upgraded 2000 /etc/kubernetes/tmp/kept"
    assert found(verified(CONFIRMED, holds(OLD), upgraded)) == [("kubeadm-rewrote", CONFIG)]


def test_unreachable_nodes_are_reported_and_do_not_count_as_correct() -> None:
    nodes = Agents({("n1", "verify"): SILENT, ("n2", "verify"): verified(CONFIRMED, holds(NEW))})
    drifts, unread = verify_fleet(access_to("n1", "n2"), nodes, {"n1": KNOWN, "n2": KNOWN})
    assert unread == (Unread("n1", "connect-timeout", "no answer in 10 s"),)
    assert drifts == {"n2": NodeCheck((), ChangeStanding.CHANGED)}
    assert {words["verb"] for _, words in nodes.asked} == {"verify"}, "a verb that only reads"


# --------------------------------------------------------------------------------------------------- forget


def test_forget_is_fenced_and_a_refusal_has_a_reason() -> None:
    busy = answer("forget", "refused under-way transaction r2-1 is armed")
    nodes = Agents({("n2", "forget"): busy, ("n3", "forget"): SILENT})
    reports = forget_fleet(access_to("n1", "n2", "n3"), nodes, "u1", 7)
    assert reports["n1"].outcome is Outcome.DONE
    assert (reports["n2"].outcome, reports["n2"].reference) == (Outcome.REFUSED, "under-way")
    assert (reports["n3"].outcome, reports["n3"].reference) == (Outcome.UNREACHED, "connect-timeout")
    assert {(words["run"], words["counter"]) for _, words in nodes.asked} == {("u1", "7")}
    assert sorted(nodes.released) == ["n1", "n2", "n3"]


@pytest.mark.parametrize(("state", "moving"), [("armed", True), ("reverting", True), ("confirmed", False)])
def test_a_transaction_is_in_progress_while_its_receipt_may_change(state: str, *, moving: bool) -> None:
    said = answer("status", "token 1 r1 live", receipt("r1-1", state))
    reports = read_receipts(access_to("n1", "n2"), Agents({("n1", "status"): said}))
    assert under_way(reports) == (("n1",) if moving else ())


# --------------------------------------------------------------------------------------------------- unlock


def test_a_node_is_held_by_the_run_with_a_live_claim() -> None:
    live, ended = answer("status", "token 3 r1 live"), answer("status", "token 3 r1 ended")
    says = {("n1", "status"): live, ("n2", "status"): ended, ("n3", "status"): SILENT}
    reports = read_receipts(access_to("n1", "n2", "n3"), Agents(says))
    assert holders(reports) == {"n1": "r1"}


def test_a_node_is_littered_where_something_is_left_that_no_guard_needs() -> None:
    token, left = "token 3 r1 ended", "left /var/lib/kubelet/.rollout-r1-1.1.old"
    says = {
        ("n1", "status"): answer("status", token, left),
        ("n2", "status"): answer("status", token),
        ("n3", "status"): answer("status", token, receipt("r1-1", "armed"), left),
        ("n4", "status"): SILENT,
    }
    nodes = Agents(says)
    assert littered(read_receipts(access_to("n1", "n2", "n3", "n4"), nodes, strays=True)) == {"n1": "r1"}
    assert {words["strays"] for _, words in nodes.asked} == {"1"}


def freed(nodes: Agents, known: frozenset[str] = frozenset()) -> Freed:
    (one,) = set_free(access_to("n1"), nodes, {"n1": "r1"}, known, "u1", 7)
    assert nodes.released == ["n1"]
    return one


@pytest.mark.parametrize(("known", "claims"), [(frozenset({"r1"}), "r1"), (frozenset({"r9"}), "u1")])
def test_a_claim_is_ended_in_the_name_of_its_run_if_our_journal_has_it(known: frozenset[str], claims: str) -> None:
    """A run of our journal can be resumed with its next token. A run of another journal never gets its nodes back."""
    nodes = Agents()
    assert freed(nodes, known) == Freed("n1", "r1")
    claim, clean = (words for _, words in nodes.asked)
    assert (claim["verb"], claim["run"], claim["counter"], claim["force"]) == ("status", claims, "7", "1")
    assert (clean["verb"], clean["run"], clean["counter"]) == ("cleanup", claims, "7")
    assert nodes.agents["n1"].claim == f"7 {claims} ended"


def test_a_node_that_refuses_the_claim_is_not_cleaned_up_and_reports_the_reason() -> None:
    nodes = Agents({("n1", "status"): answer("status", "refused fenced token 9 is newer")})
    assert freed(nodes) == Freed("n1", "r1", "token 9 is newer [fenced]")
    assert nodes.verbs("n1") == ["status"]


def test_a_node_that_is_lost_after_its_claim_is_not_released() -> None:
    nodes = Agents({("n1", "cleanup"): SILENT})
    assert freed(nodes).still == "no answer in 10 s [connect-timeout]"


def test_leftovers_of_the_cleanup_are_reported() -> None:
    """An armed change is left to its guard."""
    left = answer("cleanup", "left the guard of r1-1 is armed", "left a lock")
    assert freed(Agents({("n1", "cleanup"): left})).still == "the guard of r1-1 is armed; a lock"
