"""`rollout watch` on a terminal: its keys, its log, and a terminal that is as it was on every way out."""

from __future__ import annotations

import os
import pty
import re
import signal
import subprocess
import sys
import termios
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TextIO, cast

import pytest

from rollout.adapters.journal import SqlJournal
from rollout.adapters.keyboard import TerminalKeys, has_keys
from rollout.app.following import replay
from rollout.app.ports import Holder
from rollout.cli.watch import WatchKeys
from rollout.core.model.regions import RegionStanding
from rollout.core.presentation.watch_keys import Keyboard
from rollout.core.run.state import Phase
from rollout.errors import StateError
from tests.controllers import PATIENCE, until
from tests.core.presentation import journals
from tests.core.presentation import test_view as states
from tests.features.serve.serving import keep

RUN = "r20261120-160000-ab12"


@dataclass
class Watching:
    """``rollout watch`` with a terminal of its own; ``said``: everything that it wrote there."""

    process: subprocess.Popen[bytes]
    person: int
    terminal: int
    before: list[Any]
    said: bytearray = field(default_factory=bytearray)

    def read(self) -> None:
        with suppress(OSError):  # the terminal was closed
            while chunk := os.read(self.person, 65536):
                self.said.extend(chunk)

    @property
    def text(self) -> str:
        """What was written, without what moves the cursor or colours."""
        return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", self.said.decode(errors="replace"))

    def shows(self, words: str) -> None:
        until(lambda: words in self.text or self.process.poll() is not None, PATIENCE, words)
        assert words in self.text, self.text

    def press(self, keys: str) -> None:
        os.write(self.person, keys.encode())

    def ends(self) -> int:
        code = self.process.wait(PATIENCE)
        assert termios.tcgetattr(self.terminal) == self.before, "the terminal is as it was"
        assert b"\x1b[?25l" not in self.said, "the cursor was never hidden"
        return code


@contextmanager
def watching(folder: Path) -> Iterator[Watching]:
    person, terminal = pty.openpty()
    before = termios.tcgetattr(terminal)
    process = subprocess.Popen(
        ["setsid", "--ctty", sys.executable, "-m", "rollout.cli", "watch", "--state", str(folder / "state")], cwd=folder, stdin=terminal, stdout=terminal, stderr=terminal,
        env={**os.environ, "TERM": "xterm-256color", "COLUMNS": "110", "LINES": "50"},
    )  # fmt: skip
    found = Watching(process, person, terminal, before)
    reader = threading.Thread(target=found.read, daemon=True)
    reader.start()
    try:
        yield found
    finally:
        process.kill()
        process.wait()
        os.close(terminal)
        reader.join(PATIENCE)
        os.close(person)


@pytest.fixture
def begun(tmp_path: Path) -> Iterator[SqlJournal]:
    """A run in the soak of a wave. Its controller is alive: it is this test."""
    journal = keep(tmp_path, RUN, *journals.stopped(lambda s: s.phase is Phase.SOAKING and s.wave == 1))
    yield journal
    journal.close()


@pytest.mark.process
def test_keys_list_gates_and_nodes_and_pause_at_once(begun: SqlJournal, tmp_path: Path) -> None:
    with watching(tmp_path) as found:
        found.shows("p pause · a abort · n nodes · g gates · q leave")
        logged = re.compile(r"\d\d:\d\d:\d\d  wave \S+: passed")
        until(lambda: logged.search(found.text), PATIENCE, "a line of the log, with its time")
        found.press("g")
        found.shows("PASS ")
        found.press("n")
        found.shows("tess-node-")
        found.press("ay")  # pasted
        found.shows("abort: not sent")
        assert begun.requests(RUN, 0) == ()
        found.press("p")
        until(lambda: begun.requests(RUN, 0), PATIENCE, "the request")
        assert [each.word for each in begun.requests(RUN, 0)] == ["pause"]
        found.shows("pause: recorded")
        found.press("q")
        assert found.ends() == 0
        said = f"run {RUN} goes on without this terminal"
        until(lambda: said in found.text, PATIENCE, said)  # what a terminal has is read by another thread


@pytest.mark.process
@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)], ids=["SIGTERM", "Ctrl-C"])
def test_a_signal_leaves_the_terminal_as_it_was(
    begun: SqlJournal, tmp_path: Path, number: signal.Signals, code: int
) -> None:
    assert begun
    with watching(tmp_path) as found:
        found.shows("q leave")
        assert termios.tcgetattr(found.terminal) != found.before, "keys come without Enter"
        found.process.send_signal(number)
        assert found.ends() == code


@pytest.mark.process
def test_a_journal_that_breaks_leaves_the_terminal_as_it_was(begun: SqlJournal, tmp_path: Path) -> None:
    with watching(tmp_path) as found:
        found.shows("q leave")
        begun.append(RUN, ['{"event": "none"}'])
        assert found.ends() != 0


@dataclass
class Screen:
    """A display of keys; ``shown``: the newest."""

    shown: Keyboard = field(default_factory=Keyboard)

    def show_keys(self, keyboard: Keyboard) -> None:
        self.shown = keyboard

    def show_regions(self, regions: tuple[RegionStanding, ...]) -> None:
        """Nothing."""


class Away(SqlJournal):
    """A journal that cannot be reached."""

    def holder(self, cluster: str) -> Holder | None:
        raise StateError("journal-away", f"the lease of {cluster} cannot be read")


def test_keys_are_read_while_the_journal_is_away(begun: SqlJournal, tmp_path: Path) -> None:
    """`follow` waits for the journal, and says so when it gives up."""
    person, terminal = pty.openpty()
    screen, state = Screen(), replay(begun, RUN)
    journal = Away(tmp_path / "state")
    with os.fdopen(terminal, "r+b", buffering=0) as inside, TerminalKeys(cast("TextIO", inside)) as source:
        keys = WatchKeys(source, screen, journal, RUN)
        assert not keys.look(state)
        os.write(person, b"q")
        keys.wait(PATIENCE)
        assert keys.look(state)
    os.close(person)
    journal.close()


@pytest.mark.parametrize("typed", ["ay", "okay, it is today", "pyay"])
def test_a_typed_text_sends_no_request(begun: SqlJournal, typed: str) -> None:
    person, terminal = pty.openpty()
    screen, state = Screen(), replay(begun, RUN)
    with os.fdopen(terminal, "r+b", buffering=0) as inside, TerminalKeys(cast("TextIO", inside)) as source:
        keys = WatchKeys(source, screen, begun, RUN)
        keys.look(state)
        os.write(person, typed.encode())

        def told() -> bool:
            keys.wait(0.01)
            return "not sent" in screen.shown.said

        until(told, PATIENCE, "why nothing is sent")
    os.close(person)
    assert begun.requests(RUN, 0) == ()


def test_a_question_is_not_answered_by_what_was_typed_before_it_was_shown(begun: SqlJournal) -> None:
    person, terminal = pty.openpty()
    screen, state = Screen(), states.held()
    with os.fdopen(terminal, "r+b", buffering=0) as inside, TerminalKeys(cast("TextIO", inside)) as source:
        keys = WatchKeys(source, screen, begun, RUN)
        keys.look(state)
        os.write(person, b"cy")

        def asked_back() -> bool:
            keys.wait(0.01)
            return screen.shown.asking is not None

        until(asked_back, PATIENCE, "a question")
        assert asked_back()
    assert begun.requests(RUN, 0) == ()
    os.close(person)


def test_input_that_is_no_terminal_has_no_keys(tmp_path: Path) -> None:
    with (tmp_path / "keys").open("w+") as source:
        assert not has_keys(source)
