"""What a kubelet reports again and again because it cannot go on; what occurs once it repairs itself."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from rollout.core.text.terminal import counted, printable, seconds_text
from rollout.features.diagnose.rules.facts import AGES, Fact, Facts, Kind
from rollout.features.diagnose.rules.finding import Confidence, Finding, clock_text, go_seconds, nodes_of, proof, since
from rollout.features.diagnose.rules.pulls import full_name
from rollout.features.diagnose.rules.troubles import (
    MOUNTED,
    NETWORK,
    NOT_KILLED,
    NOT_STOPPED,
    OUTLIVES,
    RESERVED,
    RUNTIME,
    volume_key,
)

LASTS = 120.0
"""Seconds from the first to the last report, from which it counts: the kubelet tries again every few seconds up to two minutes."""
OFTEN = 3
"""Reports from which it counts where a table of events has no times."""
STARTS = 30.0
"""Seconds from which a runtime is down for a kubelet before 1.13, which reports it at each start as well."""
APART = 600.0
"""Seconds between two reports, beyond which it may have succeeded in between: almost five times the longest back-off, 2 m 2 s."""


@dataclass(slots=True)
class _Containers:
    """What the log shows of the containers: their pods and names by id, the ids by pod and name, and when each was told to end."""

    names: dict[str, tuple[str, str]] = field(default_factory=dict)
    ids: dict[tuple[str, str], list[tuple[float, str]]] = field(default_factory=lambda: defaultdict(list))
    kills: dict[str, Fact] = field(default_factory=dict)

    def identity(self, fact: Fact) -> str:
        """The container's id; that of the newest container of this name by then, where the line has none; else its name."""
        ids = self.ids.get((fact["pod"], fact["of"]), [])
        if fact["cid"] or not ids:
            return fact["cid"] or f"{fact['key'] or fact['pod']} {fact['of']}"
        return ids[max(0, bisect_right(ids, _at(fact), key=lambda each: each[0]) - 1)][1]

    def name(self, identity: str, fact: Fact) -> str:
        """The container's name; the id's beginning where no line has one."""
        return self.names.get(identity, ("", ""))[1] or fact["of"] or identity[:12]


def repeated_findings(facts: Facts) -> Iterator[Finding]:
    """One for each node, trouble, and container, sandbox or volume: of its last run of tries that lasted."""
    known, ends = _containers(facts), _Ends(facts)
    together: dict[tuple[str, str, str, str], list[Fact]] = defaultdict(list)
    for fact in _keyed_alike(facts.of(Kind.TROUBLE)):
        together[fact.node, fact.clock, fact["id"], _identity(fact, known)].append(fact)
    for (node, clock, id_, identity), lines in together.items():
        if id_ == RUNTIME:
            yield from _runtime(facts, ends, node, clock, lines)
            continue
        if id_ == NETWORK:
            yield from _network(facts, clock, lines)
            continue
        of = known.name(identity, lines[0]) if id_ == NOT_KILLED else lines[0]["of"]
        mine = ends.of(id_, identity, lines)
        apart = float("inf") if _ends_once(id_, lines) else APART
        runs = list(apart_by([line for line in lines if line.at is not None], [_at(end) for end in mine], apart))
        lasting = [run for run in runs if lasted(run, _end_of(run, mine), of_ages=run[0].clock.startswith(AGES))]
        untimed = [line for line in lines if line.at is None]
        if lasting:
            told = known.kills.get(identity) if id_ == NOT_KILLED else None
            yield _finding(id_, of, lasting[-1], told, _end_of(lasting[-1], mine))
        elif any(line["by"] == "status" for line in untimed):
            yield replace(_finding(id_, of, untimed, None), confidence=Confidence.LIKELY, fetch_next=LAST_ONLY)
        elif untimed and not runs and max(line.times for line in untimed) >= OFTEN:
            yield _finding(id_, of, untimed, None)


