"""The end of a pod as a timeline: deletion, preStop hooks, SIGTERM, containers gone, gone from the API; and which rule took the time.

How a kubelet of each minor computes the time is in ``kubelet.restarts.termination``. Here it is measured.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from rollout.core.text.terminal import seconds_text
from rollout.features.diagnose.rules.facts import Fact, Facts, Kind
from rollout.features.diagnose.rules.finding import (
    Confidence,
    Finding,
    ProposalTarget,
    clock_text,
    nodes_of,
    proof,
    since,
)
from rollout.kubelet.restarts.termination import DEDUCTED, FLOOR, OVERRIDDEN
from rollout.kubelet.runtimes.description import FIRST, Description, parse
from rollout.kubelet.runtimes.known import KNOWN

SLACK = 3.0
"""Seconds by which a normal end exceeds its grace period: calls to the runtime, and its own wait after SIGKILL."""
ANNOUNCED = 0.1
"""Seconds before a hook in which kubelets up to 1.13 print the grace period; later ones print it when they send SIGTERM."""
DIFFERENT = 2.0
"""Seconds by which hooks differ for sure: a kubelet deducts whole seconds."""
LINGERS = 10.0
"""Seconds from the end of the last container until the pod is gone from the API, from which they are reported."""

Key = tuple[str, str, str]
"""Node, clock and pod."""
Span = tuple[Fact, Fact | None]
_STEPS = (Kind.HOOK, Kind.HOOK_DONE, Kind.KILL, Kind.KILLED, Kind.DIED)


@dataclass(frozen=True, slots=True)
class PodEnd:
    """One pod's end in one log. ``steps``: what happened to its containers, by time; ``names``: id → container."""

    pod: str
    deleted: Fact
    removed: Fact | None
    steps: tuple[Fact, ...]
    names: Mapping[str, str]

    def name(self, step: Fact) -> str:
        return step["container"] or self.names.get(step["id"], "") or step["id"][:12]

    def after(self, fact: Fact) -> float:
        return (fact.at or 0.0) - (self.deleted.at or 0.0)

    @property
    def gone(self) -> Fact | None:
        """The last sign of a container's end. The sandbox ends later and was not killed by its id."""
        killed = {step["id"] for step in self.steps if step.kind is Kind.KILL}
        ends = (step for step in self.steps if step.kind in (Kind.KILLED, Kind.DIED) and step["id"] in killed)
        first: dict[str, Fact] = {}
        for step in ends:
            first.setdefault(step["id"], step)
        return max(first.values(), key=_at, default=None)

    @property
    def facts(self) -> tuple[Fact, ...]:
        return (self.deleted, *self.steps, *([self.removed] if self.removed else []))


@dataclass(frozen=True, slots=True)
class EndPart:
    """Seconds of an end, and what they were spent on."""

    seconds: float
    what: str
    rule: str = ""


def ending_findings(facts: Facts, target: ProposalTarget) -> Iterator[Finding]:
    yield from _negative(facts, target)
    yield from _twice(facts)
    yield from _killed_at_restart(facts, target.minor)
    for ending in endings_of(facts):
        yield from _slow(ending, target.minor)


def endings_of(facts: Facts) -> Iterator[PodEnd]:
    pods, names = _containers(facts)
    # Each deletion of a pod, and when the pod left the API. The API sends a second deletion at the end.
    opened: dict[Key, Fact] = {}
    spans: list[Span] = []
    for fact in facts.of(Kind.DELETED, Kind.REMOVED):
        key = fact.node, fact.clock, fact["pod"]
        if fact.at is None:
            continue
        if fact.kind is Kind.DELETED:
            opened.setdefault(key, fact)
        elif key in opened:
            spans.append((opened.pop(key), fact))
    spans = [*spans, *((fact, None) for fact in opened.values())]
    by_pod: dict[Key, list[Fact]] = defaultdict(list)
    alone = _Alone(spans)
    for step in facts.of(*_STEPS):
        if step.at is None:
            continue
        # Kubelets up to 1.20 print only the id: it is of the pod that has it, or of the only pod that ends at that time.
        pod = step["pod"] or pods.get(step["id"], "") or alone.pod(step, step.at)
        by_pod[step.node, step.clock, pod].append(step)
    for deleted, removed in spans:
        steps = by_pod[deleted.node, deleted.clock, deleted["pod"]]
        first = bisect_left(steps, deleted.at or 0.0, key=_at)
        last = bisect_right(steps, removed.at or 0.0, key=_at) if removed else len(steps)
        yield PodEnd(deleted["pod"], deleted, removed, tuple(steps[first:last]), names)


