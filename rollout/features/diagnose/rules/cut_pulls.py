"""Pulls that a program cancelled because they showed no progress, and which part of the pull was silent.

A longer deadline helps where the silent part is work of the node itself: verifying, extracting, unpacking. It makes matters
worse where a mirror or a registry hangs. What the lines say of that part:

* containerd writes ``stop pulling image …: active requests=N, bytes read=M`` behind the cut (1.7 to 2.3, image_pull.go), and
  ``trying next host`` with the error of each host that it gave up (core/remotes/docker/resolver.go). The pull's own error
  names the phase: ``failed to extract layer`` is unpacking, which a deadline may cut from 2.2 on (containerd#13909).
* dockershim and cri-dockerd print the state of a layer: ``Downloading``, ``Verifying Checksum``, ``Extracting``.
* CRI-O names neither image nor phase. 1.30.0 to 1.30.10 and 1.31.0 to 1.31.2 cancel after 10 s and have no key for it (cri-o#8760).

A deadline of 0s is written as ``no timeout and will not start pulling image``. With the transfer service (containerd 2.1 and later)
every pull then hangs (containerd#14158); where containerd pulls locally the line is the same, and pulls end. So a pull that ended decides.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import islice

from rollout.core.model.frozen import dataclass
from rollout.core.text.durations import go_format
from rollout.core.text.terminal import counted, seconds_text
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
from rollout.kubelet import versions as kubelets
from rollout.kubelet.defects.matching import KUBELET
from rollout.kubelet.intents import DEADLINE
from rollout.kubelet.runtimes.description import CutWords, RuntimeVersion, SilentPart, parse
from rollout.kubelet.runtimes.known import KNOWN, dotted

RAISED = 300.0
"""The deadline that is proposed at least: 5 min, what GCE's scripts set and containerd has as its default since 1.7.10."""
MARGIN = 2.0
"""How much longer than the longest measured silence a proposed deadline is."""
AROUND = 5.0
"""Seconds around a cut in which the lines about it are written."""
MANY = 3
"""Requests under way at a cut, from which layers are fetched in chunks: one request a layer, and three layers, is the default."""


CUTS = {known.cuts.by: known.cuts for known in KNOWN if known.cuts}
_RUNTIMES = {known.cuts.by: known for known in KNOWN if known.cuts}
_LAST_BUILT_IN = max(known.built_in_until or 0 for known in KNOWN)


class Programs:
    """The versions of each node's programs, as the node reports them, else by the lines of their last start."""

    def __init__(self, facts: Facts) -> None:
        told = (*facts.of(Kind.RUNTIME), *facts.of(Kind.VERSION))
        self._versions = {(fact.node, fact["by"]): parse(fact["version"]) for fact in told}
        kubelet = (*facts.of(Kind.START), *(fact for fact in facts.of(Kind.VERSION) if fact["by"] == KUBELET))
        self._minors = {
            fact.node: version.minor for fact in kubelet if (version := kubelets.parse(fact["version"])) is not None
        }

    def version(self, node: str, by: str) -> RuntimeVersion | None:
        return self._versions.get((node, by))

    def minor(self, node: str) -> int | None:
        """Of the node's kubelet."""
        return self._minors.get(node)

    def without_deadline(self, node: str, by: str) -> str:
        """Why no setting changes the deadline of this program on this node; ``""``: one does, or the version is not known."""
        if by not in _RUNTIMES:  # a runtime that the kubelet contains
            minor = self.minor(node)
            gone = minor is not None and minor > _LAST_BUILT_IN
            return f"This kubelet, 1.{minor}, has no such deadline of its own any more." if gone else ""
        version = self.version(node, by)
        if version is None:
            return ""
        row = _RUNTIMES[by].row(DEADLINE, version)
        if row is None:
            return f"rollout does not know {by} {version.text}, so it proposes no setting."
        if row.key:
            return ""
        first = next(
            (
                row.since
                for row in _RUNTIMES[by].rows
                if row.intent == DEADLINE and row.key and row.since > version.number
            ),
            None,
        )
        upgrade = f": an upgrade to {dotted(first)} or later brings one" if first else ""
        return f"{by} {version.text} has no key for its deadline{upgrade}."