def _keyed_alike(lines: Sequence[Fact]) -> Iterator[Fact]:
    """Events of one end of a pod have its uid only if its sandbox failed too: the others are of the same end, if no other pod has such."""
    keys: dict[tuple[str, ...], set[str]] = defaultdict(set)
    for line in lines:
        if line["key"]:
            keys[_of_events(line)].add(line["key"])
    for line in lines:
        alike = keys.get(_of_events(line), set()) if line["id"] == NOT_KILLED and not line["key"] else set()
        same_end = len(alike) == 1 and not line["cid"] and (line["pod"] or line.clock.startswith(AGES))
        yield replace(line, fields={**line.fields, "key": next(iter(alike))}) if same_end else line


def _of_events(line: Fact) -> tuple[str, ...]:
    return line["id"], line.node, line.clock, line["pod"], line["of"]


def _identity(fact: Fact, known: _Containers) -> str:
    """What no other container, sandbox or volume shares: two pods may each have a volume of the same name."""
    if fact["id"] == NOT_KILLED:
        return known.identity(fact)
    if fact["id"] == NOT_STOPPED:
        return f"{fact['pod']} {fact['of']}"
    return "" if fact["id"] in (RUNTIME, NETWORK) else fact["key"] or fact["of"]


def _ends_once(id_: str, lines: Sequence[Fact]) -> bool:
    """Whether the identity is of one thing that ends once, so that a later failure shows that it had not ended: an id, a pod's own mount."""
    if id_ == NOT_KILLED:
        return any((line["cid"] and line["by"] != OUTLIVES) or line["key"] for line in lines)
    return id_ in (NOT_STOPPED, RESERVED) or " " in lines[0]["key"]


def lasted(run: Sequence[Fact], end: Fact | None, *, of_ages: bool) -> bool:
    """Whether the tries of a run failed for long: by their times, by the back-off that they reached, or by their number in a table of ages."""
    seconds = max(_at(run[-1]) - _at(run[0]), *(go_seconds(line["backoff"]) or 0.0 for line in run))
    often = of_ages and max(line.times for line in run) >= OFTEN
    return seconds >= LASTS or (often and end is None)


def _end_of(run: Sequence[Fact], ends: Sequence[Fact]) -> Fact | None:
    """The first success behind the last report."""
    at = bisect_left(ends, _at(run[-1]), key=_at)
    return ends[at] if at < len(ends) else None


class _Ends:
    """What ends each trouble: a fact that only a success leaves."""

    def __init__(self, facts: Facts) -> None:
        self._by: dict[tuple[str, str, str], list[Fact]] = defaultdict(list)
        for fact in facts.of(Kind.KILLED, Kind.DIED, Kind.ENDED):
            self._add(NOT_KILLED, fact["id"], fact)
        for fact in facts.of(Kind.UNMOUNTED):
            self._add(MOUNTED, volume_key(fact["unique"], fact["holder"]) or fact["of"], fact)
        for fact in facts.of(Kind.RAN):
            self._add(RESERVED, fact["pod"], fact)
        self._answers = [
            fact
            for fact in facts.of(Kind.VERSION, Kind.RAN, Kind.PULLED, Kind.KILLED, Kind.DIED, Kind.RUNTIME_ENDED)
            if fact.at is not None and not fact["error"]
        ]

    def _add(self, id_: str, identity: str, fact: Fact) -> None:
        if fact.at is not None:
            self._by[id_, fact.clock, identity].append(fact)

    def of(self, id_: str, identity: str, lines: Sequence[Fact]) -> list[Fact]:
        """By time. A container that was made ends a reserved name of its own, and that of its pod's sandbox."""
        clock, first = lines[0].clock, lines[0]
        if id_ != RESERVED:
            return self._by.get((id_, clock, identity), [])
        pod = next((line["pod"] for line in lines if line["pod"]), "")
        parts = first["of"].split("_")
        sandbox = parts[0] == pod.rpartition("/")[2] or parts[1:2] == ["POD"]
        made = self._by.get((id_, clock, pod), []) if pod else []
        return [fact for fact in made if sandbox or fact["container"] in parts[:2]]

    def answers(self, node: str, clock: str) -> list[Fact]:
        """What only a runtime that answers leaves, by time."""
        return [fact for fact in self._answers if fact.clock == clock and fact.node in ("", node)]


