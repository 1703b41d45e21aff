"""The queue of pulls: what tells it from pulls that run side by side, and what shows it where events are missing."""

from __future__ import annotations

import random

import pytest

from rollout.features.diagnose.rules.finding import Confidence
from tests.features.diagnose.rules.logs import diagnosis, event, event_list, found, klog, lines, pulls
from tests.features.diagnose.rules.test_pulls import QUICK, SLOW

Events = list[dict[str, object]]
DIALING = (
    'rpc error: code = Unavailable desc = connection error: desc = "transport: Error while dialing: dial unix '
    '/run/containerd/containerd.sock: connect: no such file or directory"'
)
DROPPED = "rpc error: code = Unavailable desc = error reading from server: EOF"


def busy(many: int, longest: float, *, nodes: int = 1) -> Events:
    """Two hours of pulls side by side, from two registries."""
    drawn = random.Random(3)  # noqa: S311
    events: Events = []
    for number in range(many):
        begin = drawn.uniform(0, 7000)
        each = pulls(f"r{number % 2}.example/app:{number}", f"job-{number}", begin, begin + drawn.uniform(2, longest))
        events += [{**part, "source": {"component": "kubelet", "host": f"n{number % nodes}"}} for part in each]
    return events


@pytest.mark.parametrize("many", [25, 100, 600])
def test_a_node_that_pulls_side_by_side_all_day_has_no_queue(many: int) -> None:
    """Some pulls always end in the same second; others, which began meanwhile, have passed them."""
    assert found(event_list(busy(many, 200))) == {}


def test_forty_nodes_that_pull_side_by_side_have_no_queue() -> None:
    assert found(event_list(busy(1000, 130, nodes=40))) == {}


def test_a_table_without_nodes_does_not_make_one_queue_of_all() -> None:
    events = [{**each, "source": {}} for each in busy(1000, 130, nodes=40)]
    assert found(event_list(events)) == {}


def test_a_log_is_of_one_node_with_or_without_its_name() -> None:
    said = 'Event(v1.ObjectReference{{Kind:"Pod", Namespace:"shop", Name:"web-{0}", UID:"1", FieldPath:"spec.containers{{app}}"}}): type: \'Normal\' reason: \'{1}\' {2}'
    log = []
    for number in range(6):
        image = f"{QUICK}{number}" if number else SLOW
        log.append((15.0 * number, said.format(number, "Pulling", f'Pulling image "{image}"')))
        log.append((90 + number / 10, said.format(number, "Pulled", f'Successfully pulled image "{image}"')))
    (queue,) = found(lines(*(klog(at, message) for at, message in sorted(log)))).values()
    assert (queue.id, queue.confidence, queue.nodes) == ("serial-pull-queue", Confidence.LIKELY, ())


def convoy(error: str, at: float = 0) -> Events:
    events = pulls(SLOW, "ais-1", at, at + 900, DROPPED)
    for number in range(5):
        events += pulls(f"{QUICK}{number}", f"web-{number}-{at}", at + 60 * number + 60, at + 900, error)
    return events


def test_a_pull_that_finds_no_runtime_had_not_reached_it() -> None:
    """The runtime is restarted: the pull that it had fails in one way, and those that waited in another."""
    queue = found(event_list(convoy(DIALING)))["serial-pull-queue"]
    assert queue.confidence is Confidence.CERTAIN
    assert f"5 pulls waited in one queue behind the pull of {SLOW}" in queue.cause
    assert "found no runtime" in queue.cause
    assert "serial-pull-queue" not in found(event_list(convoy(DROPPED)))


@pytest.mark.parametrize(
    ("old", "new"),
    [(DROPPED, DIALING), ("", "pull QPS exceeded")],
    ids=["a restart of the runtime", "a burst of new pods"],
)
def test_pulls_that_begin_as_others_end_had_not_waited(old: str, new: str) -> None:
    """Pulls side by side end together, and others that begin in that second fail at once."""
    events = [each for at in range(3) for each in pulls(f"{SLOW}{at}", f"ais-{at}", 100 * at, 400, old)]
    events += [each for at in range(12) for each in pulls(f"{QUICK}{at}", f"web-{at}", 399, 400, new)]
    assert "serial-pull-queue" not in {name for name, each in found(event_list(events)).items() if each.proposal}