@dataclass(frozen=True, slots=True)
class _Part:
    """``host``: that hung. ``progress``: the state of a layer, or the bytes that were read. ``lines``: what shows it."""

    silent: SilentPart
    host: str = ""
    progress: str = ""
    lines: tuple[Fact, ...] = ()


def cut_findings(facts: Facts, target: ProposalTarget) -> Iterator[Finding]:
    """One for each node, program and silent part; and one for each node where pulls begin without a deadline and hang."""
    programs = Programs(facts)
    yield from _unlimited_findings(facts, programs, target)
    cuts = facts.of(Kind.PULL_CUT)
    if not cuts:
        return
    silences, around = _longest_silences(facts), _Around(facts)
    together: dict[tuple[str, str, SilentPart, str], list[tuple[Fact, _Part]]] = defaultdict(list)
    for cut in cuts:
        part = _part(cut, around)
        together[cut.node, cut["by"], part.silent, part.host].append((cut, part))
    for (node, by, _silent, _host), parts in together.items():
        lines = [cut for cut, _ in parts]
        silence = silences.get(node, 0.0)
        deadline = go_seconds(lines[0]["deadline"])
        # Of the pull that was cancelled: its silence would have been longer.
        measured = silence if silence >= (deadline or 0.0) else 0.0
        none = programs.without_deadline(node, by)
        told = _told(parts[0][1], CUTS.get(by, CutWords(by)), programs.version(node, by), measured, none)
        images = sorted({fact["image"] for fact in lines if fact["image"]})
        cause = (
            f"{by} cancelled {counted(len(lines), 'pull')} after {lines[0]['deadline']} without progress"
            f"{_at(lines[0]['progress'])}: {', '.join(images[:3]) or 'images not named'}. {told.cause.strip()}"
        )
        nodes = nodes_of(lines)
        setting = f"imagePullProgressDeadline={go_format(proposed_deadline(deadline, measured))}"
        yield Finding(
            "pull-progress-deadline", told.confidence, nodes, since(lines), cause,
            proof([*lines, *(line for _, part in parts for line in part.lines)]),
            target.plan(nodes, setting) if told.longer else "", RISK if told.longer else "", told.fetch,
        )  # fmt: skip


def _at(progress: str) -> str:
    return f', at "{progress.strip()}"' if progress.strip() else ""


@dataclass(frozen=True, slots=True)
class _Told:
    """``longer``: whether a longer deadline fixes it."""

    cause: str
    confidence: Confidence
    longer: bool
    fetch: str = ""


def _told(part: _Part, words: CutWords, version: RuntimeVersion | None, measured: float, none: str) -> _Told:
    """``measured``: the longest silence of the node's pulls, 0 if none is known to be as long as the deadline.

    ``none``: why no setting changes the deadline here, see ``Programs.without_deadline``.
    """
    told = _of_part(part, words, version, measured)
    if not told.longer:
        return told
    if none:
        return replace(told, cause=f"{told.cause} {none}", longer=False)
    if words.keyless and version is None:
        fetch = f"the version: {words.ask_version}. Where it has the key, imagePullProgressDeadline=5m0s fixes it"
        return replace(told, cause=f"{told.cause} {words.keyless}", longer=False, fetch=fetch)
    return told


def _of_part(part: _Part, words: CutWords, version: RuntimeVersion | None, measured: float) -> _Told:
    certain, likely = Confidence.CERTAIN, Confidence.LIKELY
    host, progress = part.host, part.progress
    more = words.parts[part.silent].told(version) if part.silent in words.parts else ""
    silent = SilentPart.TRANSFER if part.silent is SilentPart.CHUNK and not more else part.silent
    match silent:
        case SilentPart.LOCAL | SilentPart.VERIFY:
            long = f"; it makes no progress for up to {seconds_text(measured)}" if measured else ""
            cause = f"The last progress was the node's own work on a layer that had arrived, which shows none while it lasts{long}. {more}"
            return _Told(cause, certain, longer=True, fetch="" if measured else _FETCH_SILENCE)
        case SilentPart.UNPACK:
            return _Told(
                f"The deadline cut the unpacking of a layer that had arrived{progress}. {more}", certain, longer=True
            )
        case SilentPart.MIRROR:
            cause = f"The mirror {host} did not answer{progress}: the deadline ended the whole pull, and no later host was tried."
            return _Told(f"{cause} {more} A longer deadline makes it worse.", certain, longer=False)
        case SilentPart.REGISTRY:
            cause = f"The registry {host} did not answer{progress}. A longer deadline makes each such pull hang longer."
            return _Told(cause, certain if progress else likely, longer=False, fetch=_FETCH_TIMED)
        case SilentPart.CHUNK:
            cause = f"Several requests were under way{progress}. {more}"
            return _Told(
                cause, likely, longer=False, fetch="that key in the runtime's configuration, and the runtime's version"
            )
        case SilentPart.TRANSFER:
            cause = (
                f"The transfer stood still{progress}: the registry, a proxy or the network stopped in the middle of it. {more}"
            ).rstrip()
            return _Told(cause, likely if progress else certain, longer=False, fetch=_FETCH_TIMED)
        case SilentPart.UNKNOWN:
            pass
    cause = (
        "Which part of the pull was silent is not in what was read: the node's own work, the registry, or the network."
    )
    cause += f" The host that was asked last before it is {host}." if host else ""
    return _Told(cause, certain, longer=True, fetch=_FETCH_SILENCE)