def _at(fact: Fact) -> float:
    return fact.at or 0.0


class _Alone:
    """Which pod ends at a time, if only one does."""

    def __init__(self, spans: Sequence[Span]) -> None:
        self._changes: dict[tuple[str, str], list[tuple[float, int, str]]] = defaultdict(list)
        for deleted, removed in spans:
            here = self._changes[deleted.node, deleted.clock]
            here.append((_at(deleted), 1, deleted["pod"]))
            here.append((_at(removed) if removed else float("inf"), -1, deleted["pod"]))
        self._open: dict[tuple[str, str], list[tuple[float, str]]] = {}
        for place, changes in self._changes.items():
            self._open[place] = list(_only(sorted(changes)))

    def pod(self, step: Fact, at: float) -> str:
        known = self._open.get((step.node, step.clock), [])
        before = bisect_right(known, at, key=lambda entry: entry[0])
        return known[before - 1][1] if before else ""


def _only(changes: Sequence[tuple[float, int, str]]) -> Iterator[tuple[float, str]]:
    """From which time on one pod alone ends; ``""``: none or several."""
    open_: set[str] = set()
    for at, change, pod in changes:
        (open_.add if change > 0 else open_.discard)(pod)
        yield at, next(iter(open_)) if len(open_) == 1 else ""


def _containers(facts: Facts) -> tuple[Mapping[str, str], Mapping[str, str]]:
    """Container id → pod, and → container's name."""
    pods: dict[str, str] = {}
    names: dict[str, str] = {}
    for fact in facts.of(Kind.NAMED, Kind.DIED, *_STEPS):
        if fact["id"] and fact["pod"]:
            pods[fact["id"]] = fact["pod"]
        if fact["id"] and fact["container"]:
            names[fact["id"]] = fact["container"]
    return pods, names


# The grace period that was passed as a negative number.


EVICTION_RISK = "each kubelet restarts; a pod that is evicted then has up to 30 s to end, and frees its memory later."
EVICTED = 5.0
"""Seconds after the kubelet's decision to evict in which it stops the pod's containers."""
_NEGATIVE = {known.id_scheme: known.negative_grace for known in KNOWN if known.negative_grace}
_NOT_KNOWN = "What the runtime does with a negative number depends on it: to wait without a limit, or to kill at once"


def _stops(facts: Facts) -> list[Fact]:
    """Each request to stop a container: by the kubelet's line, or by the runtime's own where the kubelet's log is not there."""
    kills = facts.of(Kind.KILL)
    known = {kill["id"] for kill in kills}
    asked = (fact for fact in facts.of(Kind.STOP_ASKED) if fact["id"] not in known)
    return [*kills, *(replace(fact, fields={**fact.fields, "scheme": fact["by"]}) for fact in asked)]


