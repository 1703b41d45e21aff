"""Pulls, put together from their beginnings and ends; and the queue that holds them up (the convoy rule).

A kubelet with ``serializeImagePulls: true`` pulls one image at a time. A pull that hangs holds up all others, and when it
ends they leave the queue: their starts are spread over minutes, their ends fall together behind the first. If they fail
they end at once; if they succeed they end in the order of their starts, and each takes its own time. The ``Pulling`` event is written when a pull enters the queue, so the wait is in no log while it lasts.

``pull QPS exceeded`` is decided when a pull leaves the queue, before the runtime is called (pkg/kubelet/images/helpers.go,
puller.go). So the time between ``Pulling`` and that error is waiting and nothing else.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from rollout.core.text.terminal import counted, seconds_text
from rollout.kubelet.diagnosis.facts import API_CLOCK, Fact, Facts, Kind
from rollout.kubelet.diagnosis.finding import Confidence, Finding, ProposalTarget, go_seconds, nodes_of, proof, since

QPS = "pull QPS exceeded"
WAITED = 60.0
"""Seconds in the queue, or between the first and the last start, from which pulls count as held up."""
TOGETHER = 0.25
"""Seconds between two ends of a convoy, where times have fractions. The replays have tens of milliseconds."""
WHOLE_SECONDS = 2.0
"""The same for events, which have whole seconds."""
BEHIND = 2
"""Pulls that must end together behind the first, before their starts and ends prove anything."""

DRAINED = 0.5
"""The ends of pulls that leave a queue one by one take at most this share of the time over which they began. Slow pulls that
ran side by side end as far apart as they began."""

_OLDEST = 200
"""Open pulls, the oldest first, among which the pull of a line without its pod or image is looked for."""
_IN_FLIGHT = ("context canceled", "EOF", "transport is closing", "error reading from server", "code = Unavailable")
"""Errors of pulls that a runtime was working on when it or the kubelet stopped."""


@dataclass(frozen=True, slots=True)
class Pull:
    """From the queue to its end. ``ended`` ``None``: no end is known. ``waited``: seconds in the queue, if printed."""

    image: str
    begun: Fact
    ended: Fact | None

    @property
    def start(self) -> float:
        return self.begun.at or 0.0

    @property
    def end(self) -> float:
        return (self.ended.at if self.ended else None) or 0.0

    @property
    def error(self) -> str:
        return self.ended["error"] if self.ended else ""

    @property
    def facts(self) -> tuple[Fact, ...]:
        return (self.begun, self.ended) if self.ended else (self.begun,)

    @property
    def waited(self) -> float | None:
        """Y - X of "in X (Y including waiting)", or the whole time of a pull that the limit of its rate rejected."""
        if self.ended is None:
            return None
        if QPS in self.error:
            return self.end - self.start
        return queue_time(self.ended)


def queue_time(pulled: Fact) -> float | None:
    """Y - X of a ``Pulled`` event, in seconds."""
    took, whole = go_seconds(pulled["took"]), go_seconds(pulled["waited"])
    return whole - took if took is not None and whole is not None else None


def registry(image: str) -> str:
    """``docker.io`` for an image without a registry, as the container runtimes read it."""
    host, slash, _ = image.partition("/")
    return host if slash and (set(".:") & set(host) or host == "localhost") else "docker.io"


def pulls_of(facts: Facts) -> tuple[Pull, ...]:
    """Every pull with a known beginning. An end belongs to the pull of the same pod and image, else to the oldest one."""
    open_: dict[tuple[str, str], dict[tuple[str, str, str], Fact]] = defaultdict(dict)
    found: list[Pull] = []
    for fact in facts.of(Kind.QUEUED, Kind.PULLED, Kind.PULL_FAILED):
        if fact.at is None:
            continue
        here = open_[fact.node, fact.clock]
        if fact.kind is Kind.QUEUED:
            here.setdefault((fact["pod"], fact["container"], fact["image"]), fact)
            continue
        exact = fact["pod"], fact["container"], fact["image"]
        key = exact if exact in here else next((key for key in islice(here, _OLDEST) if _same(key, exact)), None)
        if key is not None:
            found.append(Pull(key[2], here.pop(key), fact))
    found += [Pull(key[2], fact, None) for here in open_.values() for key, fact in here.items()]
    return tuple(sorted(found, key=lambda pull: pull.start))


def _same(key: tuple[str, str, str], told: tuple[str, str, str]) -> bool:
    """Lines of the kubelet without pod, container or image may be of any."""
    pod, container, image = key
    to_pod, to_container, to_image = told
    return (
        (pod == to_pod or not pod or not to_pod)
        and (container == to_container or not container or not to_container)
        and (image == to_image or not image or not to_image)
    )


# The queue.


@dataclass(frozen=True, slots=True)
class Convoy:
    """Pulls of one node that ended behind the same one. ``blocker``: the one in front."""

    blocker: Pull
    behind: tuple[Pull, ...]

    @property
    def pulls(self) -> tuple[Pull, ...]:
        return self.blocker, *self.behind

    @property
    def drained(self) -> float:
        """Seconds from the blocker's end to the last one."""
        return max(pull.end for pull in self.behind) - self.blocker.end


