"""Kubelets that do not start, nodes that do not work on pods, and pods that a restart rejected or restarted."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence

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
from rollout.features.diagnose.rules.programs import OF_KUBELETS

LOOP = 3
"""Failed starts in a row that make a loop. One or two are a mistake that was corrected."""
APART = 90.0
"""Seconds between two failed starts of a loop. The packages have ``RestartSec=10``, and a start takes up to a minute."""
AHEAD = 5.0
"""Seconds of systemd between the last line of a process and the line about its end. Its time may be a second early: it is in whole seconds."""
AFTER_START = 120.0
"""Seconds after a start in which a kubelet admits the pods of its node again."""

FIRST_LIST = 30.0
"""Seconds after a start until a kubelet has received the pods of its node. A pod that it receives alone later is new."""

_VARYING = re.compile(r"0x[0-9a-f]+|\d{3,}|\d+(?:\.\d+)?m?s\b")
_UNKNOWN_FLAG = re.compile(r"unknown flag: (--[\w-]+)")


def start_findings(facts: Facts, target: ProposalTarget) -> Iterator[Finding]:
    yield from _loops(facts, target)
    yield from _cgroup(facts, target)
    yield from _pleg(facts)
    yield from _rejected(facts, target)
    yield from _changed(facts)


def _by_node(facts: Iterable[Fact]) -> Iterator[list[Fact]]:
    groups: dict[tuple[str, str], list[Fact]] = defaultdict(list)
    for fact in facts:
        groups[fact.node, fact.clock].append(fact)
    yield from groups.values()


def _loops(facts: Facts, target: ProposalTarget) -> Iterator[Finding]:
    explained: set[tuple[str, str]] = set()
    for deaths in _by_node(facts.of(Kind.FATAL)):
        for run in _runs(deaths):
            explained.add((run[0].node, run[0].clock))
            runs = run[0]["own"] and _runs_since(run, facts)
            if runs:
                yield _loop_that_ended(run, runs)
                continue
            ahead = _last_errors(run, facts.of(Kind.BOOTSTRAP))
            yield _loop(run, ahead, target) if _is_kubelets(run, facts) else _loop_of_a_program(run)
    exits = _unasked([fact for fact in facts.of(Kind.EXIT) if not fact["status"].startswith("0/")], facts)
    errors = facts.of(Kind.ERROR)
    refused = _refused(facts)
    looping: set[tuple[str, str]] = set()
    for ended in _by_node(exits):
        for run in _runs(ended):
            here = (run[0].node, run[0].clock)
            if here not in explained:
                looping.add(here)
                yield _unexplained_loop(run, _last_errors(run, errors), _told(run, facts), refused.get(here))
    yield from (_given_up(line, facts) for here, line in refused.items() if here not in explained | looping)


_SENT = ("15/TERM", "2/INT", "1/HUP")
"""Signals by which a person or a program ends a process: systemd takes such an end for a success, and a kubelet that fails does not end so."""


def _unasked(ends: Iterable[Fact], facts: Facts) -> Iterator[Fact]:
    """The ends but those by a signal that were asked for. systemd starts a unit again by itself only if nobody asked it to stop or restart it."""
    scheduled: dict[tuple[str, str], list[float]] = defaultdict(list)
    for fact in facts.of(Kind.RESTARTS):
        scheduled[fact.node, fact.clock].append(fact.at or 0.0)
    for end in ends:
        times, at = scheduled[end.node, end.clock], end.at or 0.0
        following = bisect_left(times, at)
        if end["status"] not in _SENT or (following < len(times) and times[following] <= at + APART):
            yield end


_OF_A_START = (*OF_KUBELETS, Kind.EXIT, Kind.RESTARTS)
"""What a line shows only of a kubelet's unit that was started."""


def _refused(facts: Facts) -> dict[tuple[str, str], Fact]:
    """The last line by which systemd refuses to start the unit, by node; none where a later line shows that it was started."""
    refused = {(each.node, each.clock): each for each in facts.of(Kind.GIVEN_UP)}
    last: dict[tuple[str, str], float] = {}
    for each in facts.of(*_OF_A_START) if refused else ():
        if each["own"] or each.kind not in (Kind.FATAL, Kind.ERROR):
            last[each.node, each.clock] = each.at or 0.0
    # systemd's time may be in whole seconds, and that of a kubelet's line ahead of it is not
    return {here: line for here, line in refused.items() if last.get(here, 0.0) <= (line.at or 0.0) + 1}