def _negative(facts: Facts, target: ProposalTarget) -> Iterator[Finding]:
    _, names = _containers(facts)
    kills = [fact for fact in _stops(facts) if _number(fact["grace"]) < 0]
    evictions = facts.of(Kind.EVICTS)
    ends: dict[str, list[Fact]] = defaultdict(list)
    for fact in facts.of(Kind.KILLED, Kind.DIED) if kills else ():
        ends[fact["id"]].append(fact)
    for kill in kills:
        name = kill["container"] or names.get(kill["id"], "") or kill["id"][:12]
        ended = next((end for end in ends[kill["id"]] if end.clock == kill.clock and _at(end) >= _at(kill)), None)
        took = (
            f"it took {seconds_text((ended.at or 0.0) - (kill.at or 0.0))}"
            if ended and kill.at is not None
            else "no end of it is in the files"
        )
        evicted = any(
            evict.node == kill.node and evict.clock == kill.clock and 0 <= _at(kill) - _at(evict) <= EVICTED
            for evict in evictions
        )
        cause = f"the kubelet stopped container {name} with a grace period of {kill['grace']} s. {_NEGATIVE.get(kill['scheme'], _NOT_KNOWN)}; {took}. "
        proposal, risk = (
            (target.plan(nodes_of([kill]), "evictionMaxPodGracePeriod=30"), EVICTION_RISK) if evicted else ("", "")
        )
        cause += (
            "An eviction asked for it: evictionMaxPodGracePeriod below 0 does that to each pod that it evicts. Set it above 0."
            if evicted
            else "The seconds of hooks and waits were subtracted without a lower bound."
        )
        fetch = (
            f"the kubelet's version and build: kubelets before 1.{DEDUCTED} pass an override unchecked, later ones give every container "
            f"at least {FLOOR} s. A terminationGracePeriodSeconds that exceeds all hooks together avoids it: rollout diagnose pod FILE"
        )
        if evicted:
            fetch = "evictionMaxPodGracePeriod and evictionSoft of the node: rollout explain evictionMaxPodGracePeriod --node NODE"
        yield Finding(
            "negative-grace-period",
            Confidence.CERTAIN,
            nodes_of([kill]),
            since([kill]),
            cause,
            proof([kill, *([ended] if ended else [])]),
            proposal,
            risk,
            fetch_next=fetch,
        )


# A container that was killed early, because the kubelet that waited for its end restarted.


_KILLS_ALONE = {known.id_scheme: known for known in KNOWN if known.kills_alone_before != FIRST}
CALLER_LEFT = "is cancelled"
"""How the error of a wait ends, if the caller went away."""
AT_START = 5.0
"""Seconds after its start in which a kubelet reports the containers that ended while it was away."""
WORTH = 10.0
"""Seconds that are left of a grace period, from which their loss is reported."""
NEEDS_LATER = 26
"""The first minor that does not run with such a runtime: it needs CRI v1."""


def _killed_at_restart(facts: Facts, minor: int | None) -> Iterator[Finding]:
    pods, names = _containers(facts)
    waits = {
        (wait.clock, wait["id"]): wait for wait in facts.of(Kind.WAIT_ENDED) if wait["error"].endswith(CALLER_LEFT)
    }
    starts = [start for start in facts.of(Kind.START) if start.at is not None]
    deaths: dict[tuple[str, str], list[Fact]] = defaultdict(list)
    kills: dict[tuple[str, str], list[Fact]] = defaultdict(list)
    for fact in facts.of(Kind.DIED):
        deaths[fact.clock, fact["id"]].append(fact)
    for fact in _stops(facts):
        kills[fact.clock, fact["id"]].append(fact)
    for (clock, id_), asked in kills.items():
        kill = asked[-1]
        runtime = _KILLS_ALONE.get(kill["scheme"])
        due = _at(kill) + _number(kill["grace"])
        if runtime is None or kill.at is None:
            continue
        wait = waits.get((clock, id_))
        died = next((death for death in deaths[clock, id_] if _at(death) >= _at(kill)), None)
        start = next(
            (each for each in starts if each.clock == clock and died and _at(kill) < _at(each) <= _at(died)), None
        )
        ended = wait or (died if start and died and _at(died) - _at(start) <= AT_START else None)
        if (
            ended is None
            or not _at(kill) < _at(ended) < due - WORTH
            or (wait is None and not _may_kill(facts, kill, runtime, minor))
        ):
            continue
        name = kill["container"] or names.get(id_, "") or id_[:12]
        pod = kill["pod"] or pods.get(id_, "")
        before = ".".join(map(str, runtime.kills_alone_before))
        cause = (
            f"container {name}{f' of pod {pod}' if pod else ''} ended {seconds_text(_at(ended) - _at(kill))} into its grace period of {kill['grace']} s, "
            f"when the kubelet that had asked for it restarted. "
        )
        cause += (
            f"The runtime stopped waiting and killed it at once, as {runtime.runtime.value} before {before} does. Upgrade it; until then restart no kubelet while pods end."
            if wait
            else f"{runtime.runtime.value} before {before} kills such a container at once. It may also have ended by itself while the kubelet was away."
        )
        shown = [kill, *([wait] if wait else []), *([start] if start else []), *([died] if died else [])]
        yield Finding(
            "killed-at-kubelet-restart", Confidence.CERTAIN if wait else Confidence.UNKNOWN, nodes_of([kill]), since([ended]), cause, proof(shown),
            fetch_next="" if wait else "the runtime's version, and its log of that moment: `An error occurs during waiting for container`",
        )  # fmt: skip


