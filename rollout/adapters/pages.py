"""Plain HTTP pages for the ``http`` gate: the status and the beginning of the body, no redirect followed."""

from __future__ import annotations

from rollout.adapters.http import Http
from rollout.core.gates.measured import Page

MOST_BYTES = 1024 * 1024


class HttpPages:
    def __init__(self, http: Http) -> None:
        self._http = http

    def get(self, url: str, timeout: float) -> Page:
        answer = self._http.ask("GET", url, timeout=timeout, most=MOST_BYTES)
        return Page(answer.status, answer.body.decode("utf-8", "replace"))
