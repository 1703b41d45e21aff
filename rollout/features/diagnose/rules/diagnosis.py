"""Facts in, findings out: every rule over the facts of all files, on clocks that can be compared."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from rollout.core.text.nodesets import fold, is_name
from rollout.core.text.terminal import counted
from rollout.features.diagnose.rules.clocks import aligned, named
from rollout.features.diagnose.rules.endings import ending_findings
from rollout.features.diagnose.rules.facts import Facts, Kind
from rollout.features.diagnose.rules.failed_hooks import hook_findings
from rollout.features.diagnose.rules.finding import Confidence, Finding, ProposalTarget, merged
from rollout.features.diagnose.rules.hanging_pulls import hanging_findings
from rollout.features.diagnose.rules.known_defects import with_defects
from rollout.features.diagnose.rules.node_starts import start_findings
from rollout.features.diagnose.rules.pod_timelines import PodTimeline, pod_timelines
from rollout.features.diagnose.rules.pull_failures import (
    back_off_findings,
    deadline_findings,
    qps_findings,
)
from rollout.features.diagnose.rules.pull_queue import queue_findings
from rollout.features.diagnose.rules.pulls import pulls_of, with_images
from rollout.features.diagnose.rules.reading import FileReading
from rollout.features.diagnose.rules.registrations import registration_findings
from rollout.features.diagnose.rules.repeated import repeated_findings
from rollout.features.diagnose.rules.slow_pulls import slow_findings
from rollout.features.diagnose.rules.staying_pods import staying_findings
from rollout.features.diagnose.rules.unconfigured_containers import config_findings
from rollout.kubelet import versions

IDS = (
    "cgroup-v1-refused",
    "container-config-error",
    "container-create-error",
    "container-definition-changed",
    "container-name-reserved",
    "container-not-killed",
    "image-pull-backoff",
    "killed-at-kubelet-restart",
    "kubelet-crash-loop",
    "negative-grace-period",
    "network-not-ready",
    "node-not-registered",
    "not-in-force",
    "pleg-unhealthy",
    "pod-rejected-at-readmission",
    "pod-stays-terminating",
    "prestop-failed",
    "prestop-twice",
    "pull-progress-deadline",
    "pull-qps-exceeded",
    "registry-slow",
    "runtime-down",
    "sandbox-not-created",
    "sandbox-not-stopped",
    "serial-pull-queue",
    "slow-termination",
    "volume-not-unmounted",
)
"""Every finding's id. They never change."""


@dataclass(frozen=True, slots=True)
class NotRead:
    """What a diagnosis would have used and could not read. ``nodes``: ``()`` for what is not of one node."""

    what: str
    nodes: tuple[str, ...]
    why: str
    fetch_next: str

    @property
    def nodeset(self) -> str:
        return fold([name for name in self.nodes if is_name(name)])


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """The findings, the surest first; what was read; notes about times and limits; and what could not be read.

    ``not_read`` ``None``: only files were asked for, and a file that cannot be read is an error. ``timelines`` ``None``: no
    pod was asked for.
    """

    findings: tuple[Finding, ...]
    readings: tuple[FileReading, ...] = ()
    notes: tuple[str, ...] = ()
    not_read: tuple[NotRead, ...] | None = None
    timelines: tuple[PodTimeline, ...] | None = None

    @property
    def unread_lines(self) -> int:
        return sum(reading.unread.lines for reading in self.readings)


def diagnosed(facts: Facts, target: ProposalTarget, readings: Sequence[FileReading] = (), pod: str = "") -> Diagnosis:
    """``pod`` (``namespace/name``): its end is shown. ``target.minor`` ``None``: the rules take the minor from the logs where one of them names it."""
    for reading in readings:
        if reading.last is not None:
            facts.add(reading.last)
    here, notes = aligned(with_images(named(facts)))
    findings = _findings(here, target)
    if any(fact.of_others for fact in facts):
        own, _ = aligned(with_images(named(facts.replaced(fact for fact in facts if not fact.of_others))))
        without = _findings(own, target)
        # A finding is certain only if it is so ``without`` the lines that the author of a pod may have written.
        certain = {
            (each.id, node) for each in without if each.confidence is Confidence.CERTAIN for node in each.nodes or ("",)
        }
        findings = (
            *(
                finding
                if finding.confidence is not Confidence.CERTAIN
                or all((finding.id, node) in certain for node in finding.nodes or ("",))
                else replace(
                    finding,
                    confidence=Confidence.LIKELY,
                    fetch_next=f"{OF_OTHERS}{finding.fetch_next and f'; {finding.fetch_next}'}",
                )
                for finding in findings
            ),
            *_hidden_by_others(findings, without),
        )
    findings = tuple(_of_several_nodes(findings, facts))
    left_out = facts.left_out + sum(reading.left_out for reading in readings)
    if left_out:
        notes = (*notes, f"{left_out} older facts were not used: only the newest {facts.most} of a kind are")
    timelines = pod_timelines(here, pod) if pod else None
    if timelines == ():
        notes = (*notes, f"no end of pod {pod} is in what was read")
    return Diagnosis(merged(findings), tuple(readings), notes, timelines=timelines)


