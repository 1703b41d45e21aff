"""Plain HTTP pages: the status and the beginning of the body. A redirect is an answer like any other."""

from __future__ import annotations

import codecs
from email.message import Message
from functools import partial

from rollout.adapters.endpoints import HttpBackEnds
from rollout.adapters.http import Http, HttpAnswer
from rollout.app.asked_gate import Asker, PlainGate
from rollout.core.model.verdict import Judged
from rollout.gates.page.query import HttpQuery, Page, judge_page

MOST_PAGE_BYTES = 1024 * 1024
_OF_PYTHON = frozenset({"idna", "punycode", "raw-unicode-escape", "undefined", "unicode-escape"})
"""Encodings that no page has. ``punycode`` takes minutes for a page that is made for it: its work grows with the square."""


class HttpPages:
    def __init__(self, http: Http) -> None:
        self._http = http

    def judged(self, query: HttpQuery, timeout: float) -> Judged:
        answer = self._http.ask("GET", query.url, timeout=timeout, most=MOST_PAGE_BYTES)
        return judge_page(query, Page(answer.status, _text(answer)))


def _text(answer: HttpAnswer) -> str:
    """The body in the encoding that the server names; UTF-8 if it names none that is known."""
    header = Message()
    header["content-type"] = answer.headers.get("content-type", "")
    named = header.get_content_charset("utf-8")
    try:
        encoding = "utf-8" if codecs.lookup(named).name in _OF_PYTHON else named
        return answer.body.decode(encoding, "replace")
    except (LookupError, ValueError):
        return answer.body.decode("utf-8", "replace")


def connected(back_ends: HttpBackEnds) -> Asker:
    return partial(PlainGate, HttpPages(back_ends.anywhere()).judged)
