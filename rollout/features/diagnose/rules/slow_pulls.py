"""Pulls that take long: a host that costs time before the next one is tried, a slow transfer, and one that is still open.

The runtime shows its own pulls: when it received one, each host that it gave up with the error, what it had read at the end, and how
long it took. A host is blamed only for the time between its own line and the one before it, of the same pull: containerd asks the
hosts of an image one after the other (core/remotes/docker/resolver.go). That time is the host's own for the first request of a pull
only: later ones stand behind answers and transfers that are in no line. The image's registry is not named as the one that was
asked, because a mirror may have answered without a line.

The kubelet prints the time of a pull with its queue (1.19 to 1.22), or without it and with it (from 1.23). The first is a pull's own
time only where no other pull of the node was under way at its beginning.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate

from rollout.core.text.terminal import counted, printable, seconds_text
from rollout.features.diagnose.rules.facts import Fact, Facts, Kind
from rollout.features.diagnose.rules.finding import (
    Confidence,
    Finding,
    ProposalTarget,
    go_seconds,
    nodes_of,
    proof,
    since,
)
from rollout.features.diagnose.rules.pull_errors import PullCause, read_error
from rollout.features.diagnose.rules.pulls import HUNG, ends_of, full_name, registry, repository

SLOW = 120.0
"""Seconds of a pull, without its wait, from which it counts as slow."""
SLOW_RATE = 5e6
"""Bytes a second of a pull that counts as slow although its image is large."""
TRICKLE = 1e6
"""Bytes a second below which one pull of minutes is a finding alone."""
LONG = 900.0
"""Seconds from which one pull without a known size is a finding alone."""
COSTLY = 10.0
"""Seconds that a host costs before the next one is asked, from which it is a finding."""
AROUND = 5.0
"""Seconds in which the lines about one end of a pull are written."""

BESIDE = 200
"""Pulls among which one that ended beside a slow one is looked for."""

Key = tuple[str, str, str]
"""Node, clock and image, by its full name."""


@dataclass(slots=True)
class _Flow:
    """A pull as the runtime's log shows it. ``hosts``: those that it gave up, with the seconds that each took.

    ``asked``: those of the first request, as long as only lines of it were seen. ``again``: how often the runtime received it once more.
    """

    begun: Fact
    stopped: Fact | None = None
    ended: Fact | None = None
    hosts: list[tuple[Fact, float]] = field(default_factory=list)
    asked: set[str] = field(default_factory=set)
    first: bool = True
    sure: set[int] = field(default_factory=set)
    again: int = 0

    @property
    def last(self) -> Fact | None:
        return self.stopped or self.ended

    @property
    def facts(self) -> list[Fact]:
        return [each for each in (self.begun, self.stopped, self.ended) if each is not None]

    @property
    def seconds(self) -> float:
        return ((self.last.at if self.last else None) or 0.0) - (self.begun.at or 0.0)


def slow_findings(facts: Facts, target: ProposalTarget) -> Iterator[Finding]:
    flows = _flows(facts)
    lost = _without_pull(facts, flows)
    costly = _Costly(
        [fact for flow in flows for fact, seconds in flow.hosts if seconds >= COSTLY]
        + [fact for fact in lost if _is_silent(fact)]
    )
    yield from _hosts(flows, lost)
    yield from _done(facts, costly)
    yield from _with_queue(facts, costly)
    yield from _trickles(facts, flows, costly)
    yield from _still_open(facts, flows, ends_of(facts, target.now))


_ASKED = re.compile(r"/v2/([^\s\"?]{1,512})/(manifests|blobs)/([^\s\"?]{1,512})")
_OF_REGISTRY = re.compile(r"\?ns=([\w.:-]{1,253})")


def _asked(fact: Fact) -> str:
    """The repository in the address that a host was asked for; ``""``: the error names none."""
    match = _ASKED.search(fact["error"])
    return match[1] if match else ""


def _reference(image: str) -> str:
    """The tag or the digest that a runtime asks for: the digest, where there are both."""
    name, _, digest = full_name(image).partition("@")
    return digest or name.rpartition("/")[2].partition(":")[2]


class _Open:
    """Pulls that have not ended, by node and clock, and there by the image's full name and by its repository."""

    def __init__(self) -> None:
        self._images: dict[tuple[str, str], dict[str, _Flow]] = defaultdict(dict)
        self._repositories: dict[tuple[str, str, str], dict[str, _Flow]] = defaultdict(dict)
        self._references: dict[tuple[str, str, str, str], dict[str, _Flow]] = defaultdict(dict)
        self._nameless: dict[tuple[str, str], float] = {}

    def __contains__(self, key: Key) -> bool:
        return key[2] in self._images[key[:2]]

    def __getitem__(self, key: Key) -> _Flow:
        return self._images[key[:2]][key[2]]

    def add(self, key: Key, flow: _Flow) -> None:
        for flows in self._indexes(key):
            flows[key[2]] = flow

    def pop(self, key: Key) -> _Flow | None:
        flow = self._images[key[:2]].get(key[2])
        for flows in self._indexes(key):
            flows.pop(key[2], None)
        return flow

    def _indexes(self, key: Key) -> tuple[dict[str, _Flow], ...]:
        place, of = key[:2], repository(key[2])
        return self._images[place], self._repositories[*place, of], self._references[*place, of, _reference(key[2])]

    def images(self, place: tuple[str, str]) -> list[str]:
        return list(self._images[place])

    def give(self, fact: Fact) -> None:
        """A host's line to the one pull that it can be of; to none, where several pulls of one repository may have asked."""
        place, match = (fact.node, fact.clock), _ASKED.search(fact["error"])
        if match is None:
            self._nameless[place] = fact.at or 0.0
            return
        here = self._repositories[*place, match[1]]
        own = self._references[*place, match[1], match[3]] if match[2] == "manifests" else {}
        if own:
            here = own
        elif match[2] == "manifests" and ":" not in match[3]:
            return  # a tag of none of them
        of = _OF_REGISTRY.search(fact["error"])
        if of and len(here) > 1 and len(here) <= BESIDE:
            here = {image: flow for image, flow in here.items() if registry(image) == of[1]}
        if len(here) != 1:
            return
        (flow,) = here.values()
        before = (flow.hosts[-1][0].at if flow.hosts else flow.begun.at) or 0.0
        flow.hosts.append((fact, (fact.at or 0.0) - before))
        flow.first = flow.first and bool(own) and _host(fact) not in flow.asked
        flow.asked.add(_host(fact))
        if flow.first and _is_silent(fact) and self._nameless.get(place, -1.0) < before:
            flow.sure.add(id(fact))


