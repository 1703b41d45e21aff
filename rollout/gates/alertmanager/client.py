"""Alertmanager's v2 API: firing alerts and silences. ``query.py`` interprets them."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any
from urllib.parse import quote, urlencode

from rollout.adapters.endpoints import HttpBackEnds, HttpEndpoint
from rollout.adapters.http import HttpAnswer, decoded, mapping, refusal, text
from rollout.app.asked_gate import Asker
from rollout.core.model.ways_in import DoctorCheck, Probe
from rollout.errors import AwayError, RemoteError
from rollout.gates.alertmanager.asking import AlertGate, Silence
from rollout.gates.alertmanager.query import Alert

MOST_BYTES = 32 * 1024 * 1024
_EXPIRED = "expired"
_CLOCKS = timedelta(days=1)
"""By which our clock may be ahead. Alertmanager puts its own time for a begin in its past, and with one in its future a silence waits."""
_ID = re.compile(r"[A-Za-z0-9-]{1,80}")


class Alertmanager:
    """Client of an Alertmanager, or of any server with its v2 API."""

    def __init__(self, endpoint: HttpEndpoint) -> None:
        self._endpoint = endpoint

    def firing(self, url: str, matchers: tuple[str, ...], timeout: float) -> tuple[Alert, ...]:
        return self._alerts(url, matchers, "false", timeout)

    def known(self, url: str, matchers: tuple[str, ...], timeout: float) -> tuple[Alert, ...]:
        return self._alerts(url, matchers, "true", timeout)

    def _alerts(self, url: str, matchers: tuple[str, ...], quiet: str, timeout: float) -> tuple[Alert, ...]:
        asked = [("active", "true"), ("silenced", quiet), ("inhibited", quiet), ("unprocessed", "true")]
        path = "/api/v2/alerts?" + urlencode([*asked, *(("filter", matcher) for matcher in matchers)])
        answer = self._endpoint.ask("GET", url, path, timeout=timeout, most=MOST_BYTES)
        return tuple(_alert(entry) for entry in _listed(answer))

    def silence(self, url: str, silence: Silence, timeout: float) -> str:
        now = datetime.now(UTC)
        document = {
            "matchers": [{"name": silence.label, "value": silence.pattern, "isRegex": True, "isEqual": True}],
            "startsAt": (now - _CLOCKS).isoformat(),
            "endsAt": (now + timedelta(seconds=silence.seconds)).isoformat(),
            "createdBy": silence.who,
            "comment": silence.comment,
        }
        answer = self._endpoint.ask(
            "POST", url, "/api/v2/silences", body=json.dumps(document).encode(), timeout=timeout, most=MOST_BYTES,
            headers={"Content-Type": "application/json"},
        )  # fmt: skip
        identity = text(mapping(_expected(answer), "the answer").get("silenceID"), "silenceID")
        if not _ID.fullmatch(identity):
            raise RemoteError("bad-answer", "the answer to a silence has no id")
        return identity

    def standing(self, url: str, comment: str, timeout: float) -> tuple[str, ...]:
        silences = self._silences(url, timeout)
        ours = [each for each in silences if text(each.get("comment"), "a comment").startswith(comment)]
        ids = [text(each.get("id"), "an id") for each in ours if _state(each) != _EXPIRED]
        return tuple(identity for identity in ids if _ID.fullmatch(identity))

    def lift(self, url: str, silence: str, timeout: float) -> None:
        """End a silence, and read back that it has ended. Alertmanager answers a second end with an error."""
        path = f"/api/v2/silence/{quote(silence, safe='')}"
        answer = self._endpoint.ask("DELETE", url, path, timeout=timeout, most=MOST_BYTES)
        if self._has_ended(url, path, silence, timeout):
            return
        if answer.status != 200:
            raise refusal(answer)
        raise AwayError("doubtful", "Alertmanager answered that it ended the silence, and still shows it")

    def _has_ended(self, url: str, path: str, silence: str, timeout: float) -> bool:
        """Alertmanager answers 404 without a body for a silence that it has removed, as others may: then its list decides."""
        shown = self._endpoint.ask("GET", url, path, timeout=timeout, most=MOST_BYTES)
        if shown.status == 404:
            known = [each for each in self._silences(url, timeout) if each.get("id") == silence]
            return all(_state(each) == _EXPIRED for each in known)
        found = mapping(_expected(shown), "a silence")
        if found.get("id") != silence:
            raise RemoteError("bad-answer", "the answer is not the silence")
        return _state(found) == _EXPIRED

    def _silences(self, url: str, timeout: float) -> list[Mapping[str, Any]]:
        answer = self._endpoint.ask("GET", url, "/api/v2/silences", timeout=timeout, most=MOST_BYTES)
        return [mapping(entry, "a silence") for entry in _listed(answer)]


def connected(back_ends: HttpBackEnds) -> Asker:
    return partial(AlertGate, Alertmanager(back_ends.at(back_ends.endpoints.alerts)))


def probe(back_ends: HttpBackEnds) -> Probe:
    url = back_ends.endpoints.alerts
    client = Alertmanager(back_ends.at(url))
    return Probe(DoctorCheck.ALERTS, url, lambda seconds: f"{url}: {len(client.firing(url, (), seconds))} firing")


def _expected(answer: HttpAnswer) -> object:
    if answer.status != 200:
        raise refusal(answer)
    return decoded(answer)


def _listed(answer: HttpAnswer) -> list[Any]:
    answered = _expected(answer)
    if not isinstance(answered, list):  # `null` too: Alertmanager answers `[]` where there is nothing
        raise RemoteError("bad-answer", "the answer is not a list")
    return answered


def _state(silence: Mapping[str, Any]) -> object:
    return mapping(silence.get("status"), "status").get("state")


def _alert(entry: object) -> Alert:
    alert = mapping(entry, "an alert")
    labels = {name: text(value, "a label") for name, value in mapping(alert.get("labels"), "labels").items()}
    fingerprint = text(alert.get("fingerprint"), "a fingerprint")
    if not fingerprint:
        raise RemoteError("bad-answer", "an alert has no fingerprint")
    return Alert(fingerprint, labels)
