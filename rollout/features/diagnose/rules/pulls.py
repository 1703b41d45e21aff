"""Pulls, put together from their beginnings and ends; and those that one queue held up (the convoy rule).

A kubelet with ``serializeImagePulls: true`` pulls one image at a time. A pull that hangs holds up all others, and when it
ends they leave the queue: their starts are spread over minutes, their ends fall together behind the first. If they fail
they end at once; if they succeed they end in the order of their starts, and each takes its own time. The ``Pulling`` event is written when a pull enters the queue, so the wait is in no log while it lasts.

``pull QPS exceeded`` is decided when a pull leaves the queue, before the runtime is called (pkg/kubelet/images/helpers.go,
puller.go). So the time between ``Pulling`` and that error is waiting and nothing else.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice

from rollout.features.diagnose.rules.facts import AGES, API_CLOCK, Fact, Facts, Kind
from rollout.features.diagnose.rules.finding import go_seconds
from rollout.features.diagnose.rules.messages import over_qps

WAITED = 60.0
"""Seconds in the queue, or between the first and the last start, from which pulls count as held up."""
TOGETHER = 0.25
"""Seconds between two ends of a convoy, where times have fractions. The replays have tens of milliseconds."""
WHOLE_SECONDS = 2.0
"""The same for events, which have whole seconds."""
BEHIND = 2
"""Pulls that must end together behind the first, before their starts and ends prove anything."""
FRESH = 5.0
"""Seconds before the end of the one in front, in which others begin and fail at once: they have waited for nothing."""
HUNG = 5 * WAITED
"""Seconds from which a pull without an end counts, or from which a pod waits for a pull without a known beginning."""
AT_ONCE, AT_ONCE_OF_EVENTS = 0.1, 3.0
"""Seconds between a pull's ``Pulling`` and its ``pull QPS exceeded``: without a queue both are written at once, and events have whole seconds."""
DRAINED = 0.5
"""The ends of pulls that leave a queue one by one take at most this share of the time over which they began. Slow pulls that
ran side by side end as far apart as they began."""

_OLDEST = 200
"""Open pulls, the oldest first, among which the pull of a line without its pod or image is looked for."""
IN_FLIGHT = ("context canceled", "EOF", "transport is closing", "error reading from server", "code = Unavailable")
"""Errors of pulls that a runtime was working on when it or the kubelet stopped."""
DIALING = "Error while dialing"
"""gRPC's error of a call that found no runtime: it had not begun before the runtime stopped."""


@dataclass(frozen=True, slots=True)
class Pull:
    """From the queue to its end. ``ended`` ``None``: no end is known. ``waited``: seconds in the queue, if printed.

    ``begun`` is the pod's arrival on the node where no line has the pull's own beginning: the pull began later.
    """

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
    def since_arrival(self) -> bool:
        return self.begun.kind is not Kind.QUEUED

    @property
    def came_late(self) -> bool:
        """Whether it ended before a runtime received it."""
        return over_qps(self.error) or DIALING in self.error

    @property
    def rejected_late(self) -> bool:
        """Whether the limit of the rate rejected it a while after its ``Pulling``: it was in a queue, however short.

        Events that count several times, or have ages only, do not show which ``Pulling`` belongs to which end.
        """
        if self.ended is None or self.since_arrival or not over_qps(self.error):
            return False
        clock, vague = self.begun.clock, self.begun.times > 1 or self.ended.times > 1
        most = AT_ONCE_OF_EVENTS if clock == API_CLOCK else AT_ONCE
        return self.end - self.start >= (WAITED if vague or clock.startswith(AGES) else most)

    @property
    def waited(self) -> float | None:
        """Y - X of "in X (Y including waiting)", or the whole time of a pull that the limit of its rate rejected."""
        if self.ended is None:
            return None
        if over_qps(self.error):
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


_HUB = frozenset({"docker.io", "index.docker.io", "registry-1.docker.io"})


def full_name(image: str) -> str:
    """As containerd names it: ``nginx`` and ``docker.io/nginx`` → ``docker.io/library/nginx:latest``."""
    host, slash, rest = image.partition("/")
    if not slash or (host in _HUB and "/" not in rest):
        image = f"docker.io/library/{rest or host}"
    elif host in _HUB:
        image = f"docker.io/{rest}"
    elif not set(".:") & set(host) and host != "localhost":
        image = f"docker.io/{host}/{rest}"
    return image if set(":@") & set(image.rpartition("/")[2]) else f"{image}:latest"


def repository(image: str) -> str:
    """``docker.io/library/busybox:1.36`` → ``library/busybox``, as it stands in the addresses that a host is asked for."""
    name = full_name(image).partition("@")[0].partition("/")[2]
    folder, slash, last = name.rpartition("/")
    return f"{folder}{slash}{last.partition(':')[0]}"


def ends_of(facts: Facts, now: float | None) -> dict[str, float]:
    """Each clock's last time; that of the events is ``now``, if they were read now. Ages end at zero."""
    last: dict[str, float] = {}
    for fact in facts:
        at = 0.0 if fact.clock.startswith(AGES) else fact.at or 0.0
        last[fact.clock] = max(last.get(fact.clock, at), at)
    if now is not None:
        last[API_CLOCK] = now
    return last


def with_images(facts: Facts) -> Facts:
    """The facts with the image that was asked for in each end that has its digest instead: the number of the request tells it."""
    asked = {
        (fact.node, fact.clock, fact["request"]): fact["image"]
        for fact in facts.of(Kind.RUNTIME_STARTED)
        if fact["request"]
    }
    if not asked:
        return facts

    def told(fact: Fact) -> Fact:
        image = asked.get((fact.node, fact.clock, fact["request"]), "") if fact.kind is Kind.RUNTIME_ENDED else ""
        return replace(fact, fields={**fact.fields, "image": image}) if image else fact

    return facts.replaced(map(told, facts))