def _told(run: Sequence[Fact], facts: Facts) -> list[Fact]:
    """What systemd reports of each of these ends, beside its status; ``[]`` if it does not report the same of each."""
    left = [fact for fact in facts.of(Kind.END_TOLD) if (fact.node, fact.clock) == (run[0].node, run[0].clock)]
    told = []
    for end in run:
        near = next((fact for fact in left if abs((fact.at or 0.0) - (end.at or 0.0)) <= AHEAD), None)
        if near is None or end["status"] != run[0]["status"]:
            return []
        left.remove(near)
        told.append(near)
    return told if len({_reason(fact) for fact in told}) == 1 else []


def _given_up(line: Fact, facts: Facts) -> Finding:
    """systemd refuses the next start, after few ends or after starts that were asked for."""
    before = [
        fact
        for fact in facts.of(Kind.FATAL)
        if fact["own"]
        and (fact.node, fact.clock) == (line.node, line.clock)
        and -1 <= (line.at or 0.0) - (fact.at or 0.0) <= APART
    ]
    cause = "systemd no longer starts the kubelet: its unit was started too often in a short time. No later line shows a start, and systemd does not try again by itself."
    if before:
        cause += f" Its last end before that: {printable(before[-1]['error'].strip(': '), 240)}."
    fetch = "the kubelet's own lines before that: journalctl -u kubelet. Then, once its cause is gone: systemctl reset-failed, and start the unit"
    lines = [*before[-1:], line]
    return Finding(
        "kubelet-crash-loop", Confidence.CERTAIN, nodes_of(lines), since(lines), cause, proof(lines), fetch_next=fetch
    )


def _is_kubelets(run: Sequence[Fact], facts: Facts) -> bool:
    """Whether the ends are a kubelet's: by its name or its words, by its starts in the same process or between them, or by its unit."""
    if all(fact["own"] for fact in run):
        return True
    here = (run[0].node, run[0].clock)
    starts = [
        each
        for each in facts.of(Kind.START)
        if each["own"] and (each.node in ("", here[0]) or not here[0]) and each.clock == here[1]
    ]
    pids = {each["pid"] for each in starts} - {"", "0", "1"}
    if all(fact["pid"] in pids for fact in run):
        return True
    between = sorted(fact.where.line for fact in run)
    if sum(between[0] < each.where.line < between[-1] for each in starts) >= len(run) - 1:
        return True
    exits = [each.at or 0.0 for each in facts.of(Kind.EXIT) if (each.node, each.clock) == here]
    return all(any(-1 <= at - (fact.at or 0.0) <= AHEAD for at in exits) for fact in run)


def _runs_since(run: Sequence[Fact], facts: Facts) -> Fact | None:
    """The registration of the node behind the last end; ``None`` if another end follows."""
    here, last = (run[0].node, run[0].clock), run[-1].at or 0.0
    ends = [fact.at or 0.0 for fact in facts.of(Kind.FATAL, Kind.EXIT) if (fact.node, fact.clock) == here]
    for fact in facts.of(Kind.NODE):
        at = fact.at or 0.0
        same = fact.clock == here[1] and (not here[0] or fact.node == here[0])
        if same and at > last and "uccessfully" in fact.where.text and not any(end > at for end in ends):
            return fact
    return None


def _loop_that_ended(run: list[Fact], runs: Fact) -> Finding:
    error = printable(run[-1]["error"].strip(": "), 240)
    lasted = seconds_text((run[-1].at or 0.0) - (run[0].at or 0.0))
    cause = f"the kubelet did not start for {lasted}: {counted(len(run), 'attempt')}, each ended by: {error}. It runs again: its node registered later, and no end follows."
    return Finding("kubelet-crash-loop", Confidence.CERTAIN, nodes_of(run), since(run), cause, proof([*run, runs]))


