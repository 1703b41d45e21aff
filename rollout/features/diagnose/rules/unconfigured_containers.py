"""Containers and sandboxes that cannot be configured, created or started, as one finding for all pods with the same error."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

from rollout.core.text.terminal import counted, printable
from rollout.features.diagnose.rules.container_config import REASON
from rollout.features.diagnose.rules.container_errors import SANDBOX, cause_of
from rollout.features.diagnose.rules.facts import AGES, Fact, Facts, Kind
from rollout.features.diagnose.rules.finding import Confidence, Finding, nodes_of, proof, since
from rollout.features.diagnose.rules.repeated import LAST_ONLY, OFTEN, apart_by, how_often, lasted, until_text

SHOWN = 3
"""Pods that a finding names."""


def config_findings(facts: Facts) -> Iterator[Finding]:
    """One for all pods of a namespace with the same error; for sandboxes of all namespaces, because they are not theirs.

    An error that a later try does not have counts for nothing.
    """
    made: dict[tuple[str, str, str, bool], list[Fact]] = defaultdict(list)
    in_pod: dict[tuple[str, str, bool], list[Fact]] = defaultdict(list)
    for fact in facts.of(Kind.RAN, Kind.STARTED):
        if fact.at is not None:
            made[fact.clock, fact["pod"], fact["container"], fact.kind is Kind.RAN].append(fact)
            in_pod[fact.clock, fact["pod"], fact.kind is Kind.RAN].append(fact)
    sandboxes: dict[tuple[str, str], list[Fact]] = defaultdict(list)
    for fact in facts.of(*_IN_SANDBOX):
        if fact.at is not None and fact["pod"] and not fact["sandbox"] and fact["reason"] != SANDBOX:
            sandboxes[fact.clock, fact["pod"]].append(fact)
    tries: dict[tuple[str, str, str, str], list[Fact]] = defaultdict(list)
    for fact in facts.of(Kind.UNCONFIGURED):
        tries[fact.clock, fact["pod"], fact["container"], _id(fact)].append(fact)
    groups: dict[tuple[str, str, str, str], list[_Pod]] = defaultdict(list)
    for key, lines in tries.items():
        clock, name, container, id_ = key
        # A container that is not started has been created: only its start shows that a try succeeded.
        config, sandbox = id_ == "container-config-error", id_ == "sandbox-not-created"
        own = made[clock, name, container, config] or made[clock, name, "", config]
        any_ = () if container else in_pod[clock, name, config]
        pod = _Pod(lines, sandboxes[clock, name], ()) if sandbox else _Pod(lines, own, any_)
        if pod.counts:
            groups[clock, "" if sandbox else name.partition("/")[0], container, f"{id_} {_told(lines[-1])}"].append(pod)
    for pods in groups.values():
        yield _finding([pod for pod in pods if pod.end is None] or pods)


_IN_SANDBOX = (Kind.QUEUED, Kind.PULLED, Kind.PULL_FAILED, Kind.BACK_OFF, Kind.UNCONFIGURED, Kind.RAN, Kind.STARTED)
"""What a kubelet does in a sandbox that was made: it pulls an image, and makes and starts a container."""


def _id(fact: Fact) -> str:
    return {REASON: "container-config-error", SANDBOX: "sandbox-not-created"}.get(
        fact["reason"], "container-create-error"
    )


class _Pod:
    """The last run of failed tries of one container; ``lines`` and ``made`` by time.

    ``perhaps``: containers of the pod that were made, where the lines do not name theirs: it may be one of these.
    """

    def __init__(self, lines: Sequence[Fact], made: Sequence[Fact], perhaps: Sequence[Fact]) -> None:
        timed = [line for line in lines if line.at is not None]
        runs = list(apart_by(timed, [fact.at or 0.0 for fact in made]))
        self.by_status = not timed and any(line["by"] == "status" for line in lines)
        self.lines = runs[-1] if runs else list(lines)
        first, last = (timed[0].at or 0.0, timed[-1].at or 0.0) if timed else (0.0, float("inf"))
        self.end = next((fact for fact in (*made, *perhaps) if (fact.at or 0.0) >= last), None)
        self.perhaps = next((fact for fact in perhaps if fact["container"] and (fact.at or 0.0) >= first), None)
        often = not timed and max(line.times for line in lines) >= OFTEN
        of_ages = bool(timed) and timed[0].clock.startswith(AGES)
        self.counts = self.by_status or often or (bool(timed) and lasted(self.lines, self.end, of_ages=of_ages))


def _told(fact: Fact) -> str:
    cause = cause_of(fact["reason"], fact["error"], fact["pod"])
    return printable(f"`{_shown(fact['error'])}`", LONGEST + 10) if cause is None else cause.told


LONGEST = 300
"""Characters of an error that are shown."""


def _shown(error: str) -> str:
    """The error; of a longer one its end, where the last cause stands."""
    return error if len(error) <= LONGEST else f"…{error[-LONGEST:]}"


_UNKNOWN = "the kubelet's lines about this pod around the error: it is of no form that rollout knows"
_WHICH = "whether it is container {of}, which was created in pod {pod}: a table of events does not name the container of an error; the pod's status shows which one waits"


def _finding(pods: Sequence[_Pod]) -> Finding:
    lines = sorted((line for pod in pods for line in pod.lines), key=lambda line: line.at or 0.0)
    last, names = lines[-1], sorted({line["pod"] for line in lines})
    more = f" and {counted(len(names) - SHOWN, 'more pod')}" if len(names) > SHOWN else ""
    of = f" Of pod {', '.join(names[:SHOWN])}{more}." if any(names) else ""
    what = f"container {last['container']}" if last["container"] else "a container"
    cannot = "cannot be created" if last["reason"] == REASON else "is not created or not started"
    if last["reason"] == SANDBOX:
        what, cannot = "a pod's sandbox", "is not created, so no container of the pod starts"
    cause = f"{what} {cannot}: {_told(last)}.{of}{how_often(lines)}"
    ends = [pod.end for pod in pods if pod.end is not None]
    if ends:
        cause = until_text(ends[-1], cause)
    known, by_status = cause_of(last["reason"], last["error"], last["pod"]), all(pod.by_status for pod in pods)
    fetch = _UNKNOWN if known is None else known.fetch
    if by_status:
        fetch = f"{LAST_ONLY}; {fetch}"
    perhaps = next((pod.perhaps for pod in pods if pod.perhaps is not None), None)
    if perhaps is not None:
        fetch = f"{_WHICH.format(of=perhaps['container'], pod=perhaps['pod'])}; {fetch}"
    sure = Confidence.CERTAIN if known is not None and not by_status and perhaps is None else Confidence.LIKELY
    return Finding(
        _id(last),
        sure,
        nodes_of(lines),
        since(lines),
        cause,
        proof([*lines, *ends]),
        fetch_next=fetch,
    )
