"""Why pulls fail: a progress deadline, a limit of the runtime's own, the kubelet's rate limit, or what their error says."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace

from rollout.core.model.frozen import dataclass
from rollout.core.text.durations import go_format
from rollout.core.text.terminal import counted, printable, seconds_text
from rollout.features.diagnose.rules.cut_pulls import CUTS, RISK, Programs, cut_findings, proposed_deadline
from rollout.features.diagnose.rules.facts import AGES, Fact, Facts, Kind
from rollout.features.diagnose.rules.finding import (
    Confidence,
    Finding,
    ProposalTarget,
    clock_text,
    go_seconds,
    nodes_of,
    proof,
    since,
)
from rollout.features.diagnose.rules.messages import over_qps
from rollout.features.diagnose.rules.pull_errors import PullCause, PullError, read_error
from rollout.features.diagnose.rules.pulls import WAITED, Pull, convoys, full_name, registry
from rollout.kubelet.intents import DEADLINE
from rollout.kubelet.runtimes.description import CutWords, OwnLimit, RuntimeVersion
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
LASTS = 120.0
"""Seconds from the first back-off, from which one that is over counts: a registry that fails once or twice is none."""


def deadline_findings(facts: Facts, pulls: Sequence[Pull], target: ProposalTarget) -> Iterator[Finding]:
    yield from cut_findings(facts, target)
    yield from _canceled(facts, pulls, target, {fact.node for fact in facts.of(Kind.PULL_CUT)})


def _canceled(facts: Facts, pulls: Sequence[Pull], target: ProposalTarget, known: set[str]) -> Iterator[Finding]:
    """``context canceled`` without the line of a deadline."""
    by_image: dict[tuple[str, str], list[Fact]] = defaultdict(list)
    nameless: list[Fact] = []
    for fact in facts.of(Kind.PULL_FAILED):
        if fact.node not in known and read_error(fact["error"]).cause is PullCause.CANCELLED:
            (by_image[fact.node, fact["image"]] if fact["image"] else nameless).append(fact)
    for (node, image), lines in _by_their_pods(nameless, facts).items():
        if (node, image) not in by_image:  # else they are the same failures
            by_image[node, image] = lines
    by_end = {id(pull.ended): pull for pull in pulls if not pull.since_arrival}
    explained, docker, programs = _Explained(facts), _Docker(facts), Programs(facts)
    unknown: dict[str, list[Fact]] = defaultdict(list)
    for (node, image), lines in by_image.items():
        if all(explained.is_(line) for line in lines):
            continue
        mine = [pull for line in lines if (pull := by_end.get(id(line)))]
        times = _of_one_pod(lines)
        if worded := _program_of(lines):
            yield _in_its_words(worded, image, times, (lines, mine), programs, target)
            continue
        shown, deadline = docker.of(node)
        long = all(pull.end - pull.start >= (deadline or DEFAULT) for pull in mine)
        one_pod = all(line["pod"] or line["described"] for line in lines)
        bare = all(_BARE.search(line["error"]) for line in lines)
        alone = times >= REPEATED and one_pod and bare and not docker.excluded(node)
        spent = [pull.end - pull.start for pull in mine]
        equal = bool(shown and spent and deadline) and all(0 <= each - (deadline or 0.0) <= TICK for each in spent)
        if equal or (times > 1 and long and (shown or alone)):
            none = next(filter(None, (programs.without_deadline(node, by) for by in _WITH_DOCKER)), "")
            yield _repeated(image, times, deadline, (shown, lines, [pull.begun for pull in mine]), target, none)
        else:
            unknown[node] += [*(pull.begun for pull in mine), *lines]
    for node, lines in unknown.items():
        images = sorted({fact["image"] for fact in lines})
        named = ", ".join(images[:3]) + (f" and {len(images) - 3} more" if len(images) > 3 else "")
        cause = (
            f"pulls were cancelled (`context canceled`): {named}. A progress deadline, a restart of the kubelet or of the runtime and "
            f"a deleted pod look the same."
        )
        id_, nodes = "pull-progress-deadline", nodes_of(lines)
        fetch = _fetch_cut(lines, remote=docker.excluded(node))
        yield Finding(id_, Confidence.UNKNOWN, nodes, since(lines), cause, proof(lines), fetch_next=fetch)


def _by_their_pods(nameless: Sequence[Fact], facts: Facts) -> dict[tuple[str, str], list[Fact]]:
    """Failures without their image, by node and the one image that their pod waits for."""
    images: dict[tuple[str, str], set[str]] = defaultdict(set)
    for fact in facts.of(Kind.QUEUED, Kind.BACK_OFF, Kind.PULL_FAILED, Kind.WAITING) if nameless else ():
        if fact["image"] and fact["pod"]:
            images[fact.node, fact["pod"]].add(fact["image"])
    found: dict[tuple[str, str], list[Fact]] = defaultdict(list)
    for fact in nameless:
        named = images.get((fact.node, fact["pod"]), set())
        if len(named) == 1:
            found[fact.node, next(iter(named))].append(fact)
    return found


def _program_of(lines: Sequence[Fact]) -> CutWords | None:
    """The program that pulled, where its errors have words that no other program's have, and its default deadline may explain them."""
    links = {link for line in lines for link in read_error(line["error"]).links}
    return next((words for words in CUTS.values() if words.least and links.intersection(words.phases)), None)