def _loop_of_a_program(run: list[Fact]) -> Finding:
    """The words are of several programs, and no line names the one that wrote them."""
    error = printable(run[-1]["error"].strip(": "), 240)
    cause = f"a program ended {counted(len(run), 'time')}: {error}. Other programs end with the same words, and no line names this one: it may not be the kubelet."
    fetch = "the name of the program that wrote these lines, or the kubelet's own journal: journalctl -u kubelet"
    return Finding(
        "kubelet-crash-loop", Confidence.UNKNOWN, nodes_of(run), since(run), cause, proof(run), fetch_next=fetch
    )


def _last_errors(ends: Sequence[Fact], errors: Iterable[Fact]) -> list[Fact]:
    """The error ahead of each end, of the kubelet where a line names it; ``[]`` if an end has none, or another one than the others."""
    here = [
        each
        for each in errors
        if each.node in ("", ends[0].node) and each.clock == ends[0].clock and each.at is not None
    ]
    named = [each for each in here if each["own"]]
    here = named or here
    times = [each.at or 0.0 for each in here]
    last = []
    for end in ends:
        before = bisect_right(times, (end.at or 0.0) + 1) - 1
        if before < 0 or (end.at or 0.0) - times[before] > AHEAD:
            return []
        last.append(here[before])
    return last if len({_reason(each) for each in last}) == 1 else []


def _unexplained_loop(run: list[Fact], errors: list[Fact], told: list[Fact], refused: Fact | None) -> Finding:
    """Only systemd shows the ends. The last error ahead of each of them may be the reason; ``told``: the one that systemd reports."""
    status = f"with status {run[-1]['status']}" if "/" in run[-1]["status"] else f"with exit status {run[-1]['status']}"
    ended_for_good = refused is not None and (refused.at or 0.0) >= (run[-1].at or 0.0)
    then = "systemd no longer starts it." if ended_for_good else "It is started again for ever."
    if told:
        cause = f"the kubelet's unit ended {counted(len(run), 'time')}, {status}. systemd reports with each end: {printable(told[-1]['error'], 240)}. {then}"
        fetch = "the lines of the kubelet, of systemd and of the kernel around one of these ends: journalctl"
        shown = proof([*told, *run, *([refused] if refused else [])])
        return Finding(
            "kubelet-crash-loop", Confidence.CERTAIN, nodes_of(run), since(run), cause, shown, fetch_next=fetch
        )
    cause = f"the kubelet ended {counted(len(run), 'time')} soon after its start, {status}. {then}"
    fetch = "the kubelet's own lines before one of these ends: journalctl -u kubelet"
    if errors:
        cause += f" The last error before each end: {printable(errors[-1]['error'], 240)}."
        fetch = "all lines of the kubelet between a start and its end: this error is of no form that rollout knows"
    return Finding(
        "kubelet-crash-loop",
        Confidence.LIKELY,
        nodes_of(run),
        since(run),
        cause,
        proof([*errors[-1:], *run]),
        fetch_next=fetch,
    )


def _runs(deaths: Sequence[Fact]) -> Iterator[list[Fact]]:
    """Ends with the same reason that follow each other; two lines of one process within two seconds are of one end."""
    run: list[Fact] = []
    for fact in deaths:
        # systemd writes one line for each end; a line without the number of its process may be of any
        pids = {fact["pid"], run[-1]["pid"]} - {""} if run else set()
        same_end = fact.kind is Kind.FATAL and len(pids) < 2
        if same_end and run and fact.at is not None and run[-1].at is not None and fact.at - run[-1].at <= 2:
            continue
        if run and ((fact.at or 0.0) - (run[-1].at or 0.0) > APART or _reason(fact) != _reason(run[-1])):
            if len(run) >= LOOP:
                yield run
            run = []
        run.append(fact)
    if len(run) >= LOOP:
        yield run


def _reason(fact: Fact) -> str:
    return _VARYING.sub("N", fact["error"])


