"""Pulls that take long: a host that costs time before the next one is tried, a slow transfer, and one that is still open.

The runtime shows its own pulls: when it received one, each host that it gave up with the error, what it had read at the end, and how
long it took. A host is blamed only for the time between its own line and the one before it, of the same pull: containerd asks the
hosts of an image one after the other (core/remotes/docker/resolver.go). The image's registry is not named as the one that was
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
    """A pull as the runtime's log shows it. ``hosts``: those that it gave up, with the seconds that each took."""

    begun: Fact
    stopped: Fact | None = None
    ended: Fact | None = None
    hosts: list[tuple[Fact, float]] = field(default_factory=list)

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


_ASKED = re.compile(r"/v2/([^\s\"?]{1,512})/(?:manifests|blobs)/")


def _asked(fact: Fact) -> str:
    """The repository in the address that a host was asked for; ``""``: the error names none."""
    match = _ASKED.search(fact["error"])
    return match[1] if match else ""


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
    open_: dict[Key, _Flow] = {}
    closed: dict[Key, _Flow] = {}
    flows: dict[int, _Flow] = {}
    kinds = (Kind.RUNTIME_STARTED, Kind.NEXT_HOST, Kind.PULL_STOPPED, Kind.RUNTIME_ENDED, Kind.RUNTIME, Kind.START)
    for fact in facts.of(*kinds):
        if fact.at is None:
            continue
        if fact.kind in (Kind.RUNTIME, Kind.START):  # a restart of either ends what runs, and may not be logged
            for key in [key for key in open_ if key[:2] == (fact.node, fact.clock)]:
                flows.pop(id(open_.pop(key)))
        elif fact.kind is Kind.NEXT_HOST:
            _add_host(fact, open_)
        else:
            key = fact.node, fact.clock, full_name(fact["image"])
            if fact.kind is Kind.RUNTIME_STARTED:
                if key not in open_:
                    open_[key] = _Flow(fact)
                    flows[id(open_[key])] = open_[key]
            elif (flow := open_.pop(key, None)) or (flow := closed.get(key)):
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


def _add_host(fact: Fact, open_: Mapping[Key, _Flow]) -> None:
    """To the pull of the image that the address in the line has."""
    asked = _asked(fact)
    for (node, clock, image), flow in open_.items():
        if (node, clock) == (fact.node, fact.clock) and repository(image) == asked:
            before = flow.hosts[-1][0].at if flow.hosts else flow.begun.at
            flow.hosts.append((fact, (fact.at or 0.0) - (before or 0.0)))
            return


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
    for (_, host), found in by_host.items():
        lines = [fact for _, fact, _ in found]
        read = read_error(lines[-1]["error"])
        images = sorted({flow.begun["image"] for flow, _, _ in found})
        own = all(_is_own(host, image) for image in images)
        what = "host" if own else "mirror"
        longest, least = max(seconds for _, _, seconds in found), min(seconds for _, _, seconds in found)
        each = seconds_text(least) if longest - least < 1.0 else f"{seconds_text(least)} to {seconds_text(longest)}"
        cause = (
            f"the {what} {host} cost {counted(len(found), 'pull')} {each} before the next host was asked: `{_told(lines[-1])}`. "
            f"Images: {', '.join(images[:3])}. "
        )
        whole = max(flow.seconds for flow, _, _ in found)
        cause += f"These pulls took up to {seconds_text(whole)}. " if whole > longest + COSTLY else ""
        cause += "" if own else "Fix or remove that mirror; a setting of the kubelet does not help."
        certain = read.confidence is Confidence.CERTAIN
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
    return host.partition(":")[0].endswith(registry(full_name(image)).partition(":")[0])


