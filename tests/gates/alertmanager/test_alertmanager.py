"""The ``alertmanager`` gate over real HTTP: only alerts that begin to fire count, and silences are set and lifted."""

from __future__ import annotations

import json
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any
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
    assert 0 < (ends - datetime.now(UTC)).total_seconds() <= 1800
    ahead = datetime.now(UTC) - begins
    assert ahead > timedelta(hours=12), "our clock may be ahead: a silence that begins later silences nothing now"


def test_a_silence_that_cannot_be_set_stops_the_wave_before_it_begins(stack: ExitStack) -> None:
    server = manager(stack, POST=Reply(400, b"bad matcher"))
    opened = Asked(stack, server.url, gate(silence=60)).open()
    assert (opened.verdict, opened.silences) == (UNKNOWN, ())
    assert "its silence could not be set: request failed: answered 400: bad matcher" in opened.evidence


def test_no_silence_is_set_for_a_wave_that_does_not_begin(stack: ExitStack) -> None:
    server = manager(stack, GET=Reply(400, b"no"))
    assert Asked(stack, server.url, gate(silence=60)).open().verdict is UNKNOWN
    assert posts(server) == []


def silence(state: str, identity: str = ID, comment: str = "rollout r1, wave canary of c") -> dict[str, Any]:
    return {"id": identity, "comment": comment, "status": {"state": state}}


LOGIN = Reply(200, b"<html>log in</html>")
ENDS_TWICE = Reply(500, b'"silence 0b1e2c3d already expired"')
"""To a second end, and before 0.25 also to one of a silence that has been removed."""


@dataclass
class Silences:
    """Alertmanager's silences: ``ends`` and ``shows`` are answers in place of its own; ``lists`` to a list of them."""

    has: list[dict[str, Any]] = field(default_factory=lambda: [silence("active")])
    ends: Reply | None = None
    shows: Reply | None = None
    lists: Reply | None = None

    def answer(self, seen: Seen) -> Reply:
        identity = seen.path.rpartition("/")[2]
        if identity == "silences":
            return self.lists or Reply(body=json.dumps(self.has).encode())
        found = next((each for each in self.has if each["id"] == identity), None)
        if seen.method == "GET":
            return self.shows or (Reply(404) if found is None else Reply(body=json.dumps(found).encode()))
        if self.ends is not None:
            return self.ends
        if found is None:
            return Reply(404)
        if found["status"]["state"] == "expired":
            return ENDS_TWICE
        found["status"] = {"state": "expired"}
        return Reply(200)

    def left(self) -> list[str]:
        return [each["id"] for each in self.has if each["status"]["state"] != "expired"]


def lifted(stack: ExitStack, silences: Silences, *known: str) -> tuple[str, ...]:
    server = stack.enter_context(web())
    server.answer = silences.answer
    return Asked(stack, server.url, gate(silence=60)).lift(*known).leftovers


@pytest.mark.parametrize(
    "silences",
    [
        Silences(),
        Silences([]),
        Silences([silence("expired")]),
        Silences([], ends=ENDS_TWICE),
        Silences([silence("active", "22222222-b", "mine")]),
        Silences([silence("expired")], shows=Reply(404)),
    ],
    ids=["active", "removed", "over", "removed, as before 0.25", "others", "over in the list"],
)
def test_a_silence_is_read_back_after_it_was_lifted(stack: ExitStack, silences: Silences) -> None:
    assert lifted(stack, silences, f"{ID} ") == ()
    assert ID not in silences.left()


@pytest.mark.parametrize(
    ("silences", "said"),
    [
        (Silences(ends=Reply(403, b"not yours")), "answered 403: not yours"),
        (Silences(ends=Reply(200)), "Alertmanager answered that it ended the silence, and still shows it"),
        (Silences(ends=LOGIN, shows=LOGIN), "the answer is not JSON"),
        (Silences(ends=Reply(404), shows=Reply(404)), "answered 404"),
        (Silences(ends=Reply(404), shows=Reply(404), lists=Reply(404)), "answered 404"),
        (Silences(ends=Reply(404), shows=Reply(404), lists=LOGIN), "the answer is not JSON"),
        (Silences(ends=Reply(404), shows=Reply(404), lists=Reply(body=b"null")), "the answer is not a list"),
        (Silences(shows=Reply(body=b"{}")), "the answer is not the silence"),
        (Silences(shows=Reply(body=json.dumps(silence("expired", "22222222-b")).encode())), "is not the silence"),
    ],
    ids=["stays", "kept", "login", "404", "404 to all", "404 and login", "404 and null", "no silence", "another"],
)  # fmt: skip
def test_a_silence_that_was_not_seen_to_end_is_a_leftover(stack: ExitStack, silences: Silences, said: str) -> None:
    left = lifted(stack, silences, f"{ID} ")
    assert left[0].startswith(f"silence {ID} could not be ended and will expire: ")
    assert said in left[0]


FORGOTTEN = (
    silence("active", "11111111-a"),
    silence("active", "22222222-b", "rollout r10, wave canary of c"),
    silence("active", "44444444-d", "mine"),
    silence("expired", "33333333-c"),
)


@pytest.mark.parametrize("known", [f"{ID} ", " "], ids=["beside a known one", "perhaps set"])
def test_a_silence_that_a_dead_controller_did_not_journal_is_lifted(stack: ExitStack, known: str) -> None:
    """Only its comment identifies its run; silences of other runs and of people stay."""
    silences = Silences([dict(each) for each in FORGOTTEN])
    assert lifted(stack, silences, known) == ()
    assert silences.left() == ["22222222-b", "44444444-d"]


@pytest.mark.parametrize("lists", [LOGIN, Reply(404), Reply(403), Reply(body=b"null")])
def test_silences_that_cannot_be_listed_are_leftovers(stack: ExitStack, lists: Reply) -> None:
    (left,) = lifted(stack, Silences(lists=lists), f"{ID} ")
    assert left.startswith("it is not known whether more silences of this run are left; they will expire: ")


@pytest.mark.parametrize(
    ("reply", "perhaps"),
    [(Reply(503), (" ",)), (LOGIN, (" ",)), (Reply(400, b"bad matcher"), ())],
    ids=["no answer", "an answer of something else", "refused"],
)
def test_a_silence_without_an_answer_of_alertmanager_may_have_been_set(
    stack: ExitStack, reply: Reply, perhaps: tuple[str, ...]
) -> None:
    server = manager(stack, POST=reply)
    opened = Asked(stack, server.url, gate(silence=60)).open()
    assert (opened.verdict, opened.silences) == (UNKNOWN, perhaps)
