"""The queue while it is blocked: a node on which it shows, and nodes that look alike and are not."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import timedelta
from typing import Any

from rollout.features.diagnose.rules.diagnosis import diagnosed
from rollout.features.diagnose.rules.event_lists import event_facts
from rollout.features.diagnose.rules.facts import Facts
from rollout.features.diagnose.rules.finding import Confidence, Finding, ProposalTarget
from rollout.features.diagnose.rules.node_journals import journal_of
from rollout.features.diagnose.rules.pod_status import pod_facts
from tests.features.diagnose.rules.logs import BEGIN, NODE, diagnosis, event, lines, logrus

SLOW = "10.8.2.9:9083/ais/ais-platform:1"
HOURS = 2 * 3600.0


def waiting(
    name: str, image: str, placed: float, reason: str = "ContainerCreating", message: str = ""
) -> dict[str, Any]:
    when = f"{BEGIN + timedelta(seconds=placed):%Y-%m-%dT%H:%M:%SZ}"
    return {
        "metadata": {"name": name, "namespace": "shop", "creationTimestamp": when},
        "spec": {"nodeName": NODE, "containers": [{"name": "app", "image": image}]},
        "status": {
            "phase": "Pending",
            "conditions": [{"type": "PodScheduled", "status": "True", "lastTransitionTime": when}],
            "containerStatuses": [{"name": "app", "state": {"waiting": {"reason": reason, "message": message}}}],
        },
    }


def began(seconds: float, image: str) -> str:
    """containerd received the pull."""
    return f"{BEGIN + timedelta(seconds=seconds):%Y-%m-%dT%H:%M:%S+0000} {NODE} containerd[9]: {logrus(seconds, f'PullImage {chr(34)}{image}{chr(34)}')}"


def ended(seconds: float, image: str) -> str:
    said = f'PullImage "{image}" returns image reference "sha256:0f"'
    return f"{BEGIN + timedelta(seconds=seconds):%Y-%m-%dT%H:%M:%S+0000} {NODE} containerd[9]: {logrus(seconds, said)}"


def found(pods: Iterable[Mapping[str, Any]], journal: str, events: Iterable[Mapping[str, Any]] = (), now: float = HOURS) -> dict[str, Finding]:  # fmt: skip
    facts = Facts()
    for number, pod in enumerate(pods, 1):
        for fact in pod_facts(pod, "pods", number):
            facts.add(fact)
    for number, each in enumerate(events, 1):
        for fact in event_facts(each, "events", number):
            facts.add(fact)
    output = f"{journal}\n-- journalctl ended 0\n".encode()
    for fact in journal_of(NODE, output, "", BEGIN + timedelta(days=1)).facts:
        facts.add(fact)
    target = ProposalTarget("rno", 24, now=BEGIN.timestamp() + now)
    return {each.id: each for each in diagnosed(facts, target).findings}


PODS = (
    waiting("ais-1", SLOW, 0),
    *(waiting(f"web-{n}", f"10.8.14.9:9083/shop/web:{n}", 60.0 * n) for n in range(1, 5)),
)


def test_one_pull_with_the_runtime_and_pods_behind_it_are_the_queue() -> None:
    """What the third write-up could not see: the events have expired, nothing is logged, containerd has one pull."""
    queue = found(PODS, lines(began(1, SLOW)))["serial-pull-queue"]
    assert queue.confidence is Confidence.LIKELY
    assert queue.cause.startswith(
        f"4 pods wait in one queue behind the pull of {SLOW}, which the runtime received 2 h ago and has not ended."
    )
    assert queue.proposal == f"rollout plan --cluster rno --limit '{NODE}' --set serializeImagePulls=false"
    assert "volumes" in queue.fetch_next
    assert {line.file for line in queue.evidence} == {f"{NODE}:journal", "pods"}


def test_with_their_pulling_events_it_is_certain() -> None:
    events = [event(60.0 * n, "Pulling", f'Pulling image "10.8.14.9:9083/shop/web:{n}"', f"web-{n}") for n in (1, 2)]
    queue = found(PODS, lines(began(1, SLOW)), events)["serial-pull-queue"]
    assert (queue.confidence, queue.fetch_next) == (Confidence.CERTAIN, "")


def test_without_the_runtimes_lines_it_is_unknown() -> None:
    queue = found(PODS, "")["serial-pull-queue"]
    assert (queue.confidence, queue.proposal) == (Confidence.UNKNOWN, "")
    assert "rollout diagnose probe" in queue.fetch_next


def test_pulls_side_by_side_are_not_proven_to_be_a_queue() -> None:
    both = lines(began(1, SLOW), began(61, "10.8.14.9:9083/shop/web:1"))
    assert found(PODS, both)["serial-pull-queue"].confidence is Confidence.UNKNOWN


def test_pods_that_came_before_the_log_begins_may_be_with_the_runtime() -> None:
    """Pulls side by side, all of them hung; the journal begins after all but the last of them."""
    assert found(PODS, lines(began(250, "other:1")))["serial-pull-queue"].confidence is Confidence.UNKNOWN


def test_a_pull_that_has_ended_or_just_begun_holds_up_nothing() -> None:
    assert found(PODS, lines(began(1, SLOW), ended(5, SLOW)))["serial-pull-queue"].confidence is Confidence.UNKNOWN
    late = [waiting(f"web-{n}", f"web:{n}", HOURS - 60) for n in range(5)]
    assert found(late, lines(began(HOURS - 50, "web:0"))) == {}


def test_pods_of_one_image_or_without_a_node_wait_for_no_queue() -> None:
    assert found([waiting(f"web-{n}", "web:1", 60.0 * n) for n in range(5)], lines(began(1, SLOW))) == {}


def test_the_status_of_a_pull_that_failed_names_the_reason() -> None:
    message = 'Back-off pulling image "web:1": ErrImagePull: rpc error: code = NotFound desc = manifest unknown'
    back_off = found([waiting("web-1", "web:1", 0, "ImagePullBackOff", message)], "")["image-pull-backoff"]
    assert back_off.confidence is Confidence.CERTAIN
    old = found([waiting("web-1", "web:1", 0, "ImagePullBackOff", 'Back-off pulling image "web:1"')], "")
    assert old["image-pull-backoff"].confidence is Confidence.UNKNOWN


def test_a_pod_that_is_not_as_the_api_writes_it_shows_nothing() -> None:
    strange: list[Mapping[str, Any]] = [
        {}, {"metadata": 1, "spec": [], "status": "x"}, {"status": {"containerStatuses": [1, {"state": {"waiting": 7}}]}},
    ]  # fmt: skip
    assert found(strange, "") == {}


def test_a_pull_that_its_pod_waits_for_while_others_end_is_slow_and_no_queue() -> None:
    table = (
        "Name: big-0\nNamespace: shop\nNode: n1/10.0.0.1\nEvents:\n  Type    Reason   Age  From     Message\n  ----    ------   ----  ----     -------\n"
        f'  Normal  Pulling  63m  kubelet  Pulling image "{SLOW}"\n'
        '  Normal  Pulling  30m  kubelet  Pulling image "quick.example/side:1"\n'
        '  Normal  Pulled   29m  kubelet  Successfully pulled image "quick.example/side:1"\n'
    )
    findings = {each.id: each for each in diagnosis(table).findings}
    assert "serial-pull-queue" not in findings
    slow = findings["registry-slow"]
    assert slow.confidence is Confidence.UNKNOWN
    assert f"the pull of {SLOW} began 1 h 3 min before the end of what was read and has not ended" in slow.cause
    assert "That of quick.example/side:1 ended meanwhile" in slow.cause
