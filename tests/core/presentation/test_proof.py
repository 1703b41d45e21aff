"""What proves that a node is reverted, what disproves it, and what does neither; and the output for people and programs."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rollout.core.model.proof import BOOT_UNIT, NOTHING_PROMISED, NodeProof, Proven, as_before, proof_of
from rollout.core.model.snapshot import (
    NOT_OBSERVED,
    FileState,
    Measurement,
    Process,
    Receipt,
    ReceiptState,
    Stale,
    Token,
    UnitState,
    Unread,
)
from rollout.core.model.transactions import FileVersions, NodeTransaction
from rollout.core.model.verification import Binary, Verification
from rollout.core.presentation.emergency_text import proof_documents, proof_lines
from tests.documents import as_printed

CONFIG, ADDED = "/var/lib/kubelet/config.yaml", "/etc/default/kubelet"
OLD, OTHER, NEW = "a" * 64, "b" * 64, "c" * 64
RUNNING = {"ActiveState": "active", "SubState": "running", "MainPID": "42"}
WELL = Measurement(UnitState("kubelet.service", RUNNING), Process(42, ("kubelet",)), "ok")
BACK = Verification(
    "n1",
    "0" * 32,
    Token(7, "r1", live=False),
    (Receipt("t1", "r1", 7, ReceiptState.REVERTED, "asked"),),
    (
        NodeTransaction(
            "t1", ReceiptState.REVERTED, 1, (FileVersions(CONFIG, OLD, NEW), FileVersions(ADDED, "", NEW)), 2
        ),
    ),
    {CONFIG: FileState(CONFIG, "regular", "644", "0:0", 5, OLD), ADDED: FileState(ADDED, "absent")},
    WELL,
)


def unit(**properties: str) -> Measurement:
    return replace(WELL, unit=UnitState("kubelet.service", {**RUNNING, **properties}))


def holding(path: str, digest: str) -> Verification:
    """The node with these bytes in this file; ``""``: they could not be read."""
    return replace(BACK, files={**BACK.files, path: FileState(path, "regular", "644", "0:0", 5, digest)})


def test_a_node_with_old_files_a_healthy_kubelet_and_nothing_of_ours_is_proven_by_its_digests() -> None:
    assert proof_of(BACK, "t1") == NodeProof("n1", Proven.PROVEN, (), ((CONFIG, OLD), (ADDED, "")))


NEVER = replace(BACK, receipts=(), transactions=())


def test_a_node_that_the_run_is_known_not_to_have_changed_is_unchanged_and_not_proven() -> None:
    assert proof_of(NEVER, "t1", promised=NOTHING_PROMISED).proven is Proven.UNCHANGED


def test_a_missing_receipt_alone_proves_nothing() -> None:
    """The receipts may have been removed, and no file was read."""
    said = "it has no receipt of t1, and its files from before the change are not known"
    assert proof_of(NEVER, "t1") == NodeProof("n1", Proven.UNKNOWN, (said,), ())


@pytest.mark.parametrize("answer", NOT_OBSERVED)
def test_an_answer_that_is_not_the_kubelets_own_is_unknown(answer: str) -> None:
    proof = proof_of(replace(BACK, measurement=replace(WELL, healthz=answer)), "t1")
    assert (proof.proven, proof.evidence) == (
        Proven.UNKNOWN,
        (f"healthz: {NOT_OBSERVED[answer]} [healthz-not-its-own]",),
    )


def test_without_the_receipt_the_bytes_are_compared_with_those_that_the_plan_replaced() -> None:
    """The receipt was removed: the node reports that it has no such transaction, whatever its files hold."""
    promised = {CONFIG: OLD, ADDED: ""}
    assert proof_of(NEVER, "t1", promised=promised) == NodeProof(
        "n1", Proven.UNCHANGED, (), ((CONFIG, OLD), (ADDED, ""))
    )
    still = replace(NEVER, files={**NEVER.files, CONFIG: FileState(CONFIG, "regular", "644", "0:0", 5, NEW)})
    proof = proof_of(still, "t1", promised=promised)
    said = f"{CONFIG}: {NEW[:12]}, before the change it was {OLD[:12]}; the node has no receipt of t1, so nothing was reverted"
    assert (proof.proven, proof.evidence) == (Proven.WRONG, (said,))
    appeared = replace(NEVER, files={**NEVER.files, ADDED: FileState(ADDED, "regular", "644", "0:0", 5, NEW)})
    assert proof_of(appeared, "t1", promised=promised).proven is Proven.WRONG
    unread = replace(NEVER, files={CONFIG: NEVER.files[CONFIG]})
    assert proof_of(unread, "t1", promised=promised).proven is Proven.UNKNOWN


def test_a_transaction_that_was_reverted_before_a_newer_one_changed_its_files_is_not_proven() -> None:
    """Every file is as the receipts say, and is not the old one."""
    newer = NodeTransaction("t2", ReceiptState.CONFIRMED, 3, (FileVersions(CONFIG, OLD, OTHER),))
    on_top = replace(holding(CONFIG, OTHER), transactions=(newer, *BACK.transactions))
    proof = proof_of(on_top, "t1")
    said = "the newer transaction t2 is on top of t1: its files are not the old ones"
    assert (proof.proven, proof.evidence) == (Proven.WRONG, (said,))
    elsewhere = replace(newer, files=(FileVersions("/etc/other", OLD, OTHER),))
    beside = replace(
        BACK,
        transactions=(elsewhere, *BACK.transactions),
        files={**BACK.files, "/etc/other": FileState("/etc/other", "regular", "644", "0:0", 5, OTHER)},
    )
    assert proof_of(beside, "t1").proven is Proven.PROVEN


def test_old_bytes_that_the_running_kubelet_may_not_have_read_prove_nothing() -> None:
    renamed = (Stale(CONFIG, "kubelet.service", edited=False, seconds=3),)
    assert proof_of(replace(BACK, stale=renamed), "t1").proven is Proven.UNKNOWN
    elsewhere = (Stale("/etc/other", "kubelet.service", edited=False, seconds=3),)
    assert proof_of(replace(BACK, stale=elsewhere), "t1").proven is Proven.PROVEN


@pytest.mark.parametrize(
    ("found", "evidence"),
    [
        (
            holding(CONFIG, OTHER),
            f"{CONFIG}: {OTHER[:12]}, transaction t1 (reverted) left {OLD[:12]} [content-differs]",
        ),
        (holding(ADDED, OTHER), f"{ADDED}: regular; transaction t1 (reverted) left none [file-appeared]"),
        (
            replace(BACK, receipts=(replace(BACK.receipts[0], state=ReceiptState.CONFIRMED),)),
            "transaction t1 is confirmed",
        ),
        (
            replace(BACK, receipts=(*BACK.receipts, Receipt("t0", "r0", 6, ReceiptState.ARMED))),
            "still under way: t0",
        ),
        (
            replace(BACK, files={**BACK.files, BOOT_UNIT: FileState(BOOT_UNIT, "regular")}),
            f"a guard is left: {BOOT_UNIT}",
        ),
        (replace(BACK, token=Token(7, "r1", live=True)), "run r1 still claims it"),
        (
            replace(BACK, measurement=unit(ActiveState="activating", SubState="auto-restart")),
            "kubelet.service ended, and systemd is to start it again (activating, auto-restart)",
        ),
        (replace(BACK, measurement=unit(MainPID="43")), "the kubelet's process was replaced while it was read"),
        (replace(BACK, measurement=replace(WELL, healthz="refused")), "healthz: refused"),
        (
            replace(BACK, stale=(Stale(CONFIG, "kubelet.service", edited=True, seconds=3),)),
            f"{CONFIG}: modified 3 s after kubelet.service started, which may have read other bytes and reads these at a restart [edited-after-start]",
        ),
    ],
)
def test_a_condition_found_false_is_wrong(found: Verification, evidence: str) -> None:
    assert proof_of(found, "t1") == replace(proof_of(found, "t1"), proven=Proven.WRONG, evidence=(evidence,))


def test_leftovers_of_the_cleanup_are_wrong() -> None:
    assert proof_of(BACK, "t1", ("rollout-guard-t1.timer",)).evidence == ("left behind: rollout-guard-t1.timer",)


@pytest.mark.parametrize(
    ("found", "evidence"),
    [
        (
            Unread("n1", "no-banner", "no banner within 10 s"),
            "could not be read again: no banner within 10 s [no-banner]",
        ),
        (holding(CONFIG, ""), f"{CONFIG}: it could not be read [file-unread]"),
        (replace(BACK, measurement=replace(WELL, unit=None)), "systemd did not answer"),
        (replace(BACK, measurement=unit(ActiveState="", SubState="")), "kubelet.service is not told (-)"),
        (replace(BACK, measurement=replace(WELL, process=None)), "the kubelet's process could not be read"),
        (replace(BACK, measurement=replace(WELL, healthz=None)), "the node has no program that can request healthz"),
    ],
)
def test_unreadable_facts_prove_nothing(found: Verification | Unread, evidence: str) -> None:
    assert proof_of(found, "t1") == replace(proof_of(found, "t1"), proven=Proven.UNKNOWN, evidence=(evidence,))


def test_wrong_facts_are_listed_before_unknown_ones() -> None:
    found = replace(holding(CONFIG, OTHER), measurement=replace(WELL, healthz=None))
    proof = proof_of(found, "t1")
    assert proof.proven is Proven.WRONG
    assert [text.rpartition("[")[2] for text in proof.evidence] == [
        "content-differs]",
        "the node has no program that can request healthz",
    ]


@pytest.mark.parametrize(
    "found",
    [
        replace(BACK, binary=Binary("t1", "9-1", "9-2")),
        replace(BACK, measurement=replace(WELL, healthz="off")),
    ],
    ids=["an upgrade by somebody", "healthz is switched off"],
)
def test_differences_that_do_not_contradict_a_revert(found: Verification) -> None:
    assert proof_of(found, "t1").proven is Proven.PROVEN


# ----------------------------------------------------------------------------------------------------------------- output

SICK = tuple(NodeProof(f"n{at}", Proven.WRONG, (f"healthz: refused by n{at}",)) for at in (4, 5, 6))
PROOFS = (
    NodeProof("n1", Proven.PROVEN, (), ((CONFIG, OLD),)),
    NodeProof("n2", Proven.PROVEN),
    NodeProof("n3", Proven.UNKNOWN, ("systemd did not answer", "\x1b[2Jquoted")),
    *SICK,
)


def test_the_text_names_proven_nodes_and_all_others_with_reasons() -> None:
    first, wrong, unknown = proof_lines(PROOFS)
    assert (
        first
        == "proof: 2 of 6 nodes reverted (read again: old files by digest, kubelet healthy, no guard left): n[1-2]"
    )
    assert wrong.startswith("  not reverted (3) n[4-6]: healthz: refused by ")
    assert unknown == "  unknown (1) n3: systemd did not answer; quoted"
    assert "\x1b" not in unknown


def test_without_a_proven_node_there_is_no_list() -> None:
    assert next(proof_lines(SICK)).endswith("no guard left)")


def test_json_has_a_line_per_node_and_the_counts() -> None:
    *nodes, last = map(as_printed, proof_documents(PROOFS))
    assert [(each["node"], each["proof"]) for each in nodes] == [(each.node, each.proven.value) for each in PROOFS]
    assert nodes[0]["files"] == {CONFIG: OLD}
    assert "\x1b" not in nodes[2]["evidence"][1]
    assert last == {"apiVersion": "rollout/v1", "kind": "Proof", "proven": 2, "wrong": 3, "unknown": 1, "unchanged": 0}


def test_nodes_without_the_change_are_counted_apart() -> None:
    first, second = proof_lines((PROOFS[0], NodeProof("n7", Proven.UNCHANGED), NodeProof("n8", Proven.UNCHANGED)))
    assert first.startswith("proof: 1 of 1 node reverted ")
    assert second == "  no change of the run is on 2 nodes: n[7-8]"


def test_all_nodes_are_as_before_only_if_each_is_reverted_or_was_never_changed() -> None:
    assert as_before((*PROOFS[:2], NodeProof("n7", Proven.UNCHANGED)))
    assert not as_before(PROOFS[:3])
    assert not as_before(SICK)
