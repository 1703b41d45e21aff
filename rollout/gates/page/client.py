"""Plain HTTP pages: the status and the beginning of the body. A redirect is an answer like any other."""

from __future__ import annotations

import re
from functools import partial

from rollout.adapters.endpoints import HttpBackEnds
from rollout.adapters.http import Http, HttpAnswer
from rollout.app.asked_gate import Asker, PlainGate
from rollout.core.model.verdict import Judged
from rollout.gates.page.query import HttpQuery, Page, judge_page

MOST_PAGE_BYTES = 1024 * 1024
_CHARSET = re.compile(r"""charset\s*=\s*["']?([A-Za-z0-9._:+-]+)""", re.IGNORECASE)


class HttpPages:
    def __init__(self, http: Http) -> None:
        self._http = http

    def judged(self, query: HttpQuery, timeout: float) -> Judged:
        answer = self._http.ask("GET", query.url, timeout=timeout, most=MOST_PAGE_BYTES)
        return judge_page(query, Page(answer.status, _text(answer)))


def _text(answer: HttpAnswer) -> str:
    """The body in the encoding that the server names; UTF-8 if it names none that is known."""
    named = _CHARSET.search(answer.headers.get("content-type", ""))
    try:
        return answer.body.decode(named[1] if named else "utf-8", "replace")
    except (LookupError, ValueError):
        return answer.body.decode("utf-8", "replace")


def connected(back_ends: HttpBackEnds) -> Asker:
    return partial(PlainGate, HttpPages(back_ends.anywhere()).judged)
