"""What a node reports of its own drift: every kind of it, with the real program and real files."""

from __future__ import annotations

import os
import time

import pytest

from rollout.core.model.snapshot import ReceiptState
from rollout.core.model.transactions import has_gaps
from rollout.core.model.verification import drifts
from tests.agent.node import CONFIG, DROPIN, FLAGS, MACHINE, NEW, OLD, Node, digest, order

pytestmark = pytest.mark.process

OLD_AGE = 1_000_000.0  # seconds before every file of a test: every process is younger than such a file


def confirmed(node: Node) -> Node:
    assert node.apply().healthy
    node.confirm()
    return node


def references(node: Node) -> dict[str, str]:
    """Where → what, with a kubelet that has just started."""
    node.kubelet_started(0)
    return {drift.place: drift.reference for drift in drifts(node.verify())}


def test_without_transactions_nothing_is_expected(node: Node) -> None:
    found = node.verify()
    assert (found.receipts, found.expected, dict(found.files), found.binary) == ((), (), {}, None)
    assert found.machine_id == MACHINE
    assert found.measurement.healthz == "ok"
    assert not node.at("/var/lib/rollout").exists()


def test_it_writes_nothing(node: Node) -> None:
    confirmed(node)
    before = {path: (path.stat().st_mtime_ns, path.stat().st_ctime_ns) for path in node.tree() if path.is_file()}
    node.verify(CONFIG)
    calls = node.at("/run/standin/calls")
    assert {
        path: (path.stat().st_mtime_ns, path.stat().st_ctime_ns)
        for path in before
        if path != calls and "proc" not in path.parts
    }.items() <= before.items()


def test_a_confirmed_node_holds_the_new_bytes(node: Node) -> None:
    found = confirmed(node).verify()
    assert {(entry.path, entry.digest, entry.state) for entry in found.expected} == {
        (path, digest(content), ReceiptState.CONFIRMED) for path, content in NEW.items()
    }
    assert {entry.mode for entry in found.expected} == {"644", "640"}
    assert references(node) == {}


def test_a_reverted_node_holds_the_old_bytes_or_none(node: Node) -> None:
    confirmed(node).revert()
    found = node.verify()
    assert {entry.path: entry.digest for entry in found.expected} == {
        path: digest(content) for path, content in OLD.items()
    }
    assert references(node) == {}
    node.write(DROPIN, b"back again\n")
    assert references(node) == {DROPIN: "file-appeared"}


def test_the_newest_transaction_that_touched_a_path_counts(node: Node) -> None:
    confirmed(node)
    node.apply(order("t2", old=NEW, new={CONFIG: b"newer config\n"}))
    node.confirm("t2")
    found = {entry.path: (entry.tx, entry.digest) for entry in node.verify().expected}
    assert found == {
        CONFIG: ("t2", digest(b"newer config\n")),
        FLAGS: ("t1", digest(NEW[FLAGS])),
        DROPIN: ("t1", digest(NEW[DROPIN])),
    }
    node.revert("t2")
    found = {entry.path: (entry.tx, entry.digest) for entry in node.verify().expected}
    assert found[CONFIG] == ("t2", digest(NEW[CONFIG]))
    assert references(node) == {}


NEWER: dict[str, bytes | None] = {CONFIG: b"newer config\n"}


def expectations(node: Node) -> dict[str, str]:
    return {entry.path: entry.digest for entry in node.verify().expected}


def applied_twice(node: Node) -> Node:
    """Transaction t1 on three files, then t2 on one of them."""
    confirmed(node)
    node.apply(order("t2", old=NEW, new=NEWER))
    node.confirm("t2")
    return node


def test_after_rollbacks_from_the_newest_to_the_oldest_the_original_bytes_are_expected(node: Node) -> None:
    applied_twice(node).revert("t2")
    node.revert("t1")
    assert node.files() == OLD
    assert expectations(node) == {path: digest(content) for path, content in OLD.items()}
    assert references(node) == {}


def test_a_forced_revert_below_a_newer_transaction_decides_on_its_files(node: Node) -> None:
    applied_twice(node)
    assert node.revert("t1").reference == "foreign-bytes"
    assert node.revert("t1", force=True).reference == ""
    assert node.files() == OLD
    assert expectations(node) == {path: digest(content) for path, content in OLD.items()}
    assert node.revert("t2", force=True).reference == ""
    assert node.read(CONFIG) == NEW[CONFIG], "what t2 replaced"
    assert references(node) == {}


def test_bytes_that_others_restored_are_no_sign_that_a_reverted_transaction_is_in_force(node: Node) -> None:
    """The digests alone would mean: t2 was applied over t1, and t1 was reverted after it."""
    confirmed(node).revert()
    for path, content in NEW.items():
        node.write(path, content or b"")
    node.apply(order("t2", old=NEW, new=NEWER))
    node.confirm("t2")
    node.revert("t2")
    assert expectations(node)[CONFIG] == digest(NEW[CONFIG])


