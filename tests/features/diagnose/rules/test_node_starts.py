"""Findings about kubelets and their nodes: each with a log that shows it, and one that looks alike and is not."""

from __future__ import annotations

import json

import pytest

from rollout.features.diagnose.rules.finding import Confidence, Finding
from tests.features.diagnose.rules.logs import (
    BEGIN,
    NODE,
    diagnosis,
    event,
    event_list,
    found,
    journal,
    klog,
    lines,
    logrus,
    pulls,
)

CGROUP = "kubelet is configured to not run on a host using cgroup v1. cgroup v1 support is unsupported and will be removed in a future release"
PLEG = "PLEG is not healthy: pleg was last seen active 3m15.79s ago; threshold is 3m0s"
YET = "PLEG is not healthy: pleg has yet to be successful"


def looped(end: str, times: int, every: float = 11.0, level: str = "") -> str:
    """Starts that end with this line; with ``level`` it is a line of klog."""
    ends = (at * every + 1 for at in range(times))
    return lines(
        *(line for at in ends for line in (_start(at - 1), journal(klog(at, end, level) if level else end, at)))
    )


def _start(at: float) -> str:
    return journal(klog(at, '"Kubelet version" kubeletVersion="v1.33.1"', place="server.go:530"), at)


BAD = '"command failed" err="failed to validate kubelet configuration, error: invalid configuration: maxParallelImagePulls 0 must be a positive number, path: &TypeMeta{}"'


@pytest.mark.parametrize(
    ("end", "level", "reason"),
    [
        (BAD, "E", "maxParallelImagePulls 0 must be a positive number"),
        ("Error: failed to parse kubelet flag: unknown flag: --image-pull-progress-deadline", "", "does not have the flag --image-pull-progress-deadline"),
        ("panic: failed to merge global and in-flight KubeletConfiguration while setting defaults, error: unrecognized feature gate: X", "", "unrecognized feature gate: X"),
        ("unrecognized feature gate: NoSuchGate", "F", "NoSuchGate"),
    ],
)  # fmt: skip
def test_a_loop_has_its_reason(end: str, level: str, reason: str) -> None:
    (loop,) = found(looped(end, 4, level=level)).values()
    assert (loop.id, loop.confidence) == ("kubelet-crash-loop", Confidence.CERTAIN)
    assert "4 attempts" in loop.cause
    assert reason in loop.cause
    assert loop.nodes == (NODE,)


def of_k3s(message: str, times: int = 4, level: str = "fatal", unit: str = "k3s", every: int = 11) -> str:
    """A unit that ends again and again, as k3s and RKE2 log it."""
    end = f"{unit}.service: Main process exited, code=exited, status=1/FAILURE"
    every_ = range(0, times * every, every)
    return lines(
        *(
            line
            for at in every_
            for line in (journal(logrus(at, message, level), at, f"{unit}[7]"), journal(end, at, "systemd[1]"))
        )
    )


@pytest.mark.parametrize("unit", ["k3s", "k3s-agent", "rke2-server"])
@pytest.mark.parametrize(
    ("message", "reason"),
    [
        ("kubelet exited: failed to parse kubelet flag: unknown flag: --cni-bin-dir", "does not have the flag --cni-bin-dir"),
        ("kubelet exited: failed to run Kubelet: failed to create kubelet: open /dev/kmsg: no such file or directory", "each ended by: failed to create kubelet: open /dev/kmsg"),
        ("kubelet panic: runtime error: index out of range [3]", "each ended by: runtime error: index out of range [3]"),
        ("Shutdown request received: kubelet exited: failed to run Kubelet: x", "each ended by: x."),
        ("starting kubernetes: preparing server: creating storage endpoint: building kine: Error 1071", "the process of k3s or RKE2 ends before its kubelet runs: 4 attempts"),
    ],
)  # fmt: skip
def test_a_kubelet_inside_of_k3s(message: str, reason: str, unit: str) -> None:
    (loop,) = found(of_k3s(message, unit=unit)).values()
    assert (loop.id, loop.confidence, loop.nodes) == ("kubelet-crash-loop", Confidence.CERTAIN, (NODE,))
    assert reason in loop.cause


