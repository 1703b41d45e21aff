"""A queue is what the order of asks and ends shows, not how long it took: serial and parallel kubelets are told apart.

The logs are written as kubelets do at ``-v=4``, by a model of their puller: pkg/kubelet/images/puller.go and helpers.go. The limit
of the rate is a token bucket that a pull meets when it leaves the queue.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from rollout.features.diagnose.rules.finding import Confidence
from tests.features.diagnose.rules.logs import found

QPS, BURST = 5.0, 10.0
LENGTHS = (0.5, 1.0, 2.0, 6.0, 13.0, 40.0, 90.0, 600.0, 5 * 3600.0)
FORMS = ("words-1.19", "keys-1.20", "keys-1.36", "json-1.25", "journal")
EXCEEDED = "pull QPS exceeded"


@dataclass(frozen=True)
class Asked:
    """A pull: when its pod asks for it, and how long the runtime needs."""

    pod: str
    at: float
    takes: float
    error: str = ""


def asked(blocker: float) -> list[Asked]:
    """One pull hangs; 16 others ask when nearly half of its time has passed, within a fifth of a second."""
    refused = "rpc error: code = Unknown desc = dial tcp 127.0.0.1:5000: connect: connection refused"
    return [
        Asked("hung-0", 0.0, blocker, "rpc error: code = Canceled desc = context canceled"),
        *(Asked(f"web-{n}", blocker * 6 / 13 + n / 80, 0.003, refused) for n in range(16)),
    ]


@dataclass
class Bucket:
    tokens: float = BURST
    at: float = 0.0

    def take(self, at: float) -> bool:
        self.tokens = min(BURST, self.tokens + (at - self.at) * QPS)
        self.at = at
        if self.tokens < 1:
            return False
        self.tokens -= 1
        return True


def ends(pulls: list[Asked], *, serial: bool) -> Iterator[tuple[float, Asked, str]]:
    """When each pull ends, and its error."""
    bucket, free = Bucket(), 0.0
    for pull in pulls:
        leaves = max(pull.at, free) if serial else pull.at
        if not bucket.take(leaves):
            yield leaves + 0.0005, pull, EXCEEDED
            free = leaves + 0.0005
        else:
            yield leaves + pull.takes, pull, pull.error
            free = leaves + pull.takes


def log(pulls: list[Asked], form: str, *, serial: bool) -> str:
    events = [(pull.at, pull.pod, "Normal", "Pulling", f'Pulling image "reg.example/{pull.pod}:1"') for pull in pulls]
    events += [
        (at, pull.pod, "Warning", "Failed", f'Failed to pull image "reg.example/{pull.pod}:1": {error}')
        for at, pull, error in ends(pulls, serial=serial)
    ]
    return "".join(printed(form, *event) + "\n" for event in sorted(events))


def printed(form: str, at: float, pod: str, kind: str, reason: str, message: str) -> str:
    hours, rest = divmod(36_000 + at, 3600)
    clock = f"{int(hours):02}:{int(rest // 60):02}:{rest % 60:09.6f}"
    quoted = json.dumps(message)
    if form == "json-1.25":
        document = {
            "ts": 1_786_442_400_000 + at * 1000,
            "caller": "record/event.go:294",
            "msg": "Event occurred",
            "v": 0,
        }
        keys = {"object": {"name": pod, "namespace": "shop"}, "fieldPath": "spec.containers{web}", "kind": "Pod"}
        return json.dumps({**document, **keys, "apiVersion": "v1", "type": kind, "reason": reason, "message": message})
    head = f"I0811 {clock}    3033 event.go:291] "
    if form == "words-1.19":
        reference = f'v1.ObjectReference{{Kind:"Pod", Namespace:"shop", Name:"{pod}", UID:"1", APIVersion:"v1", ResourceVersion:"1", FieldPath:"spec.containers{{web}}"}}'
        return f"{head}Event({reference}): type: '{kind}' reason: '{reason}' {message}"
    path = ' fieldPath="spec.containers{web}"' if form != "keys-1.20" else ""
    line = f'{head}"Event occurred" object="shop/{pod}"{path} kind="Pod" apiVersion="v1" type="{kind}" reason="{reason}" message={quoted}'
    return f"2026-08-11T{clock[:8]}+0000 n1 kubelet[3033]: {line}" if form == "journal" else line


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("length", LENGTHS)
def test_a_serial_kubelet_shows_its_queue_and_the_burst_is_a_consequence(length: float, form: str) -> None:
    findings = found(log(asked(length), form, serial=True))
    queue, burst = findings["serial-pull-queue"], findings["pull-qps-exceeded"]
    # Up to 1.19 an event prints texts of its pod with their line ends: the pod's author could have written these lines.
    sure = Confidence.LIKELY if form == "words-1.19" else Confidence.CERTAIN
    assert (queue.confidence, burst.confidence) == (sure, sure)
    assert "behind the pull of reg.example/hung-0:1" in queue.cause
    assert "serializeImagePulls=false" in queue.proposal
    assert "It is a consequence" in burst.cause
    assert burst.proposal == "", "a higher rate does not end the queue"


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("length", LENGTHS)
def test_a_parallel_kubelet_with_the_same_pulls_shows_none(length: float, form: str) -> None:
    findings = found(log(asked(length), form, serial=False))
    assert "serial-pull-queue" not in findings
    burst = findings["pull-qps-exceeded"]
    assert "rejected as soon as they began, so no queue held them" in burst.cause
    assert "registryPullQPS=20" in burst.proposal


@pytest.mark.parametrize("length", LENGTHS)
def test_rejected_pulls_without_their_begin_exclude_no_queue(length: float) -> None:
    text = "".join(
        line
        for line in log(asked(length), "keys-1.20", serial=True).splitlines(keepends=True)
        if "Pulling image" not in line
    )
    burst = found(text)["pull-qps-exceeded"]
    assert "is not known" in burst.cause
    assert burst.proposal == ""
