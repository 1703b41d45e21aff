"""Drift as text: differences folded, nodes that could not be read, and how many nodes are as they should be."""

from __future__ import annotations

from rollout.core.model.snapshot import Unread
from rollout.core.model.verification import Drift
from rollout.core.presentation.drift_text import drift_document, drift_lines, has_drift
from tests.documents import as_printed

CONFIG = "/var/lib/kubelet/config.yaml"
EDITED = Drift("content-differs", CONFIG, "bbbb, transaction t1 left aaaa")
HINT = Drift("replaced-after-start", CONFIG, "7 s after the running kubelet started")
BY_KUBEADM = Drift("kubeadm-rewrote", CONFIG, "`kubeadm upgrade` wrote it anew")
FOUND = {"n1": (), "n2": (HINT,), "n3": (EDITED,), "n4": (EDITED, HINT)}
SILENT = (Unread("n5", "no-banner", "no banner\x1b[2J"), Unread("n6", "no-banner", "no banner\x1b[2J"))


def test_a_hint_alone_is_not_drift() -> None:
    assert has_drift(FOUND)
    assert not has_drift({"n1": (), "n2": (HINT,)})


def test_the_same_difference_of_many_nodes_is_printed_once() -> None:
    assert list(drift_lines(FOUND, SILENT)) == [
        f"perhaps replaced-after-start {CONFIG}: 2 nodes  n[2,4]",
        f"  {HINT.evidence} (on n2)",
        f"content-differs {CONFIG}: 2 nodes  n[3-4]",
        f"  {EDITED.evidence} (on n3)",
        "not read: 2 nodes  n[5-6]: no banner [no-banner]",
        "2 nodes as they should be, 2 drifted, 2 not read",
    ]


def test_a_file_rewritten_by_kubeadm_is_printed_with_the_command_that_prevents_it() -> None:
    lines = list(drift_lines({"n1": (BY_KUBEADM,)}, ()))
    assert lines[:2] == [f"kubeadm-rewrote {CONFIG}: 1 node  n1", f"  {BY_KUBEADM.evidence}"]
    assert lines[2].startswith("  `rollout export kubeadm --cluster CLUSTER` prints")
    assert lines[3] == "0 nodes as they should be, 1 drifted, 0 not read"


def test_json_has_every_difference_of_every_node() -> None:
    document = as_printed(drift_document(FOUND, SILENT))
    assert document["kind"] == "Drift"
    assert set(document["drifted"]) == {"n2", "n3", "n4"}
    assert document["drifted"]["n4"][0] == {
        "reference": "content-differs", "place": CONFIG, "evidence": EDITED.evidence,
    }  # fmt: skip
    assert document["asWanted"] == ["n1"]
    assert document["notAsked"] == [
        {"node": name, "reference": "no-banner", "message": "no banner"} for name in ("n5", "n6")
    ]