class _Costly:
    """The images of a node for which a host took long before the next one was asked."""

    def __init__(self, lines: Iterable[Fact]) -> None:
        self._asked = {(line.node, _asked(line)) for line in lines}

    def __call__(self, node: str, image: str) -> bool:
        return (node, repository(image)) in self._asked


def _without_pull(facts: Facts, flows: Iterable[_Flow]) -> list[Fact]:
    """Hosts that were given up in pulls without a known beginning."""
    known = {id(fact) for flow in flows for fact, _ in flow.hosts}
    return [fact for fact in facts.of(Kind.NEXT_HOST) if id(fact) not in known]


def _is_silent(fact: Fact) -> bool:
    """Whether the host was given up because it did not answer in time."""
    return fact["error"].endswith(
        ("i/o timeout", "timeout awaiting response headers", "TLS handshake timeout", "awaiting headers)")
    )


def _flows(facts: Facts) -> list[_Flow]:
    """Every pull that the runtime received, in its order; a pull of the same image meanwhile is the same."""
    open_ = _Open()
    closed: dict[Key, _Flow] = {}
    flows: dict[int, _Flow] = {}
    kinds = (Kind.RUNTIME_STARTED, Kind.NEXT_HOST, Kind.PULL_STOPPED, Kind.RUNTIME_ENDED, Kind.RUNTIME, Kind.START)
    for fact in facts.of(*kinds):
        if fact.at is None:
            continue
        if fact.kind in (Kind.RUNTIME, Kind.START):  # a restart of either ends what runs, and may not be logged
            for image in open_.images((fact.node, fact.clock)):
                flows.pop(id(open_.pop((fact.node, fact.clock, image))))
        elif fact.kind is Kind.NEXT_HOST:
            open_.give(fact)
        else:
            key = fact.node, fact.clock, full_name(fact["image"])
            if fact.kind is Kind.RUNTIME_STARTED:
                if key not in open_:
                    begun = _Flow(fact)
                    open_.add(key, begun)
                    flows[id(begun)] = begun
                else:
                    open_[key].again += 1
            elif (flow := open_.pop(key)) or (flow := closed.get(key)):
                _close(flow, fact)
                closed[key] = flow
    return list(flows.values())


