"""Who is let in: as a table of requests."""

from __future__ import annotations

from dataclasses import replace
from http import HTTPStatus

import pytest

from rollout.web.gatekeeper import MOST_FAILURES, WITHIN, Gatekeeper, Refusal, WebRequest, Welcome

HOST = "127.0.0.1:8765"
NOTHING = WebRequest("GET", "/", "", HOST, "", "", "", "")
GOOD = "rollout=session"


def keeper() -> Gatekeeper:
    return Gatekeeper(clock=lambda: 0.0, token="right", session="session")  # noqa: S106 - of this test


KNOWN = replace(NOTHING, cookie=GOOD)
POST = replace(KNOWN, method="POST", origin=f"http://{HOST}", site="same-origin")


@pytest.mark.parametrize(
    ("asked", "status"),
    [
        (NOTHING, HTTPStatus.UNAUTHORIZED),
        (replace(NOTHING, query="token=wrong"), HTTPStatus.UNAUTHORIZED),
        (replace(NOTHING, query="token="), HTTPStatus.UNAUTHORIZED),
        (replace(NOTHING, cookie="rollout=wrong"), HTTPStatus.UNAUTHORIZED),
        (replace(NOTHING, cookie="other=session; rollout"), HTTPStatus.UNAUTHORIZED),
        (replace(NOTHING, cookie="rollout=right"), HTTPStatus.UNAUTHORIZED),
        (replace(NOTHING, authorization="Bearer wrong"), HTTPStatus.UNAUTHORIZED),
        (replace(NOTHING, authorization="Basic right"), HTTPStatus.UNAUTHORIZED),
        (replace(NOTHING, query="token=%F0%9F%91%BE\u00e9"), HTTPStatus.UNAUTHORIZED),
        (replace(NOTHING, method="POST", query="token=right", origin=f"http://{HOST}"), HTTPStatus.UNAUTHORIZED),
        (replace(KNOWN, host=""), HTTPStatus.MISDIRECTED_REQUEST),
        (replace(KNOWN, host="evil.example:8765"), HTTPStatus.MISDIRECTED_REQUEST),
        (replace(KNOWN, host="127.0.0.1.evil.example"), HTTPStatus.MISDIRECTED_REQUEST),
        (replace(KNOWN, host="127.0.0.1:8765@evil.example"), HTTPStatus.MISDIRECTED_REQUEST),
        (replace(KNOWN, host="192.168.0.7:8765"), HTTPStatus.MISDIRECTED_REQUEST),
        (replace(KNOWN, more_than_once=True), HTTPStatus.MISDIRECTED_REQUEST),
        (replace(KNOWN, origin="http://evil.example"), HTTPStatus.FORBIDDEN),
        (replace(KNOWN, origin="http://127.0.0.1:9999"), HTTPStatus.FORBIDDEN),
        (replace(KNOWN, origin=f"https://{HOST}"), HTTPStatus.FORBIDDEN),
        (replace(KNOWN, origin="null"), HTTPStatus.FORBIDDEN),
        (replace(POST, origin=""), HTTPStatus.FORBIDDEN),
        (replace(POST, site="cross-site"), HTTPStatus.FORBIDDEN),
        (replace(POST, site="same-site"), HTTPStatus.FORBIDDEN),
    ],
)
def test_a_stranger_is_refused(asked: WebRequest, status: HTTPStatus) -> None:
    found = keeper().decide(asked)
    assert isinstance(found, Refusal)
    assert found.status == status


@pytest.mark.parametrize(
    "asked",
    [
        KNOWN,
        replace(KNOWN, cookie=f"theme=dark; {GOOD}"),
        replace(KNOWN, host="localhost:9999"),
        replace(KNOWN, host="[::1]:8765"),
        replace(KNOWN, origin=f"http://{HOST}", site="same-origin"),
        replace(NOTHING, authorization="Bearer right"),
        POST,
    ],
)
def test_the_page_itself_is_let_in(asked: WebRequest) -> None:
    assert keeper().decide(asked) is None


def test_the_token_of_the_address_becomes_a_cookie_and_leaves_the_address() -> None:
    found = keeper().decide(replace(NOTHING, path="/runs/r1", query="token=right&a=1"))
    assert found == Welcome("/runs/r1?a=1", "rollout=session; Path=/; HttpOnly; SameSite=Strict")
    assert keeper().decide(replace(KNOWN, path="/runs/r1", query="token=right&a=1")) == found, "also of an open page"
    away = keeper().decide(replace(NOTHING, path="//evil.example/", query="token=right"))
    assert isinstance(away, Welcome)
    assert away.path == "/evil.example/"


def test_wrong_tokens_are_counted_and_then_none_is_compared() -> None:
    now = 0.0
    gate = Gatekeeper(clock=lambda: now, token="right", session="session")  # noqa: S106 - of this test
    wrong, right = replace(NOTHING, query="token=wrong"), replace(NOTHING, query="token=right")
    statuses = [found.status for _ in range(MOST_FAILURES + 1) if isinstance(found := gate.decide(wrong), Refusal)]
    assert statuses == [HTTPStatus.UNAUTHORIZED] * MOST_FAILURES + [HTTPStatus.TOO_MANY_REQUESTS]
    assert isinstance(gate.decide(right), Refusal), "also the right one waits"
    assert gate.decide(KNOWN) is None, "an open page goes on"
    now = WITHIN + 1
    assert isinstance(gate.decide(right), Welcome)
