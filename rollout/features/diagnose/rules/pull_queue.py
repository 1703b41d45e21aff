"""The findings about the pull queue: which pull was in front, what proves it, and the setting that ends the queue."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

from rollout.core.text.terminal import counted, seconds_text
from rollout.features.diagnose.rules.facts import AGES, API_CLOCK, Fact, Facts, Kind
from rollout.features.diagnose.rules.finding import Confidence, Finding, ProposalTarget, nodes_of, proof, since
from rollout.features.diagnose.rules.messages import QPS, over_qps
from rollout.features.diagnose.rules.pulls import (
    DIALING,
    HUNG,
    IN_FLIGHT,
    TOGETHER,
    WAITED,
    WHOLE_SECONDS,
    Convoy,
    Pull,
    convoys,
    queue_time,
    registry,
)

UNPROVEN = 4
"""Pulls that must end behind the first where nothing else shows the queue. On a busy node three do so by chance."""


def queue_findings(facts: Facts, pulls: Sequence[Pull], target: ProposalTarget) -> Iterator[Finding]:
    told: set[int] = set()
    left: Left = defaultdict(list)
    for fact in facts.of(Kind.UNQUEUED, Kind.RUNTIME_STARTED):
        left[fact.node, fact.clock, fact["image"]].append(fact.at or 0.0)
    by_node: dict[tuple[str, str], list[tuple[Convoy, str]]] = defaultdict(list)
    for convoy in convoys(pulls):
        times = _left_queue(convoy, left)
        if any(at < convoy.blocker.end - WAITED for at in times):
            continue  # one of them was with the runtime meanwhile: they ran side by side
        reason = _proof_of_queue(convoy, times)
        if not reason and _by_chance(convoy, pulls):
            continue
        told |= {id(fact) for pull in convoy.pulls for fact in pull.facts}
        by_node[convoy.blocker.begun.node, convoy.blocker.begun.clock].append((convoy, reason))
    cut = _without_begin(facts, told)
    for place, queues in by_node.items():
        yield _of_convoys(queues, [*cut[place], *(cut["", place[1]] if place[0] else ())], target)
    yield from _long_waits(facts, [pull for pull in pulls if id(pull.begun) not in told], told, target)


def _by_chance(convoy: Convoy, pulls: Sequence[Pull]) -> bool:
    """Whether pulls that ran side by side could have ended so.

    A queue lets no pull that began before the blocker end after it. Events without their node may be of many nodes; an age of more than ten minutes is in whole minutes.
    """
    blocker = convoy.blocker
    here = blocker.begun
    vague = here.clock.startswith(AGES) or (not here.node and here.clock == API_CLOCK)
    if len(convoy.behind) < UNPROVEN or (vague and blocker.end - blocker.start < HUNG):
        return True
    return any(
        pull.start < blocker.start - WHOLE_SECONDS and pull.end > blocker.end + WHOLE_SECONDS
        for pull in pulls
        if pull.ended and (pull.begun.node, pull.begun.clock) == (here.node, here.clock)
    )


def _long_waits(facts: Facts, pulls: Sequence[Pull], told: set[int], target: ProposalTarget) -> Iterator[Finding]:
    """A finding for each node with pulls of no convoy that waited by their own times."""
    by_node: dict[str, list[tuple[float, tuple[Fact, ...]]]] = defaultdict(list)
    for pull in pulls:
        if not pull.since_arrival and (pull.waited or 0.0) >= WAITED:
            by_node[pull.begun.node].append((pull.waited or 0.0, pull.facts))
    known = told | {id(pull.ended) for pull in pulls}
    for fact in facts.of(Kind.PULLED):
        waited = queue_time(fact) or 0.0
        if waited >= WAITED and id(fact) not in known:
            by_node[fact.node].append((waited, (fact,)))
    for waits in by_node.values():
        yield _waited([fact for _, lines in waits for fact in lines], max(seconds for seconds, _ in waits), target)
    late = [
        pull for pull in pulls if pull.since_arrival and (pull.waited or 0.0) >= HUNG and pull.begun.node not in by_node
    ]
    for node in dict.fromkeys(pull.begun.node for pull in late):
        yield _since_arrival([pull for pull in late if pull.begun.node == node], target)


Left = dict[tuple[str, str, str], list[float]]
"""Node, clock and image → when the kubelet began such a pull, or the runtime received it."""


def _without_begin(facts: Facts, told: set[int]) -> dict[tuple[str, str], list[Fact]]:
    """Failed pulls of images without a known beginning, by node and clock."""
    failed: dict[tuple[str, str], list[Fact]] = defaultdict(list)
    for fact in facts.of(Kind.PULL_FAILED) if told else ():
        late = over_qps(fact["error"]) or DIALING in fact["error"]
        if id(fact) not in told and fact["image"] and fact.at is not None and not late:
            failed[fact.node, fact.clock].append(fact)
    return failed


def _of_convoys(queues: Sequence[tuple[Convoy, str]], cut: Sequence[Fact], target: ProposalTarget) -> Finding:
    """One finding for all queues of a node: the one that is shown best, and how many more there are."""
    convoy, reason = max(queues, key=lambda each: (bool(each[1]), len(each[0].behind)))
    blocker, behind = convoy.blocker, convoy.behind
    held = seconds_text(blocker.end - blocker.start)
    ended = "at once" if convoy.drained <= WHOLE_SECONDS else f"one by one within {seconds_text(convoy.drained)}"
    images = [pull.image for pull in convoy.pulls if pull.image]
    if not blocker.came_late and not blocker.since_arrival:
        cause = f"{counted(len(behind), 'pull')} waited in one queue behind the pull of {blocker.image}, which took {held}; when it ended, all ended {ended}."
    else:
        cause = f"{counted(len(convoy.pulls), 'pull')} waited in one queue, up to {held}; when it was released, all ended {ended}."
        front = _in_front(convoy, cut)
        images += [front] if front else []
        cause += f" The pull in front was by exclusion that of {front}, which failed then." if front else ""
    cause += f" The kubelet pulls one image at a time. {reason}".rstrip()
    if len(queues) > 1:
        cause += f" The same happened {counted(len(queues) - 1, 'more time')}."
    others = {registry(pull.image) for pull in behind if pull.image} - {registry(blocker.image)}
    rejected = any(pull.came_late for pull in convoy.waited) or any(pull.rejected_late for pull in behind)
    shown = rejected or (others and not blocker.since_arrival)
    confidence = Confidence.CERTAIN if reason else Confidence.LIKELY if shown else Confidence.UNKNOWN
    fetch = "" if reason else _FETCH_ARRIVED if blocker.since_arrival else _FETCH_QUEUE
    lines = [fact for pull in convoy.pulls for fact in pull.facts]
    return queue_finding(confidence, lines, cause, target, fetch, per_registry(images))


def _in_front(convoy: Convoy, cut: Sequence[Fact]) -> str:
    """The image of the pull in front, by exclusion: it ended as the queue was released, in a runtime's hands; ``""``: none did."""
    images, released = {pull.image for pull in convoy.pulls}, convoy.blocker.end
    near = (fact for fact in cut if abs((fact.at or 0.0) - released) <= WHOLE_SECONDS and fact["image"] not in images)
    return next((fact["image"] for fact in near if any(word in fact["error"] for word in IN_FLIGHT)), "")