def _close(flow: _Flow, fact: Fact) -> None:
    """The two lines of an end follow each other; a later one is of a pull without a known beginning."""
    last = flow.last
    if last is None or (fact.at or 0.0) - (last.at or 0.0) <= AROUND:
        if fact.kind is Kind.PULL_STOPPED:
            flow.stopped = flow.stopped or fact
        else:
            flow.ended = flow.ended or fact


def _hosts(flows: Iterable[_Flow], lost: Iterable[Fact]) -> Iterator[Finding]:
    """Hosts that took long to fail, before the next one was asked. ``lost``: lines of pulls without a known beginning."""
    yield from _measured_hosts(flows)
    known = {(flow.begun.node, _host(fact)) for flow in flows for fact, seconds in flow.hosts if seconds >= COSTLY}
    silent: dict[tuple[str, str], list[Fact]] = defaultdict(list)
    for fact in lost:
        if _is_silent(fact) and _host(fact) and (fact.node, _host(fact)) not in known:
            silent[fact.node, _host(fact)].append(fact)
    for (_, host), lines in silent.items():
        cause = (
            f"{host} did not answer {counted(len(lines), 'time')} before the next host was asked: `{_told(lines[-1])}`. How long each took is not in "
            f"what was read. Fix or remove it where it is a mirror; a setting of the kubelet does not help."
        )
        yield Finding(
            "registry-slow", Confidence.LIKELY, nodes_of(lines), since(lines), cause, proof(lines),
            fetch_next=f"a request to {host} from the node, timed: curl -sSI -m 60",
        )  # fmt: skip


def _host(fact: Fact) -> str:
    return fact["host"] or read_error(fact["error"]).host


def _measured_hosts(flows: Iterable[_Flow]) -> Iterator[Finding]:
    by_host: dict[tuple[str, str], list[tuple[_Flow, Fact, float]]] = defaultdict(list)
    for flow in flows:
        for fact, seconds in flow.hosts:
            host = _host(fact)
            if host and seconds >= COSTLY and read_error(fact["error"]).cause is not PullCause.CANCELLED:
                by_host[flow.begun.node, host].append((flow, fact, seconds))
    for (_, host), every in by_host.items():
        measured = [(flow, fact, seconds) for flow, fact, seconds in every if id(fact) in flow.sure]
        found = measured or every
        lines = [fact for _, fact, _ in found]
        read = read_error(lines[-1]["error"])
        images = sorted({flow.begun["image"] for flow, _, _ in found})
        own = all(_is_own(host, image) for image in images)
        what = "host" if own else "mirror"
        longest, least = max(seconds for _, _, seconds in found), min(seconds for _, _, seconds in found)
        each = seconds_text(least) if longest - least < 1.0 else f"{seconds_text(least)} to {seconds_text(longest)}"
        cause = (
            f"the {what} {host} cost {counted(len({id(flow) for flow, _, _ in found}), 'pull')} {each} before the next host was asked: `{_told(lines[-1])}`. "
            f"Images: {', '.join(images[:3])}. "
        )
        whole = max(flow.seconds for flow, _, _ in found)
        cause += f"These pulls took up to {seconds_text(whole)}. " if whole > longest + COSTLY else ""
        cause += "" if own else "Fix or remove that mirror; a setting of the kubelet does not help."
        # A host that refuses or answers is not slow by its own form: the time may be that of something without a line.
        certain = bool(measured) and read.confidence is Confidence.CERTAIN
        fetch = "" if certain else f"a request to {host} from the node, timed: curl -sSI -m 60"
        shown = [fact for flow, host_fact, _ in found for fact in (flow.begun, host_fact)]
        yield Finding(
            "registry-slow", Confidence.CERTAIN if certain else Confidence.LIKELY, nodes_of(lines), since(lines), cause, proof(shown),
            fetch_next=fetch,
        )  # fmt: skip


