"""Facts in, findings out: every rule over the facts of all files, on clocks that can be compared."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from rollout.kubelet import versions
from rollout.kubelet.diagnosis.clocks import aligned, named
from rollout.kubelet.diagnosis.endings import ending_findings
from rollout.kubelet.diagnosis.facts import MOST_FACTS, Facts, Kind
from rollout.kubelet.diagnosis.finding import Finding, ProposalTarget, merged
from rollout.kubelet.diagnosis.node_starts import start_findings
from rollout.kubelet.diagnosis.pull_failures import back_off_findings, deadline_findings, qps_findings, slow_findings
from rollout.kubelet.diagnosis.pulls import pulls_of, queue_findings
from rollout.kubelet.diagnosis.reading import FileReading

IDS = (
    "cgroup-v1-refused",
    "container-definition-changed",
    "image-pull-backoff",
    "kubelet-crash-loop",
    "negative-grace-period",
    "not-in-force",
    "pleg-unhealthy",
    "pod-rejected-at-readmission",
    "prestop-twice",
    "pull-progress-deadline",
    "pull-qps-exceeded",
    "registry-slow",
    "serial-pull-queue",
    "slow-termination",
)
"""Every finding's id. They never change."""


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """The findings, the surest first; what was read; and notes about times and limits."""

    findings: tuple[Finding, ...]
    readings: tuple[FileReading, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def unread_lines(self) -> int:
        return sum(reading.unread.lines for reading in self.readings)


def diagnosed(facts: Facts, target: ProposalTarget, readings: Sequence[FileReading] = ()) -> Diagnosis:
    """``target.minor`` ``None``: the rules take the minor from the logs where one of them names it."""
    here, notes = aligned(named(facts))
    target = target if target.minor is not None else replace(target, minor=_minor(here))
    pulls = pulls_of(here)
    findings = (
        *queue_findings(here, pulls, target),
        *deadline_findings(here, pulls, target),
        *qps_findings(here, pulls, target),
        *slow_findings(here),
        *back_off_findings(here),
        *ending_findings(here, target),
        *start_findings(here, target),
    )
    left_out = facts.left_out + sum(reading.left_out for reading in readings)
    if left_out:
        notes = (*notes, f"{left_out} older facts were not used: only the newest {MOST_FACTS} of a kind are")
    return Diagnosis(merged(findings), tuple(readings), notes)


def _minor(facts: Facts) -> int | None:
    """The minor of all kubelets in the logs; ``None`` if they differ or none is named."""
    found = {version.minor for fact in facts.of(Kind.START) if (version := versions.parse(fact["version"]))}
    return found.pop() if len(found) == 1 else None
