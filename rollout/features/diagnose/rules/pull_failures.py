"""Why pulls fail or take long: a progress deadline, the kubelet's rate limit, a slow registry, a wrong image or address."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator, Sequence

from rollout.core.text.durations import go_format
from rollout.core.text.terminal import counted, seconds_text
from rollout.features.diagnose.rules.cut_pulls import RISK, cut_findings, proposed_deadline
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
from rollout.features.diagnose.rules.messages import over_qps
from rollout.features.diagnose.rules.pull_errors import PullCause, read_error
from rollout.features.diagnose.rules.pulls import WAITED, Pull, convoys, registry
from rollout.kubelet.runtimes.known import KNOWN

_BARE = re.compile(r"desc = context canceled\W*$")
"""docker's form of it. containerd says which image it could not pull."""
REPEATED = 3
"""Cuts of one pod's pull, from which they are no restart or deletion, whatever the runtime is."""
TICK = 12.0
"""Seconds after its deadline in which dockershim cancels a pull: it looks every 10 s, and events have whole seconds."""
ONE_FAILURE = 5.0
"""Seconds within which the lines about one failure are written."""
DEFAULT = 60.0
SLOW = 120.0
"""Seconds of a pull, without its wait, from which it counts as slow."""
SLOW_RATE = 5e6
"""Bytes a second of a pull that counts as slow although its image is large."""


def deadline_findings(facts: Facts, pulls: Sequence[Pull], target: ProposalTarget) -> Iterator[Finding]:
    yield from cut_findings(facts, target)
    yield from _canceled(facts, pulls, target, {fact.node for fact in facts.of(Kind.PULL_CUT)})


def _canceled(facts: Facts, pulls: Sequence[Pull], target: ProposalTarget, known: set[str]) -> Iterator[Finding]:
    """``context canceled`` without the line of a deadline."""
    by_image: dict[tuple[str, str], list[Fact]] = defaultdict(list)
    for fact in facts.of(Kind.PULL_FAILED):
        if fact.node not in known and fact["image"] and read_error(fact["error"]).cause is PullCause.CANCELLED:
            by_image[fact.node, fact["image"]].append(fact)
    by_end = {id(pull.ended): pull for pull in pulls if not pull.since_arrival}
    explained, docker = _Explained(facts), _Docker(facts)
    unknown: dict[str, list[Fact]] = defaultdict(list)
    for (node, image), lines in by_image.items():
        if all(explained.is_(line) for line in lines):
            continue
        mine = [pull for line in lines if (pull := by_end.get(id(line)))]
        times = _of_one_pod(lines)
        shown, deadline = docker.of(node)
        long = all(pull.end - pull.start >= (deadline or DEFAULT) for pull in mine)
        one_pod = all(line["pod"] or line["described"] for line in lines)
        bare = all(_BARE.search(line["error"]) for line in lines)
        alone = times >= REPEATED and one_pod and bare and not docker.excluded(node)
        spent = [pull.end - pull.start for pull in mine]
        equal = bool(shown and spent and deadline) and all(0 <= each - (deadline or 0.0) <= TICK for each in spent)
        if equal or (times > 1 and long and (shown or alone)):
            yield _repeated(image, times, deadline, (shown, lines, [pull.begun for pull in mine]), target)
        else:
            unknown[node] += [*(pull.begun for pull in mine), *lines]
    for lines in unknown.values():
        images = sorted({fact["image"] for fact in lines})
        named = ", ".join(images[:3]) + (f" and {len(images) - 3} more" if len(images) > 3 else "")
        cause = (
            f"pulls were cancelled (`context canceled`): {named}. A progress deadline, a restart of the kubelet or of the runtime and "
            f"a deleted pod look the same."
        )
        id_, nodes = "pull-progress-deadline", nodes_of(lines)
        yield Finding(id_, Confidence.UNKNOWN, nodes, since(lines), cause, proof(lines), fetch_next=_FETCH_CUT)


def _of_one_pod(lines: Sequence[Fact]) -> int:
    """How often the pull was cut on the pod on which it was cut most often. A deletion cuts the pull of a pod once.

    One failure has up to three lines, of which some name no pod.
    """
    named = [line for line in lines if line["pod"]] or lines
    times: dict[str, int] = defaultdict(int)
    last: dict[str, float] = {}
    for line in named:
        at = line.at or 0.0
        times[line["pod"]] += at - last.get(line["pod"], float("-inf")) > ONE_FAILURE
        last[line["pod"]] = at
    return max(*times.values(), *(line.times for line in named))


