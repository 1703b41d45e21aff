"""Forked commands are as real as started ones: each case is tried with both."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.controllers import PATIENCE, Process, anew, at_work, finished, until

pytestmark = pytest.mark.process

Begun = Callable[[Sequence[str]], list[str]]


def runs(statement: str) -> list[str]:
    """A command that runs a statement: ``timeit`` is there everywhere, and takes any."""
    return [sys.executable, "-m", "timeit", "-n", "1", "-r", "1", statement]


def forked(command: Sequence[str]) -> list[str]:
    return list(command)


both = pytest.mark.parametrize("begun", [forked, anew], ids=["forked", "started"])


@contextmanager
def ready(folder: Path, command: Sequence[str]) -> Iterator[Process]:
    """A command at work that has said so."""
    with at_work(command, folder, folder / "said") as process:
        until(lambda: "ready" in (folder / "said").read_text(), PATIENCE, "it is ready")
        yield process


@both
def test_its_folder_environment_arguments_streams_and_descriptors_are_its_own(tmp_path: Path, begun: Begun) -> None:
    seen = "[os.getcwd(), os.environ.get('A'), 'HOME' in os.environ, sys.argv[1:5], os.getsid(0) == os.getpid()]"
    code = (
        f"import os, sys; print({seen}, sorted(map(int, os.listdir('/proc/self/fd')))[:4]); print('e', file=sys.stderr)"
    )
    environment = {"A": "b", "PATH": os.environ["PATH"]}
    done = finished(begun(runs(code)), tmp_path, environment=environment)
    said = [str(tmp_path), "b", False, ["-n", "1", "-r", "1"], True]
    assert (done.code, done.out.splitlines()[0], done.err) == (0, f"{said} [0, 1, 2, 3]", "e\n")


@both
def test_its_exit_code_is_told(tmp_path: Path, begun: Begun) -> None:
    statements = ("pass", "raise ValueError", "import os; os._exit(70)")
    assert [finished(begun(runs(each)), tmp_path).code for each in statements] == [0, 1, 70]


@both
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_signal_ends_it_and_is_told(tmp_path: Path, begun: Begun, number: signal.Signals) -> None:
    with ready(tmp_path, begun(runs("import os, time; os.write(1, b'ready'); time.sleep(1000)"))) as process:
        os.kill(process.pid, number)
        assert process.wait(PATIENCE) == -number
        process.kill()  # it has ended: nobody else is hit


@both
def test_ctrl_c_reaches_its_whole_group(tmp_path: Path, begun: Begun) -> None:
    code = "import os, subprocess; subprocess.run(['sh', '-c', 'trap \"echo heard; exit\" INT; echo ready; sleep 1000 & wait'])"
    with ready(tmp_path, begun(runs(code))) as process:
        os.killpg(process.pid, signal.SIGINT)
        assert process.wait(PATIENCE) != 0
    until(lambda: "heard" in (tmp_path / "said").read_text(), PATIENCE, "the child has heard it, too")
    assert "KeyboardInterrupt" in (tmp_path / "said").read_text()


def test_forked_commands_draw_random_numbers_of_their_own(tmp_path: Path) -> None:
    drawn = "import random, uuid, secrets; print(random.random(), uuid.uuid4(), secrets.token_hex(8))"
    said = [finished(runs(drawn), tmp_path).out.splitlines()[0].split() for _ in range(2)]
    assert set(said[0]) & set(said[1]) == set()
