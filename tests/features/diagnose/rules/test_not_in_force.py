"""Settings in files that are not in force: each way to it, and nodes on which everything is in force."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rollout.core.model.inventory import Node
from rollout.core.model.settings import Value
from rollout.core.model.snapshot import Snapshot, Stale, Unread
from rollout.features.diagnose.rules.finding import Confidence, Finding, ProposalTarget
from rollout.features.diagnose.rules.not_in_force import not_in_force
from rollout.kubelet import values, versions
from rollout.kubelet.node import sources
from tests.kubelet.nodes import (
    CONFIG,
    CONFIG_DIR,
    CONFIG_TEXT,
    kubeadm,
    plain,
    with_config_dir,
)

EDITED = (Stale(CONFIG, "kubelet.service", edited=True, seconds=3600),)


def judged(*nodes: Snapshot | Unread) -> tuple[Finding, ...]:
    return not_in_force(nodes, ProposalTarget("rno"))[0]


def configured(
    more: str, name: str = "tess-node-0001", version: str = "1.33.4", extra: str | None = None, words: str = ""
) -> Snapshot:
    """A node with ``more`` in its file; ``extra``: its environment file, ``words``: the end of its process's command line."""
    return kubeadm(name, version=version, runtime="containerd", config=CONFIG_TEXT + more, extra=extra, words=words)


def effective(node: Snapshot) -> dict[str, Value]:
    return dict(sources.find(node, versions.known(node.kubelet_version), Node("n", "", "", "")).outcome.effective)


def test_a_file_that_was_edited_and_not_loaded() -> None:
    node = configured("maxPods: 60\n")
    running = values.canonical({**effective(node), "maxPods": 110})
    (finding,) = judged(replace(node, stale=EDITED, running=running))
    assert finding.confidence is Confidence.CERTAIN
    assert finding.cause.startswith(
        "maxPods: 110 → 60: /var/lib/kubelet/config.yaml was edited after the kubelet started"
    )
    assert finding.proposal == "rollout plan --cluster rno --limit 'tess-node-0001' --set maxPods=60"
    assert finding.evidence[0].file == f"tess-node-0001:{CONFIG}"
    assert finding.evidence[0].text == "maxPods: 60"
    assert finding.since == "1 h after the process started"


def test_a_file_that_was_edited_to_what_is_in_force() -> None:
    node = configured("maxPods: 60\n")
    assert judged(replace(node, stale=EDITED, running=values.canonical(effective(node)))) == ()


def test_a_flag_that_overrides_the_file() -> None:
    node = configured("maxPods: 60\n", extra="KUBELET_EXTRA_ARGS=--max-pods=20\n", words="--max-pods=20")
    (finding,) = judged(node)
    assert finding.cause.startswith(f"maxPods is 60 in {CONFIG}, but a flag sets 20")
    assert finding.proposal.endswith("--set maxPods=60")


def test_a_flag_that_the_process_does_not_have() -> None:
    (finding,) = judged(configured("", extra="KUBELET_EXTRA_ARGS=--max-pods=20\n"))
    assert finding.cause == "--max-pods: not set → 20: the unit's files changed after the kubelet started."
    assert finding.proposal.endswith("--set maxPods=20")


def test_a_drop_in_that_overrides_the_file() -> None:
    node = with_config_dir(
        configured("maxPods: 60\n"),
        {"10-pods.conf": "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\nmaxPods: 30\n"},
    )
    causes = [each.cause for each in judged(node)]
    assert any(
        cause.startswith(f"maxPods is 60 in {CONFIG}, but the drop-in {CONFIG_DIR}/10-pods.conf sets 30")
        for cause in causes
    )


@pytest.mark.parametrize(
    ("version", "field"), [("1.33.4", "serialiseImagePulls: false"), ("1.23.17", "maxParallelImagePulls: 5")]
)
def test_a_field_that_the_kubelet_drops(version: str, field: str) -> None:
    (finding,) = judged(configured(f"{field}\n", version=version))
    assert finding.cause.startswith(
        f"{field.partition(':')[0]} has no effect: a kubelet {version[:4]} does not know this field"
    )
    assert finding.evidence[0].text == field
    assert not finding.proposal
    assert "rollout check --kubelet-config" in finding.fetch_next


def test_a_runtimes_file_that_was_edited() -> None:
    node = replace(
        configured(""), stale=(Stale("/etc/containerd/config.toml", "containerd.service", edited=True, seconds=5),)
    )
    (finding,) = judged(node)
    assert "/etc/containerd/config.toml (edited after containerd.service started)" in finding.cause


def test_equal_findings_are_one_for_all_their_nodes() -> None:
    names = [f"tess-node-{number:04}" for number in range(1, 61)]
    (finding,) = judged(*(configured("", name, extra="KUBELET_EXTRA_ARGS=--max-pods=20\n") for name in names))
    assert finding.nodeset == "tess-node-[0001-0060]"
    assert finding.proposal == "rollout plan --cluster rno --limit 'tess-node-[0001-0060]' --set maxPods=20"


@pytest.mark.parametrize("node", [configured(""), configured("maxPods: 60\n"), plain(), kubeadm(version="1.20.15")])
def test_a_node_with_everything_in_force(node: Snapshot) -> None:
    assert judged(node) == ()


def test_a_flag_that_sets_the_same_as_the_file() -> None:
    node = configured("maxPods: 20\n", extra="KUBELET_EXTRA_ARGS=--max-pods=20\n", words="--max-pods=20")
    assert judged(node) == ()


def test_nodes_that_cannot_be_judged_are_named() -> None:
    findings, notes = not_in_force(
        [Unread("tess-node-0009", "connect-timeout", "no answer"), replace(configured(""), kubelet_version="1.12.3")],
        ProposalTarget("rno"),
    )
    assert findings == ()
    assert notes == (
        "tess-node-0009 not judged: connect-timeout: no answer",
        "tess-node-0001 not judged: kubelet-version-unknown: kubelet 1.12.3",
    )


@pytest.mark.parametrize("version", ["1.27.3", "1.31.2", "1.36.1"])
@pytest.mark.parametrize("empty", ['""', "null", "~"])
def test_an_empty_value_that_kubeadm_writes_asks_for_nothing(version: str, empty: str) -> None:
    """kubeadm writes ``containerRuntimeEndpoint: ""`` and passes the flag: so does every node, and nothing is wrong."""
    assert judged(configured(f"containerRuntimeEndpoint: {empty}\n", version=version)) == ()


def test_another_runtime_in_the_file_than_in_the_flag_is_told() -> None:
    (finding,) = judged(configured("containerRuntimeEndpoint: unix:///var/run/crio/crio.sock\n"))
    assert "a flag overrides the file" in finding.cause