def _may_kill(facts: Facts, kill: Fact, runtime: Description, minor: int | None) -> bool:
    """Whether the runtime's version, as far as it is known, is one that kills such containers."""
    if minor is not None and minor >= NEEDS_LATER:
        return False
    printed = [each["version"] for each in facts.of(Kind.RUNTIME) if each.node in ("", kill.node) and each["version"]]
    version = parse(printed[-1]) if printed else None
    return version is None or version.number < runtime.kills_alone_before


# A preStop hook that ran twice for one container.


_SIDECAR_PATCH = (
    "whether this kubelet has the sidecar patch (kubernetes #80744, never merged), which runs the hooks of sidecars first and again "
    "when it stops them. Sidecars as restartable init containers, from 1.29 on, run each hook once."
)
_ENDED_TWICE = (
    "nothing: the kubelet began to end the container again while it was ending it. Kubelets up to 1.21 do so where a sync of the pod "
    "waited when the pod was removed, as soon after a restart: it finds the pod's cgroups gone. From 1.22 on one worker ends each pod."
)


def _twice(facts: Facts) -> Iterator[Finding]:
    _, names = _containers(facts)
    hooks: dict[tuple[str, str], list[Fact]] = defaultdict(list)
    for fact in facts.of(Kind.HOOK):
        if fact["id"] and fact.at is not None:
            hooks[fact.clock, fact["id"]].append(fact)
    starts = [(fact.clock, fact.at or 0.0) for fact in facts.of(Kind.START)]
    stops: dict[tuple[str, str], list[Fact]] = defaultdict(list)
    for fact in facts.of(Kind.KILL, Kind.KILLED):
        stops[fact.clock, fact["id"]].append(fact)
    ended: dict[tuple[str, str], list[float]] = defaultdict(list)
    for fact in facts.of(Kind.HOOK_DONE):
        ended[fact.clock, fact["id"]].append(_at(fact))
    failed: dict[tuple[str, str], list[float]] = defaultdict(list)
    for fact in facts.of(Kind.EXEC_FAILED) if any(len(runs) > 1 for runs in hooks.values()) else ():
        failed[fact.clock, fact["id"]].append(_at(fact))
    announced = any(
        0 <= _at(runs[0]) - _at(kill) <= ANNOUNCED
        for key, runs in hooks.items()
        if (kill := next((fact for fact in stops[key] if fact.kind is Kind.KILL), None))
    )
    for (clock, id_), requested in hooks.items():
        stopped = next((_at(fact) for fact in stops[clock, id_] if fact.kind is Kind.KILLED), float("inf"))
        runs = [
            run
            for run in requested
            if _at(run) <= stopped  # a stopped container runs no hook
            and not _not_run(_at(run), failed[clock, id_], ended[clock, id_])
        ]
        if len(runs) < 2:
            continue
        span = runs[0].at or 0.0, runs[-1].at or 0.0
        restarted = any(when == clock and span[0] <= at <= span[1] for when, at in starts)
        if restarted:  # a kubelet that restarts ends its pods anew
            continue
        name = runs[0]["container"] or names.get(id_, "") or id_[:12]
        cut = stopped < min((at for at in ended[clock, id_] if at >= span[1]), default=float("inf"))
        cause = (
            f"the preStop hook of container {name} {'began' if cut else 'ran'} {len(runs)} times in one end of its pod, "
            f"{seconds_text(span[1] - span[0])} apart. Each run uses up the same grace period."
        )
        cause += " The container ended before the last run did." if cut and stopped < float("inf") else ""
        kills = [_at(fact) for fact in stops[clock, id_] if fact.kind is Kind.KILL]
        done = min((at for at in ended[clock, id_] if at >= span[0]), default=float("inf"))
        last = span[1] - ANNOUNCED if announced else span[1]
        side_by_side = _at(runs[1]) < done < float("inf")
        begun_anew = side_by_side or any(span[0] < at < span[1] - ANNOUNCED or done <= at < last for at in kills)
        yield Finding(
            "prestop-twice", Confidence.CERTAIN, nodes_of(runs), since(runs), cause, proof(runs),
            fetch_next=_ENDED_TWICE if begun_anew else _SIDECAR_PATCH,
        )  # fmt: skip