@pytest.mark.parametrize("end", ["<nil>", "context canceled"])
def test_a_k3s_that_is_stopped_has_no_reason(end: str) -> None:
    (loop,) = found(of_k3s(f"kubelet exited: {end}", unit="k3s")).values()
    assert loop.confidence is Confidence.LIKELY, "only systemd shows the ends"


def test_k3s_on_cgroup_v1() -> None:
    assert set(found(of_k3s(f"kubelet exited: failed to run Kubelet: {CGROUP}"))) == {
        "cgroup-v1-refused",
        "kubelet-crash-loop",
    }


def test_the_kubelet_under_rke2_has_its_reason_in_a_file_of_its_own() -> None:
    ends = lines(
        *(journal(logrus(at, "Kubelet exited: exit status 1", "error"), at, "rke2-agent[7]") for at in range(0, 20, 5))
    )
    (loop,) = found(ends).values()
    assert (loop.confidence, "with exit status 1" in loop.cause) == (Confidence.LIKELY, True)
    of_kubelet = lines(*(klog(at, BAD, "E") for at in range(0, 20, 5)))
    assert found(of_kubelet)["kubelet-crash-loop"].confidence is Confidence.CERTAIN


def test_systemd_up_to_219_writes_main_small() -> None:
    end = "kubelet.service: main process exited, code=exited, status=255/n/a"
    (loop,) = found(lines(*(journal(end, at, "systemd[1]") for at in range(0, 40, 10)))).values()
    assert "with status 255/n/a" in loop.cause


def unknown_ends(*reasons: str, ahead: float = 0.2) -> list[str]:
    end = "kubelet.service: Main process exited, code=exited, status=1/FAILURE"
    return [
        line
        for number, reason in enumerate(reasons)
        for line in (
            journal(klog(number * 11 + 9 - ahead, '"Connecting to the moon" err="busy"', "E"), number * 11 + 8),
            journal(klog(number * 11 + 9, reason, "E"), number * 11 + 9),
            journal(klog(number * 11 + 9, '"Shutting down"'), number * 11 + 9),
            journal(end, number * 11 + 10, "systemd[1]"),
        )
    ]


@pytest.mark.parametrize("newest_first", [False, True])
def test_a_reason_of_no_known_form_is_the_last_error_ahead_of_each_end(newest_first: bool) -> None:
    text = unknown_ends(*['"Failed to frobnicate" err="no such frob: 4711"'] * 4)
    (loop,) = found(lines(*(text[::-1] if newest_first else text))).values()
    assert loop.confidence is Confidence.LIKELY
    assert 'The last error before each end: "Failed to frobnicate" err="no such frob: 4711".' in loop.cause
    assert "of no form that rollout knows" in loop.fetch_next


def test_errors_that_differ_or_are_old_are_no_reason() -> None:
    (loop,) = found(lines(*unknown_ends('"a" err="x"', '"b" err="y"', '"c" err="z"'))).values()
    assert "last error" not in loop.cause
    late = lines(
        *(
            journal("kubelet.service: Main process exited, code=exited, status=1/FAILURE", 60 + at, "systemd[1]")
            for at in range(0, 40, 10)
        )
    )
    (loop,) = found(lines(journal(klog(0, '"a" err="x"', "E"), 0)) + late).values()
    assert "last error" not in loop.cause


STARTS_AGAIN = (
    '"Failed to start ContainerManager" err="Failed to enforce Kube Reserved Cgroup Limits"',
    '"Failed to start cAdvisor" err="inotify_init: too many open files"',
    '"Failed to load kubelet config file" err="failed to load Kubelet config file /x: no such file" path="/x"',
    '"Failed to parse kubelet flag" err="unknown flag: --x"',
    '"Failed to validate kubelet configuration" err="invalid configuration: x" path="/x"',
    '"Failed to set feature gates from initial flags-based config" err="unrecognized feature gate: X"',
    '"Failed to construct kubelet dependencies" err="unable to load client CA file"',
)