def _repeated(
    image: str,
    times: int,
    deadline: float | None,
    shown: tuple[list[Fact], list[Fact], list[Fact]],
    target: ProposalTarget,
) -> Finding:
    """``shown``: lines about docker, the cuts, and the beginnings of these pulls."""
    _, lines, _ = shown
    nodes = nodes_of(lines)
    inforce = go_format(deadline) if deadline is not None else "1m0s, the default"
    cause = (
        f"the pull of {image} was cancelled {counted(times, 'time')}, each time by the kubelet and not by the registry: a node with docker gives "
        f"up a pull that shows no progress for its imagePullProgressDeadline ({inforce}). Verifying and extracting large layers shows "
        f"none. More cache does not help."
    )
    return Finding(
        "pull-progress-deadline", Confidence.LIKELY, nodes, since(lines), cause, proof([each for part in shown for each in part]),
        target.plan(nodes, f"imagePullProgressDeadline={go_format(proposed_deadline(deadline, 0.0))}"), RISK, _FETCH_CUT,
    )  # fmt: skip


_FETCH_CUT = (
    "the kubelet's log around one of these times: `Cancel pulling image` proves the deadline; a timed pull on the node shows its "
    "longest phase without progress"
)


NEAR = 30.0
"""Seconds between a cancelled pull and the restart or deletion that cancelled it."""


class _Explained:
    """Cuts at a start of a kubelet, or at the deletion of their pod."""

    def __init__(self, facts: Facts) -> None:
        self._times: dict[tuple[str, str, str], list[float]] = defaultdict(list)
        for fact in facts.of(Kind.START, Kind.DELETED, Kind.REMOVED):
            if fact.at is not None:
                self._times[fact.node, fact.clock, "" if fact.kind is Kind.START else fact["pod"]].append(fact.at)

    def is_(self, line: Fact) -> bool:
        return any(self._near(line, pod) for pod in {"", line["pod"]})

    def _near(self, line: Fact, pod: str) -> bool:
        times = self._times.get((line.node, line.clock, pod), [])
        at = line.at or 0.0
        first = bisect_left(times, at - NEAR)
        return first < len(times) and times[first] <= at + NEAR


class _Docker:
    """Lines that show docker on a node, and the deadline in force if its kubelet printed it."""

    def __init__(self, facts: Facts) -> None:
        self._flags: dict[str, list[Fact]] = defaultdict(list)
        self._lines: dict[str, Fact] = {}
        for fact in facts.of(Kind.FLAG):
            self._flags[fact.node].append(fact)
        for fact in facts:
            if fact.node not in self._lines and "docker://" in fact.where.text:
                self._lines[fact.node] = fact

    def excluded(self, node: str) -> bool:
        flags = self._flags.get(node, [])
        return any((fact["flag"], fact["value"]) == ("container-runtime", "remote") for fact in flags)

    def of(self, node: str) -> tuple[list[Fact], float | None]:
        flags = self._flags.get(node, [])
        if self.excluded(node):
            return [], None
        own = [fact for fact in flags if fact["flag"] == "image-pull-progress-deadline"]
        shown = own or ([self._lines[node]] if node in self._lines else [])
        return shown, (go_seconds(own[-1]["value"]) if own else None)


_FETCH_BEGIN = "the Pulling events of these pods, or when they came to the node: kubectl get pods -A -o json, and a kubelet's log of that hour"


def qps_findings(facts: Facts, pulls: Sequence[Pull], target: ProposalTarget) -> Iterator[Finding]:
    released = {id(fact) for convoy in convoys(pulls) for pull in convoy.pulls for fact in pull.facts}
    queued = {
        id(pull.ended)
        for pull in pulls
        if pull.rejected_late or ((pull.waited or 0.0) >= WAITED and over_qps(pull.error))
    }
    at_once = {id(pull.ended) for pull in pulls if not pull.since_arrival and not pull.rejected_late}
    by_node: dict[str, list[Fact]] = defaultdict(list)
    for fact in facts.of(Kind.PULL_FAILED):
        if over_qps(fact["error"]):
            by_node[fact.node].append(fact)
    for lines in by_node.values():
        nodes = nodes_of(lines)
        pods = len({fact["pod"] for fact in lines}) or 1
        cause = f"the kubelet rejected pulls of {counted(pods, 'pod')}: more began at once than registryPullQPS and registryBurst allow. "
        if any(id(fact) in released or id(fact) in queued for fact in lines):
            cause += "It is a consequence: a blocked queue was released, and its pulls began in one burst. See serial-pull-queue."
            yield Finding("pull-qps-exceeded", Confidence.CERTAIN, nodes, since(lines), cause, proof(lines))
            continue
        if not any(id(fact) in at_once for fact in lines):
            cause += "Whether a blocked queue was released at that moment (serial-pull-queue) is not known: no file has the beginning of these pulls."
            sure = Confidence.UNKNOWN if all(fact.at is None for fact in lines) else Confidence.CERTAIN
            id_ = "pull-qps-exceeded"
            yield Finding(id_, sure, nodes, since(lines), cause, proof(lines), fetch_next=_FETCH_BEGIN)
            continue
        cause += "They were rejected as soon as they began, so no queue held them: many pods started, or their back-offs ended together. The kubelet tries again."
        yield Finding(
            "pull-qps-exceeded", Confidence.CERTAIN, nodes, since(lines), cause, proof(lines),
            target.plan(nodes, "registryPullQPS=20", "registryBurst=40"), "each kubelet restarts; the registry receives more pulls a second.",
        )  # fmt: skip