def _not_run(begun: float, failed: Sequence[float], ended: Sequence[float]) -> bool:
    """Whether the runtime did not run the hook that began then: it said so ahead of the hook's end."""
    end = min((at for at in ended if at >= begun), default=float("inf"))
    return any(begun <= at <= end for at in failed)


def _slow(ending: PodEnd, minor: int | None) -> Iterator[Finding]:
    gone, granted = ending.gone, granted_to(ending, minor)
    if gone is None or granted is None:
        return
    containers = ending.after(gone)
    lingered = ending.after(ending.removed) - containers if ending.removed else 0.0
    if containers <= granted + FLOOR + SLACK and lingered <= LINGERS:
        return
    cause = f"pod {ending.pod} needed {seconds_text(containers)} to end its containers, with a grace period of {seconds_text(granted)}"
    cause += f", and {seconds_text(lingered)} more until it left the API." if lingered >= 1 else "."
    parts = parts_of(ending, granted)
    if parts:
        cause += (
            " "
            + "; ".join(
                f"{seconds_text(part.seconds)}: {part.what}{f' ({part.rule})' if part.rule else ''}" for part in parts
            )
            + "."
        )
    cause += _without_waits(ending, containers + lingered)
    fetch = "" if ending.removed else "the lines until the pod is removed: the second half of its end is missing"
    if lingered > LINGERS:
        fetch = "what held the pod in the API: unmounting of volumes, teardown of its network, or a finalizer"
    yield Finding(
        "slow-termination", Confidence.CERTAIN, nodes_of([ending.deleted]), since([ending.deleted]), cause, proof(ending.facts),
        fetch_next=fetch, timeline=timeline_of(ending),
    )  # fmt: skip


def granted_to(ending: PodEnd, minor: int | None) -> float | None:
    """The grace period of the pod, in seconds; ``None``: no line has it.

    A kubelet prints what is left when it sends SIGTERM. What was used up before counts too, unless this kubelet does not
    deduct it: then it prints an override as well, or is one of 1.22 to 1.27. (1.21 calls each grace period an override.)
    """
    all_kills = [step for step in ending.steps if step.kind is Kind.KILL]
    kills = [step for step in all_kills if _number(step["grace"]) >= 0]
    overridden = {bool(step["override"]) for step in all_kills} == {True, False}
    if overridden or _whole_again(ending) or (minor is not None and OVERRIDDEN <= minor < DEDUCTED):
        return max((float(_number(step["grace"])) for step in kills), default=None)
    return max((_number(step["grace"]) + int(ending.after(step)) for step in kills), default=None)


def _whole_again(ending: PodEnd) -> bool:
    """Whether containers with hooks of different lengths got the same period after them: the hooks were not deducted."""
    began: dict[str, float] = {}
    hooks: dict[str, set[float]] = defaultdict(set)
    for step in ending.steps:
        if step.kind is Kind.HOOK:
            began[step["id"]] = _at(step)
        elif step.kind is Kind.KILL and step["id"] in began and _number(step["grace"]) > FLOOR:
            hooks[step["grace"]].add(_at(step) - began[step["id"]])
    return any(max(seconds) - min(seconds) >= DIFFERENT for seconds in hooks.values())