_ONCE = "whether it is reported again: one report is also that of a kubelet which itself stood still for 30 s, on a node without CPU time or a machine that was paused"
LAST_ONLY = "events or the kubelet's log of the pod: its status has the last try only, and the next one may succeed"


def _containers(facts: Facts) -> _Containers:
    known = _Containers()
    for fact in facts.of(Kind.NAMED, Kind.HOOK, Kind.KILL, Kind.TROUBLE):
        id_ = fact["cid"] or (fact["id"] if fact.kind is not Kind.TROUBLE else "")
        name = fact["of"] if fact.kind is Kind.TROUBLE else fact["container"]
        if id_ and name and fact["pod"] and id_ not in known.names:
            known.names[id_] = fact["pod"], name
            known.ids[fact["pod"], name].append((_at(fact), id_))
        if fact.kind is Kind.KILL:
            known.kills.setdefault(id_, fact)
    return known


def _finding(id_: str, of: str, lines: Sequence[Fact], told: Fact | None, ended: Fact | None = None) -> Finding:
    texts = _TEXTS[id_]
    pods = sorted({line["pod"] for line in lines if line["pod"]})
    known_by = next((line["by"] for line in lines if line["by"] in texts.of_by), "")
    cause = texts.of_by.get(known_by, texts.cause).format(of=of)
    socket = next((line["away"] for line in lines if line["away"]), "")
    if socket and id_ != RUNTIME:
        cause += f" The runtime did not answer at {socket} for at least one of the tries."
    if pods:
        cause += f" Of pod {', '.join(pods[:3])}."
    if told is not None:
        cause += f" The kubelet began to end it at {clock_text(_at(told))}, with a grace period of {told['grace']} s."
    cause += how_often(lines)
    if backoff := max((go_seconds(line["backoff"]) or 0.0 for line in lines), default=0.0):
        cause += f" The kubelet waited up to {seconds_text(backoff)} between the tries." if backoff >= LASTS else ""
    if ended:
        cause = until_text(ended, cause)
    shown = proof([*([told] if told else []), *lines, *([ended] if ended else [])])
    return Finding(id_, Confidence.CERTAIN, nodes_of(lines), since(lines), cause, shown, fetch_next=texts.fetch)


def until_text(end: Fact, cause: str) -> str:
    """A cause that is over."""
    return f"{_until(end)}{cause} It succeeded at {clock_text(_at(end))}."


def _until(end: Fact) -> str:
    """The beginning of a cause that is over."""
    return f"over since {clock_text(_at(end))}; until then: "


def how_often(lines: Sequence[Fact]) -> str:
    """One failed try writes a line for each layer of the kubelet and one of the runtime: the layer with the most counts."""
    layers = Counter(line["by"] for line in lines)
    lasted = _at(lines[-1]) - _at(lines[0])
    times = max(*(line.times for line in lines), *layers.values())
    return f" Reported {counted(times, 'time')}" + (f" over {seconds_text(lasted)}." if lasted else ".")


