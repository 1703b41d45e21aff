"""The ``http`` gate: three verdicts."""

from __future__ import annotations

from contextlib import ExitStack

import pytest

from rollout.core.model.gates import Gate, GateScope
from rollout.core.model.verdict import Verdict
from rollout.gates.page.query import HttpQuery
from tests.adapters.web import FOR_EVER, Reply, nobody, web
from tests.gates.over_http import Asked, one

pytestmark = pytest.mark.process

PASS, FAIL, UNKNOWN = Verdict.PASS, Verdict.FAIL, Verdict.UNKNOWN
ELSEWHERE = Reply(302, headers=(("Location", "http://127.0.0.1:1/"),))


def page(url: str, status: int = 200, contains: str = "", timeout: float = 30.0) -> Gate:
    return Gate(HttpQuery(url, status, contains), GateScope.WAVE, "shop", timeout=timeout)


@pytest.mark.parametrize(
    ("reply", "status", "contains", "verdict", "said"),
    [
        (Reply(body=b"all ok"), 200, "", PASS, "answered 200"),
        (Reply(body=b"all ok"), 200, "ok", PASS, "answered 200"),
        (Reply(body=b"sorry"), 200, "ok", FAIL, "answered 200 without `ok`: sorry"),
        (Reply(500, b"broken"), 200, "", FAIL, "answered 500, wanted 200: broken"),
        (ELSEWHERE, 200, "", FAIL, "answered 302, wanted 200"),
        (ELSEWHERE, 302, "", PASS, "answered 302"),
        (Reply(body=b"x" * (2 << 20) + b"ok"), 200, "ok", FAIL, None),
        (Reply(body=b"\x1b[31mred\x1b[0m\xff", status=404), 200, "", FAIL, "answered 404, wanted 200: red\ufffd"),
    ],
    ids=["ok", "content", "other content", "error", "redirect", "wanted redirect", "too far down", "escapes"],
)
def test_a_page_is_judged_by_its_answer(
    stack: ExitStack, reply: Reply, status: int, contains: str, verdict: Verdict, said: str | None
) -> None:
    gate = page(stack.enter_context(web(reply)).url, status, contains)
    found = one(Asked(stack, "", gate).judge())
    assert found[0] is verdict
    assert said is None or found[1] == said


@pytest.mark.parametrize(
    ("charset", "encoding"),
    [
        ("charset=ISO-8859-1", "latin-1"),
        ('Charset="windows-1252"', "cp1252"),
        ("charset=utf-16", "utf-16"),
        ("charset=utf-8", "utf-8"),
        ("charset=x-unknown", "utf-8"),
        ("charset=base64", "utf-8"),
        ("charset=idna", "utf-8"),
        ("charset=punycode", "utf-8"),
        ("charset=unicode_escape", "utf-8"),
        ("", "utf-8"),
    ],
)
def test_a_page_is_read_in_the_encoding_that_its_server_names(stack: ExitStack, charset: str, encoding: str) -> None:
    """RFC 9110, section 8.3.2. In another encoding the text would not be found, and a healthy page fails its wave."""
    reply = Reply(body="Zustand: verfügbar".encode(encoding), headers=(("Content-Type", f"text/html; {charset}"),))
    gate = page(stack.enter_context(web(reply)).url, contains="verfügbar")
    assert one(Asked(stack, "", gate).judge()) == (PASS, "answered 200")


def test_an_unreachable_page_is_unknown(stack: ExitStack) -> None:
    assert one(Asked(stack, "", page(nobody())).judge()) == (
        UNKNOWN,
        "request failed: Connection refused [not-reached]",
    )


def test_a_page_that_hangs_is_unknown(stack: ExitStack) -> None:
    gate = page(stack.enter_context(web(Reply(hang=FOR_EVER))).url, timeout=0.3)
    assert one(Asked(stack, "", gate).judge()) == (UNKNOWN, "request failed: no answer in 0.3 s [deadline]")


def test_a_page_is_also_requested_before_the_wave(stack: ExitStack) -> None:
    opened = Asked(stack, "", page(stack.enter_context(web(Reply(500))).url)).open()
    assert (opened.verdict, opened.evidence) == (FAIL, "gate 'shop': answered 500, wanted 200")