def _in_its_words(
    words: CutWords,
    image: str,
    times: int,
    shown: tuple[list[Fact], list[Pull]],
    programs: Programs,
    target: ProposalTarget,
) -> Finding:
    """A pull that was cancelled: its error shows the runtime, and not what cancelled it. ``shown``: the cuts, and their pulls."""
    lines, mine = shown
    node = lines[0].node
    version, none = programs.version(node, words.by), programs.without_deadline(node, words.by)
    row = next((known.row(DEADLINE, version) for known in KNOWN if known.cuts is words), None) if version else None
    spent = [pull.end - pull.start for pull in mine]
    # Its timer is checked ten times in a deadline, and events have whole seconds.
    fits = bool(spent) and all(each >= words.least for each in spent)
    sign = fits and (times > 1 or min(spent) <= 2 * words.least + TICK)
    by_default = version is None or bool(none) or (row is not None and row.default not in ("", "0s"))
    took = f", {seconds_text(min(spent))} after it began" if spent else ""
    cause = f"{words.by} cancelled the pull of {image}{took} ({counted(times, 'time')}): the words of the error are its own. "
    cause += none or (words.keyless if version is None else f"{words.by} {version.text} has a key for its deadline.")
    cause += " A restart of the kubelet or of the runtime and a deleted pod look the same."
    sure = Confidence.LIKELY if sign and by_default else Confidence.UNKNOWN
    longer = sure is Confidence.LIKELY and version is not None and not none
    asked = f"{words.ask_version}; " if version is None else ""
    fetch = f"{asked}its log around one of these times: `{words.line}` proves the deadline"
    nodes = nodes_of(lines)
    return Finding(
        "pull-progress-deadline", sure, nodes, since(lines), cause, proof([*(pull.begun for pull in mine), *lines]),
        target.plan(nodes, f"imagePullProgressDeadline={go_format(proposed_deadline(words.least, 0.0))}") if longer else "",
        RISK if longer else "", fetch,
    )  # fmt: skip


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
    none: str,
) -> Finding:
    """``shown``: lines about docker, the cuts, and the beginnings of these pulls. ``none``: why no setting changes the deadline."""
    _, lines, _ = shown
    nodes = nodes_of(lines)
    inforce = go_format(deadline) if deadline is not None else "1m0s, the default"
    cause = (
        f"the pull of {image} was cancelled {counted(times, 'time')}, each time by the kubelet and not by the registry: a node with docker gives "
        f"up a pull that shows no progress for its imagePullProgressDeadline ({inforce}). Verifying and extracting large layers shows "
        f"none. More cache does not help. {none}".rstrip()
    )
    return Finding(
        "pull-progress-deadline", Confidence.LIKELY, nodes, since(lines), cause, proof([each for part in shown for each in part]),
        "" if none else target.plan(nodes, f"imagePullProgressDeadline={go_format(proposed_deadline(deadline, 0.0))}"),
        "" if none else RISK, _FETCH_CUT,
    )  # fmt: skip


def _fetch_cut(lines: Sequence[Fact], *, remote: bool) -> str:
    """The log that decides: that of the program that the errors show, else the kubelet's."""
    links = {link for line in lines for link in read_error(line["error"]).links}
    words = [
        words
        for words in CUTS.values()
        if words.line and (links.intersection(words.phases) or (remote and not words.phases))
    ]
    if not words:
        return _FETCH_CUT
    return (
        f"{words[0].by}'s log around one of these times: `{words[0].line}` proves the deadline; a timed pull on the node shows its longest "
        f"phase without progress"
    )


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


