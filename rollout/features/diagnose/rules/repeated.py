"""What a kubelet reports again and again because it cannot go on; what occurs once it repairs itself."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from rollout.core.text.terminal import counted, seconds_text
from rollout.features.diagnose.rules.facts import Fact, Facts, Kind
from rollout.features.diagnose.rules.finding import Confidence, Finding, clock_text, nodes_of, proof, since
from rollout.features.diagnose.rules.pulls import full_name
from rollout.features.diagnose.rules.troubles import MOUNTED, NOT_KILLED, NOT_STOPPED, RESERVED, RUNTIME

LASTS = 120.0
"""Seconds from the first to the last report, from which it counts: the kubelet tries again every few seconds up to two minutes."""
OFTEN = 3
"""Reports from which it counts where a table of events has no times."""
STARTS = 30.0
"""Seconds from which a runtime is down for a kubelet before 1.13, which reports it at each start as well."""
APART = 600.0
"""Seconds between two calls that failed, beyond which the runtime may have answered in between."""


@dataclass(slots=True)
class _Container:
    """What the log shows of the containers: their pods and names by id, when each was told to end, and when it ended."""

    names: dict[str, tuple[str, str]] = field(default_factory=dict)
    kills: dict[tuple[str, str], Fact] = field(default_factory=dict)
    ended: dict[tuple[str, str], Fact] = field(default_factory=dict)

    def name(self, fact: Fact) -> tuple[str, str]:
        """Pod and container; the id's beginning where no line has a name."""
        if fact["cid"] in self.names:
            return self.names[fact["cid"]]
        return fact["pod"], fact["of"] or fact["cid"][:12]


def repeated_findings(facts: Facts) -> Iterator[Finding]:
    """One for each node, trouble, and container, sandbox or volume."""
    known = _containers(facts)
    together: dict[tuple[str, str, str, str, str], list[Fact]] = defaultdict(list)
    for fact in facts.of(Kind.TROUBLE):
        pod, of = (
            known.name(fact)
            if fact["id"] == NOT_KILLED
            else (fact["pod"] if fact["id"] == NOT_STOPPED else "", fact["of"])
        )
        together[fact.node, fact.clock, fact["id"], pod, "" if fact["id"] == RUNTIME else of].append(fact)
    for (node, clock, id_, pod, of), lines in together.items():
        if id_ == RUNTIME:
            yield from _runtime(facts, node, clock, lines)
        elif all(line["by"] == "status" for line in lines):
            yield replace(_finding(id_, of, lines, None), confidence=Confidence.LIKELY, fetch_next=_LAST_ONLY)
        elif _at(lines[-1]) - _at(lines[0]) >= LASTS or max(line.times for line in lines) >= OFTEN:
            told = _told_to_end(known, pod, of) if id_ == NOT_KILLED else None
            yield _finding(id_, of, lines, told, known.ended.get((pod, of)))


_LAST_ONLY = "events or the kubelet's log of the pod: its status has the last try only, and the next one may succeed"


def _containers(facts: Facts) -> _Container:
    known = _Container()
    for fact in facts.of(Kind.NAMED, Kind.HOOK, Kind.KILL, Kind.TROUBLE):
        id_ = fact["cid"] or (fact["id"] if fact.kind is not Kind.TROUBLE else "")
        name = fact["of"] if fact.kind is Kind.TROUBLE else fact["container"]
        if id_ and name and fact["pod"]:
            known.names[id_] = fact["pod"], name
        if fact.kind is Kind.KILL:
            known.kills.setdefault(known.names.get(id_, ("", id_[:12])), fact)
    for fact in facts.of(Kind.KILLED, Kind.DIED):
        known.ended[known.names.get(fact["id"], ("", fact["id"][:12]))] = fact
    for fact in facts.of(Kind.UNMOUNTED):
        known.ended["", fact["of"]] = fact
    return known


def _told_to_end(known: _Container, pod: str, of: str) -> Fact | None:
    return known.kills.get((pod, of))


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
    cause += _how_often(lines)
    over = ended if ended and ended.clock == lines[-1].clock and _at(ended) >= _at(lines[-1]) else None
    cause += f" It succeeded at {clock_text(_at(over))}." if over else ""
    shown = proof([*([told] if told else []), *lines, *([over] if over else [])])
    return Finding(id_, Confidence.CERTAIN, nodes_of(lines), since(lines), cause, shown, fetch_next=texts.fetch)


def _how_often(lines: Sequence[Fact]) -> str:
    """One failed try writes a line for each layer of the kubelet and one of the runtime: the layer with the most counts."""
    layers = Counter(line["by"] for line in lines)
    lasted = _at(lines[-1]) - _at(lines[0])
    times = max(*(line.times for line in lines), *layers.values())
    return f" Reported {counted(times, 'time')}" + (f" over {seconds_text(lasted)}." if lasted else ".")


def _runtime(facts: Facts, node: str, clock: str, lines: Sequence[Fact]) -> Iterator[Finding]:
    """The surest of what the kubelet reports of its runtime; one finding for a node."""
    starts = [_at(start) for start in facts.of(Kind.START) if start.node in ("", node) and start.clock == clock]
    for by, at_least in (
        ("kubelet", 0.0),
        ("brackets", STARTS),
        ("socket", STARTS),
        ("late", LASTS),
        ("status", LASTS),
    ):
        runs = list(_runs([line for line in lines if line["by"] == by], starts))
        for at, run in enumerate(runs):
            lasted = _at(run[-1]) - _at(run[0])
            often = max(len(run), *(line.times for line in run))
            if lasted < at_least or (by in ("socket", "late") and often < OFTEN):
                continue
            texts = _TEXTS[RUNTIME]
            calls = ", ".join(dict.fromkeys(line["of"] for line in run if line["of"]))
            cause = texts.of_by.get(by, texts.cause).format(of=calls, socket=run[0]["away"]) + _how_often(run)
            opened = _open_pull(facts, node, clock, _at(run[0]))
            if opened:
                cause += f" The pull of {opened['image']} was under way then."
            if runs[at + 1 :]:
                cause += f" It was reported again later, last at {clock_text(_at(runs[-1][-1]))}."
            sure = Confidence.LIKELY if by in ("late", "status") else Confidence.CERTAIN
            shown = proof([*([opened] if opened else []), *run, *(later[0] for later in runs[at + 1 :])])
            yield Finding(RUNTIME, sure, nodes_of(run), since(run), cause, shown, fetch_next=texts.fetch)
            return


def _runs(lines: Sequence[Fact], starts: Sequence[float]) -> Iterator[list[Fact]]:
    """Reports that follow each other within one process of the kubelet."""
    run: list[Fact] = []
    for line in lines:
        if run and (_at(line) - _at(run[-1]) > APART or any(_at(run[-1]) < start <= _at(line) for start in starts)):
            yield run
            run = []
        run.append(line)
    if run:
        yield run


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
