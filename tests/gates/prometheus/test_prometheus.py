"""The ``prometheus`` gate over real HTTP: thresholds, the control group, and back ends that fail, hang, send false data or are unreachable."""

from __future__ import annotations

import base64
import json
import math
import re
import ssl
import subprocess
import threading
from contextlib import ExitStack
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import cast
from urllib.parse import parse_qs

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rollout.adapters.endpoints import ClientCertificate, HttpEndpoint
from rollout.adapters.http import HttpAnswer
from rollout.core.model.gates import Gate, GateScope
from rollout.core.model.verdict import Verdict
from rollout.errors import InputError, RemoteError
from rollout.gates.prometheus.client import Prometheus
from rollout.gates.prometheus.judging import doubt
from rollout.gates.prometheus.query import PrometheusQuery, Worse
from tests.adapters.web import FOR_EVER, NOW, Reply, Seen, Web, nobody, web
from tests.gates.over_http import Asked, one

pytestmark = pytest.mark.process

PASS, FAIL, UNKNOWN = Verdict.PASS, Verdict.FAIL, Verdict.UNKNOWN
BROKEN = Reply(500, b"internal error")


def gate(query: PrometheusQuery, timeout: float = 30.0) -> Gate:
    return Gate(query, GateScope.WAVE, "errors", timeout=timeout)


AT_MOST = gate(PrometheusQuery('rate(errors{node=~"$nodes"}[5m])', at_most=0.1))
WORSE = gate(PrometheusQuery('latency{node=~"$nodes"}', worse=Worse.HIGHER))


def vector(*values: object, warnings: tuple[str, ...] = (), age: float = 0.0, cached: str = "") -> Reply:
    """Samples as of the answer, or ``age`` seconds older; the server dates both. ``cached``: a cache's ``Age``."""
    now = NOW.decode()
    result = [
        {"metric": {"__name__": "errors", "node": f"n{at}"}, "value": [now, str(v)]} for at, v in enumerate(values, 1)
    ]
    document = {"status": "success", "data": {"resultType": "vector", "result": result}, "warnings": list(warnings)}
    headers = (("Age", cached),) if cached else ()
    return Reply(body=json.dumps(document).replace(f'"{now}"', now).encode(), headers=headers, age=age)


def judged(stack: ExitStack, *replies: Reply, of: Gate = AT_MOST) -> tuple[Verdict, str]:
    return one(Asked(stack, stack.enter_context(web(*replies)).url, of).judge())


def test_all_samples_within_pass(stack: ExitStack) -> None:
    assert judged(stack, vector(0.01, 0.1)) == (PASS, "2 samples, 0.01 to 0.1; at most 0.1")


def test_one_sample_beyond_fails_with_its_labels(stack: ExitStack) -> None:
    assert judged(stack, vector(0.01, 0.11)) == (FAIL, "1 of 2 samples beyond: {node=n2} 0.11; at most 0.1")


def test_at_least_is_a_lower_bound(stack: ExitStack) -> None:
    enough = gate(PrometheusQuery("up", at_least=1))
    assert judged(stack, vector(1, 0), of=enough)[0] is FAIL
    assert judged(stack, vector(1, 1), of=enough)[0] is PASS