def _findings(here: Facts, target: ProposalTarget) -> tuple[Finding, ...]:
    target = target if target.minor is not None else replace(target, minor=_minor(here))
    pulls = pulls_of(here)
    found = (
        *queue_findings(here, pulls, target),
        *hanging_findings(here, pulls, target),
        *deadline_findings(here, pulls, target),
        *qps_findings(here, pulls, target),
        *slow_findings(here, target),
        *back_off_findings(here, pulls),
        *ending_findings(here, target),
        *hook_findings(here),
        *start_findings(here, target),
        *registration_findings(here),
        *repeated_findings(here),
        *config_findings(here),
        *staying_findings(here, target),
    )
    return tuple(with_defects(found, here))


OF_OTHERS = (
    "whether the kubelet printed these lines: they stand inside a message that prints a text of a pod with its line ends, "
    "so the author of the pod may have written them; `kubectl get events` or the next occurrence shows it"
)


def _of_several_nodes(findings: Iterable[Finding], facts: Facts) -> Iterator[Finding]:
    """A file of several nodes may have lines that do not name theirs: what they show together proves nothing of one node."""
    names: dict[str, set[str]] = defaultdict(set)
    for fact in facts.of(Kind.NODE):
        names[fact.where.file].add(fact.node)
    pids = {fact.where.file: fact["pid"] for fact in facts.of(Kind.OVERLAP)}
    for finding in findings:
        files = [where.file for where in finding.evidence if len(names.get(where.file, ())) > 1 or where.file in pids]
        if finding.confidence is Confidence.CERTAIN and files and not all(finding.nodes or ("",)):
            several = (
                f"has lines of {counted(len(names[files[0]]), 'node')}"
                if len(names.get(files[0], ())) > 1
                else f"has lines of process {pids[files[0]]} that overlap in time, so it is of several nodes or repeats parts of a log"
            )
            told = f"of which node each of these lines is: {files[0]} {several}, and these do not name theirs"
            yield replace(
                finding,
                confidence=Confidence.LIKELY,
                fetch_next=f"{told}{finding.fetch_next and f'; {finding.fetch_next}'}",
            )
        else:
            yield finding


HIDDEN = (
    "whether the kubelet printed the lines that contradict this: they stand inside a message that prints a text of a pod with its "
    "line ends, so the author of the pod may have written them; `kubectl get events` or the next occurrence shows it"
)


def _hidden_by_others(findings: Sequence[Finding], without: Sequence[Finding]) -> Iterator[Finding]:
    """The findings that are there only ``without`` the lines that the author of a pod may have written: at most likely."""
    for own in without:
        if not any(
            own.id == finding.id
            and set(own.nodes) <= set(finding.nodes)
            and (own.confidence is Confidence.UNKNOWN or finding.confidence is not Confidence.UNKNOWN)
            and (own.cause == finding.cause or not {*own.evidence}.isdisjoint(finding.evidence))
            for finding in findings
        ):
            confidence = Confidence.LIKELY if own.confidence is Confidence.CERTAIN else own.confidence
            yield replace(own, confidence=confidence, fetch_next=f"{HIDDEN}{own.fetch_next and f'; {own.fetch_next}'}")


def _minor(facts: Facts) -> int | None:
    """The minor of all kubelets in the logs; ``None`` if they differ or none is named."""
    minors = {version.minor for fact in facts.of(Kind.START) if (version := versions.parse(fact["version"]))}
    return minors.pop() if len(minors) == 1 else None