class _Around:
    """The lines of a runtime around its cuts, by node and clock."""

    def __init__(self, facts: Facts) -> None:
        self._lines: dict[tuple[str, str], list[Fact]] = defaultdict(list)
        for fact in facts.of(Kind.PULL_STOPPED, Kind.NEXT_HOST, Kind.RUNTIME_ENDED):
            if fact.at is not None:
                self._lines[fact.node, fact.clock].append(fact)
        self._asked: dict[tuple[str, str], list[Fact]] = defaultdict(list)
        for fact in facts.of(Kind.RUNTIME_STARTED, Kind.ASKED):
            if fact.at is not None:
                self._asked[fact.node, fact.clock].append(fact)

    def host(self, cut: Fact) -> tuple[Fact, ...]:
        """The line with the host that was asked last, and that of its pull, if that pull is the last one to begin before a cut that names none."""
        lines = self._asked[cut.node, cut.clock]
        end = bisect_right(lines, cut.at or 0.0, key=lambda fact: fact.at or 0.0)
        if cut["image"] or not end or lines[end - 1].kind is not Kind.ASKED:
            return ()
        begun = next(
            (fact for fact in reversed(lines[max(end - 20, 0) : end]) if fact.kind is Kind.RUNTIME_STARTED), None
        )
        return (begun, lines[end - 1]) if begun is not None else ()

    def of(self, cut: Fact) -> Iterator[Fact]:
        at, lines = cut.at, self._lines[cut.node, cut.clock]
        first = bisect_left(lines, (at or 0.0) - 1.0, key=lambda fact: fact.at or 0.0)
        for fact in islice(lines, first, None):
            near = at is not None and fact.at is not None and -1.0 <= fact.at - at <= AROUND
            if not near:
                return
            same = (
                f"/v2/{repository(cut['image'])}/" in fact["error"]
                if fact.kind is Kind.NEXT_HOST
                else full_name(fact["image"]) == full_name(cut["image"])
            )
            if same:
                yield fact


_STATES = {
    "Verifying Checksum": SilentPart.VERIFY,
    "Extracting": SilentPart.LOCAL,
    "Downloading": SilentPart.TRANSFER,
    "Pulling fs layer": SilentPart.TRANSFER,
    "Waiting": SilentPart.TRANSFER,
}


def _part(cut: Fact, around: _Around) -> _Part:
    state = (cut["progress"].partition(": ")[2] or cut["progress"]).strip()
    for begins, part in _STATES.items():
        if state.startswith(begins):
            return _Part(part)
    lines = tuple(around.of(cut))
    stopped = next((fact for fact in lines if fact.kind is Kind.PULL_STOPPED), None)
    ended = next((fact for fact in lines if fact.kind is Kind.RUNTIME_ENDED and fact["error"]), None)
    hung = [fact for fact in lines if fact.kind is Kind.NEXT_HOST and _is_cut(fact["error"])]
    read = int(stopped["bytes"][:18]) if stopped else None
    progress = f" (bytes read: {read:,})" if read is not None else ""
    if ended and "failed to extract layer" in read_error(ended["error"]).links:
        return _Part(SilentPart.UNPACK, "", progress, lines)
    if not read and (hung or ended):
        error = hung[0]["error"] if hung else ended["error"] if ended else ""
        host = (hung[0]["host"] if hung else "") or read_error(error).host
        if host and _is_cut(error):
            is_own = host.partition(":")[0].endswith(registry(full_name(cut["image"])).partition(":")[0])
            return _Part(SilentPart.REGISTRY if is_own else SilentPart.MIRROR, host, progress, lines)
    if stopped and read:
        chunks = int(stopped["requests"][:9]) > MANY
        return _Part(SilentPart.CHUNK if chunks else SilentPart.TRANSFER, "", progress, lines)
    asked = around.host(cut)
    return _Part(SilentPart.UNKNOWN, asked[1]["host"] if asked else "", progress, lines or asked)