def test_a_scalar_is_one_sample(stack: ExitStack) -> None:
    scalar = Reply(body=b'{"status":"success","data":{"resultType":"scalar","result":[%b,"0.05"]}}' % NOW)
    whole = gate(PrometheusQuery("scalar(errors)", at_most=0.1))
    assert judged(stack, scalar, of=whole) == (PASS, "not of single nodes: 1 sample, 0.05 to 0.05; at most 0.1")


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        (vector(), "the query's result is empty"),
        (vector(warnings=("remote store away",)), "the query's result is empty; warning: remote store away"),
        (vector("NaN"), "the sample {node=n1} is NaN"),
        (vector(0.01, warnings=("a store did not answer",)), "it may be partial: a store did not answer"),
        (Reply(body=vector(0.01).body[:-1] + b',"isPartial":true}'), "it may be partial: isPartial"),
        (Reply(body=vector(0.01).body[:-20]), "request failed: the answer is not JSON [bad-answer]"),
        (Reply(raw=b"HTTP/1.1 200 OK\r\nContent-Length: 900\r\n\r\n{\"status\":"), None),
        (Reply(body=b"\x00\xff\xfe", headers=(("Content-Type", "image/png"),)), "request failed: the answer is not JSON [bad-answer]"),
        (Reply(body=b"<html>hello</html>"), "request failed: the answer is not JSON [bad-answer]"),
        (Reply(body=b"[" * 100_000), "request failed: the answer is not JSON [bad-answer]"),
        (Reply(body=b'{"status":"error"}'), "request failed: the answer is not from a Prometheus API [bad-answer]"),
        (Reply(body=b'{"status":"success","data":{"resultType":"matrix","result":[]}}'), "request failed: the result is a matrix, not an instant vector [bad-query]"),
        (vector("1_0"), "request failed: a sample has no value [bad-answer]"),
        (Reply(400, b'{"status":"error","errorType":"bad_data","error":"1:5: parse error"}'), "request failed: answered 400: 1:5: parse error [bad-query]"),
        (Reply(401, b"who are you"), "request failed: answered 401: who are you [http-401]"),
        (Reply(302, headers=(("Location", "http://elsewhere/"),)), "request failed: answered 302 [http-302]"),
        (Reply(body=b"x" * (17 << 20)), "request failed: the answer is larger than 16 MiB [too-large]"),
        (Reply(body=b"\x1f\x8b", headers=(("Content-Encoding", "gzip"),)), "request failed: the answer is compressed, which was not asked for [bad-answer]"),
    ],
    ids=["nothing", "nothing, with a warning", "NaN", "partial", "partial by its own mark", "truncated", "cut off", "an image", "a page", "deep", "no success", "range", "number", "bad query", "unauthorized", "redirect", "huge", "compressed"],
)  # fmt: skip
def test_an_invalid_answer_is_unknown(stack: ExitStack, reply: Reply, said: str | None) -> None:
    verdict, evidence = judged(stack, reply)
    assert verdict is UNKNOWN
    assert said is None or evidence == said


@pytest.mark.parametrize(("age", "cached"), [(402.0, ""), (0.0, "400")], ids=["old", "from a cache"])
def test_samples_that_are_old_by_the_back_ends_own_clock_are_unknown(stack: ExitStack, age: float, cached: str) -> None:
    verdict, said = judged(stack, vector(0.01, age=age, cached=cached))
    assert verdict is UNKNOWN
    assert re.fullmatch(r"its samples are 4[0-9][0-9] s old \(at most 120 s\)", said)


def test_a_bad_sample_is_a_failure_also_where_others_are_missing_or_old(stack: ExitStack) -> None:
    assert judged(stack, vector(0.01, 0.2, warnings=("a store did not answer",)))[0] is FAIL
    assert judged(stack, vector(0.2, age=400.0))[0] is FAIL


def test_a_warning_about_the_query_is_not_a_warning_about_the_answer(stack: ExitStack) -> None:
    assert judged(stack, vector(0.01, warnings=("PromQL info: metric might not be a counter",)))[0] is PASS


def test_samples_that_are_half_a_minute_old_are_accepted(stack: ExitStack) -> None:
    assert judged(stack, vector(0.01, age=30.0))[0] is PASS


