"""The ``alertmanager`` gate over real HTTP: only alerts that begin to fire count, and silences are set and lifted."""

from __future__ import annotations

import json
from contextlib import ExitStack
from datetime import datetime
from urllib.parse import parse_qs, urlsplit

import pytest

from rollout.core.model.gates import Gate, GateScope
from rollout.core.model.verdict import Verdict
from rollout.gates.alertmanager.query import AlertQuery
from tests.adapters.web import Reply, Seen, Web, nobody, web
from tests.gates.over_http import Asked, one

pytestmark = pytest.mark.process

PASS, FAIL, UNKNOWN = Verdict.PASS, Verdict.FAIL, Verdict.UNKNOWN
BROKEN = Reply(503, b"no quorum")
ID = "0b1e2c3d-4444-5555-6666-777788889999"


def gate(silence: float = 0.0, label: str = "node") -> Gate:
    query = AlertQuery(('severity="critical"', 'job=~"kube.*"'), silence=silence, node_label=label)
    return Gate(query, GateScope.WAVE, "alerts", timeout=30.0)


def alerts(*names: str) -> Reply:
    found = [
        {"fingerprint": f"f-{name}", "labels": {"alertname": name, "node": "n1"}, "status": {"state": "active"}}
        for name in names
    ]
    return Reply(body=json.dumps(found).encode())


def judged(stack: ExitStack, before: Reply, after: Reply) -> tuple[Verdict, str]:
    asked = Asked(stack, stack.enter_context(web(before, after)).url, gate())
    return one(asked.judge(baseline=asked.open().baseline))


@pytest.mark.parametrize(
    ("before", "after", "verdict", "said"),
    [
        (alerts(), alerts(), PASS, "no alert fires"),
        (alerts("DiskFull"), alerts("DiskFull"), PASS, "firing as before: 1 alert"),
        (alerts("DiskFull"), alerts("DiskFull", "KubeletDown"), FAIL, "1 new alert: KubeletDown on n1"),
        (alerts("DiskFull"), BROKEN, UNKNOWN, "request failed: answered 503: no quorum [http-503]"),
        (alerts(), Reply(body=b"{}"), UNKNOWN, "request failed: the answer is not a list [bad-answer]"),
        (alerts(), Reply(body=b"null"), UNKNOWN, "request failed: the answer is not a list [bad-answer]"),
        (
            alerts(),
            Reply(body=b'[{"labels":{}}]'),
            UNKNOWN,
            "request failed: an alert has no fingerprint [bad-answer]",
        ),
    ],
)
def test_only_new_alerts_count(stack: ExitStack, before: Reply, after: Reply, verdict: Verdict, said: str) -> None:
    assert judged(stack, before, after) == (verdict, said)


def test_without_a_baseline_the_alert_gate_does_not_pass(stack: ExitStack) -> None:
    asked = Asked(stack, stack.enter_context(web(alerts())).url, gate())
    assert one(asked.judge(baseline="")) == (UNKNOWN, "it is unknown which alerts fired before the wave")


def test_an_unreachable_alertmanager_stops_the_wave_before_it_begins(stack: ExitStack) -> None:
    opened = Asked(stack, nobody(), gate()).open()
    assert (opened.verdict, opened.evidence) == (
        UNKNOWN,
        "gate 'alerts': request failed: Connection refused [not-reached]",
    )


def test_silenced_alerts_do_not_count_and_the_end_of_a_silence_adds_no_new_alert(stack: ExitStack) -> None:
    """Before the wave, silenced alerts are part of the baseline. In the soak they are not requested."""
    server = stack.enter_context(web(alerts("DiskFull")))
    asked = Asked(stack, server.url, gate())
    asked.judge(baseline=asked.open().baseline)
    before, after = (parse_qs(urlsplit(seen.path).query) for seen in server.seen)
    assert before["filter"] == ['severity="critical"', 'job=~"kube.*"']
    assert (before["active"], before["silenced"], before["inhibited"]) == (["true"], ["true"], ["true"])
    assert (after["active"], after["silenced"], after["inhibited"]) == (["true"], ["false"], ["false"])


# Silences of our own


