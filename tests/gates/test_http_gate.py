"""The ``http`` and ``command`` gates: three verdicts each, and which gate speaks for the wave."""

from __future__ import annotations

import json
from contextlib import ExitStack

import pytest

from rollout.core.model.playbook import Gate, GateKind, GateScope, HttpQuery
from rollout.core.model.verdict import Verdict
from tests.gates.wave_gates import Asked, one
from tests.gates.web import Reply, nobody, web

PASS, FAIL, UNKNOWN = Verdict.PASS, Verdict.FAIL, Verdict.UNKNOWN
ELSEWHERE = Reply(302, headers=(("Location", "http://127.0.0.1:1/"),))


def page(url: str, status: int = 200, contains: str = "", timeout: float = 1.3) -> Gate:
    return Gate(GateKind.HTTP, GateScope.WAVE, "shop", timeout=timeout, http=HttpQuery(url, status, contains))


def command(*words: str, timeout: float = 10.0) -> Gate:
    return Gate(GateKind.COMMAND, GateScope.WAVE, words[0], words, timeout)


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


def test_a_page_that_is_not_there_is_unknown(stack: ExitStack) -> None:
    assert one(Asked(stack, "", page(nobody())).judge()) == (
        UNKNOWN,
        "could not be asked: Connection refused [not-reached]",
    )


def test_a_page_that_hangs_is_unknown(stack: ExitStack) -> None:
    gate = page(stack.enter_context(web(Reply(hang=60))).url, timeout=0.3)
    assert one(Asked(stack, "", gate).judge()) == (UNKNOWN, "could not be asked: no answer in 0.3 s [deadline]")


def test_a_page_is_asked_before_the_wave_too(stack: ExitStack) -> None:
    opened = Asked(stack, "", page(stack.enter_context(web(Reply(500))).url)).open()
    assert (opened.verdict, opened.evidence) == (FAIL, "gate 'shop': answered 500, wanted 200")


@pytest.mark.parametrize(
    ("gate", "verdict", "said"),
    [
        (command("true"), PASS, "ended with 0"),
        (command("false"), FAIL, "ended with 1"),
        (command("no-such-program"), UNKNOWN, "could not be run or did not end in time"),
        (command("sleep", "60", timeout=0.2), UNKNOWN, "could not be run or did not end in time"),
    ],
    ids=["true", "false", "missing", "hanging"],
)
def test_a_command_is_run_where_the_controller_is(stack: ExitStack, gate: Gate, verdict: Verdict, said: str) -> None:
    assert one(Asked(stack, "", gate).judge()) == (verdict, said)


def test_a_command_is_not_run_before_the_wave(stack: ExitStack) -> None:
    assert Asked(stack, "", command("false")).open().verdict is PASS


def test_the_worst_gate_speaks_and_all_are_written_down(stack: ExitStack) -> None:
    judged = Asked(stack, "", command("true"), command("no-such-program"), command("false")).judge()
    assert (judged.verdict, judged.evidence) == (FAIL, "gate 'false': ended with 1")
    assert [reading.verdict for reading in judged.readings] == [PASS, UNKNOWN, FAIL]


def test_without_wave_gates_there_is_nothing_to_say(stack: ExitStack) -> None:
    asked = Asked(stack, "")
    assert (asked.judge().verdict, asked.open().verdict, json.loads(asked.open().baseline)) == (PASS, PASS, {})