_WITH_DOCKER = frozenset(known.cuts.by for known in KNOWN if known.cuts and known.id_scheme == "docker")


class _Docker:
    """Lines that show docker on a node, and the deadline in force if its kubelet printed it."""

    def __init__(self, facts: Facts) -> None:
        self._flags: dict[str, list[Fact]] = defaultdict(list)
        self._lines: dict[str, Fact] = {}
        # dockerd has a containerd of its own, which starts with the same line; it gets no pulls.
        self._others = {fact.node for fact in facts.of(Kind.RUNTIME_STARTED) if fact.at is not None}
        for fact in facts.of(Kind.FLAG):
            self._flags[fact.node].append(fact)
        for fact in facts:
            if fact.node not in self._lines and "docker://" in fact.where.text:
                self._lines[fact.node] = fact

    def excluded(self, node: str) -> bool:
        flags = self._flags.get(node, [])
        return node in self._others or any(
            (fact["flag"], fact["value"]) == ("container-runtime", "remote") for fact in flags
        )

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


_FETCH_MORE = {
    PullCause.FORBIDDEN: "whether these pods have an imagePullSecret, and the answer to `curl -I` of the registry's /v2/ from the node: without credentials, 403 is about the address",
    PullCause.NO_IMAGE_OR_ACCESS: "whether the repository exists, and which imagePullSecret these pods have: the registry gives one answer for both",
    PullCause.DISK_FULL: "which of both is used up, and of which file system: `df -h; df -i` on the node",
    PullCause.MOUNTS_FULL: "`df -h; df -i` on the node, and the number of its mounts beside the limit: `wc -l /proc/mounts; sysctl fs.mount-max`",
    PullCause.REFUSED: "whether that host is a mirror or a proxy, and its log: hosts.toml, registries.conf, the proxy of the runtime's unit",
    PullCause.NODE_LIMIT: "the limits of the runtime's unit and the files that it has open: `systemctl show -p LimitNOFILE,TasksMax UNIT`, `ls /proc/PID/fd | wc -l`",
    PullCause.SOCKET: "the program of that socket on the node, and what names it: hosts.toml, the proxy of the runtime's unit",
    PullCause.UNPACK: "a pull of the same digest on another node: if it succeeds, this node's copy is damaged; if not, the image itself is",
    PullCause.STORAGE_REFUSES: "whether the link had expired when it was asked for (its own date, the node's clock), and what that storage allows from the node: a policy of its VPC endpoint, a firewall",
    PullCause.DENIED_OTHERWISE: "the registry's own pages about this project: its quota, its state or its policy",
    PullCause.BLOCKED: "the `blocked` and the mirrors of this registry in the node's registries.conf, and whether a mirror has the image",
    PullCause.LAYER_KIND: "the media types in the image's manifest: crane manifest IMAGE",
    PullCause.NO_MEMORY: "`free -m` on the node, and the limits of the runtime's unit: `systemctl show -p MemoryMax,TasksMax UNIT`",
    PullCause.KILLED: "the kernel's log of that time: `journalctl -k` names the process that ran out of memory, if one did",
    PullCause.NO_RIGHT: "the runtime's unit, its user namespace, and the audit log of the node: `systemctl show UNIT`, `ausearch -m avc`",
    PullCause.SLOW_ANSWER: "how long the registry's host takes to answer from the node, and when the pull began: a time limit of the whole pull ends its last request with the same words",
    PullCause.OWN_LIMIT: "the runtime's log of that pull, and its version",
    PullCause.CERTIFICATE_TIME: "`date -u` on the node, and the dates of the registry's certificate",
    PullCause.CERTIFICATE_REFUSED: "the whole error, and the certificate: openssl s_client -connect HOST:443",
    PullCause.NO_PART: "which host was asked, and whether it is a mirror with an incomplete copy: hosts.toml, registries.conf",
}


@dataclass(frozen=True, slots=True)
class _Failed:
    """An image that the kubelet could not get. ``delays``: its back-offs; ``errors``: its failures, the last one last.

    ``over``: what shows that the node had the image later.
    """

    image: str
    delays: tuple[Fact, ...]
    errors: tuple[Fact, ...]
    over: Fact | None = None

    @property
    def error(self) -> str:
        return self.errors[-1]["error"] if self.errors else ""


