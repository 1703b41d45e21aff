"""One plugin for many callers: it runs once, its failure is shared, and each caller has its own deadline."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import pytest

from rollout.adapters.kubernetes import credentials as held_credentials
from rollout.adapters.kubernetes.credentials import EARLY, Credential, PluginCredentials
from rollout.errors import AwayError, RemoteError

PATIENCE = 60.0
CALLERS = 4


@dataclass
class Program:
    """A fake plugin: each run prints the next of ``prints`` when the test releases it."""

    prints: list[Credential | RemoteError]
    may: threading.Event = field(default_factory=threading.Event)
    runs: int = 0

    def __call__(self) -> Credential:
        self.runs += 1
        found = self.prints.pop(0) if len(self.prints) > 1 else self.prints[0]
        assert self.may.wait(PATIENCE)
        if isinstance(found, RemoteError):
            raise found
        return found


def credential(token: str, left: float | None = None) -> Credential:
    return Credential(token, b"", b"", None if left is None else time.time() + left)


def quick(*prints: Credential | RemoteError) -> tuple[Program, PluginCredentials]:
    program = Program(list(prints))
    program.may.set()
    return program, PluginCredentials(program)


def test_many_callers_wait_for_one_run() -> None:
    program = Program([credential("t")])
    credentials = PluginCredentials(program)
    with ThreadPoolExecutor(CALLERS) as pool:
        asked = [pool.submit(credentials.get, PATIENCE) for _ in range(CALLERS)]
        program.may.set()
        assert [each.result(PATIENCE).token for each in asked] == ["t"] * CALLERS
    assert program.runs == 1


def test_a_hanging_plugin_delays_each_caller_by_its_own_deadline_only() -> None:
    """Before, four callers with 10 s each waited one after the other: 30, 60, 90 and 120 s."""
    program = Program([credential("t")])
    credentials = PluginCredentials(program)
    for _ in range(CALLERS):
        with pytest.raises(AwayError, match=r"printed no credential in 0\.01 s"):
            credentials.get(0.01)
    assert program.runs == 1
    program.may.set()
    assert credentials.get(PATIENCE).token == "t"  # noqa: S105 - no secret


def test_a_failure_is_shared_for_some_seconds_and_then_retried(monkeypatch: pytest.MonkeyPatch) -> None:
    program, credentials = quick(RemoteError("exec-plugin", "not logged in"), credential("t"))
    for _ in range(CALLERS):
        with pytest.raises(RemoteError, match="not logged in"):
            credentials.get(PATIENCE)
    assert program.runs == 1
    monkeypatch.setattr(held_credentials, "SHARED", 0.0)
    assert credentials.get(PATIENCE).token == "t"  # noqa: S105 - no secret


def test_a_valid_credential_is_used_while_a_new_one_is_requested() -> None:
    program, credentials = quick(credential("old", EARLY / 2), credential("new"))
    assert credentials.get(PATIENCE).token == "old"  # noqa: S105 - no secret
    program.may.clear()
    assert credentials.get(0.01).token == "old"  # noqa: S105 - no secret
    program.may.set()


def test_a_refused_credential_is_replaced_and_a_newer_one_is_kept() -> None:
    program, credentials = quick(credential("old"), credential("new"))
    assert credentials.get(PATIENCE).token == "old"  # noqa: S105 - no secret
    credentials.forget("old")
    assert credentials.get(PATIENCE).token == "new"  # noqa: S105 - no secret
    credentials.forget("old")
    assert credentials.get(PATIENCE).token == "new"  # noqa: S105 - no secret
    assert program.runs == 2
