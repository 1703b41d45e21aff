"""Output that cannot be written: a run goes on, and its exit code is that of the run."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import pytest

from rollout.adapters.journal import SqlJournal
from rollout.cli.main import run
from tests.cli.test_plan import SOME_CHANGE, planned, site

__all__ = ["site"]

pytestmark = pytest.mark.process

COMMANDS = {
    "apply": ["apply", "p.plan.json", "--yes"],
    "emergency": ["rollback", "--cluster", "small", "--emergency", "--yes"],
}


def text(descriptor: int) -> io.TextIOWrapper:
    """Without a buffer, which would raise once more when it is closed."""
    return io.TextIOWrapper(io.FileIO(descriptor, "w"), encoding="utf-8", write_through=True)


def full() -> io.TextIOWrapper:
    """A log on a full disk."""
    return text(os.open("/dev/full", os.O_WRONLY))


def unread() -> io.TextIOWrapper:
    """A pipe to a program that has ended, as in ``| head``."""
    reader, writer = os.pipe()
    os.close(reader)
    return text(writer)


@pytest.mark.parametrize("streams", [("stdout",), ("stderr",), ("stdout", "stderr")])
@pytest.mark.parametrize("lost", [full, unread])
@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_that_changes_nodes_ends_as_with_its_output(
    site: Path,
    monkeypatch: pytest.MonkeyPatch,
    command: str,
    lost: Callable[[], io.TextIOWrapper],
    streams: tuple[str, ...],
) -> None:
    assert planned(site, SOME_CHANGE) == 0
    expected, before = run(COMMANDS[command]), len(SqlJournal(site / ".rollout").runs("small"))
    assert expected not in (0, 70)
    with ExitStack() as stack, monkeypatch.context() as patched:
        for name in streams:
            patched.setattr(f"sys.{name}", stack.enter_context(lost()))
        assert run(COMMANDS[command]) == expected
    after = len(SqlJournal(site / ".rollout").runs("small"))
    assert after == 2 * before, "the second call did what the first did"


def test_a_command_that_only_prints_reports_the_full_disk(
    site: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert site
    with full() as lost, monkeypatch.context() as patched:
        patched.setattr("sys.stdout", lost)
        assert run(["explain", "drifted"]) == 5
    (said,) = capsys.readouterr().err.splitlines()
    assert said == (
        "error: the output, or a file, could not be written: No space left on device"
        " (free some space and run the same command again) [disk-full]"
    )


def test_a_character_that_the_output_cannot_encode_is_escaped(site: Path) -> None:
    assert planned(site, SOME_CHANGE) == 0
    words = (sys.executable, "-m", "rollout.cli", "plan", "show", "p.plan.json")
    done = subprocess.run(
        words, cwd=site, env={**os.environ, "PYTHONIOENCODING": "latin-1"}, capture_output=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"\\u2192" in done.stdout, "an arrow"
