"""The end of one pod that was asked for, from all sources: the API's own times, the kubelet's log, and its return.

A kubelet does not log SIGKILL: the runtime sends it when the period that it was given is over. That step is computed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

from rollout.core.text.terminal import printable
from rollout.features.diagnose.rules.endings import PodEnd, endings_of, step_words
from rollout.features.diagnose.rules.facts import Fact, Facts, Kind
from rollout.features.diagnose.rules.finding import clock_text
from rollout.features.diagnose.rules.troubles import MOUNTED, NOT_KILLED, NOT_STOPPED

BEFORE = 60.0
"""Seconds before the kubelet sees a deletion, in which the API may have accepted it."""
BEHIND = 3600.0
"""Seconds behind a pod's end, in which its return belongs to it."""
TOGETHER = 2.0
"""Seconds in which the layers of a kubelet report one try."""
_SIGNALS = {"137": "SIGKILL", "143": "SIGTERM"}


@dataclass(frozen=True, slots=True)
class PodStep:
    """One step; ``seconds``: since the first one."""

    at: float
    seconds: float
    what: str


@dataclass(frozen=True, slots=True)
class PodTimeline:
    """``node``: ``""`` if no line names it."""

    pod: str
    node: str
    steps: tuple[PodStep, ...]


def pod_timelines(facts: Facts, pod: str) -> tuple[PodTimeline, ...]:
    """Each end of the pod, the oldest first. Without a kubelet's log: what the API shows of it."""
    ends = sorted(
        (ending for ending in endings_of(facts) if ending.pod == pod), key=lambda each: each.deleted.at or 0.0
    )
    told = [fact for fact in facts.of(*_OF_THE_API) if fact["pod"] == pod and fact.at is not None]
    if ends:
        failed = [fact for fact in facts.of(Kind.TROUBLE) if fact["pod"] == pod and fact["id"] in _FAILED]
        return tuple(
            _timeline(pod, ending.deleted.node, chain(_all(ending, told), _failures(ending, failed))) for ending in ends
        )
    accepted = next((fact for fact in told if fact.kind is Kind.ACCEPTED), None)
    if accepted is None:
        return ()
    since = accepted.at or 0.0
    shown = ((fact.at or 0.0, _of_the_api(fact)) for fact in told if (fact.at or 0.0) >= since)
    return (_timeline(pod, accepted.node, shown),)


_OF_THE_API = (Kind.ACCEPTED, Kind.ENDED, Kind.CREATED, Kind.PLACED)
_Told = tuple[float, str]


def _timeline(pod: str, node: str, told: Iterator[_Told]) -> PodTimeline:
    steps = sorted(told, key=lambda each: each[0])
    first = steps[0][0]
    return PodTimeline(pod, node, tuple(PodStep(at, at - first, what) for at, what in steps))


def _all(ending: PodEnd, told: list[Fact]) -> Iterator[_Told]:
    yield from ((step.at or 0.0, words) for step, words in step_words(ending))
    # SIGKILL to each container that outlived the period that the runtime was given.
    for number, step in enumerate(ending.steps):
        grace = step["grace"]
        if step.kind is not Kind.KILL or not grace.isdecimal():
            continue
        later = ending.steps[number + 1 :]
        if any(each.kind in (Kind.HOOK, Kind.KILL) and each["id"] == step["id"] for each in later):
            continue  # the period begins behind the hook, or anew
        end = next((each for each in later if each.kind in (Kind.KILLED, Kind.DIED) and each["id"] == step["id"]), None)
        due = (step.at or 0.0) + int(grace)
        if end is not None and (end.at or 0.0) >= due:
            yield due, f"SIGKILL to {ending.name(step)}: its {grace} s are over (computed)"
    begun = ending.deleted.at or 0.0
    over = ((ending.removed or ending.gone or ending.deleted).at or 0.0) + BEHIND
    for fact in told:
        early = BEFORE if fact.kind is Kind.ACCEPTED else 0.0
        if fact.clock == ending.deleted.clock and begun - early <= (fact.at or 0.0) <= over:
            yield fact.at or 0.0, _of_the_api(fact)


_FAILED = {
    NOT_KILLED: "the runtime does not end {of}",
    NOT_STOPPED: "the runtime does not stop the sandbox {of}",
    MOUNTED: "volume {of} is not unmounted",
}


def _failures(ending: PodEnd, failed: Sequence[Fact]) -> Iterator[_Told]:
    """The first and the last try of each kind that failed while the pod ended; one try may be reported by several layers."""
    begun, over = ending.deleted.at or 0.0, (ending.removed.at or 0.0) if ending.removed else float("inf")
    kinds: dict[tuple[str, str], list[float]] = {}
    for fact in failed:
        at = fact.at or 0.0
        if fact.clock == ending.deleted.clock and begun <= at <= over and fact["of"]:
            kinds.setdefault((fact["id"], fact["of"]), []).append(at)
    for (id_, of), times in kinds.items():
        words = _FAILED[id_].format(of=of)
        yield times[0], f"{words}: the try fails"
        if times[-1] - times[0] > TOGETHER:
            yield times[-1], f"{words}: the last try in these files fails"


def _of_the_api(fact: Fact) -> str:
    match fact.kind:
        case Kind.ACCEPTED:
            held = f", finalizers: {fact['finalizers']}" if fact["finalizers"] else ""
            return f"the API accepts the deletion, grace period {fact['grace']} s{held}"
        case Kind.ENDED:
            signal = _SIGNALS.get(fact["status"], "")
            return f"{fact['container']} ended with status {fact['status']}{f' ({signal})' if signal else ''}"
        case Kind.PLACED:
            return f"a new pod of this name is given to {fact.node or 'a node'}"
    return "a new pod of this name is created"


def timeline_lines(timeline: PodTimeline) -> Iterator[str]:
    where = f" on {timeline.node}" if timeline.node else ""
    yield printable(f"end of pod {timeline.pod}{where}", 200)
    for step in timeline.steps:
        yield f"    {clock_text(step.at)}  {step.seconds:+6.1f} s  {printable(step.what, 200)}"