def convoys(pulls: Iterable[Pull]) -> Iterator[Convoy]:
    """Groups of pulls with starts spread over a minute or more, and ends that follow each other at once."""
    by_node: dict[tuple[str, str], list[Pull]] = defaultdict(list)
    for pull in pulls:
        if pull.ended is not None:
            by_node[pull.begun.node, pull.begun.clock].append(pull)
    for (_, clock), ended in by_node.items():
        gap = WHOLE_SECONDS if clock == API_CLOCK or clock.startswith("ages") else TOGETHER
        together = [
            convoy
            for group in _close(sorted(ended, key=lambda pull: (pull.end, pull.start)), gap)
            if (convoy := _convoy(group))
        ]
        told = {id(pull) for convoy in together for pull in convoy.pulls}
        yield from together
        yield from _drains(sorted((pull for pull in ended if id(pull) not in told), key=lambda pull: pull.start))


def _close(ended: Sequence[Pull], gap: float) -> Iterator[list[Pull]]:
    group: list[Pull] = []
    for pull in ended:
        if group and pull.end - group[-1].end > gap:
            yield group
            group = []
        group.append(pull)
    yield group


def _drains(pulls: Sequence[Pull]) -> Iterator[Convoy]:
    """Of pulls by their start: queues that ended one by one behind a pull, in the order in which they began."""
    at = 0
    while at < len(pulls):
        group = _in_order(pulls[at], islice(pulls, at + 1, at + 1 + _OLDEST))
        ends, begins = group[-1].end - group[0].end, group[-1].start - group[0].start
        convoy = _convoy(group) if ends <= DRAINED * begins else None
        if convoy:
            yield convoy
        at += len(group) if convoy else 1


def _in_order(blocker: Pull, after: Iterable[Pull]) -> list[Pull]:
    """The blocker and all pulls that began while it ran; it alone, if one of them ended before one that began earlier."""
    group = [blocker]
    for pull in after:
        if pull.start >= blocker.end:
            break
        if pull.end < group[-1].end and pull.start - group[-1].start > WHOLE_SECONDS:
            return [blocker]
        group.append(pull)
    return group


def _convoy(group: list[Pull]) -> Convoy | None:
    """The group with its blocker: the pull that began first. Pulls that began just before the end waited for nothing."""
    if not group:
        return None
    blocker, *rest = sorted(group, key=lambda pull: pull.start)
    behind = tuple(pull for pull in rest if pull.start < blocker.end)
    spread = max((pull.start for pull in behind), default=blocker.start) - blocker.start
    held = max((blocker.end - pull.start for pull in behind), default=0.0)
    others = [pull for pull in behind if pull.image != blocker.image]  # a runtime ends all pulls of one image together
    if len(others) < BEHIND or spread < WAITED or held < WAITED or _one_cut(behind):
        return None
    return Convoy(blocker, behind)


def _one_cut(behind: Sequence[Pull]) -> bool:
    """Whether the pulls were all with the runtime when it stopped: they ran side by side."""
    return all(any(word in pull.error for word in _IN_FLIGHT) for pull in behind)


def queue_findings(facts: Facts, pulls: Sequence[Pull], target: ProposalTarget) -> Iterator[Finding]:
    told: set[int] = set()
    left: Left = defaultdict(list)
    for fact in facts.of(Kind.UNQUEUED, Kind.RUNTIME_STARTED):
        left[fact.node, fact.clock, fact["image"]].append(fact.at or 0.0)
    for convoy in convoys(pulls):
        times = _left_queue(convoy, left)
        if any(at < convoy.blocker.end - WAITED for at in times):
            continue  # one of them was with the runtime meanwhile: they ran side by side
        told |= {id(fact) for pull in convoy.pulls for fact in pull.facts}
        yield _of_convoy(convoy, times, target)
    yield from _long_waits(facts, [pull for pull in pulls if id(pull.begun) not in told], told, target)


def _long_waits(facts: Facts, pulls: Sequence[Pull], told: set[int], target: ProposalTarget) -> Iterator[Finding]:
    """A finding for each node with pulls of no convoy that waited by their own times."""
    by_node: dict[str, list[tuple[float, tuple[Fact, ...]]]] = defaultdict(list)
    for pull in pulls:
        if (pull.waited or 0.0) >= WAITED:
            by_node[pull.begun.node].append((pull.waited or 0.0, pull.facts))
    known = told | {id(pull.ended) for pull in pulls}
    for fact in facts.of(Kind.PULLED):
        waited = queue_time(fact) or 0.0
        if waited >= WAITED and id(fact) not in known:
            by_node[fact.node].append((waited, (fact,)))
    for waits in by_node.values():
        yield _waited([fact for _, lines in waits for fact in lines], max(seconds for seconds, _ in waits), target)