def test_a_node_has_one_finding_for_all_its_queues() -> None:
    told = diagnosis(event_list([*convoy(DIALING), *convoy(DIALING, 2000), *convoy(DIALING, 4000)]))
    (queue,) = [each for each in told.findings if each.id == "serial-pull-queue"]
    assert "The same happened 2 more times" in queue.cause


# Without the beginnings of the pulls: their events expire after an hour, and `-v=2` logs none.


def test_a_pod_that_came_two_hours_before_its_pull_was_rejected() -> None:
    """All that the third write-up's events show: scheduled at 12:26, failed at 14:31."""
    placed = event(0, "Scheduled", "Successfully assigned shop/web-1 to tess-node-0007", "web-1", node="")
    failed = event(7500, "Failed", f'Failed to pull image "{QUICK}": pull QPS exceeded', "web-1")
    findings = found(event_list([placed, failed]))
    assert findings["serial-pull-queue"].confidence is Confidence.LIKELY
    assert "pod shop/web-1 waited 2 h 5 min on its node" in findings["serial-pull-queue"].cause
    assert findings["serial-pull-queue"].proposal.endswith("--set serializeImagePulls=false")
    assert "See serial-pull-queue" in findings["pull-qps-exceeded"].cause


@pytest.mark.parametrize(
    "between",
    [
        event(3600, "Pulled", 'Successfully pulled image "init:1"', "web-1"),
        event(60, "Created", "Created container init", "web-1"),
        event(7000, "BackOff", f'Back-off pulling image "{QUICK}"', "web-1"),
        event(7490, "Pulling", f'Pulling image "{QUICK}"', "web-1"),
        event(7400, "FailedCreatePodSandBox", "Failed to create pod sandbox: network not ready", "web-1"),
        event(7400, "FailedMount", "Unable to attach or mount volumes: unmounted volumes=[data]", "web-1"),
    ],
    ids=[
        "its init container was pulled",
        "its init container ran",
        "it was in back-off",
        "its pull began late",
        "it had no network",
        "it had no volume",
    ],
)
def test_a_pod_whose_arrival_is_not_the_begin_of_its_pull(between: dict[str, object]) -> None:
    placed = event(0, "Scheduled", "Successfully assigned shop/web-1 to tess-node-0007", "web-1", node="")
    failed = event(7500, "Failed", f'Failed to pull image "{QUICK}": pull QPS exceeded', "web-1")
    assert "serial-pull-queue" not in found(event_list([placed, between, failed]))


def test_a_rejected_pull_without_a_begin_proposes_nothing() -> None:
    (qps,) = found(event_list([event(0, "Failed", f'Failed to pull image "{QUICK}": pull QPS exceeded')])).values()
    assert qps.id == "pull-qps-exceeded"
    assert "is not known" in qps.cause
    assert not qps.proposal
    assert "Pulling events" in qps.fetch_next


def released(pods: int, keyed: bool, *, error: str = "pull QPS exceeded") -> str:
    """A kubelet's log at ``-v=2``: pods arrive every minute, and after two hours their pulls are rejected together."""
    log = []
    for number in range(pods):
        pod = f'"web-{number}_shop(0147-{number})"'
        added = f'"SyncLoop ADD" source="api" pods=["shop/web-{number}"]' if keyed else f'SyncLoop (ADD, "api"): {pod}'
        log.append(klog(60 * number, added))
        at = 7500 + number / 100
        if keyed:
            log.append(
                klog(
                    at,
                    f'"Error syncing pod, skipping" err="failed to \\"StartContainer\\" for \\"app\\" with ErrImagePull: \\"{error}\\"" pod="shop/web-{number}" podUID=1',
                    "E",
                )
            )
        else:
            named = pod.strip('"')
            log.append(
                klog(
                    at,
                    f"container &Container{{Name:app,Image:{QUICK}{number},Command:[],Env:[]EnvVar{{}},}} start failed in pod {named}: ErrImagePull: {error}",
                    "E",
                )
            )
            log.append(
                klog(
                    at,
                    f'Error syncing pod 0147-{number} ("{named}"), skipping: failed to "StartContainer" for "app" with ErrImagePull: "{error}"',
                    "E",
                )
            )
    cut = "rpc error: code = Unavailable desc = transport is closing"
    log.append(
        klog(
            7499.9,
            f'"Failed to pull image" err="{cut}" image="{SLOW}"' if keyed else f'Pull image "{SLOW}" failed: {cut}',
            "E",
        )
    )
    return lines(*log)


