"""Who is let in: as a table of requests."""

from __future__ import annotations

from dataclasses import replace
from http import HTTPStatus

import pytest

from rollout.features.serve.client.gatekeeper import Gatekeeper, PageRequest, Refusal, WebRequest, Welcome, new_secret

HOST = "127.0.0.1:8765"
NOTHING = WebRequest("GET", "/", "", HOST, "", "", "")
KNOWN = replace(NOTHING, path="/page/runs/r1")
POST = replace(KNOWN, method="POST", origin=f"http://{HOST}", site="same-origin")
FORM = replace(POST, origin="null")
UNKNOWN, ELSEWHERE, OTHER_SITE = HTTPStatus.UNAUTHORIZED, HTTPStatus.MISDIRECTED_REQUEST, HTTPStatus.FORBIDDEN


def keeper(said: list[str] | None = None) -> Gatekeeper:
    known = {"token": "right", "page": "page", "reader": "reader"}
    return Gatekeeper(again=(said if said is not None else []).append, **known)


@pytest.mark.parametrize(
    ("asked", "status"),
    [
        (NOTHING, UNKNOWN),
        (replace(NOTHING, query="token=wrong"), UNKNOWN),
        (replace(NOTHING, query="token="), UNKNOWN),
        (replace(NOTHING, query="token=page"), UNKNOWN),
        (replace(NOTHING, query="token=reader"), UNKNOWN),
        (replace(NOTHING, query="token=%F0%9F%91%BE\u00e9\udce9"), UNKNOWN),
        (replace(NOTHING, query="token=right", path="/runs/r1"), UNKNOWN),
        (replace(NOTHING, query="token=right", method="HEAD"), UNKNOWN),
        (replace(POST, path="/", query="token=right"), UNKNOWN),
        (replace(NOTHING, path="/right/"), UNKNOWN),
        (replace(NOTHING, path="/reader/"), UNKNOWN),
        (replace(NOTHING, path="/pag/e"), UNKNOWN),
        (replace(NOTHING, path="//page/"), UNKNOWN),
        (replace(NOTHING, path="/runs/page"), UNKNOWN),
        (replace(NOTHING, authorization="Bearer right"), UNKNOWN),
        (replace(NOTHING, authorization="Bearer page"), UNKNOWN),
        (replace(NOTHING, authorization="Basic reader"), UNKNOWN),
        (replace(KNOWN, authorization="Bearer wrong"), UNKNOWN),
        (replace(POST, path="/runs/r1/abort", authorization="Bearer reader"), UNKNOWN),
        (replace(KNOWN, host=""), ELSEWHERE),
        (replace(KNOWN, host="evil.example:8765"), ELSEWHERE),
        (replace(KNOWN, host="127.0.0.1.evil.example"), ELSEWHERE),
        (replace(KNOWN, host="127.0.0.1:8765@evil.example"), ELSEWHERE),
        (replace(KNOWN, host="127.0.0.1:8765\r\nX: y"), ELSEWHERE),
        (replace(KNOWN, host="192.168.0.7:8765"), ELSEWHERE),
        (replace(KNOWN, more_than_once=True), ELSEWHERE),
        (replace(KNOWN, origin="http://evil.example"), OTHER_SITE),
        (replace(KNOWN, origin="http://127.0.0.1:9999"), OTHER_SITE),
        (replace(KNOWN, origin=f"https://{HOST}"), OTHER_SITE),
        (replace(KNOWN, origin="null"), OTHER_SITE),
        (replace(POST, origin=""), OTHER_SITE),
        (replace(POST, site="cross-site"), OTHER_SITE),
        (replace(POST, site="same-site"), OTHER_SITE),
        (replace(FORM, site=""), OTHER_SITE),
        (replace(FORM, site="none"), OTHER_SITE),
        (replace(FORM, site="same-site"), OTHER_SITE),
        (replace(FORM, site="cross-site"), OTHER_SITE),
    ],
)
def test_a_stranger_is_refused(asked: WebRequest, status: HTTPStatus) -> None:
    found = keeper().decide(asked)
    assert isinstance(found, Refusal)
    assert found.status == status


@pytest.mark.parametrize(
    ("asked", "path"),
    [
        (KNOWN, "/runs/r1"),
        (replace(KNOWN, host="localhost:9999"), "/runs/r1"),
        (replace(KNOWN, host="[::1]:8765"), "/runs/r1"),
        (replace(KNOWN, origin=f"http://{HOST}", site="same-origin"), "/runs/r1"),
        (replace(NOTHING, path="/page/"), "/"),
        (replace(NOTHING, path="/page"), "/"),
        (replace(NOTHING, path="/metrics", authorization="Bearer reader"), "/metrics"),
        (POST, "/runs/r1"),
        (FORM, "/runs/r1"),
    ],
)
def test_the_page_itself_is_let_in_and_its_secret_is_no_part_of_what_it_asks_for(asked: WebRequest, path: str) -> None:
    assert keeper().decide(asked) == PageRequest(path)


def test_a_token_works_once_and_then_there_is_another() -> None:
    said: list[str] = []
    gate = keeper(said)
    right = replace(NOTHING, query="token=right&a=1")
    assert gate.decide(right) == Welcome("/page/")
    assert isinstance(gate.decide(right), Refusal)
    assert gate.decide(replace(NOTHING, query=f"token={said[-1]}")) == Welcome("/page/")
    assert len(said) == 2


def test_no_number_of_wrong_tokens_refuses_the_right_one() -> None:
    gate = keeper()
    for at in range(1000):
        assert isinstance(gate.decide(replace(NOTHING, query=f"token=wrong{at}")), Refusal)
    assert isinstance(gate.decide(replace(NOTHING, query="token=right")), Welcome)


def test_secrets_differ_and_have_256_bits() -> None:
    assert len({new_secret() for _ in range(100)}) == 100
    gate = Gatekeeper(again=print)
    assert len({gate.token, gate.page, gate.reader}) == 3
    assert all(len(each) * 6 >= 256 for each in (gate.token, gate.page, gate.reader))
