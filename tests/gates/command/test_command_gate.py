"""The ``command`` gate on the controller's machine: three verdicts, and which gate decides for the wave."""

from __future__ import annotations

import json
import math
import time
from contextlib import ExitStack

import pytest

from rollout.adapters import local
from rollout.core.model.gates import Gate, GateScope
from rollout.core.model.verdict import Verdict
from rollout.gates.command.query import CommandQuery
from tests.gates.over_http import Asked, one

pytestmark = pytest.mark.process

PASS, FAIL, UNKNOWN = Verdict.PASS, Verdict.FAIL, Verdict.UNKNOWN


@pytest.fixture(autouse=True)
def all_its_last_words(monkeypatch: pytest.MonkeyPatch) -> None:
    """Limits for slow threads: reading the rest of the pipe may take any time."""
    monkeypatch.setattr(local, "REST_OF_OUTPUT", 300.0)


def command(*words: str, timeout: float = 300.0) -> Gate:
    return Gate(CommandQuery(words), GateScope.WAVE, words[0], timeout)


def shell(line: str, timeout: float = 300.0) -> Gate:
    return command("sh", "-c", line, timeout=timeout)


@pytest.mark.parametrize(
    ("gate", "verdict", "said"),
    [
        (command("true"), PASS, "ended with 0"),
        (command("false"), FAIL, "ended with 1"),
        (shell("echo one; echo two >&2; exit 3"), FAIL, "ended with 3: one | two"),
        (shell("printf '\\033[31mred\\033[0m\\377\\a'; exit 1"), FAIL, "ended with 1: red\ufffd"),
        (shell("kill -9 $$"), UNKNOWN, "was killed by signal 9"),
        (shell("echo half; kill -TERM $$"), UNKNOWN, "was killed by signal 15: half"),
        (shell("exec 2>&-; no-such-program"), UNKNOWN, "gave no result (exit status 127)"),
        (shell("echo half; exit 137"), UNKNOWN, "gave no result (exit status 137): half"),
        (command("no-such-program"), UNKNOWN, "could not be run: No such file or directory"),
        (command("/etc/passwd"), UNKNOWN, "could not be run: Permission denied"),
        (command("sleep", "86400", timeout=0.2), UNKNOWN, "did not end in 0.2 s"),
    ],
    ids=[
        "true",
        "false",
        "output",
        "escapes",
        "killed",
        "ended by a signal",
        "not found by its shell",
        "killed in its shell",
        "missing",
        "no program",
        "hanging",
    ],
)
def test_a_command_runs_on_the_controllers_machine(stack: ExitStack, gate: Gate, verdict: Verdict, said: str) -> None:
    assert one(Asked(stack, "", gate).judge()) == (verdict, said)


def test_a_command_that_ignores_signals_is_killed_and_its_output_is_kept(stack: ExitStack) -> None:
    began = time.monotonic()
    one(Asked(stack, "", shell("echo; sleep 0")).judge())
    plenty = math.ceil(1 + 20 * (time.monotonic() - began))
    gate = shell("echo waiting; trap '' TERM INT; sleep 86400", timeout=plenty)
    assert one(Asked(stack, "", gate).judge()) == (UNKNOWN, f"did not end in {plenty} s: waiting")


def test_endless_output_of_a_command_is_bounded_and_its_last_lines_are_shown(stack: ExitStack) -> None:
    flood = shell("yes | head -c 50000000; for n in 1 2 3 4 5 6 7; do echo line $n; done; exit 1")
    assert one(Asked(stack, "", flood).judge()) == (FAIL, "ended with 1: line 3 | line 4 | line 5 | line 6 | line 7")
    wide = shell("head -c 100000 /dev/zero | tr '\\0' x; exit 1")
    assert len(one(Asked(stack, "", wide).judge())[1]) < 500


def test_a_leftover_child_of_a_command_blocks_nothing(stack: ExitStack, monkeypatch: pytest.MonkeyPatch) -> None:
    """The child keeps the output open. The command itself has ended, or is killed with all its processes."""
    monkeypatch.setattr(local, "REST_OF_OUTPUT", 3.0)
    assert one(Asked(stack, "", shell("echo said; sleep 86400 & exit 1")).judge()) == (FAIL, "ended with 1: said")
    assert one(Asked(stack, "", shell("sleep 86400 | sleep 86400", timeout=0.3)).judge())[0] is UNKNOWN


def test_a_command_is_not_run_before_the_wave(stack: ExitStack) -> None:
    assert Asked(stack, "", command("false")).open().verdict is PASS


def test_the_worst_gate_decides_and_all_are_recorded(stack: ExitStack) -> None:
    judged = Asked(stack, "", command("true"), command("no-such-program"), command("false")).judge()
    assert (judged.verdict, judged.evidence) == (FAIL, "gate 'false': ended with 1")
    assert [reading.verdict for reading in judged.readings] == [PASS, UNKNOWN, FAIL]


def test_without_wave_gates_the_wave_passes_without_evidence(stack: ExitStack) -> None:
    asked = Asked(stack, "")
    assert (asked.judge().verdict, asked.open().verdict, json.loads(asked.open().baseline)) == (PASS, PASS, {})