def test_an_answer_without_a_date_does_not_count_as_old(stack: ExitStack) -> None:
    body = vector(0.01, age=400.0).sent()
    bare = Reply(raw=b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
    assert judged(stack, bare)[0] is PASS


def test_a_control_group_that_may_be_partial_is_not_compared(stack: ExitStack) -> None:
    touched, control = vector(1.0, 1.0), vector(1.0, warnings=("a store did not answer",))
    verdict, said = judged(stack, touched, control, of=replace(WORSE, timeout=1.0))
    assert (verdict, "the control group's answer: it may be partial" in said) == (UNKNOWN, True)


def test_a_name_that_does_not_resolve_is_unknown(stack: ExitStack) -> None:
    asked_once = gate(PrometheusQuery("up", at_most=1), timeout=1.0)
    verdict, said = one(Asked(stack, "http://prometheus.invalid:9090", asked_once).judge())
    assert verdict is UNKNOWN
    assert said.startswith("request failed: ")
    assert said.endswith("[not-reached]")


def test_an_answer_that_is_not_http_is_unknown(stack: ExitStack) -> None:
    verdict, said = judged(stack, Reply(raw=b"SSH-2.0-OpenSSH_9.2\r\n"))
    assert verdict is UNKNOWN
    assert said.startswith("request failed: not a whole HTTP answer: ")


def test_a_query_that_could_not_be_executed_this_time_is_asked_again(stack: ExitStack) -> None:
    """So does Thanos without a store. It is no proof that the query is wrong."""
    away = Reply(422, b'{"status":"error","errorType":"execution","error":"expanding series: store is away"}')
    assert judged(stack, away, vector(0))[0] is PASS
    verdict, said = judged(stack, away)
    assert (verdict, said) == (UNKNOWN, "request failed: answered 422: expanding series: store is away [http-422]")


def test_a_back_end_that_recovers_within_the_timeout_counts(stack: ExitStack) -> None:
    asked = stack.enter_context(web(BROKEN, BROKEN, vector(0)))
    assert one(Asked(stack, asked.url, AT_MOST).judge())[0] is PASS
    assert len(asked.seen) == 3


@pytest.mark.parametrize("status", [425, 500, 502, 520, 522, 530])
def test_an_error_of_a_proxy_that_goes_away_counts_no_more(stack: ExitStack, status: int) -> None:
    """Cloudflare answers 520 to 530 where its server is away."""
    assert judged(stack, Reply(status, b"error code"), vector(0))[0] is PASS


@pytest.mark.parametrize("status", [400, 404, 405, 501, 505])
def test_an_error_that_stays_is_told_at_once(stack: ExitStack, status: int) -> None:
    asked = stack.enter_context(web(Reply(status, b"no"), vector(0)))
    assert one(Asked(stack, asked.url, AT_MOST).judge())[0] is UNKNOWN
    assert len(asked.seen) == 1


@pytest.mark.parametrize("beside", [(), (0.01,)], ids=["alone", "beside a number"])
def test_a_native_histogram_is_told_as_one(stack: ExitStack, beside: tuple[float, ...]) -> None:
    """Prometheus' HTTP API gives such a sample a ``histogram`` in place of a ``value``."""
    found = json.loads(vector(*beside, age=0.0).body.replace(NOW, b"1"))
    histogram = {"count": "6", "sum": "3.3", "buckets": [[0, "0.5", "1", "6"]]}
    found["data"]["result"].append({"metric": {"node": "n7"}, "histogram": [1, histogram]})
    verdict, said = judged(stack, Reply(body=json.dumps(found).encode()))
    assert verdict is UNKNOWN
    assert "the sample {node=n7} is a native histogram, not a number" in said


def test_a_permanent_error_is_unknown(stack: ExitStack) -> None:
    assert judged(stack, BROKEN) == (UNKNOWN, "request failed: answered 500: internal error [http-500]")


def test_an_unreachable_back_end_is_unknown(stack: ExitStack) -> None:
    assert one(Asked(stack, nobody(), AT_MOST).judge()) == (
        UNKNOWN,
        "request failed: Connection refused [not-reached]",
    )


@pytest.mark.parametrize(
    "reply", [Reply(hang=FOR_EVER), Reply(body=b" " * 1_000_000, drip=0.05)], ids=["silent", "dripping"]
)
def test_a_hanging_back_end_is_unknown_after_the_timeout(stack: ExitStack, reply: Reply) -> None:
    quick = gate(PrometheusQuery("up", at_most=1), timeout=0.4)
    assert judged(stack, reply, of=quick) == (UNKNOWN, "request failed: no answer in 0.4 s [deadline]")


def test_a_flapping_back_end_is_retried_each_time(stack: ExitStack) -> None:
    asked = Asked(stack, stack.enter_context(web(vector(0), vector(1), vector(0))).url, AT_MOST)
    assert [one(asked.judge())[0] for _ in range(3)] == [PASS, FAIL, PASS]


def query_of(seen: Seen) -> str:
    return parse_qs(seen.body.decode())["query"][0]


def test_the_touched_nodes_are_named_in_the_query(stack: ExitStack) -> None:
    asked = stack.enter_context(web(vector(0)))
    Asked(stack, asked.url, AT_MOST).judge(touched=("n1", "n2", "n9"))
    assert [query_of(seen) for seen in asked.seen] == ['rate(errors{node=~"(?:n[129])"}[5m])']
    assert asked.seen[0].path == "/api/v1/query"


# Canary against control group


def groups(stack: ExitStack, touched: Reply, control: Reply) -> Web:
    """A server that distinguishes the groups by the names in the query."""
    asked = stack.enter_context(web())
    asked.answer = lambda seen: control if "c" in query_of(seen).partition("=~")[2] else touched
    return asked


@pytest.mark.parametrize(
    ("touched", "control", "verdict"),
    [
        ((1.1,), (1.0, 1.0, 1.0), PASS),  # within 20 %
        ((1.3,), (1.0, 1.0, 1.0), FAIL),
        ((1.3,), (0.8, 1.0, 1.2), PASS),  # within 3 sigma
        ((2.0,), (0.8, 1.0, 1.2), FAIL),
        ((0.1,), (1.0, 1.0, 1.0), PASS),  # better
        ((1.0,), (), UNKNOWN),
        (("+Inf",), (1.0,), UNKNOWN),
    ],
)
def test_touched_nodes_are_compared_with_the_control_group(
    stack: ExitStack, touched: tuple[object, ...], control: tuple[object, ...], verdict: Verdict
) -> None:
    asked = groups(stack, vector(*touched), vector(*control))
    assert one(Asked(stack, asked.url, WORSE).judge(control=("c1", "c2")))[0] is verdict


def test_the_evidence_is_every_number_of_it(stack: ExitStack) -> None:
    asked = groups(stack, vector(1.5), vector(0.9, 1.0, 1.1))
    verdict, said = one(Asked(stack, asked.url, WORSE).judge(control=("c1",)))
    assert verdict is FAIL
    assert said == (
        "1 of 2 nodes: touched 1.5 (median of 1, 1.5 to 1.5), control 1 (median of 3, 0.9 to 1.1): 1.5 is 0.5 higher; "
        "allowed 0.44478 (the larger of 20% = 0.2 and 3 sigma = 0.44478)"
    )


def test_in_the_last_wave_its_own_baseline_is_the_control(stack: ExitStack) -> None:
    asked = Asked(stack, stack.enter_context(web(vector(1.0, 1.2), vector(1.1, 1.1), vector(2.0, 2.2))).url, WORSE)
    before = asked.open()
    assert before.verdict is PASS
    assert one(asked.judge(control=(), baseline=before.baseline))[0] is PASS
    verdict, said = one(asked.judge(control=(), baseline=before.baseline))
    assert verdict is FAIL
    assert "the same before the wave (no control left) 1.1 (median of 2, 1 to 1.2)" in said


def test_without_a_baseline_and_a_control_group_nothing_is_compared(stack: ExitStack) -> None:
    asked = Asked(stack, stack.enter_context(web(vector(1.0))).url, WORSE)
    assert one(asked.judge(control=(), baseline=""))[0] is UNKNOWN


# Before the wave


@pytest.mark.parametrize(
    ("reply", "verdict"), [(vector(0), PASS), (vector(1), FAIL), (vector(), UNKNOWN), (BROKEN, UNKNOWN)]
)
def test_a_threshold_is_asked_before_the_wave(stack: ExitStack, reply: Reply, verdict: Verdict) -> None:
    asked = Asked(stack, stack.enter_context(web(reply)).url, AT_MOST)
    assert asked.open().verdict is verdict


# Credentials


def test_the_token_goes_to_the_inventorys_back_end_and_nowhere_else(stack: ExitStack, tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("s3cret\n")
    home, elsewhere = (stack.enter_context(web(vector(0))) for _ in range(2))
    other = gate(PrometheusQuery("up", at_most=1, url=elsewhere.url))
    Asked(stack, home.url, AT_MOST, token_file=str(token)).judge()
    Asked(stack, home.url, other, token_file=str(token)).judge()
    assert home.seen[0].headers["authorization"] == "Bearer s3cret"
    assert "authorization" not in elsewhere.seen[0].headers


def test_the_tenant_goes_to_the_inventorys_back_end_and_nowhere_else(stack: ExitStack) -> None:
    home, elsewhere = (stack.enter_context(web(vector(0))) for _ in range(2))
    other = gate(PrometheusQuery("up", at_most=1, url=elsewhere.url))
    Asked(stack, home.url, AT_MOST, other, tenant="team-a|team-b").judge()
    assert home.seen[0].headers["x-scope-orgid"] == "team-a|team-b"
    assert "x-scope-orgid" not in elsewhere.seen[0].headers


def test_a_client_certificate_is_shown_to_the_inventorys_back_end_and_nowhere_else(
    stack: ExitStack, tmp_path: Path
) -> None:
    cert, key = tmp_path / "c.pem", tmp_path / "k.pem"
    words = (
        "openssl",
        "req",
        "-x509",
        "-newkey",
        "rsa:2048",
        "-nodes",
        "-subj",
        "/CN=x",
        "-addext",
        "subjectAltName=IP:127.0.0.1",
    )
    subprocess.run([*words, "-keyout", key, "-out", cert], check=True, capture_output=True)
    shown: list[object] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            shown.append(self.connection.getpeercert())
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_words: object) -> None:
            pass

    def serve() -> str:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(cert, key)
        context.load_verify_locations(cert)
        context.verify_mode = ssl.CERT_OPTIONAL
        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        server.socket = context.wrap_socket(server.socket, server_side=True)
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        stack.callback(server.server_close)
        stack.callback(server.shutdown)
        return f"https://127.0.0.1:{server.server_address[1]}"

    home, elsewhere = serve(), serve()
    endpoint = HttpEndpoint(home, ca_file=str(cert), certificate=ClientCertificate(str(cert), str(key)))
    stack.callback(endpoint.close)
    for url in (home, elsewhere):
        assert endpoint.ask("GET", url, "/", timeout=60).status == 200
    assert [bool(each) for each in shown] == [True, False]


@pytest.mark.parametrize("wrong", ["missing.pem", "empty.pem"])
def test_a_client_certificate_that_cannot_be_used_is_reported(tmp_path: Path, wrong: str) -> None:
    (tmp_path / "empty.pem").touch()
    with pytest.raises(InputError, match=r"\[bad-client-certificate\]"):
        HttpEndpoint("https://a", certificate=ClientCertificate(str(tmp_path / wrong)))


def test_a_file_with_a_user_and_a_password_is_basic_authentication(stack: ExitStack, tmp_path: Path) -> None:
    secret = tmp_path / "password"
    secret.write_text("sre:s3cret:2\n")
    home = stack.enter_context(web(vector(0.05)))
    Asked(stack, home.url, AT_MOST, token_file=str(secret)).judge()
    assert home.seen[0].headers["authorization"] == "Basic " + base64.b64encode(b"sre:s3cret:2").decode()


def test_a_token_that_was_rotated_is_read_again_when_it_is_refused(stack: ExitStack, tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("old")
    home = stack.enter_context(web())
    home.answer = lambda seen: vector(0) if seen.headers["authorization"] == "Bearer new" else Reply(401)
    asked = Asked(stack, home.url, AT_MOST, token_file=str(token))
    assert one(asked.judge())[0] is UNKNOWN
    token.write_text("new")
    assert one(asked.judge())[0] is PASS


class Answering:
    """A back end that has sent these bytes."""

    def __init__(self, body: str, **headers: str) -> None:
        self.answer = HttpAnswer(200, headers, body.encode())

    def ask(self, *_words: object, **_named: object) -> HttpAnswer:
        return self.answer


NUMBERS = st.one_of(
    st.sampled_from(("1" + "0" * 400, "1e999", "-1e999", "null", "true", '"x"', "[]", "NaN", "-Infinity")),
    st.integers().map(str),
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
)
VALUES = st.sampled_from(('"NaN"', '"Inf"', '"-Inf"', '"1"', '"1e999"', '"0x1"', "1", '""', "null", '"1_0"'))
PAIRS = st.one_of(st.builds("[{},{}]".format, NUMBERS, VALUES), st.sampled_from(("null", "{}", "[]", "[1]")))
SAMPLES = st.one_of(PAIRS.map('{{"metric":{{}},"value":{}}}'.format), st.sampled_from(("null", "1", '{"metric":[]}')))
RESULTS = st.one_of(
    st.lists(SAMPLES, max_size=3).map(lambda found: '"vector","result":[' + ",".join(found) + "]"),
    PAIRS.map('"scalar","result":{}'.format),
    st.sampled_from(('"matrix","result":[]', '["vector"]', '"vector"', '"scalar","result":{}')),
)
DATES = st.one_of(
    st.text(max_size=40),
    st.from_regex(r"[A-Z][a-z]{2}, \d{1,3} [A-Z][a-z]{2} \d{1,6} \d\d:\d\d:\d{1,3} [+-]?[\dA-Z]{1,9}", fullmatch=True),
)


@settings(deadline=None)
@given(result=RESULTS, date=DATES, age=st.text("0123456789.-e", max_size=12))
def test_an_answer_of_any_form_has_samples_with_a_time_or_is_an_error_of_the_back_end(
    result: str, date: str, age: str
) -> None:
    body = f'{{"status":"success","data":{{"resultType":{result}}}}}'
    endpoint = cast("HttpEndpoint", Answering(body, date=date, age=age))
    try:
        found = Prometheus(endpoint).query("", "up", 1.0)
    except RemoteError:
        return
    assert math.isfinite(found.age)
    assert isinstance(doubt(found), str)
