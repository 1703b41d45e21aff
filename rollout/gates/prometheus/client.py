"""Prometheus' instant queries: ``POST /api/v1/query``. ``judging.py`` interprets the samples."""

from __future__ import annotations

import re
from collections.abc import Iterator
from email.utils import parsedate_to_datetime
from functools import partial
from typing import Any
from urllib.parse import urlencode

from rollout.adapters.endpoints import HttpBackEnds, HttpEndpoint
from rollout.adapters.http import HttpAnswer, decoded, listing, mapping, refusal, text
from rollout.app.asked_gate import Asker
from rollout.core.model.ways_in import DoctorCheck, Probe
from rollout.core.text.terminal import printable
from rollout.errors import AwayError, RemoteError
from rollout.gates.prometheus.asking import MetricGate
from rollout.gates.prometheus.judging import Sample, Samples

MOST_BYTES = 16 * 1024 * 1024
MOST_SAMPLES = 50_000
LATEST = 1e12
"""More seconds since 1970 than any clock shows."""

_NUMBER = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?(?:[eE][+-]?[0-9]+)?|Inf)|NaN")


class Prometheus:
    """Client of any server with Prometheus' query API."""

    def __init__(self, endpoint: HttpEndpoint) -> None:
        self._endpoint = endpoint

    def query(self, url: str, query: str, timeout: float) -> Samples:
        body = urlencode({"query": query, "timeout": f"{max(1, round(timeout * 1000))}ms"}).encode()
        answer = self._endpoint.ask(
            "POST", url, "/api/v1/query", body=body, timeout=timeout, most=MOST_BYTES,
            headers={"Content-Type": "application/x-www-form-urlencoded"},
        )  # fmt: skip
        if answer.status != 200:
            raise _error(answer)
        document = mapping(decoded(answer), "the answer")
        if document.get("status") != "success":
            raise RemoteError("bad-answer", "the answer is not from a Prometheus API")
        data = mapping(document.get("data"), "data")
        warnings = tuple(text(warning, "a warning") for warning in listing(document.get("warnings"), "warnings"))
        if document.get("isPartial") is True:  # VictoriaMetrics: a store did not answer
            warnings += ("isPartial",)
        return Samples(_samples(data), warnings, _age(answer, data))


def connected(back_ends: HttpBackEnds) -> Asker:
    return partial(MetricGate, Prometheus(back_ends.at(back_ends.endpoints.prometheus)))


def probe(back_ends: HttpBackEnds) -> Probe:
    url = back_ends.endpoints.prometheus
    client = Prometheus(back_ends.at(url))
    return Probe(DoctorCheck.PROMETHEUS, url, lambda seconds: str(client.query(url, "vector(1)", seconds) and url))


def _error(answer: HttpAnswer) -> RemoteError:
    """Prometheus reports query errors as JSON; a proxy in front of it may send anything."""
    try:
        problem = mapping(decoded(answer), "the answer").get("error")
    except RemoteError:
        problem = None
    if isinstance(problem, str) and answer.status in (400, 422):
        said = f"answered {answer.status}: {printable(problem, 200)}"
        # 422: it could not be executed, perhaps because a store did not answer this time
        return RemoteError("bad-query", said) if answer.status == 400 else AwayError(f"http-{answer.status}", said)
    return refusal(answer)


def _age(answer: HttpAnswer, data: Any) -> float:
    """Seconds between the newest sample and the answer. Both times are the back end's; our clock is not used.

    A cache adds ``Age``. An answer without a date has no known age.
    """
    kept = answer.headers.get("age", "")
    cached = float(kept) if re.fullmatch(r"[0-9]{1,9}", kept) else 0.0
    times = tuple(_times(data))
    try:
        now = parsedate_to_datetime(answer.headers.get("date", "")).timestamp()
    except (ValueError, TypeError, OverflowError):
        return cached
    return max(cached, now + cached - max(times)) if times else cached


def _times(data: Any) -> Iterator[float]:
    result = data.get("result")
    if data.get("resultType") == "scalar":
        yield _time(result)
    elif isinstance(result, list):
        for entry in result:
            yield _time(mapping(entry, "a sample").get("value"))


def _time(pair: object) -> float:
    """A number that no clock can show would make an old sample look fresh."""
    found = pair[0] if isinstance(pair, list) and pair else None
    if isinstance(found, bool) or not isinstance(found, int | float) or not abs(found) < LATEST:
        raise RemoteError("bad-answer", "a sample has no time")
    return float(found)


def _samples(data: Any) -> tuple[Sample, ...]:
    kind, result = data.get("resultType"), data.get("result")
    if kind == "scalar":
        return (Sample("", _value(result)),)
    if kind != "vector":
        raise RemoteError("bad-query", f"the result is a {printable(str(kind), 20)}, not an instant vector")
    entries = listing(result, "the result")
    if len(entries) > MOST_SAMPLES:
        raise RemoteError("too-large", f"{len(entries)} samples; at most {MOST_SAMPLES}, aggregate them in the query")
    return tuple(_sample(mapping(entry, "a sample")) for entry in entries)


def _sample(entry: Any) -> Sample:
    metric = mapping(entry.get("metric"), "a metric")
    pairs = [(name, value) for name, value in sorted(metric.items()) if name != "__name__"]
    labels = ", ".join(f"{name}={value}" for name, value in pairs)
    words = tuple(value for _, value in pairs if isinstance(value, str))
    if "histogram" in entry and "value" not in entry:
        message = f"the sample {{{printable(labels, 120)}}} is a native histogram, not a number"
        raise RemoteError("bad-query", message, hint="take a number of it, as in `histogram_quantile(0.9, …)`")
    return Sample(printable(labels, 120), _value(entry.get("value")), words)


def _value(pair: object) -> float:
    if not isinstance(pair, list) or len(pair) != 2 or not isinstance(pair[1], str) or not _NUMBER.fullmatch(pair[1]):
        raise RemoteError("bad-answer", "a sample has no value")
    return float(pair[1])