_FETCH_QUEUE = (
    "the value of serializeImagePulls in /configz of the node; the runtime's log, which shows whether a pull reached it "
    "before the first one ended; Pulled events of kubelet 1.26 and later, which have the time with and without waiting"
)
_FETCH_ARRIVED = (
    "the Pulling events of these pods, or a kubelet's log at -v=3: only the arrival of the pods is known, and their volumes, their "
    "network or an init container may have taken the time; the value of serializeImagePulls in /configz of the node"
)


def _proof_of_queue(convoy: Convoy, left: Sequence[float]) -> str:
    """What proves that the pulls behind had not reached the runtime while the blocker ran; ``""``: nothing does."""
    if all(pull.since_arrival for pull in convoy.behind):
        return ""
    if any(pull.rejected_late for pull in convoy.behind) or any(over_qps(pull.error) for pull in convoy.waited):
        return f"`{QPS}` is decided when a pull leaves that queue, so these pulls had not reached the runtime."
    if any(DIALING in pull.error for pull in convoy.waited) and DIALING not in convoy.blocker.error:
        return "They found no runtime when they left the queue, so these pulls had not reached it before it stopped."
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


def _since_arrival(pulls: Sequence[Pull], target: ProposalTarget) -> Finding:
    longest = max(pulls, key=lambda pull: pull.waited or 0.0)
    cause = (
        f"pod {longest.begun['pod']} waited {seconds_text(longest.waited or 0.0)} on its node until its pull failed with `{QPS}`. That is "
        f"decided when a pull leaves the kubelet's queue, so another pull held up the queue."
    )
    lines = [fact for pull in pulls for fact in pull.facts]
    return queue_finding(Confidence.LIKELY, lines, cause, target, _FETCH_ARRIVED, "")


def per_registry(images: Iterable[str]) -> str:
    """How many pulls wait for each registry, and whether it is one."""
    counts: dict[str, int] = defaultdict(int)
    for image in images:
        counts[registry(image)] += 1
    if not counts:
        return ""
    named = ", ".join(f"{name}: {count}" for name, count in sorted(counts.items()))
    if len(counts) == 1:
        return f" All are images of one registry ({named}): fix it, or the mirror that serves it, first, because parallel pulls add load to it."
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