def manager(stack: ExitStack, **answers: Reply) -> Web:
    """Answers by method."""
    server = stack.enter_context(web())
    server.answer = lambda seen: answers.get(seen.method, alerts())
    return server


def posts(server: Web) -> list[Seen]:
    return [seen for seen in server.seen if seen.method == "POST"]


def test_a_silence_for_the_waves_nodes_has_an_end_and_names_its_run(stack: ExitStack) -> None:
    server = manager(stack, POST=Reply(body=json.dumps({"silenceID": ID}).encode()))
    opened = Asked(stack, server.url, gate(silence=1800, label="instance")).open("n1", "n2")
    assert opened.silences == (f"{ID} ",)
    said = json.loads(posts(server)[0].body)
    assert said["matchers"] == [{"name": "instance", "value": "(?:n[12])", "isRegex": True, "isEqual": True}]
    assert (said["createdBy"], said["comment"]) == ("me@here", "rollout r1, wave canary of c")
    begins, ends = (datetime.fromisoformat(said[key]) for key in ("startsAt", "endsAt"))
    assert (ends - begins).total_seconds() == 1800


def test_a_silence_that_cannot_be_set_stops_the_wave_before_it_begins(stack: ExitStack) -> None:
    server = manager(stack, POST=Reply(400, b"bad matcher"))
    opened = Asked(stack, server.url, gate(silence=60)).open()
    assert (opened.verdict, opened.silences) == (UNKNOWN, ())
    assert "its silence could not be set: request failed: answered 400: bad matcher" in opened.evidence


def test_no_silence_is_set_for_a_wave_that_does_not_begin(stack: ExitStack) -> None:
    server = manager(stack, GET=Reply(400, b"no"))
    assert Asked(stack, server.url, gate(silence=60)).open().verdict is UNKNOWN
    assert posts(server) == []


EXPIRED = Reply(body=b'{"status": {"state": "expired"}}')
ACTIVE = Reply(body=b'{"status": {"state": "active"}}')


@pytest.mark.parametrize(
    ("answers", "left"),
    [
        ({"DELETE": Reply(200)}, 0),
        ({"DELETE": Reply(404)}, 0),
        ({"DELETE": Reply(500, b"already expired"), "GET": EXPIRED}, 0),
        ({"DELETE": Reply(500, b"already expired"), "GET": Reply(404)}, 0),
        ({"DELETE": Reply(403, b"not yours"), "GET": ACTIVE}, 1),
    ],
    ids=["lifted", "gone", "over", "over and gone", "stays"],
)
def test_silences_are_lifted_and_leftovers_are_reported(stack: ExitStack, answers: dict[str, Reply], left: int) -> None:
    server = manager(stack, **answers)
    lifted = Asked(stack, server.url, gate(silence=60)).lift(f"{ID} ")
    assert len(lifted.leftovers) == left
    assert server.seen[0].path == f"/api/v2/silence/{ID}"
    if left:
        assert lifted.leftovers[0] == f"silence {ID} could not be ended and will expire: answered 403: not yours"


def test_a_silence_that_a_dead_controller_did_not_journal_is_lifted_with_the_others(stack: ExitStack) -> None:
    """Only its comment identifies its run; silences of other runs and of people stay."""
    forgotten, others, over = "11111111-a", "22222222-b", "33333333-c"
    standing = [
        {"id": forgotten, "comment": "rollout r1, wave canary of c", "status": {"state": "active"}},
        {"id": others, "comment": "rollout r10, wave canary of c", "status": {"state": "active"}},
        {"id": "44444444-d", "comment": "mine", "status": {"state": "active"}},
        {"id": over, "comment": "rollout r1, wave canary of c", "status": {"state": "expired"}},
    ]

    def answer(seen: Seen) -> Reply:
        return Reply(body=json.dumps(standing).encode()) if seen.method == "GET" else Reply(200)

    server = stack.enter_context(web())
    server.answer = answer
    assert Asked(stack, server.url, gate(silence=60)).lift(f"{ID} ").leftovers == ()
    assert [seen.path.rpartition("/")[2] for seen in server.seen if seen.method == "DELETE"] == [ID, forgotten]