def _loop(run: list[Fact], ahead: Sequence[Fact], target: ProposalTarget) -> Finding:
    """``ahead``: what the kubelet reports of its client certificate before each end."""
    nodes, error = nodes_of(run), printable(run[-1]["error"].strip(": "), 240)
    cause = f"the kubelet does not start: {counted(len(run), 'attempt')}, each ended by: {error}."
    if run[-1]["server"]:
        cause = f"the process of k3s or RKE2 ends before its kubelet runs: {counted(len(run), 'attempt')}, each ended by: {error}."
    flag = _UNKNOWN_FLAG.search(error)
    if flag:
        cause += (
            f" This kubelet does not have the flag {flag[1]}; `rollout explain {flag[1]}` has the versions that do."
        )
    if ahead:
        told = printable(ahead[-1]["error"], 240)
        cause += f" Before each end it reports: {told}. So it would need the bootstrap kubeconfig to ask for another certificate."
    fetch = f"what changed on the node: rollout verify --cluster {target.cluster or 'CLUSTER'}; its configuration: rollout check --kubelet-config FILE"
    shown = proof([*ahead[-1:], *run])
    return Finding("kubelet-crash-loop", Confidence.CERTAIN, nodes, since(run), cause, shown, fetch_next=fetch)


def _cgroup(facts: Facts, target: ProposalTarget) -> Iterator[Finding]:
    for lines in _by_node(facts.of(Kind.CGROUP_V1)):
        nodes = nodes_of(lines)
        cause = (
            "the kubelet refuses to run because the node uses cgroup v1. From 1.35 on failCgroupV1 is true by default. "
            "A plan leaves a node alone while its kubelet does not run [kubelet-not-running]. On such a node, "
            "write `failCgroupV1: false` into the kubelet's file by hand and start it. The plan is for the nodes that run."
        )
        risk = "the kubelet runs on cgroup v1, which later versions remove; boot the nodes with cgroup v2 instead where you can."
        proposal = target.plan(nodes, "failCgroupV1=false")
        yield Finding("cgroup-v1-refused", Confidence.CERTAIN, nodes, since(lines), cause, proof(lines), proposal, risk)


def _pleg(facts: Facts) -> Iterator[Finding]:
    for lines in _by_node(facts.of(Kind.PLEG)):
        longest = max((go_seconds(fact["elapsed"]) or 0.0 for fact in lines), default=0.0)
        cause = (
            f"the runtime did not list its containers for up to {seconds_text(longest)}; the kubelet's limit is {lines[0]['threshold']}. "
            f"The node is NotReady for that time, and its pods are not synchronised."
        )
        fetch = "the runtime's log and the disk's load at that time; the time that `crictl ps` takes on the node"
        yield Finding(
            "pleg-unhealthy", Confidence.CERTAIN, nodes_of(lines), since(lines), cause, proof(lines), fetch_next=fetch
        )


def _rejected(facts: Facts, target: ProposalTarget) -> Iterator[Finding]:
    starts = facts.of(Kind.START)
    ran: dict[tuple[str, str], list[float]] = defaultdict(list)
    for fact in facts.of(Kind.PULLED, Kind.QUEUED, Kind.RAN, Kind.NAMED, Kind.DIED):
        ran[fact["pod"], fact.clock].append(fact.at or 0.0)
    gone: dict[tuple[str, str], list[float]] = defaultdict(list)
    for fact in facts.of(Kind.REMOVED, Kind.ACCEPTED, Kind.DELETED):
        gone[fact["pod"], fact.clock].append(fact.at or 0.0)
    new: dict[tuple[str, str], list[float]] = defaultdict(list)
    lists = Counter((fact.where, fact.clock) for fact in facts.of(Kind.ARRIVED))
    for fact in facts.of(Kind.ARRIVED, Kind.PLACED, Kind.CREATED):
        # A kubelet that starts receives all its pods in one line: that line makes no pod new.
        if fact.kind is not Kind.ARRIVED or lists[fact.where, fact.clock] == 1:
            new[fact["pod"], fact.clock].append(fact.at or 0.0)

    def came(fact: Fact, times: Sequence[float]) -> bool:
        """Whether the pod came to the node only after the start, once its first list was over."""
        begun = _latest(times, fact.at or 0.0)
        return any(begun + FIRST_LIST < at <= (fact.at or 0.0) + 1 for at in new[fact["pod"], fact.clock])

    def ran_before(fact: Fact, times: Sequence[float]) -> bool:
        """Whether the node had admitted this pod before it started: it ran there, and none of its name has left or come since."""
        pod, begun = (fact["pod"], fact.clock), _latest(times, fact.at or 0.0)
        last = max((at for at in ran[pod] if at < begun), default=None)
        return last is not None and not any(last < at < (fact.at or 0.0) - 1 for at in (*gone[pod], *new[pod]))

    for group in _by_node(facts.of(Kind.REJECTED)):
        here = [fact for fact in starts if fact.node == group[0].node and fact.clock == group[0].clock]
        times = [start.at for start in here if start.at is not None]
        after = [
            fact
            for fact in group
            if fact.at is not None and _latest(times, fact.at) >= fact.at - AFTER_START and not came(fact, times)
        ]
        known = [fact for fact in group if any(0.0 < at < (fact.at or 0.0) for at in ran[fact["pod"], fact.clock])]
        if after:
            near = [start for start in here if _soon_after(after[0], start)]
            proven = all(ran_before(fact, times) for fact in after)
            sure = Confidence.CERTAIN if proven else Confidence.LIKELY
            yield _rejection(after, near[-1:], sure, "after a start of the kubelet", target)
        elif known:
            yield _rejection(known, [], Confidence.LIKELY, "although they ran on the node before", target)
        elif not here or any(came(fact, times) for fact in group):
            yield _rejection(group, [], Confidence.UNKNOWN, "by the kubelet", target)