@pytest.mark.parametrize("as_json", [False, True], ids=["keys", "JSON"])
@pytest.mark.parametrize("message", STARTS_AGAIN)
def test_the_error_above_the_status_is_the_reason(message: str, as_json: bool) -> None:
    """From 1.21 on a kubelet logs why it ends as an error, not as a fatal line."""
    name, error = message[1:].split('" err="', maxsplit=1)[0], message.split('err="')[1].split('"', maxsplit=1)[0]

    def line(at: float) -> str:
        body = {"ts": (BEGIN.timestamp() + at) * 1000, "caller": "app/server.go:1", "msg": name, "err": error}
        return json.dumps(body, separators=(",", ":")) if as_json else klog(at, message, "E")

    (loop,) = found(lines(*(journal(line(at), at) for at in range(0, 44, 11)))).values()
    assert loop.confidence is Confidence.CERTAIN
    assert f"each ended by: {name}: {error}." in loop.cause


def test_a_loop_without_the_kubelets_lines() -> None:
    exit_ = "kubelet.service: Main process exited, code=exited, status=1/FAILURE"
    (loop,) = found(lines(*(journal(exit_, at * 11, "systemd[1]") for at in range(5)))).values()
    assert loop.confidence is Confidence.LIKELY
    assert "status 1/FAILURE" in loop.cause


def test_restarts_and_a_corrected_mistake_are_no_loop() -> None:
    assert found(looped(BAD, 2, level="E")) == {}
    assert found(looped(BAD, 4, every=4000, level="E")) == {}, "an hour apart"
    assert found(lines(*(_start(at * 11.0) for at in range(5)))) == {}, "started five times by hand"
    stopped = "kubelet.service: Main process exited, code=exited, status=0/SUCCESS"
    assert found(lines(*(journal(stopped, at * 11, "systemd[1]") for at in range(5)))) == {}
    other = "nginx.service: Main process exited, code=exited, status=1/FAILURE"
    assert found(lines(*(journal(other, at * 11, "systemd[1]") for at in range(5)))) == {}


def test_cgroup_v1_is_refused() -> None:
    findings = found(looped(f'"command failed" err="{CGROUP}"', 3, level="E"))
    assert (
        findings["cgroup-v1-refused"].proposal
        == f"rollout plan --cluster rno --limit '{NODE}' --set failCgroupV1=false"
    )
    assert set(findings) == {"cgroup-v1-refused", "kubelet-crash-loop"}


def test_a_warning_about_cgroup_v1_is_no_refusal() -> None:
    text = '"CGROUPv1 support is in maintenance mode. Please migrate to cgroup v2"'
    assert found(lines(klog(0, text, "W", "kubelet.go:600"))) == {}


@pytest.mark.parametrize(
    "message",
    [
        f"skipping pod synchronization - {PLEG}",
        f'"Skipping pod synchronization" err="{PLEG}"',
        f"Node became not ready: {{Type:Ready Status:False Reason:KubeletNotReady Message:{PLEG}}}",
        f'"Node became not ready" node="{NODE}" condition={{"type":"Ready","status":"False","message":"{PLEG}"}}',
    ],
)
def test_a_runtime_that_does_not_list_its_containers(message: str) -> None:
    (pleg,) = found(lines(klog(0, message, "E"))).values()
    assert (pleg.id, pleg.confidence) == ("pleg-unhealthy", Confidence.CERTAIN)
    assert "3 min 16 s" in pleg.cause


def test_every_healthy_start_has_a_line_about_pleg() -> None:
    text = f'"Skipping pod synchronization" err="[container runtime status check may not have completed yet, {YET}]"'
    assert found(lines(klog(0, text, "E"), klog(0, f"skipping pod synchronization - [{YET}]", "E"))) == {}