def _told(fact: Fact) -> str:
    """The error behind the request, as it was printed."""
    before, close, behind = fact["error"].rpartition('": ')
    return printable(behind if close and before else fact["error"], 120)


def _is_own(host: str, image: str) -> bool:
    own = registry(full_name(image)).partition(":")[0]
    return f".{host.partition(':')[0]}".endswith(f".{own}")


def _done(facts: Facts, costly: _Costly) -> Iterator[Finding]:
    """By the runtime's own time of a pull: X of "in X (Y including waiting)", or the runtime's."""
    slow: dict[str, list[Fact]] = defaultdict(list)
    timed = [
        fact
        for fact in facts.of(Kind.PULLED, Kind.RUNTIME_ENDED)
        if go_seconds(fact["took"]) is not None and fact["image"] and (fact.kind is not Kind.PULLED or fact["waited"])
        and not costly(fact.node, fact["image"])
    ]  # fmt: skip
    delivered, quick = _Delivered(timed), _AtFullSpeed(facts, timed)
    for fact in timed:
        if _seconds(fact) >= SLOW and (not _size(fact) or delivered.rate(fact) < SLOW_RATE):
            slow[registry(fact["image"])].append(fact)
    for name, lines in slow.items():
        if _pulls_in(lines) < 2 and not _alone(lines):
            continue
        rates = [_size(fact) / _seconds(fact) for fact in lines if _size(fact)]
        longest = max(map(_seconds, lines))
        cause = (
            f"{counted(_pulls_in(lines), 'pull')} of images of {name} took up to {seconds_text(longest)}{_speed(rates)}, without the wait in the "
            f"kubelet's queue."
        )
        # Without images of others at full speed meanwhile, the node's own disk or network would look the same.
        others = [quick.beside(fact) for fact in lines]
        names = sorted({other for each in others for other, _ in each})
        proven = all(any(read for _, read in each) for each in others)
        cause += (
            f" Those of {', '.join(names[:3])} were quick meanwhile, on the same node{'' if proven else ', unless their layers were there already'}."
            if names
            else ""
        )
        sure = Confidence.CERTAIN if len(rates) == len(lines) and proven else Confidence.LIKELY
        yield Finding("registry-slow", sure, nodes_of(lines), since(lines), cause, proof(lines), fetch_next=_FETCH)


def _seconds(fact: Fact) -> float:
    return go_seconds(fact["took"]) or 0.0


class _Delivered:
    """What a registry delivered to a node over time: the rates of pulls that ran side by side are added."""

    def __init__(self, timed: Iterable[Fact]) -> None:
        steps: dict[tuple[str, str, Kind, str], dict[float, float]] = defaultdict(lambda: defaultdict(float))
        for fact in timed:
            if fact.at is not None and _seconds(fact):
                rates = steps[self._key(fact)]
                rates[fact.at - _seconds(fact)] += _size(fact) / _seconds(fact)
                rates[fact.at] -= _size(fact) / _seconds(fact)
        self._bytes = {key: self._summed(rates) for key, rates in steps.items()}

    @staticmethod
    def _key(fact: Fact) -> tuple[str, str, Kind, str]:
        return fact.node, fact.clock, fact.kind, registry(fact["image"])

    @staticmethod
    def _summed(rates: Mapping[float, float]) -> Mapping[float, float]:
        """Time → bytes until then."""
        read, rate, before, until = 0.0, 0.0, 0.0, {}
        for at in sorted(rates):
            read += rate * (at - before)
            until[at] = read
            rate, before = rate + rates[at], at
        return until

    def rate(self, fact: Fact) -> float:
        """Bytes a second of all pulls of the registry while this one ran."""
        took = _seconds(fact)
        if fact.at is None:
            return _size(fact) / took
        until = self._bytes[self._key(fact)]
        return (until[fact.at] - until[fact.at - took]) / took