Left = dict[tuple[str, str, str], list[float]]
"""Node, clock and image → when the kubelet began such a pull, or the runtime received it."""


def _of_convoy(convoy: Convoy, left: Sequence[float], target: ProposalTarget) -> Finding:
    blocker, behind = convoy.blocker, convoy.behind
    reason = _proof_of_queue(convoy, left)
    held = seconds_text(blocker.end - blocker.start)
    count = counted(len(behind), "pull")
    registries = sorted({registry(pull.image) for pull in behind})
    ended = "at once" if convoy.drained <= WHOLE_SECONDS else f"one by one within {seconds_text(convoy.drained)}"
    cause = (
        f"{count} waited in one queue behind the pull of {blocker.image}, which took {held}; when it ended, all ended {ended}. "
        f"The kubelet pulls one image at a time. "
    )
    if reason:
        cause += reason
    confidence = Confidence.CERTAIN if reason else Confidence.LIKELY
    others = [each for each in registries if each != registry(blocker.image)]
    if not reason and not others:
        confidence = Confidence.UNKNOWN
    fetch = "" if reason else _FETCH_QUEUE
    lines = [each for pull in convoy.pulls for each in pull.facts]
    return queue_finding(confidence, lines, cause, target, fetch, per_registry(pull.image for pull in convoy.pulls))


_FETCH_QUEUE = (
    "the value of serializeImagePulls in /configz of the node; the runtime's log, which shows whether a pull reached it "
    "before the first one ended; Pulled events of kubelet 1.26 and later, which have the time with and without waiting"
)


def _proof_of_queue(convoy: Convoy, left: Sequence[float]) -> str:
    """What proves that the pulls behind had not reached the runtime while the blocker ran; ``""``: nothing does."""
    if any(QPS in pull.error for pull in convoy.behind):
        return f"`{QPS}` is decided when a pull leaves that queue, so these pulls had not reached the runtime."
    if any((pull.waited or 0.0) >= WAITED for pull in convoy.behind):
        return "The Pulled events show the time in the queue."
    if left and all(at >= convoy.blocker.end - TOGETHER for at in left):
        return "They reached the runtime only after it had ended."
    return ""


def _left_queue(convoy: Convoy, left: Left) -> list[float]:
    """When the pulls behind left the queue, by lines since the first of them began. Its event is a little late."""
    begun, images = convoy.blocker.begun, {pull.image for pull in convoy.behind} - {convoy.blocker.image}
    first = min(pull.start for pull in convoy.behind) - TOGETHER
    return [at for image in images for at in left.get((begun.node, begun.clock, image), ()) if at >= first]


def _waited(lines: list[Fact], longest: float, target: ProposalTarget) -> Finding:
    cause = (
        f"a pull waited {seconds_text(longest)} in the kubelet's own queue before the runtime received it: "
        f"another pull held up the queue."
    )
    fetch = "the node's list of running pulls and their ages while pods wait: it names the pull in front"
    return queue_finding(Confidence.CERTAIN, lines, cause, target, fetch, "")


def per_registry(images: Iterable[str]) -> str:
    """How many pulls wait for each registry, and whether it is one."""
    counts: dict[str, int] = defaultdict(int)
    for image in images:
        counts[registry(image)] += 1
    named = ", ".join(f"{name}: {count}" for name, count in sorted(counts.items()))
    if len(counts) == 1:
        return f" All wait for one registry ({named}): fix the registry first, because parallel pulls add load to it."
    return f" Pulls per registry: {named}."


def queue_finding(
    confidence: Confidence, lines: list[Fact], cause: str, target: ProposalTarget, fetch: str, registries: str
) -> Finding:
    """``serial-pull-queue`` with the settings that end the queue; an unknown one proposes nothing."""
    nodes = nodes_of(lines)
    bounded = target.minor is not None and target.minor >= 27
    settings = ["serializeImagePulls=false", *(["maxParallelImagePulls=5"] if bounded else [])]
    bound = (
        "five pulls at once share the node's disk and network."
        if bounded
        else "pulls share disk and network without a bound; kubelets 1.27 and later take --set maxParallelImagePulls=5."
    )
    risk = f"each kubelet restarts, which cancels running pulls and empties the queue; {bound}"
    proposal = "" if confidence is Confidence.UNKNOWN else target.plan(nodes, *settings)
    return Finding(
        "serial-pull-queue", confidence, nodes, since(lines), f"{cause.strip()}{registries}", proof(lines),
        proposal, risk if proposal else "", fetch,
    )  # fmt: skip