OUT = "Node didn't have enough resource: pods, requested: 1, used: 1, capacity: 1"


def test_a_restart_that_rejects_pods() -> None:
    start = [event(900, "Starting", "Starting kubelet.", NODE, kind="Node"), event(908, "OutOfpods", OUT)]
    (rejected,) = found(event_list([*pulls("web:1", "web-1", 0, 5), *start])).values()
    assert (rejected.id, rejected.confidence) == ("pod-rejected-at-readmission", Confidence.CERTAIN)
    assert rejected.proposal.endswith("--set maxPods=2")


def test_a_pod_that_is_not_known_to_have_run_before_the_start_may_be_new() -> None:
    """A controller binds pods to a node as soon as it registers, and one of a StatefulSet has the old one's name."""
    start = [event(900, "Starting", "Starting kubelet.", NODE, kind="Node"), event(908, "OutOfpods", OUT)]
    bound = event(904, "Scheduled", "Successfully assigned shop/web-1 to " + NODE)
    for before in ((), (*pulls("web:1", "web-1", 0, 5), bound)):
        (rejected,) = found(event_list([*before, *start])).values()
        assert rejected.confidence is Confidence.LIKELY
        assert "bound to a full node in that time" in rejected.cause


def test_a_pod_that_ran_before() -> None:
    (rejected,) = found(
        event_list([*pulls("web:1", "web-1", 0, 5), event(900, "OutOfcpu", "Node didn't have enough resource: cpu")])
    ).values()
    assert rejected.confidence is Confidence.LIKELY
    assert not rejected.proposal


def test_a_full_node_rejects_new_pods() -> None:
    events = [event(0, "Starting", "Starting kubelet.", NODE, kind="Node"), event(9000, "OutOfpods", OUT)]
    assert found(event_list(events)) == {}


def test_a_rejection_alone_is_unknown() -> None:
    (rejected,) = found(event_list([event(0, "NodeAffinity", "Predicate NodeAffinity failed")])).values()
    assert rejected.confidence is Confidence.UNKNOWN


def test_containers_that_an_upgrade_restarts() -> None:
    log = [
        klog(0, '"Kubelet version" kubeletVersion="v1.30.7"'),
        klog(600, '"Kubelet version" kubeletVersion="v1.31.14"'),
        klog(610, '"Message for Container of pod" containerName="app" containerStatusID={"Type":"containerd"} pod="shop/web-1" containerMessage="Container app definition changed, will be restarted"'),
        klog(1, f'"Successfully registered node" node="{NODE}"'),
    ]  # fmt: skip
    (changed,) = found(lines(*log)).values()
    assert changed.id == "container-definition-changed"
    assert "from v1.30.7 to v1.31.14" in changed.cause


def test_an_edited_pod() -> None:
    (changed,) = found(
        event_list([event(0, "Killing", "Container app definition changed, will be restarted")])
    ).values()
    assert "The pod was edited" in changed.cause


@pytest.mark.parametrize(
    "message", ["Container app failed liveness probe, will be restarted", "Stopping container app"]
)
def test_a_container_that_stops_for_another_reason(message: str) -> None:
    assert found(event_list([event(0, "Killing", message)])) == {}


def test_a_new_pod_that_is_rejected_after_a_start_is_not_of_its_readmission() -> None:
    full = "Node didn't have enough resource: pods, requested: 1, used: 110, capacity: 110"
    told = lines(
        klog(0, '"Kubelet version" kubeletVersion="v1.31.2"'),
        klog(95, '"SyncLoop ADD" source="api" pods=["batch/new-1"]'),
        klog(
            95, f'"Event occurred" object="batch/new-1" kind="Pod" type="Warning" reason="OutOfpods" message="{full}"'
        ),
    )
    (one,) = found(told).values()
    assert (one.id, one.confidence, one.proposal) == ("pod-rejected-at-readmission", Confidence.UNKNOWN, "")