def _done(facts: Facts, costly: _Costly) -> Iterator[Finding]:
    """By the runtime's own time of a pull: X of "in X (Y including waiting)", or the runtime's."""
    slow: dict[str, list[Fact]] = defaultdict(list)
    quick: dict[str, float] = {}
    for fact in facts.of(Kind.PULLED, Kind.RUNTIME_ENDED):
        took = go_seconds(fact["took"])
        if took is None or not fact["image"] or (fact.kind is Kind.PULLED and not fact["waited"]):
            continue
        size, name = _size(fact), registry(fact["image"])
        if costly(fact.node, fact["image"]):
            continue
        if took >= SLOW and (not size or size / took < SLOW_RATE):
            slow[name].append(fact)
        elif took < SLOW / 4:
            quick[name] = max(quick.get(name, 0.0), size / took if took else 0.0)
    for name, lines in slow.items():
        if _pulls_in(lines) < 2 and not _alone(lines):
            continue
        rates = [_size(fact) / seconds for fact in lines if _size(fact) and (seconds := go_seconds(fact["took"]))]
        longest = max(go_seconds(fact["took"]) or 0.0 for fact in lines)
        cause = (
            f"{counted(_pulls_in(lines), 'pull')} of images of {name} took up to {seconds_text(longest)}{_speed(rates)}, without the wait in the "
            f"kubelet's queue."
        )
        others = sorted({*quick} - {name})
        cause += f" Those of {', '.join(others[:3])} were quick." if others else ""
        # Without images of others at full speed, the node's own disk or network would look the same.
        compared = any(quick[other] >= SLOW_RATE for other in others)
        sure = Confidence.CERTAIN if rates and len(rates) == len(lines) and compared else Confidence.LIKELY
        yield Finding("registry-slow", sure, nodes_of(lines), since(lines), cause, proof(lines), fetch_next=_FETCH)


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
        if _pulls_in(lines) < 2 and not _alone(lines):
            continue
        own = [fact for fact in lines if not _behind(fact, every[place])]
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


def _behind(fact: Fact, spans: Iterable[tuple[float, float]]) -> bool:
    """Whether another pull of the node was under way when this one began. ``spans``: begins and ends."""
    end = fact.at or 0.0
    begin = end - (go_seconds(fact["took"]) or 0.0)
    return any(other < begin < other_end - AROUND for other, other_end in spans if (other, other_end) != (begin, end))


def _trickles(facts: Facts, flows: Sequence[_Flow], costly: _Costly) -> Iterator[Finding]:
    """Pulls that ran for minutes, read little or nothing, and ended without success and without a program that cut them."""
    cuts: dict[tuple[str, str], list[float]] = defaultdict(list)
    for fact in facts.of(Kind.PULL_CUT):
        cuts[fact.node, full_name(fact["image"])].append(fact.at or 0.0)
    quick = _Quick(flows)
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
        if told := _read_little(flow):
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


def _read_little(flow: _Flow) -> tuple[str, Confidence] | None:
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
    return cause, Confidence.CERTAIN if int(flow.stopped["requests"][:9]) else Confidence.LIKELY


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


def _still_open(facts: Facts, flows: Sequence[_Flow], last: Mapping[str, float]) -> Iterator[Finding]:
    """Pulls without an end in a log that has the ends of others, which ran meanwhile: no queue, and slow or hung."""
    unlimited = {(fact.node, full_name(fact["image"])) for fact in facts.of(Kind.UNLIMITED)}
    ended = {
        (fact.node, full_name(fact["image"])): fact.at or 0.0
        for fact in facts.of(Kind.PULLED, Kind.PULL_FAILED)
        if fact["image"]
    }
    quick = _Quick(flows)
    by_node: dict[tuple[str, str], list[tuple[_Flow, str]]] = defaultdict(list)
    for flow in flows:
        begun = flow.begun
        name, at = (begun.node, full_name(begun["image"])), begun.at or 0.0
        if flow.last is not None or last[begun.clock] - at < HUNG or name in unlimited or ended.get(name, 0.0) >= at:
            continue
        if meanwhile := quick.beside(flow):
            by_node[begun.node, begun.clock].append((flow, meanwhile))
    for (_, clock), found in by_node.items():
        flow, meanwhile = found[0]
        more = f" The same holds for {counted(len(found) - 1, 'more pull')}." if len(found) > 1 else ""
        cause = (
            f"the pull of {flow.begun['image']} began {seconds_text(last[clock] - (flow.begun.at or 0.0))} before the end of what was read and has not "
            f"ended: it is slow, or it hangs.{meanwhile}{more}"
        )
        lines = [each.begun for each, _ in found]
        yield Finding(
            "registry-slow", Confidence.UNKNOWN, nodes_of(lines), since(lines), cause, proof(lines),
            fetch_next="what it has read so far: `ctr -n k8s.io content active` twice, a minute apart; and which host it reads from: ss -tnp",
        )  # fmt: skip
