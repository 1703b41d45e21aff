"""The claims of runs on nodes: who has one, what is left behind, and how a claim is ended."""

from __future__ import annotations

import pytest

from rollout.app.claims import Freed, holders, littered, set_free, under_way
from rollout.app.reading import read_receipts
from tests.app.agents import SILENT, Agents, access_to, answer, receipt


@pytest.mark.parametrize(("state", "moving"), [("armed", True), ("reverting", True), ("confirmed", False)])
def test_a_transaction_is_in_progress_while_its_receipt_may_change(state: str, *, moving: bool) -> None:
    said = answer("status", "token 1 r1 live", receipt("r1-1", state))
    reports = read_receipts(access_to("n1", "n2"), Agents({("n1", "status"): said}))
    assert under_way(reports) == (("n1",) if moving else ())


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