def test_a_loop_that_is_over_is_told_as_past() -> None:
    bad = '"command failed" err="failed to run Kubelet: running with swap on is not supported"'
    ends = [klog(at, bad, "E", "run.go:74") for at in (0, 12, 24)]
    registered = klog(305, '"Successfully registered node" node="tess-node-0007"')
    (past,) = found(lines(*ends, registered)).values()
    assert "did not start for 24 s" in past.cause
    assert "It runs again" in past.cause
    (now,) = found(lines(*ends, registered, *(klog(at, bad, "E", "run.go:74") for at in (400, 412, 424)))).values()
    assert "does not start" in now.cause


def test_the_process_tells_the_node_where_the_lines_of_several_nodes_do_not() -> None:
    def ends(pids: tuple[int, int]) -> str:
        text = []
        for at in (0, 20, 40):
            for pid, name in zip(pids, ("n-1", "n-2"), strict=True):
                text.append(klog(at, f'"Attempting to register node" node="{name}"').replace("   3033", f"{pid:7}"))
                error = "swap is on" if name == "n-1" else "disk is full"
                bad = f'"command failed" err="failed to run Kubelet: {error}"'
                text.append(klog(at + 1, bad, "E", "run.go:74").replace("   3033", f"{pid:7}"))
        return lines(*text)

    loops = [each for each in diagnosis(ends((101, 201))).findings if each.id == "kubelet-crash-loop"]
    assert {each.nodes: each.confidence for each in loops} == {
        ("n-1",): Confidence.CERTAIN,
        ("n-2",): Confidence.CERTAIN,
    }
    assert all(each.confidence is not Confidence.CERTAIN for each in diagnosis(ends((1, 1))).findings)


@pytest.mark.parametrize("first", ["n-1", ""])
def test_lines_of_one_process_that_overlap_in_time_are_of_several_nodes(first: str) -> None:
    """Logs of two kubelets that are process 1 of a container each, one behind the other; one node registers only."""

    def log(node: str, starts: tuple[float, ...]) -> list[str]:
        text = []
        for at in starts:
            text.append(klog(at, '"Kubelet version" kubeletVersion="v1.31.2"'))
            if node:
                text.append(klog(at + 0.2, f'"Attempting to register node" node="{node}"'))
            text.append(klog(at + 1, '"command failed" err="failed to run Kubelet: swap is on"', "E", "run.go:74"))
        return [line.replace("   3033", "      1") for line in text]

    def both(*, more: bool) -> dict[tuple[str, ...], Finding]:
        one, other = log("n-1", (0, 20, *([40] if more else []))), log("", (10, 30, *([50] if more else [])))
        told = diagnosis(lines(*(one + other if first else other + one)))
        return {finding.nodes: finding for finding in told.findings}

    assert both(more=False) == {}, "two ends each"
    loops = both(more=True)
    assert {nodes: loop.confidence for nodes, loop in loops.items()} == {
        ("n-1",): Confidence.CERTAIN,
        (): Confidence.LIKELY,
    }
    assert "lines of process 1 that overlap in time" in loops[()].fetch_next
    (loop,) = found(lines(*log("n-1", (0, 20, 40)))).values()
    assert (loop.confidence, loop.nodes) == (Confidence.CERTAIN, ("n-1",))
    rotated = log("n-1", (40, 60)), log("", (0, 20))
    (loop,) = found(lines(*rotated[0], *rotated[1])).values()
    assert loop.confidence is Confidence.CERTAIN, "kubelet.log and kubelet.log.1: no time is in both"