@pytest.mark.parametrize("keyed", [False, True], ids=["1.19", "1.24"])
def test_a_log_at_the_usual_verbosity_shows_the_queue(keyed: bool) -> None:
    findings = found(released(9, keyed))
    queue = findings["serial-pull-queue"]
    assert queue.confidence is Confidence.LIKELY
    assert "9 pulls waited in one queue, up to 2 h 5 min; when it was released, all ended at once" in queue.cause
    assert f"The pull in front was by exclusion that of {SLOW}" in queue.cause
    assert "init container" in queue.fetch_next
    assert not findings["pull-qps-exceeded"].proposal


@pytest.mark.parametrize("keyed", [False, True], ids=["1.19", "1.24"])
def test_pods_that_a_starting_kubelet_lists_have_not_arrived(keyed: bool) -> None:
    names = range(9)
    listed = (
        '"SyncLoop ADD" source="api" pods=[' + ",".join(f'"shop/web-{number}"' for number in names) + "]"
        if keyed
        else 'SyncLoop (ADD, "api"): "' + ", ".join(f"web-{number}_shop(0147-{number})" for number in names) + '"'
    )
    log = released(9, keyed).splitlines()
    failures = [line for line in log if "ADD" not in line]
    assert "serial-pull-queue" not in found(lines(klog(0, listed), *failures))


def test_pods_that_waited_for_their_network_all_pull_when_it_comes_back() -> None:
    """They exceed the rate together too."""
    said = (
        '"Error syncing pod, skipping" err="failed to \\"CreatePodSandbox\\" for \\"web-{0}_shop(1)\\" with CreatePodSandboxError: \\"network not ready\\"" '
        'pod="shop/web-{0}" podUID=1'
    )
    log = [
        *released(9, keyed=True).splitlines(),
        *(klog(7450 + number, said.format(number), "E") for number in range(9)),
    ]
    assert set(found(lines(*sorted(log, key=lambda line: line[1:21])))) == {"pull-qps-exceeded"}


def test_a_registry_that_comes_back_rejects_no_pull() -> None:
    """The pods came over minutes and failed together, and nothing shows that they left a queue."""
    assert "serial-pull-queue" not in found(released(9, keyed=True, error="manifest unknown"))


# While it hangs.


def described(*rows: str, head: bool = True) -> str:
    top = ["Name:         web-1", "Namespace:    shop", "Node:         tess-node-0007/10.0.0.7", "Status:       Pending",
           "Containers:", "  app:", "    State:          Waiting", "      Reason:       ContainerCreating"]  # fmt: skip
    table = ["Events:", "  Type     Reason     Age                 From               Message",
             "  ----     ------     ----                ----               -------"]  # fmt: skip
    return lines(*(top if head else []), *table, *rows)


SCHEDULED = (
    "  Normal   Scheduled  125m                default-scheduler  Successfully assigned shop/web-1 to tess-node-0007"
)
PULLING = f'  Normal   Pulling    125m                kubelet            Pulling image "{QUICK}"'


@pytest.mark.parametrize("head", [True, False])
def test_a_described_pod_that_pulls_for_two_hours(head: bool) -> None:
    """The first symptom of the third write-up: it may hang itself, or wait."""
    (queue,) = found(described(SCHEDULED, PULLING, head=head)).values()
    assert (queue.id, queue.confidence) == ("serial-pull-queue", Confidence.UNKNOWN)
    assert queue.cause == (
        f"the pull of {QUICK} began 2 h 5 min before the end of what was read and has not ended. It hangs, or it waits in the queue "
        f"behind another pull of its node."
    )
    assert "running pulls" in queue.fetch_next
    assert queue.nodes == ("tess-node-0007",)


def test_a_described_pod_that_runs_or_whose_pull_fails() -> None:
    done = f'  Normal   Pulled     124m                kubelet            Successfully pulled image "{QUICK}"'
    failed = (
        f'  Warning  Failed     7m44s (x3 over 14m)  kubelet           Failed to pull image "{QUICK}": manifest unknown'
    )
    assert found(described(SCHEDULED, PULLING, done)) == {}
    assert "serial-pull-queue" not in found(described(SCHEDULED, PULLING, failed))


def test_the_pull_of_a_pod_that_may_be_deleted_says_nothing() -> None:
    events = [
        event(0, "Pulling", f'Pulling image "{QUICK}"', "gone-1"),
        event(7000, "Pulling", f'Pulling image "{SLOW}"', "new-1"),
    ]
    assert found(event_list(events)) == {}
