"""What counts as drift, and its references."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rollout.core.model.snapshot import FileState, Measurement, ReceiptState, Stale, Token
from rollout.core.model.transactions import Expected, FileVersions, NodeTransaction
from rollout.core.model.verification import (
    HINTS,
    Binary,
    Drift,
    Undone,
    Verification,
    by_kubeadm,
    drifts,
)

PATH = "/etc/default/kubelet"
LEFT, OTHER = "a" * 64, "b" * 64
CONFIRMED = Expected(PATH, "t1", ReceiptState.CONFIRMED, LEFT, "644", "0:0")
REVERTED_TO_NONE = Expected(PATH, "t1", ReceiptState.REVERTED)
AS_LEFT = FileState(PATH, "regular", "644", "0:0", 5, LEFT)
ABSENT = FileState(PATH, "absent")


def of(expected: Expected) -> NodeTransaction:
    """A transaction that leaves this expectation."""
    versions = FileVersions(expected.path, expected.digest, expected.digest, expected.mode, expected.owner)
    return NodeTransaction(expected.tx, expected.state, 1, (versions,))


NODE = Verification(
    "n1",
    "0" * 32,
    Token(),
    (),
    (of(CONFIRMED),),
    {PATH: AS_LEFT},
    Measurement(),
    binary=Binary("t1", "9-1", "9-1"),
    age=60,
)


def found(expected: Expected, state: FileState | None) -> list[str]:
    files = {} if state is None else {PATH: state}
    return [drift.reference for drift in drifts(replace(NODE, transactions=(of(expected),), files=files))]


def test_a_node_as_it_was_left_has_none() -> None:
    assert drifts(NODE) == ()
    assert found(REVERTED_TO_NONE, ABSENT) == []


def test_a_path_that_a_removed_receipt_may_have_changed_is_no_drift() -> None:
    """A node keeps a receipt with foreign bytes for ever. Number 3 is missing: that transaction may have written the file."""
    kept = replace(of(replace(CONFIRMED, state=ReceiptState.REVERTED)), reverted_at=2)
    newest = NodeTransaction("t9", ReceiptState.CONFIRMED, 4, (FileVersions("/b", OTHER, LEFT),))
    files = {PATH: replace(AS_LEFT, digest=OTHER), "/b": replace(AS_LEFT, path="/b", mode="", owner="")}
    assert drifts(replace(NODE, transactions=(newest, kept), files=files)) == ()
    assert drifts(replace(NODE, transactions=(replace(newest, applied_at=3), kept), files=files)) != ()


@pytest.mark.parametrize(
    ("expected", "state", "references"),
    [
        (CONFIRMED, replace(AS_LEFT, digest=OTHER), ["content-differs"]),
        (CONFIRMED, replace(AS_LEFT, mode="600"), ["mode-differs"]),
        (CONFIRMED, replace(AS_LEFT, owner="12:34"), ["owner-differs"]),
        (CONFIRMED, replace(AS_LEFT, digest=OTHER, mode="600"), ["content-differs", "mode-differs"]),
        (CONFIRMED, ABSENT, ["file-gone"]),
        (CONFIRMED, FileState(PATH, "symlink"), ["file-not-regular"]),
        (CONFIRMED, None, ["file-unread"]),
        (CONFIRMED, replace(AS_LEFT, digest=""), ["file-unread"]),
        (REVERTED_TO_NONE, AS_LEFT, ["file-appeared"]),
        (REVERTED_TO_NONE, FileState(PATH, "directory"), ["file-appeared"]),
        (replace(CONFIRMED, mode="", owner=""), replace(AS_LEFT, mode="600", owner="12:34"), []),
        (Expected(PATH, "t1", ReceiptState.ARMED), AS_LEFT, ["under-way"]),
        (Expected(PATH, "t1", ReceiptState.REVERTING), ABSENT, ["under-way"]),
    ],
)
def test_files(expected: Expected, state: FileState | None, references: list[str]) -> None:
    assert found(expected, state) == references


@pytest.mark.parametrize(
    ("before", "now", "replaced"), [("9-1", "9-2", True), ("unknown", "9-2", False), ("9-1", "unknown", False)]
)
def test_the_kubelets_binary(before: str, now: str, *, replaced: bool) -> None:
    references = [drift.reference for drift in drifts(replace(NODE, binary=Binary("t1", before, now)))]
    assert references == (["kubelet-replaced"] if replaced else [])


def test_a_node_without_transactions_has_no_binary_to_compare() -> None:
    assert drifts(replace(NODE, transactions=(), files={}, binary=None)) == ()


def test_a_file_younger_than_the_running_kubelet_counts_and_a_younger_inode_is_a_hint() -> None:
    edited, renamed = drifts(
        replace(
            NODE,
            stale=(
                Stale(PATH, "kubelet.service", edited=True, seconds=35),
                Stale(PATH, "kubelet.service", edited=False, seconds=7),
            ),
        )
    )
    assert edited == Drift(
        "edited-after-start",
        PATH,
        "modified 35 s after kubelet.service started, which may have read other bytes and reads these at a restart",
    )
    assert "7 s after" in renamed.evidence
    assert (edited.reference in HINTS, renamed.reference in HINTS) == (False, True)


CONFIG = "/var/lib/kubelet/config.yaml"
BACKUP = "/etc/kubernetes/tmp/kubeadm-kubelet-config-2026-11-20-10-00-00/config.yaml"


def rewritten(upgraded: str, digest: str = OTHER, at: float = 1000.0) -> list[Drift]:
    """A confirmed change of the kubelet's file, by a run that began at ``at``, and the current file."""
    node = replace(
        NODE,
        transactions=(of(replace(CONFIRMED, path=CONFIG)),),
        files={CONFIG: replace(AS_LEFT, path=CONFIG, digest=digest)},
        facts={"kubeadm-upgraded": upgraded} if upgraded else {},
    )
    return list(by_kubeadm(drifts(node), node, Undone("r1", at, {CONFIG: OTHER})))


def test_kubeadm_is_named_when_it_wrote_the_file_after_the_run() -> None:
    (drift,) = rewritten(f"1001 {BACKUP}")
    assert (drift.reference, drift.place) == ("kubeadm-rewrote", CONFIG)
    assert drift.evidence.startswith("other bytes, as it was before the run (")
    assert drift.evidence.endswith(
        f"; {BACKUP} is newer than run r1: `kubeadm upgrade` keeps such a copy when it writes the file anew"
    )
    (other,) = rewritten(f"1001 {BACKUP}", digest="c" * 64)
    assert "as it was before" not in other.evidence


@pytest.mark.parametrize("upgraded", ["", f"1000 {BACKUP}", f"999 {BACKUP}", "soon", "-"])
def test_kubeadm_is_not_named_otherwise(upgraded: str) -> None:
    assert [drift.reference for drift in rewritten(upgraded)] == ["content-differs"]


def test_an_unchanged_file_is_not_drift_whatever_kubeadm_did() -> None:
    assert rewritten(f"1001 {BACKUP}", digest=LEFT) == []