def _runtime(facts: Facts, ends: _Ends, node: str, clock: str, lines: Sequence[Fact]) -> Iterator[Finding]:
    """The surest of what the kubelet reports of its runtime; one finding for a node."""
    starts = [_at(start) for start in facts.of(Kind.START) if start.node in ("", node) and start.clock == clock]
    answers = ends.answers(node, clock)
    breaks = sorted([*starts, *map(_at, answers)])
    for by, at_least in (
        ("kubelet", 0.0),
        ("brackets", STARTS),
        ("socket", STARTS),
        ("refused", LASTS),
        ("late", LASTS),
        ("status", LASTS),
    ):
        runs = list(apart_by([line for line in lines if line["by"] == by], breaks))
        for at, run in enumerate(runs):
            lasted = _at(run[-1]) - _at(run[0])
            often = max(len(run), *(line.times for line in run))
            least = LASTS if at_least and _end_of(run, answers) else at_least
            if lasted < least or (by in ("socket", "refused", "late") and often < OFTEN):
                continue
            texts = _TEXTS[RUNTIME]
            calls = ", ".join(dict.fromkeys(line["of"] for line in run if line["of"]))
            cause = texts.of_by.get(by, texts.cause).format(
                of=calls, socket=printable(run[0]["away"], 300)
            ) + how_often(run)
            opened = _open_pull(facts, node, clock, _at(run[0]))
            if opened:
                cause += f" The pull of {opened['image']} was under way then."
            if runs[at + 1 :]:
                cause += f" It was reported again later, last at {clock_text(_at(runs[-1][-1]))}."
            ended = _end_of(runs[-1], answers)
            if ended:
                cause = f"{_until(ended)}{cause} It answered at {clock_text(_at(ended))}."
            once = by == "kubelet" and len(lines) == lines[0].times == 1 and not _hangs(facts, node, clock)
            sure = Confidence.LIKELY if once or by in ("late", "status") else Confidence.CERTAIN
            later = [*(later[0] for later in runs[at + 1 :]), *([ended] if ended else [])]
            shown = proof([*([opened] if opened else []), *run, *later])
            fetch = f"{_ONCE}; {texts.fetch}" if once else texts.fetch
            yield Finding(RUNTIME, sure, nodes_of(run), since(run), cause, shown, fetch_next=fetch)
            return


def _network(facts: Facts, clock: str, lines: Sequence[Fact]) -> Iterator[Finding]:
    """The kubelet's own lines prove how long; the last ones of a log, and a Node's condition, are of one moment."""
    starts = [_at(start) for start in facts.of(Kind.START) if start.clock == clock]
    runs = list(apart_by([line for line in lines if line["by"] == "line"], starts, ONCE_IN))
    run = next((run for run in reversed(runs) if _at(run[-1]) - _at(run[0]) >= LASTS), None)
    if run is not None:
        yield _finding(NETWORK, printable(run[-1]["of"], 300), run, None)
        return
    ends = [_at(last) for last in facts.of(Kind.LAST) if last.clock == clock and last.at is not None]
    last = runs[-1] if runs and any(0 <= end - _at(runs[-1][-1]) <= ONCE_IN / 2 for end in ends) else []
    if told := last or [line for line in lines if line["by"] == "condition"][-1:]:
        found = _finding(NETWORK, printable(told[-1]["of"], 300), told, None)
        yield replace(found, confidence=Confidence.LIKELY, fetch_next=f"{_BOOTS}; {found.fetch_next}")


ONCE_IN = 30.0
"""Seconds within which a kubelet reports again that its runtime has no network: it does so every five."""
_BOOTS = "whether it is so some minutes later: a node that boots has it until its network plugin is there"


def _hangs(facts: Facts, node: str, clock: str) -> bool:
    """Whether the kubelet also says for how long the runtime has not listed its containers."""
    return any(fact.node in ("", node) and fact.clock == clock for fact in facts.of(Kind.PLEG))


def apart_by(lines: Sequence[Fact], breaks: Sequence[float], apart: float = APART) -> Iterator[list[Fact]]:
    """Reports that follow each other, with no success and no start of a kubelet between them. ``breaks``: their times, in order."""
    run: list[Fact] = []
    for line in lines:
        if run and (_apart(run[-1], line, apart) or _between(breaks, _at(run[-1]), _at(line))):
            yield run
            run = []
        run.append(line)
    if run:
        yield run


def _apart(before: Fact, line: Fact, apart: float) -> bool:
    """Whether too much time lies between. An event that counts has its first and its last time; a back-off that is still long was not reset."""
    tries = line.times - 1 if line.where == before.where else 1
    kept_on = min(go_seconds(each["backoff"]) or 0.0 for each in (before, line)) >= LASTS
    return _at(line) - _at(before) > apart * max(tries, 1) and not kept_on


def _between(breaks: Sequence[float], first: float, last: float) -> bool:
    at = bisect_right(breaks, first)
    return at < len(breaks) and breaks[at] <= last


def _at(fact: Fact) -> float:
    return fact.at or 0.0