def test_a_number_of_a_process_proves_no_node_where_another_process_may_have_it() -> None:
    """Logs of two nodes, one behind the other: n-2's log begins when its process 3033 runs, and it registers as 4044."""
    bad = '"Skipping pod synchronization" err="PLEG is not healthy: pleg was last seen active 5m12.3s ago; threshold is 3m0s"'
    begin = '"Kubelet version" kubeletVersion="v1.31.2"'
    one = [klog(0, begin), klog(5, '"Successfully registered node" node="n-1"'), klog(900, bad, "E")]
    two = klog(2000, '"Successfully registered node" node="n-2"').replace("   3033", "   4044")

    def shown(*more: str) -> set[tuple[tuple[str, ...], Confidence, tuple[int, ...]]]:
        found = diagnosis(lines(*one, *more, two)).findings
        return {(each.nodes, each.confidence, tuple(where.line for where in each.evidence)) for each in found}

    assert shown(klog(901, bad, "E")) == {(("n-1",), Confidence.CERTAIN, (3, 4))}
    others = {(("n-1",), Confidence.CERTAIN, (3,)), ((), Confidence.LIKELY, (4, 5))}
    assert shown(klog(600, bad, "E"), klog(1000, bad, "E")) == others, "its time is before that of n-1"
    others = {(("n-1",), Confidence.CERTAIN, (3,)), ((), Confidence.LIKELY, (5,))}
    assert shown(klog(1000, begin), klog(1900, bad, "E")) == others, "another process began"


NO_BOOTSTRAP = "failed to run Kubelet: unable to load bootstrap kubeconfig: stat /etc/kubernetes/bootstrap-kubelet.conf: no such file or directory"
EXPIRED = "part of the existing bootstrap client certificate in /etc/kubernetes/kubelet.conf is expired: 2026-10-06 18:55:55 +0000 UTC"


def of_certificate(told: str, *, each: bool = True) -> str:
    """Four starts that end without a bootstrap kubeconfig; ahead of each, or of the first one, a line about the certificate."""
    text = []
    for at in (0, 11, 22, 33):
        text += [journal(klog(at, told, "E", "bootstrap.go:265"), at)] if each or not at else []
        text.append(journal(klog(at, NO_BOOTSTRAP, "F", "server.go:271"), at))
    return lines(*text)


@pytest.mark.parametrize(
    "told",
    [
        EXPIRED,
        "Part of the existing bootstrap client certificate is expired: 2026-10-06 18:55:55 +0000 UTC",
        "unable to read existing bootstrap client config from /etc/kubernetes/kubelet.conf: invalid configuration: no client-cert",
        f'"Unhandled Error" err="{EXPIRED}" logger="UnhandledError"',
    ],
)
def test_a_client_certificate_that_cannot_be_used_is_told_beside_the_end(told: str) -> None:
    (loop,) = found(of_certificate(told)).values()
    assert loop.confidence is Confidence.CERTAIN
    assert "each ended by: unable to load bootstrap kubeconfig" in loop.cause
    assert "Before each end it reports: " in loop.cause
    assert ("is expired: 2026-10-06" in loop.cause) == ("is expired" in told)


@pytest.mark.parametrize(
    ("told", "each"),
    [(EXPIRED, False), (f'"Probe failed" err="{EXPIRED}"', True), ("unable to sync node", True)],
)
def test_a_certificate_that_is_not_told_before_each_end_is_no_reason(told: str, each: bool) -> None:
    (loop,) = found(of_certificate(told, each=each)).values()
    assert "Before each end" not in loop.cause


def test_ends_of_different_processes_within_two_seconds_are_several() -> None:
    """Kind starts its kubelet again after one second."""
    told = '"Failed to run kubelet" err="failed to run Kubelet: invalid configuration: cgroup-root [\\"kubelet\\"] doesn\'t exist"'
    ends = [klog(at * 1.5, told, "E", "server.go:294").replace(" 3033 ", f" {3033 + at} ") for at in range(3)]
    (loop,) = found(lines(*(journal(line, at * 1.5) for at, line in enumerate(ends)))).values()
    assert "3 attempts, each ended by: invalid configuration: cgroup-root" in loop.cause
    assert not found(lines(*(journal(klog(at / 2, told, "E", "server.go:294"), at / 2) for at in range(3)))), (
        "one process"
    )