def test_the_order_of_reverts_outlives_the_removal_of_older_transactions(node: Node) -> None:
    """Of six transactions one is removed: that with the oldest last event, not the oldest apply."""
    applied_twice(node).revert("t2")
    for rehearsed in ("t3", "t4", "t5"):
        node.apply(order(rehearsed, old=NEW, new={FLAGS: b"T3=1\n"}))
        node.revert(rehearsed)
    node.revert("t1")
    node.apply(order("t6", new={FLAGS: b"T3=1\n"}))
    node.confirm("t6", keep=1)
    assert [tx for tx in ("t1", "t2", "t3", "t4", "t5", "t6") if not node.tx(tx).exists()] == ["t2"]
    assert references(node) == {}
    assert has_gaps(node.verify().transactions), "what only t2 changed is in no receipt"


def test_a_node_that_removed_nothing_shows_no_gap(node: Node) -> None:
    """Whatever ended its transactions: a confirm, a revert of either kind, a refusal."""
    applied_twice(node)
    node.apply(order("t3", old=NEW, new={FLAGS: b"T3=1\n"}))
    assert node.revert("t3").reference == ""
    node.apply(order("t4", old=OLD, new={FLAGS: b"T4=1\n"}))  # refused: other bytes are there
    node.revert("t2")
    node.revert("t2")
    node.revert("t1")
    found = node.verify().transactions
    assert {each.tx for each in found} == {"t1", "t2", "t3"}
    assert not has_gaps(found)


def test_receipts_of_an_earlier_version_are_ordered_by_the_bytes_that_they_replaced(node: Node) -> None:
    applied_twice(node).revert("t2")
    node.revert("t1")
    for tx in ("t1", "t2"):
        (mark,) = node.tx(tx).glob("place.*")
        mark.unlink()
    assert references(node) == {}


def test_while_a_transaction_is_under_way_nothing_is_expected(node: Node) -> None:
    node.apply()
    assert references(node) == dict.fromkeys(NEW, "under-way")


@pytest.mark.parametrize("kind", ["symlink", "directory"])
def test_a_file_that_became_something_else(node: Node, kind: str) -> None:
    target = confirmed(node).at(CONFIG)
    target.rename(target.with_name("aside"))
    if kind == "symlink":
        target.symlink_to("aside")
    else:
        target.mkdir()
    assert references(node) == {CONFIG: "file-not-regular"}


def test_content_mode_and_a_file_that_is_gone(node: Node) -> None:
    confirmed(node)
    node.write(CONFIG, b"kubeadm was here\n")
    node.at(FLAGS).chmod(0o600)
    node.at(DROPIN).unlink()
    assert references(node) == {CONFIG: "content-differs", FLAGS: "mode-differs", DROPIN: "file-gone"}


@pytest.mark.root  # only root gives files away
def test_another_owner(node: Node) -> None:
    os.chown(confirmed(node).at(CONFIG), 12, 34)
    assert references(node) == {CONFIG: "owner-differs"}


def test_another_kubelet(node: Node) -> None:
    confirmed(node)
    (node.bin / "kubelet").write_text("#!/bin/sh\necho Kubernetes v1.21.0 # upgraded\n")
    assert references(node) == {"kubelet": "kubelet-replaced"}


def test_a_file_that_was_edited_after_the_kubelet_started(node: Node) -> None:
    """Its bytes are as expected; the running kubelet may have read others."""
    confirmed(node)
    with node.on_real_time():
        node.kubelet_started(ago=30.5)
        now = time.time()
        for path, age in ((CONFIG, 10), (FLAGS, 31), (DROPIN, 60)):
            os.utime(node.at(path), (now - age, now - age))
        found = node.verify()
    assert found.age is not None
    assert found.age >= 30
    assert {(entry.path, entry.edited) for entry in found.stale if entry.path in NEW} == {
        (CONFIG, True),
        (FLAGS, False),
        (DROPIN, False),
    }
    edited = next(entry for entry in found.stale if entry.path == CONFIG)
    assert edited.seconds == 20
    assert {drift.reference for drift in drifts(found)} == {"edited-after-start", "replaced-after-start"}


def test_a_kubelet_that_does_not_run_has_no_age(node: Node) -> None:
    confirmed(node)
    node.standin("unit", "pid=0 active=inactive sub=dead\n")
    found = node.verify()
    assert (found.age, found.stale) == (None, ())
    assert len(found.expected) == 3


def test_a_path_that_no_transaction_touched_can_be_requested(node: Node) -> None:
    confirmed(node)
    found = node.verify("/etc/machine-id", CONFIG)
    assert set(found.files) == {"/etc/machine-id", *NEW}
    assert len(found.expected) == 3


def test_a_transaction_of_an_older_agent_expects_no_mode(node: Node) -> None:
    confirmed(node)
    for number in (1, 2, 3):
        (node.tx() / f"mode.{number}").unlink()
    node.at(CONFIG).chmod(0o600)
    assert {(entry.mode, entry.owner) for entry in node.verify().expected} == {("", "")}
    assert references(node) == {}