def _latest(times: Sequence[float], at: float) -> float:
    """The last of these times that is not after ``at``."""
    before = bisect_right(times, at)
    return times[before - 1] if before else float("-inf")


def _soon_after(fact: Fact, start: Fact) -> bool:
    return fact.at is not None and start.at is not None and 0 <= fact.at - start.at <= AFTER_START


def _rejection(group: list[Fact], starts: list[Fact], sure: Confidence, when: str, target: ProposalTarget) -> Finding:
    reasons = sorted({fact["reason"] for fact in group})
    pods = sorted({fact["pod"] for fact in group})
    nodes = nodes_of(group)
    cause = f"{counted(len(pods), 'pod')} rejected {when}, for {', '.join(reasons)}: {', '.join(pods[:5])}. "
    if sure is Confidence.UNKNOWN:
        cause += "A pod that was bound to a full node looks the same."
        return Finding(
            "pod-rejected-at-readmission",
            sure,
            nodes,
            since(group),
            cause,
            proof(group),
            fetch_next="the kubelet's log of that time: whether it had just started",
        )
    cause += "A restart admits all pods of the node again, by the limits that hold then: maxPods, reserved resources, eviction, policies, labels."
    if starts and sure is Confidence.LIKELY:
        cause += " What was read does not show that all of them ran on the node before: a pod that was bound to a full node in that time is rejected, too."
    proposal = risk = ""
    capacity = re.search(r"capacity: (\d+)", group[-1]["message"])
    if reasons == ["OutOfpods"] and capacity:
        proposal = target.plan(nodes, f"maxPods={int(capacity[1]) + len(pods)}")
        risk = "each kubelet restarts once more; check that addresses and memory suffice for more pods."
    fetch = (
        ""
        if proposal
        else f"what changed before the start: rollout status and rollout verify --cluster {target.cluster or 'CLUSTER'}"
    )
    return Finding(
        "pod-rejected-at-readmission", sure, nodes, since(group), cause, proof([*starts, *group]), proposal, risk, fetch
    )


def _changed(facts: Facts) -> Iterator[Finding]:
    for lines in _by_node(facts.of(Kind.CHANGED)):
        versions = list(
            dict.fromkeys(
                fact["version"] for fact in facts.of(Kind.START) if fact["version"] and fact.node == lines[0].node
            )
        )
        containers = sorted({fact["container"] for fact in lines})
        cause = f"the kubelet restarted {counted(len(lines), 'container')} because the definition differs from the running one: {', '.join(containers[:5])}. "
        if len(versions) > 1:
            cause += f"The kubelet changed from {versions[0]} to {versions[-1]}: some minors compute the definition's hash in another way. Drain nodes before such an upgrade."
        else:
            cause += "The pod was edited (for example its image), or the kubelet was upgraded without a drain. A change of its configuration never does this."
        yield Finding(
            "container-definition-changed", Confidence.CERTAIN, nodes_of(lines), since(lines), cause, proof(lines)
        )