@pytest.mark.parametrize(
    ("told", "status", "words"),
    [
        ("Failed at step EXEC spawning /usr/bin/kubelet: Exec format error", "exited, status=203/EXEC", "Exec format error"),
        ("Watchdog timeout (limit 10s)!", "killed, status=6/ABRT", "Watchdog timeout (limit 10s)"),
        ("A process of this unit has been killed by the OOM killer.", "killed, status=9/KILL", "killed by the OOM killer"),
    ],
)  # fmt: skip
def test_what_systemd_reports_of_each_end_is_its_reason(told: str, status: str, words: str) -> None:
    ends = [f"kubelet.service: {told}", f"kubelet.service: Main process exited, code={status}"]
    every = [journal(line, at, "systemd[1]") for at in (0, 30, 60) for line in ends]
    (loop,) = found(lines(*every)).values()
    assert loop.confidence is Confidence.CERTAIN
    assert words in loop.cause
    (loop,) = found(lines(*every[1:])).values()
    assert loop.confidence is Confidence.LIKELY, "one end without it"


def test_ends_by_a_signal_that_someone_sends_are_no_loop() -> None:
    for status in ("15/TERM", "2/INT", "1/HUP"):
        end = f"kubelet.service: Main process exited, code=killed, status={status}"
        assert found(lines(*(journal(end, at * 30, "systemd[1]") for at in range(5)))) == {}


def test_ends_by_a_signal_that_nobody_asked_systemd_for_are_a_loop() -> None:
    """Such as those of a program that watches the memory, or asks the kubelet for its health: systemd starts the unit by itself."""
    ended = [
        journal(f"kubelet.service: {text}", at * 30 + later, "systemd[1]")
        for at in range(3)
        for later, text in (
            (0, "Main process exited, code=killed, status=15/TERM"),
            (10, f"Scheduled restart job, restart counter is at {at + 1}."),
        )
    ]
    (loop,) = found(lines(*ended)).values()
    assert (loop.id, loop.confidence) == ("kubelet-crash-loop", Confidence.LIKELY)
    assert "with status 15/TERM" in loop.cause


def test_a_kubelet_that_systemd_no_longer_starts() -> None:
    refused = journal("kubelet.service: Start request repeated too quickly.", 2, "systemd[1]")
    (down,) = found(lines(journal(klog(1, BAD, "E"), 1), refused)).values()
    assert (down.id, down.confidence) == ("kubelet-crash-loop", Confidence.CERTAIN)
    assert "no longer starts" in down.cause
    assert "maxParallelImagePulls 0" in down.cause
    assert found(lines(refused, _start(60))) == {}, "it was started again"
    exits = [
        journal("kubelet.service: Main process exited, code=exited, status=1/FAILURE", at, "systemd[1]")
        for at in range(3)
    ]
    (loop,) = found(lines(*exits, refused)).values()
    assert loop.cause.endswith("systemd no longer starts it.")


@pytest.mark.parametrize(
    "later",
    [
        journal("kubelet.service: Scheduled restart job, restart counter is at 6.", 60, "systemd[1]"),
        journal(klog(60, '"SyncLoop ADD" source="api" pods=["a/b"]', "I", "kubelet.go:2100"), 60),
        _start(60),
    ],
)
def test_a_unit_that_was_started_later_was_not_given_up(later: str) -> None:
    refused = journal("kubelet.service: Start request repeated too quickly.", 2, "systemd[1]")
    (down,) = found(lines(refused)).values()
    assert "No later line shows a start" in down.cause
    assert found(lines(refused, later)) == {}
    end = "kubelet.service: Main process exited, code=exited, status=1/FAILURE"
    (loop,) = found(lines(*(journal(end, at, "systemd[1]") for at in range(3)), refused, later)).values()
    assert "no longer starts" not in loop.cause


def test_the_last_end_before_a_refused_start_is_the_kubelets_own() -> None:
    refused = journal("kubelet.service: Start request repeated too quickly.", 2, "systemd[1]")
    (down,) = found(lines(journal("panic: runtime error: no such shop", 1, "0a1b2c3d4e5f[7]"), refused)).values()
    assert "no such shop" not in down.cause
