"""Differences of nodes from their receipts and from the journal."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from rollout.app.verify import DRIFTED, Known, verify_cluster
from rollout.core.model.report import RemoteAnswer
from rollout.core.model.snapshot import Unread, digest
from rollout.core.model.transactions import FileVersions
from rollout.core.model.verification import ChangeStanding, NodeCheck
from tests.app.agents import CONFIG, MACHINE, NEW, SILENT, Agents, access_to, answer, holds, receipt, well
from tests.app.call import CLUSTER, FakeCall
from tests.app.site import NAMES
from tests.app.verified import verify_fleet

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


# ------------------------------------------------------------------------------------------- of a cluster


def test_a_cluster_is_as_its_last_run_left_it_and_no_connection_stays(tmp_path: Path) -> None:
    call = FakeCall(tmp_path).applied()
    verified = verify_cluster(call, CLUSTER, "")
    assert {name: check.drifts for name, check in verified.checks.items()} == dict.fromkeys(NAMES, ())
    assert {check.standing for check in verified.checks.values()} == {ChangeStanding.CHANGED}
    assert (verified.unread, verified.exit_code) == ((), 0)
    assert (call.agents.asked, call.opened) == ([], 0)


def test_drift_counts_more_than_nodes_that_were_not_read(tmp_path: Path) -> None:
    call = FakeCall(tmp_path).applied()
    call.agents.says["n1", "verify"] = SILENT
    verified = verify_cluster(call, CLUSTER, "")
    assert ([node.node for node in verified.unread], verified.exit_code) == (["n1"], 4)
    call.agents.nodes["n2"].files[CONFIG] = b"by hand"
    assert verify_cluster(call, CLUSTER, "").exit_code == DRIFTED


def test_only_the_chosen_nodes_are_read(tmp_path: Path) -> None:
    call = FakeCall(tmp_path).applied()
    call.agents.nodes["n2"].files[CONFIG] = b"by hand"
    verified = verify_cluster(call, CLUSTER, "n1")
    assert (list(verified.checks), verified.exit_code) == (["n1"], 0)
