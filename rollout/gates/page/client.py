"""Plain HTTP pages: the status and the beginning of the body, no redirect followed."""

from __future__ import annotations

from functools import partial

from rollout.adapters.endpoints import HttpBackEnds
from rollout.adapters.http import Http
from rollout.app.asked_gate import Asker
from rollout.gates.page.asking import PageGate
from rollout.gates.page.query import Page

MOST_PAGE_BYTES = 1024 * 1024


class HttpPages:
    def __init__(self, http: Http) -> None:
        self._http = http

    def get(self, url: str, timeout: float) -> Page:
        answer = self._http.ask("GET", url, timeout=timeout, most=MOST_PAGE_BYTES)
        return Page(answer.status, answer.body.decode("utf-8", "replace"))


def connected(back_ends: HttpBackEnds) -> Asker:
    return partial(PageGate, HttpPages(back_ends.anywhere()))