def pulls_of(facts: Facts) -> tuple[Pull, ...]:
    """Every pull with a known beginning. An end belongs to the pull of the same pod and image, else to the oldest one.

    A kubelet at ``-v=2`` logs no beginning, and its event expires after an hour. Then the first pull that ends on a pod
    began when the pod arrived, or later.
    """
    arrivals = _Arrivals()
    open_: dict[tuple[str, str], dict[tuple[str, str, str], Fact]] = defaultdict(dict)
    pulls: list[Pull] = []
    for fact in facts.of(*_ARRIVALS, *_PULLING, *_OTHERWISE):
        if fact.at is None:
            continue
        arrival = arrivals.before(fact)
        if fact.kind not in _PULLING:
            continue
        here = open_[fact.node, fact.clock]
        if fact.kind is Kind.QUEUED:
            here.setdefault((fact["pod"], fact["container"], fact["image"]), fact)
            continue
        exact = fact["pod"], fact["container"], fact["image"]
        key = exact if exact in here else next((key for key in islice(here, _OLDEST) if _same(key, exact)), None)
        if key is not None:
            pulls.append(Pull(key[2], here.pop(key), fact))
        elif arrival is not None:
            pulls.append(Pull(fact["image"], arrival, fact))
    pulls += [Pull(key[2], fact, None) for here in open_.values() for key, fact in here.items()]
    return tuple(sorted(pulls, key=lambda pull: pull.start))


_ARRIVALS = (Kind.PLACED, Kind.ARRIVED)
_PULLING = (Kind.QUEUED, Kind.PULLED, Kind.PULL_FAILED)
_OTHERWISE = (Kind.BACK_OFF, Kind.DIED, Kind.RAN, Kind.HELD)
"""What a pod did since its arrival, other than to wait for its first pull. What held it had ended before that."""


class _Arrivals:
    """Pods that came to their node and have not pulled since."""

    def __init__(self) -> None:
        self._pods: dict[tuple[str, str, str], Fact] = {}

    def before(self, fact: Fact) -> Fact | None:
        """The arrival of the pod of this fact, the first time that it does something."""
        place = fact.node, fact.clock, fact["pod"]
        arrival = self._pods.pop(place, None)
        if fact.kind in _ARRIVALS or (fact.kind is Kind.HELD and arrival is not None):
            self._pods[place] = fact
        return arrival


def _same(key: tuple[str, str, str], told: tuple[str, str, str]) -> bool:
    """Lines of the kubelet without pod, container or image may be of any."""
    pod, container, image = key
    to_pod, to_container, to_image = told
    return (
        (pod == to_pod or not pod or not to_pod)
        and (container == to_container or not container or not to_container)
        and (image == to_image or not image or not to_image)
    )


@dataclass(frozen=True, slots=True)
class Convoy:
    """Pulls of one node that ended behind the same one. ``blocker``: the one in front."""

    blocker: Pull
    behind: tuple[Pull, ...]

    @property
    def pulls(self) -> tuple[Pull, ...]:
        return self.blocker, *self.behind

    @property
    def waited(self) -> tuple[Pull, ...]:
        """Those that began long before the blocker's end."""
        return tuple(pull for pull in self.behind if self.blocker.end - pull.start >= WAITED)

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
        gap = WHOLE_SECONDS if clock == API_CLOCK or clock.startswith(AGES) else TOGETHER
        together = [
            convoy
            for group in _close(sorted(ended, key=lambda pull: (pull.end, pull.start)), gap)
            if (convoy := _convoy(group))
        ]
        told = {id(pull) for convoy in together for pull in convoy.pulls}
        by_start = sorted(ended, key=lambda pull: pull.start)
        drains = _drains([pull for pull in by_start if id(pull) not in told])
        yield from (convoy for convoy in (*together, *drains) if not _passed(convoy.blocker, by_start, gap))


def _passed(blocker: Pull, by_start: Sequence[Pull], gap: float) -> bool:
    """Whether a pull began after the blocker and ended before it: no queue lets one through."""
    first = bisect_right(by_start, blocker.start + WHOLE_SECONDS, key=lambda pull: pull.start)
    last = bisect_left(by_start, blocker.end, key=lambda pull: pull.start)
    return any(pull.end < blocker.end - gap for pull in islice(by_start, first, last))


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
    if any(pull.rejected_late for pull in rest):  # a queue held them, however short it was
        return Convoy(blocker, tuple(pull for pull in rest if pull.start <= blocker.end - AT_ONCE))
    behind = tuple(pull for pull in rest if pull.start <= blocker.end - FRESH)
    spread = max((pull.start for pull in behind), default=blocker.start) - blocker.start
    held = max((blocker.end - pull.start for pull in behind), default=0.0)
    # A runtime ends all pulls of one image together.
    others = [pull for pull in behind if pull.image != blocker.image or pull.came_late]
    if len(others) < BEHIND or spread < WAITED or held < WAITED:
        return None
    convoy = Convoy(blocker, behind)
    return None if _one_cut(convoy.waited) else convoy


def _one_cut(behind: Sequence[Pull]) -> bool:
    """Whether the pulls were all with the runtime when it stopped: they ran side by side."""
    return all(DIALING not in pull.error and any(word in pull.error for word in IN_FLIGHT) for pull in behind)
