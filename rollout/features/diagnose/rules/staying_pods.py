"""Pods that stay in the API although their grace period is over, by their own status and the time at which it was printed.

A status does not show when it was printed. It was after the newest time in the same answer, and before the file that has it
was last changed.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from rollout.core.text.terminal import seconds_text
from rollout.features.diagnose.rules.facts import API_CLOCK, Fact, Facts, Kind
from rollout.features.diagnose.rules.finding import (
    Confidence,
    Finding,
    ProposalTarget,
    nodes_of,
    proof,
    since,
    time_text,
)

STAYS = 120.0
"""Seconds behind the end of its grace period, from which a pod is reported: its volumes and its network need some."""


def staying_findings(facts: Facts, target: ProposalTarget) -> Iterator[Finding]:
    kept = (fact for fact in facts.of(Kind.ACCEPTED) if fact.at is not None and fact.clock == API_CLOCK)
    deleted = [fact for fact in kept if fact.node or fact["finalizers"]]
    if not deleted:
        return
    newest: dict[str, float] = defaultdict(float)
    for fact in facts.of(Kind.CREATED, Kind.ENDED, Kind.CHANGED_STATE, Kind.ACCEPTED):
        if fact.at is not None and fact.clock == API_CLOCK:
            newest[fact.where.file] = max(newest[fact.where.file], fact.at)
    for fact in deleted:
        due = (fact.at or 0.0) + float(fact["grace"] or 0)
        after = target.now if target.now is not None else newest[fact.where.file]
        before = float(fact["printed"]) if fact["printed"] else after
        if after - due >= STAYS:
            yield _staying(fact, due, f"It was still there {seconds_text(after - due)} later.")
        elif before - due >= STAYS:
            yield _staying(
                fact, due, "", "when the list of pods was printed: the file may be older than its last change"
            )


def _staying(fact: Fact, due: float, still: str, unknown: str = "") -> Finding:
    cause = f"pod {fact['pod']} is being deleted, and its grace period of {fact['grace']} s ended at {time_text(due)}. {still}".rstrip()
    fetch = unknown
    if fact["running"]:
        cause += f" By its status container {fact['running']} still runs: the runtime has not ended it, or the node does not report."
        fetch = fetch or "whether the node is Ready, and the kubelet's log of the pod: `KillContainerError`"
    elif fact["finalizers"]:
        cause += f" Its containers have ended; its finalizers keep it: {fact['finalizers']}."
        fetch = fetch or "the program that has to remove these finalizers"
    else:
        cause += " Its containers have ended: a volume, its network or a node that does not report keeps it."
        fetch = (
            fetch
            or "the kubelet's log of the pod: `UnmountVolume.TearDown failed`, `KillPodSandboxError`; whether the node is Ready"
        )
    sure = Confidence.UNKNOWN if unknown else Confidence.CERTAIN
    return Finding(
        "pod-stays-terminating", sure, nodes_of([fact]), since([fact]), cause, proof([fact]), fetch_next=fetch
    )
