"""Pulls that a program cancelled because they showed no progress, and which part of the pull was silent.

A longer deadline helps where the silent part is work of the node itself: verifying, extracting, unpacking. It makes matters
worse where a mirror or a registry hangs. What the lines say of that part:

* containerd writes ``stop pulling image …: active requests=N, bytes read=M`` behind the cut (1.7 to 2.3, image_pull.go), and
  ``trying next host`` with the error of each host that it gave up (core/remotes/docker/resolver.go). The pull's own error
  names the phase: ``failed to extract layer`` is unpacking, which a deadline may cut from 2.2 on (containerd#13909).
* dockershim and cri-dockerd print the state of a layer: ``Downloading``, ``Verifying Checksum``, ``Extracting``.
* CRI-O names neither image nor phase. 1.31.0 to 1.31.2 cancel after 10 s and have no key for it (cri-o#8760).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping

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
from rollout.features.diagnose.rules.pulls import full_name, registry
from rollout.kubelet.runtimes.description import CutWords, SilentPart
from rollout.kubelet.runtimes.known import KNOWN

RAISED = 300.0
"""The deadline that is proposed at least: 5 min, what GCE's scripts set and containerd has as its default since 1.7.10."""
MARGIN = 2.0
"""How much longer than the longest measured silence a proposed deadline is."""
AROUND = 5.0
"""Seconds around a cut in which the lines about it are written."""
MANY = 3
"""Requests under way at a cut, from which layers are fetched in chunks: one request a layer, and three layers, is the default."""


_CUTS = {known.cuts.by: known.cuts for known in KNOWN if known.cuts}


@dataclass(frozen=True, slots=True)
class _Part:
    """``host``: that hung. ``progress``: the state of a layer, or the bytes that were read. ``lines``: what shows it."""

    silent: SilentPart
    host: str = ""
    progress: str = ""
    lines: tuple[Fact, ...] = ()


def cut_findings(facts: Facts, target: ProposalTarget) -> Iterator[Finding]:
    """One for each node, program and silent part."""
    cuts = facts.of(Kind.PULL_CUT)
    if not cuts:
        return
    silences, versions = _longest_silences(facts), _versions(facts)
    around = _Around(facts)
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
        told = _told(parts[0][1], _CUTS.get(by, CutWords(by)), versions.get((node, by), ""), measured)
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


def _told(part: _Part, words: CutWords, version: str, measured: float) -> _Told:
    """``measured``: the longest silence of the node's pulls, 0 if none is known to be as long as the deadline."""
    certain, likely = Confidence.CERTAIN, Confidence.LIKELY
    host, progress, more = part.host, part.progress, words.parts.get(part.silent, "")
    match part.silent:
        case SilentPart.LOCAL:
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
                f"The transfer stood still{progress}: the registry, a proxy or the network stopped in the middle of it."
            )
            return _Told(cause, likely if progress else certain, longer=False, fetch=_FETCH_TIMED)
        case SilentPart.UNKNOWN:
            pass
    if version in words.without_key:
        return _Told(f"{words.by} {version} and its like {words.why_without}.", certain, longer=False)
    if words.without_key and not version:
        cause = f"{words.by} {words.without_key[0]} to {words.without_key[-1]} {words.why_without}. Other versions have a key for it."
        fetch = f"the version: {words.ask_version}. Where it has the key, imagePullProgressDeadline=5m0s fixes it"
        return _Told(cause, certain, longer=False, fetch=fetch)
    cause = (
        "Which part of the pull was silent is not in what was read: the node's own work, the registry, or the network."
    )
    return _Told(cause, certain, longer=True, fetch=_FETCH_SILENCE)


def _versions(facts: Facts) -> Mapping[tuple[str, str], str]:
    """Node and program → the version with which it started last."""
    return {(fact.node, fact["by"]): fact["version"].removeprefix("v") for fact in facts.of(Kind.RUNTIME)}


class _Around:
    """The lines of a runtime around its cuts, by node and clock."""

    def __init__(self, facts: Facts) -> None:
        self._lines: dict[tuple[str, str], list[Fact]] = defaultdict(list)
        for fact in facts.of(Kind.PULL_STOPPED, Kind.NEXT_HOST, Kind.RUNTIME_ENDED):
            self._lines[fact.node, fact.clock].append(fact)

    def of(self, cut: Fact) -> Iterator[Fact]:
        at = cut.at
        for fact in self._lines[cut.node, cut.clock]:
            near = at is not None and fact.at is not None and -1.0 <= fact.at - at <= AROUND
            same = (
                f"/v2/{_repository(cut['image'])}/" in fact["error"]
                if fact.kind is Kind.NEXT_HOST
                else full_name(fact["image"]) == full_name(cut["image"])
            )
            if near and same:
                yield fact


_OF_THE_NODE = ("Verifying Checksum", "Extracting")
_OF_THE_NET = ("Downloading", "Pulling fs layer", "Waiting")


def _part(cut: Fact, around: _Around) -> _Part:
    state = cut["progress"].partition(": ")[2] or cut["progress"]
    if state.strip().startswith(_OF_THE_NODE):
        return _Part(SilentPart.LOCAL)
    if state.strip().startswith(_OF_THE_NET):
        return _Part(SilentPart.TRANSFER)
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
    return _Part(SilentPart.UNKNOWN, "", progress, lines)


def _repository(image: str) -> str:
    """``docker.io/library/busybox:1.36`` → ``library/busybox``, as it stands in the addresses that a host is asked for."""
    name = full_name(image).partition("@")[0].partition("/")[2]
    folder, slash, last = name.rpartition("/")
    return f"{folder}{slash}{last.partition(':')[0]}"


def _is_cut(error: str) -> bool:
    return read_error(error).cause is PullCause.CANCELLED


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