def back_off_findings(facts: Facts, pulls: Sequence[Pull]) -> Iterator[Finding]:
    """Images with a last pull that failed, and the reason by the form of its error; with or without the back-off behind it."""
    programs = Programs(facts)
    for failed in _failed(facts):
        read = read_error(failed.error)
        if over_qps(failed.error) or read.cause is PullCause.CANCELLED:
            continue
        if read.cause is PullCause.RUNTIME_AWAY and not failed.delays:
            continue  # a restart of the runtime: the pull is tried again at once
        lines = failed.delays or failed.errors[-1:]
        limit = next(
            (known for known in KNOWN if known.own_limit and known.own_limit.error == failed.error.strip('\\" ')), None
        )
        if limit is not None and limit.own_limit and limit.cuts:
            last = failed.errors[-1]
            measured = _measured(failed.errors, facts, pulls)
            judged = _of_own_limit(limit.own_limit, limit.cuts, programs.version(last.node, limit.cuts.by), measured)
        else:
            judged = _judged(read, failed)
        if judged.sure is Confidence.CERTAIN and not failed.delays and all(each["client"] for each in failed.errors):
            told = f"{judged.cause} The line may be of a pull by hand: `crictl` writes it too, and no kubelet's line tells of this pull."
            judged = _Judged(told, Confidence.LIKELY, "the name of the program that wrote this line")
        plugin = _plugin_of(failed, facts) if read.cause in _OF_CREDENTIALS else None
        if plugin is not None:
            told = f"{judged.cause} Before it the kubelet's credential plugin {plugin['plugin']} failed for this image: {printable(plugin['error'], 240)}."
            judged = _Judged(told, judged.sure, judged.fetch)
        pods = len({fact["pod"] for fact in lines if fact["pod"] or failed.delays})
        of = f" for {counted(pods, 'pod')}" if pods else ""
        image = failed.image or "an image"
        begin = (
            f"the kubelet delays the next pull of {image}{of}, because the last one failed: "
            if failed.delays
            else f"the pull of {image}{of} failed: "
        )
        if failed.over:
            over = clock_text(failed.over.at or 0.0)
            begin = f"over since {over}, when the node had the image; until then the kubelet delayed the pulls of {image}{of}, because the last one failed: "
        elif not failed.delays and failed.errors[-1]["inspected"]:
            begin = f"the runtime could not inspect {image}{of}, so it was not pulled: "
        yield Finding(
            "image-pull-backoff", judged.sure, nodes_of(lines), since(lines), begin + judged.cause,
            proof([*([plugin] if plugin else []), *lines, *failed.errors[-1:], *([failed.over] if failed.over else [])]), fetch_next=judged.fetch,
        )  # fmt: skip


_OF_CREDENTIALS = (PullCause.CREDENTIALS, PullCause.NO_IMAGE_OR_ACCESS, PullCause.FORBIDDEN)
PLUGIN_AHEAD = 60.0
"""Seconds ahead of a pull's failure in which its credentials were asked for: a registry that refuses answers at once."""


def _plugin_of(failed: _Failed, facts: Facts) -> Fact | None:
    """The plugin that failed to give the credentials of this pull."""
    ends = [error for error in failed.errors if error.at is not None]
    for fact in reversed(facts.of(Kind.UNCREDENTIALED)):
        of = failed.image.startswith((f"{fact['image']}:", f"{fact['image']}@")) or failed.image == fact["image"]
        here = (end for end in ends if end.clock == fact.clock and fact.node in ("", end.node))
        if of and fact.at is not None and any(0 <= (end.at or 0.0) - fact.at <= PLUGIN_AHEAD for end in here):
            return fact
    return None


def _failed(facts: Facts) -> Iterator[_Failed]:
    """By image: those with back-offs; and those that failed and were not pulled later on the same node."""
    by_image: dict[str, list[Fact]] = defaultdict(list)
    of_image: dict[str, list[Fact]] = defaultdict(list)
    of_pod: dict[tuple[str, str, str], Fact] = {}
    names: dict[str, str] = {}
    for fact in facts.of(Kind.PULL_FAILED):  # the last error of each counts
        of_pod[fact.node, fact.clock, fact["pod"]] = fact
        if fact["image"]:
            of_image[full_name(fact["image"])].append(fact)
            names.setdefault(full_name(fact["image"]), fact["image"])
    for fact in facts.of(Kind.RUNTIME_ENDED):
        if fact["error"] and fact["image"] and full_name(fact["image"]) not in of_image:
            names.setdefault(full_name(fact["image"]), fact["image"])
    for fact in facts.of(Kind.BACK_OFF):
        by_image[fact["image"]].append(fact)
    done = _done(facts)
    had = _Had(facts, done)
    for image, every in by_image.items():
        left = [line for line in every if had.after(line) is None]
        lines, over = left or every, None if left else had.after(every[-1])
        if over is not None and (over.at or 0.0) - min(line.at or 0.0 for line in every) < LASTS:
            of_image.pop(full_name(image), None)
            continue  # one of the next tries succeeded
        errors = of_image.pop(full_name(image), []) if image else []
        places = [(line.node, line.clock, line["pod"]) for line in lines]
        told = next((of_pod[place] for place in places if place in of_pod), None)
        yield _Failed(image, tuple(lines), tuple(errors or ([told] if told else [])), over)
    alone = {**of_image, **_of_runtime(facts, {*names} - {*of_image})}
    for name, errors in alone.items():
        left = [fact for fact in errors if had.after(fact) is None]
        if left:
            yield _Failed(names[name], (), tuple(left))
    yield from _without_image(facts, had)


