"""Alertmanager's v2 API: firing alerts and silences. ``query.py`` interprets them."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime, timedelta
from functools import partial
from urllib.parse import quote, urlencode

from rollout.adapters.endpoints import HttpBackEnds, HttpEndpoint
from rollout.adapters.http import HttpAnswer, decoded, listing, mapping, refusal, text
from rollout.app.asked_gate import Asker
from rollout.core.model.ways_in import DoctorCheck, Probe
from rollout.errors import RemoteError
from rollout.gates.alertmanager.asking import AlertGate, Silence
from rollout.gates.alertmanager.query import Alert

MOST_BYTES = 32 * 1024 * 1024
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
        answered = _expected(answer)
        if not isinstance(answered, list):  # `null` too: Alertmanager answers `[]` when nothing fires
            raise RemoteError("bad-answer", "the answer is not a list")
        return tuple(_alert(entry) for entry in answered)

    def silence(self, url: str, silence: Silence, timeout: float) -> str:
        begins = datetime.now(UTC)
        document = {
            "matchers": [{"name": silence.label, "value": silence.pattern, "isRegex": True, "isEqual": True}],
            "startsAt": begins.isoformat(),
            "endsAt": (begins + timedelta(seconds=silence.seconds)).isoformat(),
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
        answer = self._endpoint.ask("GET", url, "/api/v2/silences", timeout=timeout, most=MOST_BYTES)
        silences = (mapping(entry, "a silence") for entry in listing(_expected(answer), "the answer"))
        ours = [each for each in silences if text(each.get("comment"), "a comment").startswith(comment)]
        ids = [
            text(each.get("id"), "an id")
            for each in ours
            if mapping(each.get("status"), "status").get("state") != "expired"
        ]
        return tuple(identity for identity in ids if _ID.fullmatch(identity))

    def lift(self, url: str, silence: str, timeout: float) -> None:
        """End a silence. Alertmanager answers a second end with an error, so after an error the state is read."""
        path = f"/api/v2/silence/{quote(silence, safe='')}"
        answer = self._endpoint.ask("DELETE", url, path, timeout=timeout, most=MOST_BYTES)
        if answer.status in (200, 404):
            return
        standing = self._endpoint.ask("GET", url, path, timeout=timeout, most=MOST_BYTES)
        if standing.status == 404:
            return
        status = mapping(mapping(_expected(standing), "a silence").get("status"), "status")
        if status.get("state") != "expired":
            raise refusal(answer)


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


def _alert(entry: object) -> Alert:
    alert = mapping(entry, "an alert")
    labels = {name: text(value, "a label") for name, value in mapping(alert.get("labels"), "labels").items()}
    fingerprint = text(alert.get("fingerprint"), "a fingerprint")
    if not fingerprint:
        raise RemoteError("bad-answer", "an alert has no fingerprint")
    return Alert(fingerprint, labels)