def parts_of(ending: PodEnd, granted: float) -> tuple[EndPart, ...]:
    """Hooks and kills that took a second or more, in order of their beginning."""
    parts: list[EndPart] = []
    hooks: dict[str, int] = defaultdict(int)
    for at, step in enumerate(ending.steps):
        name = ending.name(step)
        if step.kind is Kind.HOOK:
            hooks[step["id"]] += 1
            done = _next(ending.steps[at:], step, (Kind.HOOK_DONE, Kind.KILLED, Kind.DIED))
            rule = "it ran before" if hooks[step["id"]] > 1 else ""
            parts += [EndPart(_between(step, done), f"preStop hook of {name}", rule)] if done else []
        elif step.kind is Kind.KILL and _next(ending.steps[at + 1 :], step, (Kind.KILL,)) is None:
            done = _next(ending.steps[at:], step, (Kind.KILLED, Kind.DIED))
            rule = _rule(step, hooks[step["id"]], granted)
            parts += [EndPart(_between(step, done), f"SIGTERM until the end of {name}", rule)] if done else []
    if not any(part.what.startswith("preStop") for part in parts):
        kill = next((step for step in ending.steps if step.kind is Kind.KILL), None)
        if kill and ending.after(kill) >= 1:
            parts.insert(
                0,
                EndPart(ending.after(kill), "before the first SIGTERM", "a preStop hook, which this log does not show"),
            )
    return tuple(part for part in parts if part.seconds >= 1)


def _rule(kill: Fact, hooks: int, granted: float) -> str:
    grace = _number(kill["grace"])
    if grace < 0:
        return f"a grace period of {grace} s means no limit"
    if kill["override"] and hooks and grace >= granted:
        return f"{grace} s again: the time of the hook is not deducted"
    return f"{grace} s were left"


def _without_waits(ending: PodEnd, whole: float) -> str:
    """What remains without the waits that a negative grace period caused."""
    waits = [
        _between(step, done)
        for at, step in enumerate(ending.steps)
        if step.kind is Kind.KILL
        and _number(step["grace"]) < 0
        and (done := _next(ending.steps[at:], step, (Kind.KILLED, Kind.DIED)))
    ]
    if not waits or not ending.removed:
        return ""
    wait = round(sum(waits))
    return f" Without the {wait} s of the negative grace period about {whole - wait:.1f} s of {whole:.1f} s remain."


def timeline_of(ending: PodEnd) -> tuple[str, ...]:
    """A line for each step: time, seconds since the deletion, what happened."""
    return tuple(f"{clock_text(_at(step))}  {ending.after(step):+6.1f} s  {what}" for step, what in step_words(ending))


def step_words(ending: PodEnd) -> Iterator[tuple[Fact, str]]:
    """Each step of an end, and what happened."""
    for number, step in enumerate(ending.facts):
        words = _BEFORE_ITS_HOOK if _before_its_hook(ending.facts[number:]) else _WORDS[step.kind]
        yield step, words.format(name=ending.name(step) if step.kind in _STEPS else "", grace=step["grace"])


def _before_its_hook(steps: Sequence[Fact]) -> bool:
    """Kubelets up to 1.13 print the grace period before the hook, and send SIGTERM after it."""
    kill = steps[0]
    following = _next(steps[1:], kill, (Kind.HOOK, *_STEPS[2:])) if kill.kind is Kind.KILL else None
    return following is not None and following.kind is Kind.HOOK


_BEFORE_ITS_HOOK = "the kubelet begins to end {name}, with {grace} s"
_WORDS = {
    Kind.DELETED: "the kubelet receives the deletion",
    Kind.HOOK: "preStop hook of {name} starts",
    Kind.HOOK_DONE: "preStop hook of {name} ends",
    Kind.KILL: "SIGTERM to {name}, {grace} s left",
    Kind.KILLED: "{name} is stopped",
    Kind.DIED: "the kubelet sees that {name} has ended",
    Kind.REMOVED: "the pod is gone from the API",
}


def _next(steps: Sequence[Fact], step: Fact, kinds: Sequence[Kind]) -> Fact | None:
    return next((each for each in steps if each.kind in kinds and each["id"] == step["id"]), None)


def _between(first: Fact, last: Fact) -> float:
    return (last.at or 0.0) - (first.at or 0.0)


def _number(text: str) -> int:
    return int(text) if text.removeprefix("-").isdecimal() else 0