def _open_pull(facts: Facts, node: str, clock: str, at: float) -> Fact | None:
    """The oldest pull that the runtime had received before that time and not ended."""
    open_: dict[str, Fact] = {}
    for fact in facts.of(Kind.RUNTIME_STARTED, Kind.RUNTIME_ENDED):
        if (fact.node, fact.clock) == (node, clock) and fact.at is not None and fact.at <= at:
            if fact.kind is Kind.RUNTIME_STARTED:
                open_.setdefault(full_name(fact["image"]), fact)
            else:
                open_.pop(full_name(fact["image"]), None)
    return next(iter(open_.values()), None)


@dataclass(frozen=True, slots=True)
class _Texts:
    """``of_by``: the cause where the check or the call that reports it shows more."""

    cause: str
    fetch: str
    of_by: Mapping[str, str] = field(default_factory=dict)


_TEXTS: Mapping[str, _Texts] = {
    RUNTIME: _Texts(
        "the container runtime does not answer the kubelet: by the kubelet's own check it has been down for at least 30 s. Pods neither start nor end.",
        "the runtime's log before that time, and its state: systemctl status; a runtime that hangs is restarted, which keeps running containers if its unit has KillMode=process",
        {
            "brackets": "the container runtime does not answer the kubelet, by the kubelet's own check. Pods neither start nor end.",
            "socket": "nothing answers at the container runtime's socket {socket} ({of}): the runtime does not run, or it listens elsewhere. Pods neither start nor end.",
            "refused": "the container runtime answers the kubelet's question for its status with an error: `{socket}`. The kubelet works on no pod meanwhile.",
            "late": "the container runtime does not answer the kubelet's calls in time ({of}). It hangs, or its disk is too slow.",
            "status": "the first check of the container runtime's status has not succeeded since the kubelet started, which takes seconds on a healthy node. The kubelet works on no pod.",
        },
    ),
    NOT_KILLED: _Texts(
        "the runtime cannot end container {of}: each try fails. One known reason is a process in an uninterruptible wait for a disk or a mount, which SIGKILL does not end. A longer grace period does not help.",
        "on the node: the state of the container's processes (`ps -o pid,stat,wchan`, D is such a wait) and the runtime's log of StopContainer",
        {
            "gone": "the kubelet tries again and again to end container {of}, which the runtime no longer has. No process of it is left to end; a restart of the kubelet reads the runtime's containers anew.",
            "denied": "the runtime is not allowed to signal the processes of container {of}: a security profile, such as one of AppArmor, denies it. A longer grace period does not help.",
        },
    ),
    NOT_STOPPED: _Texts(
        "the sandbox {of} of a pod cannot be stopped: each try fails, so the pod does not leave the API. No grace period changes it.",
        "the runtime's log of StopPodSandbox",
        {
            "network": "the network of the sandbox {of} cannot be removed: the network plugin fails, so the pod does not leave the API. No grace period changes it.",
        },
    ),
    NETWORK: _Texts(
        "the runtime reported that the node has no network for pods: `{of}`. Meanwhile the node is not ready, and only pods in the host's network start.",
        "the files of /etc/cni/net.d on the node, and whether the network plugin's pod runs there: it writes them",
    ),
    RESERVED: _Texts(
        "the runtime still holds the name {of} for an earlier try to create the container, which the kubelet gave up at its time limit. Known reasons are a slow disk and a runtime that hangs; the image is not one.",
        "the runtime's log of the first CreateContainer, and the disk's load at that time; a restart of the runtime releases the name",
    ),
    MOUNTED: _Texts(
        "volume {of} cannot be unmounted, so its pod does not leave the API. No grace period changes it.",
        "which process or mount still uses the volume on the node: findmnt and fuser -vm of its path",
        {
            "driver": "volume {of} cannot be unmounted, because its CSI driver is not registered on the node: the driver's pod does not run there, or its socket is gone. The pod does not leave the API.",
            "UnmountDevice": "the device of volume {of} cannot be unmounted, so the volume is not detached from the node, and a pod on another node may wait for it.",
        },
    ),
}  # fmt: skip