class _AtFullSpeed:
    """Pulls of seconds at full speed. The size of an image proves nothing, as its layers may be there: what containerd read does."""

    def __init__(self, facts: Facts, timed: Iterable[Fact]) -> None:
        read: dict[tuple[str, str, str], tuple[float, int]] = {}
        for fact in facts.of(Kind.PULL_STOPPED):
            read[fact.node, fact.clock, full_name(fact["image"])] = fact.at or 0.0, int(fact["bytes"][:18])
        self._pulls: dict[tuple[str, str], list[tuple[float, float, str, bool]]] = defaultdict(list)
        for fact in timed:
            took = _seconds(fact)
            at, size = read.get((fact.node, fact.clock, full_name(fact["image"])), (0.0, 0))
            if fact.at is None or not 0.0 < took < SLOW / 4:
                continue
            known = abs(fact.at - at) <= AROUND
            if (size if known else _size(fact)) / took >= SLOW_RATE:
                self._pulls[fact.node, fact.clock].append((fact.at - took, fact.at, registry(fact["image"]), known))
        for pulls in self._pulls.values():
            pulls.sort()

    def beside(self, fact: Fact) -> list[tuple[str, bool]]:
        """Registries of those that ran wholly while this one did, on its node, and whether that is proven; of the first ``BESIDE``."""
        here, end = self._pulls.get((fact.node, fact.clock), []), fact.at or 0.0
        first = bisect_left(here, (end - _seconds(fact),))
        own = registry(fact["image"])
        return [(of, known) for _, ended, of, known in here[first : first + BESIDE] if ended <= end and of != own]


_FETCH = (
    "which host served them (a mirror is asked without a line in the log: hosts.toml, registries.conf), a timed pull from it and from another "
    "one on the same node, and its own load"
)


def _size(fact: Fact) -> int:
    return int(fact["size"]) if fact["size"].isdecimal() else 0


def _speed(rates: Sequence[float]) -> str:
    if not rates:
        return ""
    low, high = f"{min(rates) / 1e6:.1f}", f"{max(rates) / 1e6:.1f}"
    return f", at {low} MB/s" if low == high else f", at {low} to {high} MB/s"


def _pulls_in(lines: Iterable[Fact]) -> int:
    """The pulls that these lines are about: the kubelet and the runtime write one each."""
    by_kind: dict[Kind, set[tuple[str, str, float | None]]] = defaultdict(set)
    for fact in lines:
        by_kind[fact.kind].add((full_name(fact["image"]), fact["pod"], fact.at))
    return max(map(len, by_kind.values()), default=0)


def _alone(lines: Iterable[Fact]) -> bool:
    """Whether one of these pulls is slow enough to count without others."""
    for fact in lines:
        took, size = go_seconds(fact["took"]) or 0.0, _size(fact)
        if (size and took >= HUNG and size / took < TRICKLE) or (not size and took >= LONG):
            return True
    return False


def _with_queue(facts: Facts, costly: _Costly) -> Iterator[Finding]:
    """The one time that kubelets 1.19 to 1.22 print, which has the wait in it."""
    by_node: dict[tuple[str, str], list[Fact]] = defaultdict(list)
    every: dict[tuple[str, str], list[tuple[float, float]]] = defaultdict(list)
    for fact in facts.of(Kind.PULLED):
        took = go_seconds(fact["took"])
        if took is None or fact.at is None or fact["waited"]:
            continue
        every[fact.node, fact.clock].append((fact.at - took, fact.at))
        if took >= SLOW and fact["image"] and not costly(fact.node, fact["image"]):
            by_node[fact.node, fact.clock].append(fact)
    for place, lines in by_node.items():
        spans = sorted(every[place])
        ends = list(accumulate((end for _, end in spans), max))
        if _pulls_in(lines) < 2 and not _alone(lines):
            continue
        own = [fact for fact in lines if not _behind(fact, spans, ends)]
        sure = Confidence.LIKELY if _pulls_in(own) >= 2 or _alone(own) else Confidence.UNKNOWN
        told = own if sure is Confidence.LIKELY else lines
        names = sorted({registry(fact["image"]) for fact in told})
        longest = max(go_seconds(fact["took"]) or 0.0 for fact in told)
        cause = f"{counted(_pulls_in(told), 'pull')} of images of {', '.join(names[:3])} took up to {seconds_text(longest)}, by a time that contains the wait in the kubelet's queue."
        cause += (
            " No other pull of the node that was read was under way when they began."
            if sure is Confidence.LIKELY
            else " Another pull of the node was under way when one of them began, so it may have waited for that one."
        )
        yield Finding("registry-slow", sure, nodes_of(told), since(told), cause, proof(told), fetch_next=_FETCH)


