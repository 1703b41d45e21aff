"""Drift as text: differences folded, nodes that could not be read, and how many nodes are as rollout left them."""

from __future__ import annotations

from rollout.core.model.snapshot import Unread
from rollout.core.model.verification import ChangeStanding, Drift, NodeCheck
from rollout.core.presentation.drift_text import drift_document, drift_lines, has_drift
from tests.documents import as_printed

CONFIG = "/var/lib/kubelet/config.yaml"
EDITED = Drift("content-differs", CONFIG, "bbbb, transaction t1 left aaaa")
HINT = Drift("replaced-after-start", CONFIG, "7 s after the running kubelet started")
BY_KUBEADM = Drift("kubeadm-rewrote", CONFIG, "`kubeadm upgrade` wrote it anew")


def check(*drifts: Drift, standing: ChangeStanding = ChangeStanding.CHANGED) -> NodeCheck:
    return NodeCheck(drifts, standing)


FOUND = {
    "n1": check(),
    "n2": check(HINT),
    "n3": check(EDITED),
    "n4": check(EDITED, HINT, standing=ChangeStanding.REVERTED),
    "n7": check(standing=ChangeStanding.NEVER),
    "n8": check(standing=ChangeStanding.NEVER),
}
SILENT = (Unread("n5", "no-banner", "no banner\x1b[2J"), Unread("n6", "no-banner", "no banner\x1b[2J"))


def test_a_hint_alone_is_not_drift() -> None:
    assert has_drift(FOUND)
    assert not has_drift({"n1": check(), "n2": check(HINT)})


def test_the_same_difference_of_many_nodes_is_printed_once() -> None:
    assert list(drift_lines(FOUND, SILENT)) == [
        f"perhaps replaced-after-start {CONFIG}: 2 nodes  n[2,4]",
        f"  {HINT.evidence} (on n2)",
        f"content-differs {CONFIG}: 2 nodes  n[3-4]",
        f"  {EDITED.evidence} (on n3)",
        "not read: 2 nodes  n[5-6]: no banner [no-banner]",
        "2 nodes as rollout left them, 2 drifted, 2 not read",
        "  with a change of rollout: 3 nodes; with a reverted one: 1 node",
        "  never changed by rollout, so no receipt to compare with: 2 nodes n[7-8]",
        "    to compare them with the settings of a run: `rollout own RUN`",
    ]
    assert list(drift_lines(FOUND, SILENT, owns=True))[-1].startswith("  never changed by rollout"), (
        "it is compared below"
    )


def test_files_without_a_receipt_are_printed_as_not_checked() -> None:
    found = {name: NodeCheck((), ChangeStanding.CHANGED, (CONFIG,), removed=True) for name in ("n1", "n2")} | {
        "n3": check()
    }
    lines = list(drift_lines(found, ()))
    assert lines[0] == "1 node as rollout left it, 0 drifted, 2 compared only in part, 0 not read"
    assert lines[2:] == [
        f"  not checked {CONFIG}: 2 nodes n[1-2]: the receipt of its last change was removed",
        "  old receipts were removed (keep): 2 nodes n[1-2]; files that only these name were not checked",
    ]
    document = as_printed(drift_document(found, ()))
    assert document["notChecked"] == {"n1": [CONFIG], "n2": [CONFIG]}
    assert document["receiptsRemoved"] == ["n1", "n2"]


def test_nodes_that_could_not_be_read_for_one_reason_are_one_line_although_it_names_each() -> None:
    silent = [
        Unread(f"n{i}", "name-not-known", f"the name does not resolve (at n{i}): Name or service not known")
        for i in range(7, 2001)
    ]
    reason = "the name does not resolve (at the address of NODE): Name or service not known [name-not-known]"
    assert next(iter(drift_lines({}, silent))) == (f"not read: 1,994 nodes  n[7-2000]: {reason}")
    assert next(iter(drift_lines({}, silent[:1]))).startswith(
        "not read: 1 node  n7: the name does not resolve (at the address of n7)"
    )


def test_a_file_rewritten_by_kubeadm_is_printed_with_the_command_that_prevents_it() -> None:
    lines = list(drift_lines({"n1": check(BY_KUBEADM)}, ()))
    assert lines[:2] == [f"kubeadm-rewrote {CONFIG}: 1 node  n1", f"  {BY_KUBEADM.evidence}"]
    assert lines[2].startswith("  `rollout export kubeadm --cluster CLUSTER` prints")
    assert lines[3] == "0 nodes as rollout left them, 1 drifted, 0 not read"


def test_json_has_every_difference_of_every_node() -> None:
    document = as_printed(drift_document(FOUND, SILENT))
    assert document["kind"] == "Drift"
    assert set(document["drifted"]) == {"n2", "n3", "n4"}
    assert document["drifted"]["n4"][0] == {
        "reference": "content-differs", "place": CONFIG, "evidence": EDITED.evidence,
    }  # fmt: skip
    assert document["asWanted"] == ["n1"]
    assert document["changed"] == ["n1", "n2", "n3"]
    assert (document["reverted"], document["neverChanged"]) == (["n4"], ["n7", "n8"])
    assert document["notAsked"] == [
        {"node": name, "reference": "no-banner", "message": "no banner"} for name in ("n5", "n6")
    ]
