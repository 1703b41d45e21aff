"""The pull queue while it is blocked: pulls that began and have not ended, and pods that wait for an image.

The ``Pulling`` event is written when a pull enters the kubelet's queue, and it expires after an hour. The runtime logs a
pull when it leaves the queue (containerd ``PullImage "…"``, CRI-O ``Pulling image: …``). So one pull that the runtime
received, and others that it did not receive, are the queue itself.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from rollout.core.text.terminal import counted, seconds_text
from rollout.features.diagnose.rules.facts import Fact, Facts, Kind
from rollout.features.diagnose.rules.finding import Confidence, Finding, ProposalTarget, nodes_of, proof, since
from rollout.features.diagnose.rules.pull_queue import per_registry, queue_finding
from rollout.features.diagnose.rules.pulls import BEHIND, HUNG, TOGETHER, WAITED, Pull, ends_of

_FETCH = (
    "the node's list of running pulls and their ages; a pull of a small image from each registry through the node's "
    "own runtime (rollout diagnose probe); the value of serializeImagePulls in /configz"
)
_NAMED = 3
"""Running pulls that a cause names."""


@dataclass(frozen=True, slots=True)
class _Open:
    """A pull without an end, or a pod that waits for its image. ``queued``: the kubelet has logged that it wants it.

    ``waits``: the pod itself shows that it still waits. The pull of a deleted pod has no end either.
    """

    image: str
    start: float
    fact: Fact
    waits: bool

    @property
    def queued(self) -> bool:
        return self.fact.kind is Kind.QUEUED


def hanging_findings(facts: Facts, pulls: Sequence[Pull], target: ProposalTarget) -> Iterator[Finding]:
    ended: dict[tuple[str, str], list[Pull]] = defaultdict(list)
    for pull in pulls:
        if pull.ended and not pull.error:
            ended[pull.begun.node, pull.begun.clock].append(pull)
    failed = {fact["image"] for fact in facts.of(Kind.PULL_FAILED)}
    runtime, last = _with_runtime(facts), ends_of(facts, target.now)
    for place, open_ in _open(facts, pulls, last).items():
        hung = [each for each in open_ if last[place[1]] - each.start >= HUNG]
        if len(hung) <= BEHIND or len({pull.image for pull in hung}) <= 1:
            hung = [pull for pull in hung if pull.queued and pull.waits and pull.image not in failed]
        if not hung:
            continue
        beside = next((pull for pull in ended[place] if pull.end > hung[0].start + WAITED), None)
        if beside is not None:  # others end meanwhile: there is no one queue
            alone = [pull for pull in hung if pull.queued and pull.waits and pull.image not in failed]
            if alone:
                yield _slow(alone, beside, last[place[1]])
            continue
        yield _finding(hung, runtime.get(place), last[place[1]], target)


def _open(facts: Facts, pulls: Sequence[Pull], last: Mapping[str, float]) -> dict[tuple[str, str], list[_Open]]:
    """By node and clock, the oldest first. A pod with an open pull counts once."""
    opened: dict[tuple[str, str], list[_Open]] = defaultdict(list)
    known: set[str] = set()
    waiting = {fact["pod"] for fact in facts.of(Kind.WAITING)}
    for pull in pulls:
        if pull.ended is None:
            opened[pull.begun.node, pull.begun.clock].append(
                _Open(pull.image, pull.start, pull.begun, bool(pull.begun["described"]) or pull.begun["pod"] in waiting)
            )
            known.add(pull.begun["pod"])
    held = {fact["pod"] for fact in facts.of(Kind.HELD) if (fact.at or 0.0) > last[fact.clock] - HUNG}
    for fact in facts.of(Kind.WAITING):
        if fact.at is not None and fact["pod"] not in known | held:
            opened[fact.node, fact.clock].append(_Open(fact["image"], fact.at, fact, waits=True))
            known.add(fact["pod"])
    return {place: sorted(open_, key=lambda each: each.start) for place, open_ in opened.items()}


def _with_runtime(facts: Facts) -> dict[tuple[str, str], dict[str, Fact]]:
    """Node and clock → image → the line with which the runtime received it, without those that it has ended.

    A node is in it if its runtime logs pulls at all.
    """
    running: dict[tuple[str, str], dict[str, Fact]] = defaultdict(dict)
    for fact in facts.of(Kind.RUNTIME_STARTED, Kind.RUNTIME_ENDED):
        here = running[fact.node, fact.clock]
        if fact.kind is Kind.RUNTIME_STARTED:
            here.setdefault(tagged(fact["image"]), fact)
        else:
            here.pop(tagged(fact["image"]), None)
    return running


def tagged(image: str) -> str:
    """With the tag that kubelets add."""
    return image if set(":@") & set(image.rpartition("/")[2]) else f"{image}:latest"


def _finding(hung: list[_Open], runtime: dict[str, Fact] | None, last: float, target: ProposalTarget) -> Finding:
    registries = per_registry(pull.image for pull in hung)
    front = _front(runtime or {}, last)
    # Whether it began behind the front and has not reached the runtime. Older lines may be missing from the log.
    behind = [
        pull
        for pull in hung
        if front is not None
        and tagged(pull.image) not in (runtime or {})
        and (front.at is None or pull.start >= front.at - TOGETHER)
    ]
    if front is None or len(behind) < BEHIND:
        if len(hung) == 1:
            cause = (
                f"the pull of {hung[0].image} began {seconds_text(last - hung[0].start)} before the end of what was read and has not ended. "
                f"It hangs, or it waits in the queue behind another pull of its node."
            )
            return queue_finding(Confidence.UNKNOWN, _lines(hung), cause, target, _FETCH, "")
        cause = (
            f"{counted(len(hung), 'pull')} began and did not end, the first of them {hung[0].image}, "
            f"{seconds_text(last - hung[0].start)} before the last line. A pull that hangs, one queue and a slow registry would all look the same.{_under_way(runtime or {}, last)}"
        )
        lines = [*(runtime or {}).values(), *_lines(hung)]
        return queue_finding(Confidence.UNKNOWN, lines, cause, target, _FETCH, registries)
    certain = front.at is not None and sum(each.queued for each in behind) >= BEHIND
    cause = (
        f"{counted(len(behind), 'pod')} wait in one queue behind the pull of {front['image']}, which the runtime received{_ago(front, last, hung)} "
        f"and has not ended. The runtime has received none of the others. "
    )
    fetch = (
        "" if certain else "what else these pods may wait for: volumes and their network; kubectl describe pod shows it"
    )
    sure = Confidence.CERTAIN if certain else Confidence.LIKELY
    return queue_finding(sure, [front, *_lines(behind)], cause, target, fetch, registries)


def _slow(open_: Sequence[_Open], beside: Pull, last: float) -> Finding:
    """Pulls that their pods still wait for, while another one ended."""
    more = f" The same holds for {counted(len(open_) - 1, 'more pull')}." if len(open_) > 1 else ""
    cause = (
        f"the pull of {open_[0].image} began {seconds_text(last - open_[0].start)} before the end of what was read and has not ended: it is slow, or it "
        f"hangs. That of {beside.image} ended meanwhile, so no queue of one pull holds it.{more}"
    )
    lines = [*_lines(open_), *beside.facts]
    fetch = "the runtime's log of that pull, with what it has read; a timed pull of the image on the node: rollout diagnose probe"
    return Finding(
        "registry-slow",
        Confidence.UNKNOWN,
        nodes_of(lines),
        since(_lines(open_)),
        cause,
        proof(lines),
        fetch_next=fetch,
    )


def _ago(front: Fact, last: float, hung: Iterable[_Open] = ()) -> str:
    """How long the runtime has had the pull: by its line, at least, or else how long a pod has waited for it."""
    if front.at is not None:
        return f" {seconds_text(last - front.at)} ago"
    if front["before"]:
        return f" at least {least_text(last - float(front['before']))} ago"
    first = min((pull.start for pull in hung if tagged(pull.image) == tagged(front["image"])), default=None)
    return "" if first is None else f", for which a pod has waited {seconds_text(last - first)},"


def _under_way(runtime: Mapping[str, Fact], last: float) -> str:
    """The pulls that the runtime has, with their ages."""
    if not runtime:
        return ""
    named = [f"{fact['image']}{_ago(fact, last)}" for fact in list(runtime.values())[:_NAMED]]
    more = f" and {len(runtime) - _NAMED} more" if len(runtime) > _NAMED else ""
    return f" The runtime received, with no end in the log: {', '.join(named)}{more}."


def least_text(seconds: float) -> str:
    """A length of time that is at least so long: whole minutes, rounded down."""
    return seconds_text(seconds // 60 * 60 if seconds >= 60 else seconds // 1)


def _front(runtime: dict[str, Fact], last: float) -> Fact | None:
    """The only pull that the runtime has had for minutes; ``at`` ``None``: by the agent, which knows no beginning."""
    running = [fact for fact in runtime.values() if fact.at is None or last - fact.at >= HUNG]
    return running[0] if len(running) == 1 else None


def _lines(open_: Iterable[_Open]) -> list[Fact]:
    return [each.fact for each in open_]