def _without_image(facts: Facts, had: _Had) -> Iterator[_Failed]:
    """Failures of which the kubelet's line names the pod alone, on nodes where no other line names an image that failed."""
    told = {
        fact.node
        for fact in facts.of(Kind.PULL_FAILED, Kind.RUNTIME_ENDED, Kind.BACK_OFF)
        if fact["image"] and (fact["error"] or fact.kind is Kind.BACK_OFF)
    }
    by_cause: dict[tuple[str, str], list[Fact]] = defaultdict(list)
    last = {
        (fact.node, fact["pod"], fact["container"]): fact
        for fact in facts.of(Kind.PULL_FAILED)
        if fact["pod"] or fact["inspected"]
    }
    for fact in last.values():
        if not fact["image"] and fact.node not in told and "" not in told and had.after(fact) is None:
            by_cause[fact.node, read_error(fact["error"]).cause or fact["error"]].append(fact)
    for errors in by_cause.values():
        yield _Failed("", (), tuple(errors))


def _of_runtime(facts: Facts, wanted: set[str]) -> dict[str, list[Fact]]:
    """Failures that only the runtime's log has."""
    found: dict[str, list[Fact]] = defaultdict(list)
    for fact in facts.of(Kind.RUNTIME_ENDED):
        if fact["error"] not in ("", "failed") and full_name(fact["image"]) in wanted:
            found[full_name(fact["image"])].append(fact)
    return found


def _done(facts: Facts) -> dict[tuple[str, str, str], Fact]:
    """Node, clock and image → the last pull of it."""
    done: dict[tuple[str, str, str], Fact] = {}
    for fact in facts.of(Kind.PULLED, Kind.RUNTIME_ENDED):
        if not fact["error"] and fact["image"] and fact.at is not None:
            done[fact.node, _clock(fact), full_name(fact["image"])] = fact
    return done


def _clock(fact: Fact) -> str:
    """Ages are compared with those of their own table only."""
    return fact.clock if fact.clock.startswith(AGES) else ""


class _Had:
    """When a node had an image: it was pulled, or a container that waited for it was made."""

    def __init__(self, facts: Facts, done: dict[tuple[str, str, str], Fact]) -> None:
        self._done = done
        self._in_pod = {
            (fact.node, _clock(fact), fact["pod"]): fact
            for fact in facts.of(Kind.RAN)
            if fact.at is not None and fact["pod"]
        }
        self._made = {
            (fact.node, _clock(fact), fact["pod"], fact["container"]): fact
            for fact in facts.of(Kind.RAN)
            if fact.at is not None and fact["pod"] and fact["container"]
        }

    def after(self, line: Fact) -> Fact | None:
        """The fact that shows it, at the time of this line or later."""
        pulled = self._done.get((line.node, _clock(line), full_name(line["image"]))) if line["image"] else None
        made = self._made.get((line.node, _clock(line), line["pod"], line["container"]))
        if line["sandbox"]:  # any container of the pod needs it
            made = self._in_pod.get((line.node, _clock(line), line["pod"]))
        shown = [fact for fact in (pulled, made) if fact is not None and (fact.at or 0.0) >= (line.at or 0.0)]
        return min(shown, key=lambda fact: fact.at or 0.0) if shown and line.at is not None else None


@dataclass(frozen=True, slots=True)
class _Judged:
    cause: str
    sure: Confidence
    fetch: str = ""


_FETCH_NEXT = "what the other hosts answered: this is the error of one of them, and `trying next host` in the log of the runtime has the others"