def slow_findings(facts: Facts) -> Iterator[Finding]:
    """By the runtime's own time of a pull: X of "in X (Y including waiting)", or containerd's."""
    slow: dict[str, list[Fact]] = defaultdict(list)
    quick: set[str] = set()
    for fact in facts.of(Kind.PULLED, Kind.RUNTIME_ENDED):
        took = go_seconds(fact["took"])
        if took is None or not fact["image"] or (fact.kind is Kind.PULLED and not fact["waited"]):
            continue
        size = int(fact["size"]) if fact["size"].isdecimal() else 0
        if took >= SLOW and (not size or size / took < SLOW_RATE):
            slow[registry(fact["image"])].append(fact)
        elif took < SLOW / 4:
            quick.add(registry(fact["image"]))
    for name, lines in slow.items():
        if len({(fact["image"], fact["pod"], fact.at) for fact in lines}) < 2:
            continue
        rates = [
            int(fact["size"]) / seconds for fact in lines if fact["size"] and (seconds := go_seconds(fact["took"]))
        ]
        speed = f", at {min(rates) / 1e6:.1f} to {max(rates) / 1e6:.1f} MB/s" if rates else ""
        longest = max(go_seconds(fact["took"]) or 0.0 for fact in lines)
        cause = f"{counted(len(lines), 'pull')} from {name} took up to {seconds_text(longest)}{speed}, without the wait in the kubelet's queue."
        others = sorted(quick - {name})
        cause += f" Pulls from {', '.join(others[:3])} were quick." if others else ""
        sure = Confidence.CERTAIN if rates and len(rates) == len(lines) else Confidence.LIKELY
        fetch = "a timed pull from this registry and from another one on the same node, and the registry's own load"
        yield Finding("registry-slow", sure, nodes_of(lines), since(lines), cause, proof(lines), fetch_next=fetch)


_FETCH_MORE = {
    PullCause.FORBIDDEN: "whether these pods have an imagePullSecret, and the answer to `curl -I` of the registry's /v2/ from the node: without credentials, 403 is about the address",
    PullCause.NO_IMAGE_OR_ACCESS: "whether the repository exists, and which imagePullSecret these pods have: the registry gives one answer for both",
    PullCause.OWN_LIMIT: f"the runtime's log of that pull, and its version: {'; '.join(known.own_limit for known in KNOWN if known.own_limit)}",
    PullCause.CERTIFICATE_TIME: "`date -u` on the node, and the dates of the registry's certificate",
}


def back_off_findings(facts: Facts) -> Iterator[Finding]:
    by_image: dict[str, list[Fact]] = defaultdict(list)
    of_image: dict[str, Fact] = {}
    of_pod: dict[tuple[str, str, str], Fact] = {}
    for fact in facts.of(Kind.PULL_FAILED):  # the last error of each counts
        of_image[fact["image"]] = of_pod[fact.node, fact.clock, fact["pod"]] = fact
    for fact in facts.of(Kind.BACK_OFF):
        by_image[fact["image"]].append(fact)
    for image, lines in by_image.items():
        places = [(line.node, line.clock, line["pod"]) for line in lines]
        error = of_image.get(image) if image else None
        error = error or next((of_pod[place] for place in places if place in of_pod), None)
        last = error["error"] if error else ""
        read = read_error(last)
        if over_qps(last) or read.cause is PullCause.CANCELLED:
            continue
        pods = len({fact["pod"] for fact in lines})
        cause = f"the kubelet delays the next pull of {image or 'an image'} for {counted(pods, 'pod')}, because the last one failed: "
        fetch = _FETCH_MORE.get(read.cause, "") if read.cause else ""
        if read.cause and read.confidence is Confidence.CERTAIN:
            cause += f"{read.cause}{_asked(read.host, image)}."
        elif read.cause:
            cause += f"{read.cause}{_asked(read.host, image)}, by its last words: `{read.words}`."
            fetch = fetch or "the runtime's log of that pull: this form of the error is not known"
        elif last:
            cause += f"{last[:200].rstrip('.')}."
            fetch = "the runtime's log of that pull: this error is not known"
        else:
            cause += "the error is in none of these files."
            fetch = f"the Failed events of these pods: they have the registry's answer for {image}"
        yield Finding(
            "image-pull-backoff", read.confidence, nodes_of(lines), since(lines), cause,
            proof([*lines, *([error] if error else [])]), fetch_next=fetch,
        )  # fmt: skip


def _asked(host: str, image: str) -> str:
    """The host that was asked, if it is not the image's registry: a mirror, or a host that the registry names."""
    return f" (asked: {host})" if host and host.partition(":")[0] not in registry(image).partition(":")[0] else ""
