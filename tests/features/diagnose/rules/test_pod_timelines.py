"""The end of a pod that is asked for, from its kubelet's log, its object and its events."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from rollout.features.diagnose.rules.diagnosis import diagnosed
from rollout.features.diagnose.rules.event_lists import event_facts
from rollout.features.diagnose.rules.facts import Facts
from rollout.features.diagnose.rules.finding import ProposalTarget
from rollout.features.diagnose.rules.node_journals import journal_of
from rollout.features.diagnose.rules.pod_status import pod_facts
from rollout.features.diagnose.rules.pod_timelines import PodTimeline
from tests.features.diagnose.rules.logs import BEGIN, NODE, event, klog

POD = 'pod="shop/web-1" podUID="0f" containerName="app" containerID="containerd://0f1e2d3c"'
LOG = (
    (1.0, '"SyncLoop DELETE" source="api" pods=["shop/web-1"]'),
    (1.1, f'"Running preStop hook" {POD}'),
    (4.1, f'"PreStop hook completed" {POD}'),
    (4.1, f'"Killing container with a grace period" {POD} gracePeriod=7'),
    (11.3, f'"Container exited normally" {POD}'),
    (13.0, '"SyncLoop REMOVE" source="api" pods=["shop/web-1"]'),
)


def stamp(seconds: float) -> str:
    return f"{BEGIN + timedelta(seconds=seconds):%Y-%m-%dT%H:%M:%SZ}"


def timelines(*pods: dict[str, Any], log: tuple[tuple[float, str], ...] = LOG, pod: str = "shop/web-1", events: int = 0) -> tuple[PodTimeline, ...]:  # fmt: skip
    facts = Facts()
    text = "".join(f"{stamp(at)[:-1]}+0000 {NODE} kubelet[7]: {klog(at, message)}\n" for at, message in log)
    found = [*journal_of(NODE, f"{text}\n-- journalctl ended 0\n".encode(), "", BEGIN + timedelta(days=1)).facts]
    for number, each in enumerate(pods):
        found += pod_facts(each, "pods", number)
    if events:
        assigned = event(events, "Scheduled", "Successfully assigned shop/web-1 to tess-node-0009", "web-1", node="")
        found += event_facts({**assigned, "reportingInstance": "default-scheduler-m1"}, "events", 1)
    for fact in found:
        facts.add(fact)
    return diagnosed(facts, ProposalTarget("rno"), pod=pod).timelines or ()


def told(timeline: PodTimeline) -> list[tuple[float, str]]:
    return [(round(step.seconds, 1), step.what) for step in timeline.steps]


def test_each_step_until_the_pod_is_there_again() -> None:
    again = {"metadata": {"namespace": "shop", "name": "web-1", "creationTimestamp": stamp(14)}}
    (timeline,) = timelines(again, events=15)
    assert timeline.node == NODE
    assert told(timeline) == [
        (0.0, "the kubelet receives the deletion"),
        (0.1, "preStop hook of app starts"),
        (3.1, "preStop hook of app ends"),
        (3.1, "SIGTERM to app, 7 s left"),
        (10.1, "SIGKILL to app: its 7 s are over (computed)"),
        (10.3, "app is stopped"),
        (12.0, "the pod is gone from the API"),
        (13.0, "a new pod of this name is created"),
        (14.0, "a new pod of this name is given to tess-node-0009"),
    ]


def test_a_container_that_heeds_sigterm_is_not_killed() -> None:
    early = (*LOG[:4], (5.0, LOG[4][1]), LOG[5])
    (timeline,) = timelines(log=early)
    assert not any("SIGKILL" in what for _, what in told(timeline))


def test_a_pod_that_is_held_is_shown_from_its_object_alone() -> None:
    meta = {
        "namespace": "shop", "name": "web-1", "creationTimestamp": stamp(-9000),
        "deletionTimestamp": stamp(30), "deletionGracePeriodSeconds": 30, "finalizers": ["example.com/held"],
    }  # fmt: skip
    ended = {"finishedAt": stamp(30), "exitCode": 137, "containerID": "containerd://0f1e2d3c"}
    status = {"containerStatuses": [{"name": "app", "state": {"terminated": ended}}]}
    (timeline,) = timelines({"metadata": meta, "spec": {"nodeName": NODE}, "status": status}, log=())
    assert told(timeline) == [
        (0.0, "the API accepts the deletion, grace period 30 s, finalizers: example.com/held"),
        (30.0, "app ended with status 137 (SIGKILL)"),
    ]


def test_another_pod_and_a_pod_that_did_not_end_have_none() -> None:
    assert timelines(pod="shop/web-2") == ()
    assert (
        timelines({"metadata": {"namespace": "shop", "name": "web-3", "creationTimestamp": stamp(0)}}, pod="shop/web-3")
        == ()
    )


def test_tries_that_fail_are_steps_of_the_end() -> None:
    """The first and the last one: the timeline does not stop at SIGTERM. One try may have a line for each layer."""
    away = "rpc error: code = DeadlineExceeded desc = context deadline exceeded"
    failed = f'"Container termination failed with gracePeriod" err="{away}" {POD} gracePeriod=30'
    other = failed.replace("web-1", "web-2").replace("0f1e2d3c", "77aa2d3c")
    asked = ((1.0, LOG[0][1]), (1.1, f'"Killing container with a grace period" {POD} gracePeriod=30'))
    tries = ((100.0, other), (151.0, failed), (151.5, failed), (901.0, failed), (3601.0, failed))
    (timeline,) = timelines(log=(*asked, *tries))
    assert [(round(step.seconds), step.what) for step in timeline.steps] == [
        (0, "the kubelet receives the deletion"),
        (0, "SIGTERM to app, 30 s left"),
        (150, "the runtime does not end app: the try fails"),
        (3600, "the runtime does not end app: the last try in these files fails"),
    ]
    (once,) = timelines(log=(*asked, *tries[1:3]))
    assert [step.what for step in once.steps][2:] == ["the runtime does not end app: the try fails"]