def _behind(fact: Fact, spans: Sequence[tuple[float, float]], ends: Sequence[float]) -> bool:
    """Whether another pull of the node was under way when this one began. ``spans``: begins and ends; ``ends``: the latest so far."""
    begin = (fact.at or 0.0) - _seconds(fact)
    before = bisect_left(spans, (begin,))
    return before > 0 and ends[before - 1] - AROUND > begin


def _trickles(facts: Facts, flows: Sequence[_Flow], costly: _Costly) -> Iterator[Finding]:
    """Pulls that ran for minutes, read little or nothing, and ended without success and without a program that cut them."""
    cuts: dict[tuple[str, str], list[float]] = defaultdict(list)
    for fact in facts.of(Kind.PULL_CUT):
        cuts[fact.node, full_name(fact["image"])].append(fact.at or 0.0)
    quick, clocks = _Quick(flows), _Lines(facts)
    by_node: dict[tuple[str, Confidence], list[tuple[_Flow, str]]] = defaultdict(list)
    for flow in flows:
        begun, end = flow.begun, (flow.begun.at or 0.0) + flow.seconds
        name = full_name(begun["image"])
        good = flow.ended is not None and not flow.ended["error"]
        times = cuts.get((begun.node, name), [])
        first = bisect_left(times, end - AROUND)
        cut = first < len(times) and times[first] <= end + AROUND
        if flow.last is None or good or cut or costly(begun.node, name) or flow.seconds < HUNG:
            continue
        if told := _read_little(flow, clocks):
            by_node[begun.node, told[1]].append((flow, told[0]))
    for (_, sure), found in by_node.items():
        flow, cause = max(found, key=lambda each: each[0].seconds)
        more = f" The same holds for {counted(len(found) - 1, 'more pull')}." if len(found) > 1 else ""
        lines = [line for each, _ in found for line in each.facts]
        yield Finding(
            "registry-slow",
            sure,
            nodes_of(lines),
            since(lines),
            f"{cause}{quick.beside(flow)}{more}",
            proof(lines),
            fetch_next=_FETCH,
        )


class _Lines:
    """The times of all lines, by their clocks."""

    def __init__(self, facts: Facts) -> None:
        self._times: dict[str, list[float]] = defaultdict(list)
        for fact in facts:
            if fact.at is not None:
                self._times[fact.clock].append(fact.at)
        for times in self._times.values():
            times.sort()

    def within(self, flow: _Flow) -> bool:
        """Whether another line was written while the pull ran. If none was, the clock may have been set meanwhile."""
        times, begin = self._times[flow.begun.clock], flow.begun.at or 0.0
        after = bisect_right(times, begin)
        return after < len(times) and times[after] < begin + flow.seconds - AROUND


def _read_little(flow: _Flow, clocks: _Lines) -> tuple[str, Confidence] | None:
    """What a pull of minutes read, and what a deadline does with it; ``None`` if it read much."""
    begin = f"the pull of {flow.begun['image']} was open for {seconds_text(flow.seconds)}"
    if flow.stopped is None:
        error = flow.ended["error"] if flow.ended else ""
        if flow.seconds < LONG or read_error(error).cause is not PullCause.CANCELLED:
            return None
        return f"{begin} until it was cancelled; what it read is not in the log.", Confidence.UNKNOWN
    read = int(flow.stopped["bytes"][:18])
    if not read:
        cause = f"{begin} and read nothing: the host that was asked did not answer, or the runtime waited for something else."
        return f"{cause} A progress deadline may not count this, because no request was under way.", Confidence.LIKELY
    if read / flow.seconds >= TRICKLE:
        return None
    cause = (
        f"{begin} and read {read:,} bytes in that time: {read / flow.seconds / 1000:.0f} kB/s. A progress deadline does not end such a "
        f"pull, because bytes arrive."
    )
    # Without a request under way it may have unpacked for the rest of the time.
    sure = int(flow.stopped["requests"][:9]) and clocks.within(flow)
    return cause, Confidence.CERTAIN if sure else Confidence.LIKELY


