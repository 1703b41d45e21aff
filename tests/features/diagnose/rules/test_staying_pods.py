"""A pod that stays in the API: what its status shows, and what the time of its printing proves."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from rollout.features.diagnose.rules.diagnosis import diagnosed
from rollout.features.diagnose.rules.facts import API_CLOCK, Facts
from rollout.features.diagnose.rules.finding import Confidence, ProposalTarget
from rollout.features.diagnose.rules.pod_status import pod_facts
from tests.features.diagnose.rules.logs import BEGIN, NODE, found
from tests.features.diagnose.rules.test_each_finding import terminating

DUE = BEGIN.timestamp() + 30


def pod(state: dict[str, object], node: str = NODE, finalizers: tuple[str, ...] = ()) -> dict[str, object]:
    meta = {
        "name": "api-0", "namespace": "shop", "deletionTimestamp": "2026-11-20T09:00:30Z", "deletionGracePeriodSeconds": 30,
        "finalizers": list(finalizers),
    }  # fmt: skip
    return {
        "kind": "Pod", "metadata": meta, "spec": {"nodeName": node}, "status": {"containerStatuses": [{"name": "app", "state": state}]},
    }  # fmt: skip


RUNS: dict[str, object] = {"running": {"startedAt": "2026-11-19T09:00:00Z"}}
ENDED: dict[str, object] = {"terminated": {"finishedAt": "2026-11-20T09:00:05Z", "exitCode": 0}}


def at(seconds: float, document: dict[str, object]) -> dict[str, str]:
    """The causes by their ids, of a pod that was read from an API server ``seconds`` after its end was due."""
    facts = Facts()
    for fact in pod_facts(document, "pods", 1):
        facts.add(fact)
    return {each.id: each.cause for each in diagnosed(facts, ProposalTarget(now=DUE + seconds)).findings}


@pytest.mark.parametrize(
    ("document", "words"),
    [
        (pod(RUNS), "container app still runs"),
        (pod(ENDED, finalizers=("example.com/keep",)), "its finalizers keep it: example.com/keep"),
        (pod(ENDED), "a volume, its network or a node that does not report keeps it"),
        (pod(RUNS, finalizers=("example.com/keep",)), "container app still runs"),
    ],
)
def test_what_keeps_it_is_named_as_far_as_its_status_shows(document: dict[str, object], words: str) -> None:
    cause = at(600, document)["pod-stays-terminating"]
    assert words in cause
    assert "its grace period of 30 s ended at 2026-11-20T09:00:30Z. It was still there 10 min later." in cause


def test_a_pod_has_two_minutes_for_its_volumes_and_its_network() -> None:
    assert at(100, pod(ENDED)) == {}
    assert "pod-stays-terminating" in at(121, pod(ENDED))


def test_a_pod_without_a_node_is_kept_by_a_finalizer_only() -> None:
    assert at(600, pod({}, node="")) == {}
    assert "pod-stays-terminating" in at(600, pod({}, node="", finalizers=("x",)))


def test_a_list_that_was_saved_before_the_period_was_over_is_silent() -> None:
    """The time of the file is the latest at which it may have been printed."""
    before = json.loads(terminating("2026-11-20T09:00:10Z"))
    for item in before["items"]:
        if "deletionTimestamp" in item["metadata"]:
            item["metadata"]["deletionTimestamp"] = "2026-12-31T00:00:10Z"
    assert found(json.dumps(before)) == {}


def test_times_of_another_file_prove_nothing() -> None:
    later = json.dumps(
        {
            "kind": "List",
            "apiVersion": "v1",
            "items": [
                {
                    "kind": "Pod",
                    "metadata": {"name": "b", "namespace": "s", "creationTimestamp": "2026-11-20T12:00:00Z"},
                    "spec": {},
                    "status": {},
                }
            ],
        }
    )
    alone = json.dumps({"kind": "List", "apiVersion": "v1", "items": [pod(RUNS)]})
    assert found(alone, later)["pod-stays-terminating"].confidence is Confidence.UNKNOWN


def test_ages_of_a_table_are_not_compared_with_times() -> None:
    facts = Facts()
    for fact in pod_facts(pod(RUNS), "pods", 1):
        facts.add(replace(fact, clock=f"not {API_CLOCK}"))
    assert diagnosed(facts, ProposalTarget()).findings == ()