def _is_cut(error: str) -> bool:
    return read_error(error).cause is PullCause.CANCELLED


def _unlimited_findings(facts: Facts, programs: Programs, target: ProposalTarget) -> Iterator[Finding]:
    """Pulls that began without a deadline, of which none ended: with the transfer service none ever does."""
    begun: dict[tuple[str, str], list[Fact]] = defaultdict(list)
    for fact in facts.of(Kind.UNLIMITED):
        if fact.at is not None and fact["by"] in CUTS:
            begun[fact.node, fact.clock].append(fact)
    last = ends_of(facts, target.now) if begun else {}
    ends: dict[tuple[str, str, str], float] = {}
    for fact in facts.of(Kind.RUNTIME_ENDED):
        if read_error(fact["error"]).cause is not PullCause.CANCELLED:
            ends[fact.node, fact.clock, full_name(fact["image"])] = fact.at or 0.0
    for (node, clock), lines in begun.items():
        version, unlimited = programs.version(node, lines[0]["by"]), CUTS[lines[0]["by"]].unlimited
        hung = [line for line in lines if last[clock] - (line.at or 0.0) >= HUNG]
        ended = any(ends.get((node, clock, full_name(line["image"])), 0.0) >= (line.at or 0.0) for line in lines)
        why = unlimited.told(version) if unlimited else ""
        if not hung or ended or not why:
            continue  # a pull that ended, or failed of another cause, passed the first step
        images = sorted({line["image"] for line in hung})
        cause = (
            f"{counted(len(hung), 'pull')} began without a progress deadline (0s) and did not end within {seconds_text(last[clock] - (hung[0].at or 0.0))}: "
            f"{', '.join(images[:3])}. {why}"
        )
        sure = Confidence.LIKELY if version is not None else Confidence.UNKNOWN
        nodes = nodes_of(hung)
        setting = f"imagePullProgressDeadline={go_format(RAISED)}"
        yield Finding(
            "pull-progress-deadline", sure, nodes, since(hung), cause, proof(hung),
            target.plan(nodes, setting) if version is not None else "", RISK if version is not None else "",
            f"{CUTS[lines[0]['by']].ask_version}, and `use_local_image_pull` in its configuration: with it the deadline is not the reason",
        )  # fmt: skip


RISK = (
    "kubelet or runtime restarts, which cancels running pulls; a pull that really hangs is given up later, and blocks a "
    "serial queue for that long."
)
_FETCH_TIMED = "a timed pull from this registry and from another one on the same node: rollout diagnose probe"
_FETCH_SILENCE = (
    "a timed pull of the image on one node: its longest phase without progress is what the deadline must exceed"
)


def proposed_deadline(deadline: float | None, silence: float) -> float:
    """Seconds, in whole minutes: longer than the deadline in force and than the longest measured silence."""
    wanted = max(RAISED, MARGIN * silence, 2 * (deadline or 0.0) if (deadline or 0.0) >= RAISED else 0.0)
    return float(-(-wanted // 60) * 60)


def _longest_silences(facts: Facts) -> Mapping[str, float]:
    """Node → the longest time for which dockershim printed the same progress of an image, every 10 s."""
    since_when: dict[tuple[str, str], tuple[str, float]] = {}
    longest: dict[str, float] = defaultdict(float)
    for fact in facts.of(Kind.PROGRESS):
        if fact.at is None:
            continue
        key = fact.node, fact["image"]
        known, at = since_when.get(key, ("", fact.at))
        if known != fact["progress"]:
            since_when[key] = (fact["progress"], fact.at)
        else:
            longest[fact.node] = max(longest[fact.node], fact.at - at)
    return longest
