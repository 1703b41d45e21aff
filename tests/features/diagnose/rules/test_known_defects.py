"""A finding names the known defects of the exact versions on its nodes that show like it, and is never surer for it."""

from __future__ import annotations

import pytest

from rollout.features.diagnose.rules.diagnosis import IDS
from rollout.features.diagnose.rules.finding import Confidence
from rollout.kubelet.defects.rows import known
from tests.features.diagnose.labelled.reading import cases
from tests.features.diagnose.rules.logs import found, journal, klog, lines, logrus

CUT = logrus(60, "cancel pulling image reg.example/big:1 because of no progress in 1m0s", "error")


def started(version: str, node: str = "n1") -> str:
    return journal(logrus(0, "starting containerd", rest=f" revision=81 version={version}"), 0, "containerd[7]", node)


@pytest.mark.parametrize(
    ("version", "named"), [("v1.7.3", True), ("1.7.9~ds1", True), ("v1.7.10", False), ("v2.2.0", False)]
)
def test_only_the_versions_that_have_it_name_it(version: str, named: bool) -> None:
    cut = found(lines(started(version), journal(CUT, 60, "containerd[7]", "n1")))["pull-progress-deadline"]
    assert (
        "has a known defect that shows like this, containerd-short-deadline (1.7.0 to before 1.7.10)" in cut.cause
    ) is named
    assert "containerd-short-deadline" not in cut.fetch_next
    bare = found(lines(journal(CUT, 60, "containerd[7]", "n1")))["pull-progress-deadline"]
    assert cut.confidence == bare.confidence


def test_without_a_version_it_is_what_to_fetch() -> None:
    cut = found(lines(journal(CUT, 60, "containerd[7]", "n1")))["pull-progress-deadline"]
    assert "known defect" not in cut.cause
    assert "the version of containerd: 1.7.0 to before 1.7.10 has a known defect" in cut.fetch_next
    assert "`rollout explain containerd-short-deadline`" in cut.fetch_next


def test_a_pull_that_another_program_cancelled_asks_for_no_version_of_it() -> None:
    cut = 'Cancel pulling image "reg.example/big:1" because of no progress for 1m0s, latest progress: "5f70: Verifying Checksum "'
    finding = found(lines(klog(0, "Version: v1.20.2"), klog(60, cut, "E")))["pull-progress-deadline"]
    assert "dockershim-verify-cut" in finding.cause
    assert "containerd" not in finding.fetch_next


def test_the_version_of_another_node_counts_for_nothing() -> None:
    other = started("v1.7.3", "n2")
    cut = found(lines(other, journal(CUT, 60, "containerd[7]", "n1")))["pull-progress-deadline"]
    assert cut.nodes == ("n1",)
    assert "known defect" not in cut.cause


@pytest.mark.parametrize(
    "line",
    [
        '"Container runtime initialized" containerRuntime="containerd" version="1.7.3" apiVersion="v1"',
        "Container runtime containerd initialized, version: v1.7.3, apiVersion: v1alpha2",
    ],
)
def test_a_kubelet_prints_the_version_of_its_runtime_too(line: str) -> None:
    cut = found(lines(klog(0, line), CUT))["pull-progress-deadline"]
    assert "containerd 1.7.3 has a known defect" in cut.cause


def test_the_signs_of_the_table_are_of_findings_that_exist() -> None:
    signs = [(row.id, finding) for row in known() for finding, _ in row.signs]
    assert len(signs) >= 15
    assert {finding for _, finding in signs} <= set(IDS)


@pytest.mark.no_cover
def test_each_sign_is_seen_in_some_labelled_input() -> None:
    """The words of a sign are those of a finding: where they change, no input shows the defect any more."""
    texts = [(each.id, f"{each.cause} {each.fetch_next}") for case in cases() for each in case.diagnosis().findings]
    unseen = {
        row.id
        for row in known()
        for finding, _ in row.signs
        if not any(finding == id_ and row.id in text for id_, text in texts)
    }
    assert unseen <= NOT_WRITTEN


NOT_WRITTEN = {
    "containerd-multipart-starves",
    "kubelet-device-admission-after-restart",
    "kubelet-init-devices-rejected",
    "kubelet-dropped-prestop-time",
}
"""Defects of which no labelled input exists yet."""


def test_a_known_defect_makes_nothing_certain() -> None:
    likely = found(
        lines(
            klog(0, '"Kubelet version" kubeletVersion="v1.35.4"'),
            *(
                klog(at, "kubelet.service: Main process exited, code=exited, status=2/INVALIDARGUMENT")
                for at in (1, 12, 24, 36)
            ),
        )
    )
    assert likely["kubelet-crash-loop"].confidence is Confidence.LIKELY