class _Quick:
    """Pulls that ended well, by their beginnings."""

    def __init__(self, flows: Iterable[_Flow]) -> None:
        self._flows: dict[tuple[str, str], list[_Flow]] = defaultdict(list)
        for flow in flows:
            if flow.ended is not None and not flow.ended["error"]:
                self._flows[flow.begun.node, flow.begun.clock].append(flow)

    def beside(self, flow: _Flow) -> str:
        """The quickest of those that began and ended while this one ran, of the first ``BESIDE``; ``""``: none did."""
        here = self._flows.get((flow.begun.node, flow.begun.clock), [])
        first = bisect_right(here, flow.begun.at or 0.0, key=lambda each: each.begun.at or 0.0)
        end = (flow.last.at or 0.0) if flow.last else float("inf")
        ended = [each for each in here[first : first + BESIDE] if (each.begun.at or 0.0) + each.seconds < end]
        if not ended:
            return ""
        best = min(ended, key=lambda each: each.seconds)
        return f" Meanwhile the pull of {best.begun['image']} took {seconds_text(best.seconds)}."


_OPEN_FETCH = "what it has read so far: `ctr -n k8s.io content active` twice, a minute apart; and which host it reads from: ss -tnp"
_NUMBERED_FETCH = "the kubelet's log or the events of the pods of this image, which have a pull that failed; and which host the runtime reads from: ss -tnp"


def _again(flow: _Flow) -> str:
    """A runtime that gives each request a number, CRI-O, writes no line for a pull that fails."""
    if not flow.begun["request"]:
        return ""
    times = f" The runtime received it {counted(1 + flow.again, 'time')}." if flow.again else ""
    return f"{times} It may also have failed: this runtime writes no line for that."


def _still_open(facts: Facts, flows: Sequence[_Flow], last: Mapping[str, float]) -> Iterator[Finding]:
    """Pulls without an end in a log that has the ends of pulls: slow or hung, or one that failed without a line."""
    unlimited = {(fact.node, full_name(fact["image"])) for fact in facts.of(Kind.UNLIMITED)}
    ended = {
        (fact.node, full_name(fact["image"])): fact.at or 0.0
        for fact in facts.of(Kind.PULLED, Kind.PULL_FAILED)
        if fact["image"]
    }
    wanted = {(fact.node, full_name(fact["image"])) for fact in facts.of(Kind.QUEUED, Kind.WAITING)}
    quick = _Quick(flows)
    by_node: dict[tuple[str, str], list[tuple[_Flow, str]]] = defaultdict(list)
    for flow in flows:
        begun = flow.begun
        name, at = (begun.node, full_name(begun["image"])), begun.at or 0.0
        if flow.last is not None or last[begun.clock] - at < HUNG or name in unlimited or ended.get(name, 0.0) >= at:
            continue
        meanwhile = quick.beside(flow)
        # A number of its own tells that no end in the log is of this pull. The kubelet's own line is told elsewhere.
        if meanwhile or (begun["request"] and name not in wanted):
            by_node[begun.node, begun.clock].append((flow, meanwhile))
    for (_, clock), found in by_node.items():
        flow, meanwhile = found[0]
        more = f" The same holds for {counted(len(found) - 1, 'more pull')}." if len(found) > 1 else ""
        cause = (
            f"the pull of {flow.begun['image']} began {seconds_text(last[clock] - (flow.begun.at or 0.0))} before the end of what was read and has not "
            f"ended: it is slow, or it hangs.{_again(flow)}{meanwhile}{more}"
        )
        lines = [each.begun for each, _ in found]
        yield Finding(
            "registry-slow", Confidence.UNKNOWN, nodes_of(lines), since(lines), cause, proof(lines),
            fetch_next=_NUMBERED_FETCH if flow.begun["request"] else _OPEN_FETCH,
        )  # fmt: skip