def _judged(read: PullError, failed: _Failed) -> _Judged:
    image, fetch = failed.image, _FETCH_MORE.get(read.cause, "") if read.cause else ""
    if image and read.mirror_of != registry(full_name(image)):
        read = replace(read, mirror_of="")
    told = str(read.cause)
    if read.mirror_of:
        told = re.sub(r"^the registry\b", f"the node's mirror of {read.mirror_of}", told)
        fetch = f"{fetch}; {_FETCH_NEXT}" if fetch else _FETCH_NEXT
    if read.cause and read.confidence is Confidence.CERTAIN:
        answer = f": `{read.words}`" if read.cause in _WITH_WORDS else ""
        return _Judged(f"{told}{_asked(read, image)}{answer}.{_mirrors(read)}", Confidence.CERTAIN, fetch)
    if read.cause:
        cause = f"{told}{_asked(read, image)}, by its last words: `{read.words}`.{_mirrors(read)}"
        if read.others:
            cause += (
                f" Another try of the same pull, with other credentials, ended by: `{printable(read.others, 200)}`."
            )
            fetch = "the whole error and the runtime's log of that pull: its tries failed for different reasons"
        return _Judged(
            cause, read.confidence, fetch or "the runtime's log of that pull: this form of the error is not known"
        )
    if failed.error:
        fetch = "the runtime's log of that pull: this error is not known"
        return _Judged(f"{failed.error[:200].rstrip('.')}.", Confidence.UNKNOWN, fetch)
    fetch = f"the Failed events of these pods: they have the registry's answer for {image or 'an image'}"
    return _Judged("the error is in none of these files.", Confidence.UNKNOWN, fetch)


def _measured(errors: Sequence[Fact], facts: Facts, pulls: Sequence[Pull]) -> list[float]:
    """How long each of these pulls took: from its ``Pulling``, else from the first line of its progress."""
    by_end = {id(pull.ended): pull for pull in pulls if not pull.since_arrival}
    progress: dict[tuple[str, str, str], list[float]] = defaultdict(list)
    for fact in facts.of(Kind.PROGRESS):
        if fact.at is not None:
            progress[fact.node, fact.clock, full_name(fact["image"])].append(fact.at)
    spent: list[float] = []
    before = float("-inf")
    for error in errors:
        at = error.at
        pull = by_end.get(id(error))
        if pull is not None:
            spent.append(pull.end - pull.start)
        elif at is not None and at - before > ONE_FAILURE:
            times = progress.get((error.node, error.clock, full_name(error["image"])), [])
            first = bisect_right(times, before)
            spent += [at - times[first]] if first < len(times) and times[first] <= at else []
        before = max(before, at if at is not None else before)
    return spent


def _of_own_limit(limit: OwnLimit, words: CutWords, version: RuntimeVersion | None, spent: Sequence[float]) -> _Judged:
    """``spent``: the lengths of these pulls. The first line of progress is written up to ``TICK`` after the beginning."""
    took = f"after {seconds_text(min(spent))}" if spent else "after a time that is not known"
    if spent and max(spent) - min(spent) > TICK:
        took = f"after {seconds_text(min(spent))} to {seconds_text(max(spent))}"
    cause = f"{PullCause.OWN_LIMIT}, {took}."
    fits = bool(spent) and all(-TICK <= each - limit.seconds <= ONE_FAILURE for each in spent)
    if version is not None and version.number >= limit.before:
        cause += f" {words.by} {version.text} has no limit of this kind."
        return _Judged(cause, Confidence.UNKNOWN, "the log of the runtime's daemon at that time")
    if spent and not fits:
        return _Judged(
            cause, Confidence.UNKNOWN, f"the log of the runtime's daemon at that time, and {words.ask_version}"
        )
    cause += f" {limit.words}."
    if version is not None and fits:
        return _Judged(f"{cause} This node has {words.by} {version.text}.", Confidence.CERTAIN)
    return _Judged(cause, Confidence.LIKELY, words.ask_version if version is None else "when these pulls began")


_WITH_WORDS = (PullCause.REFUSED, PullCause.DENIED_OTHERWISE)


def _mirrors(read: PullError) -> str:
    return f" Mirrors were asked before it, and failed: {printable(read.mirrors, 240)}." if read.mirrors else ""


def _asked(read: PullError, image: str) -> str:
    """The host that was asked, if it is not the image's registry: a mirror, or a host that the registry names."""
    if read.mirror_of:
        return f" (asked: {read.host}, which is a mirror by the node's configuration)"
    own = registry(image).partition(":")[0]
    return f" (asked: {read.host})" if read.host and not read.host.partition(":")[0].endswith(own) else ""
