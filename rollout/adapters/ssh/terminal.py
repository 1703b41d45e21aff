"""The operator's terminal during an interactive shell: what is typed, its modes, and signals that end the session."""

from __future__ import annotations

import os
import signal
import termios
import threading
import tty
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

CHUNK = 64 * 1024


class Keys:
    """What is typed on a terminal. For fabric it is no terminal: else fabric reads key by key and changes the modes."""

    def __init__(self, terminal: int) -> None:
        self._terminal = terminal

    def fileno(self) -> int:
        return self._terminal

    def isatty(self) -> bool:
        return False

    def read(self, _size: int) -> bytes:
        return os.read(self._terminal, CHUNK)


@contextmanager
def raw(terminal: int) -> Iterator[None]:
    """Every key goes to the node, Ctrl-C and Ctrl-Z too. The terminal's modes are restored at the end."""
    before = termios.tcgetattr(terminal)
    tty.setraw(terminal, termios.TCSADRAIN)  # keys typed before are kept
    try:
        yield
    finally:
        termios.tcsetattr(terminal, termios.TCSADRAIN, before)


@contextmanager
def ended_by_signals(end: Callable[[], None]) -> Iterator[None]:
    """SIGTERM and SIGHUP call ``end``, so that the session ends in order and the terminal is restored.

    ``end`` runs on a thread of its own: the main thread may hold a lock that it needs.
    """

    def handle(_number: int, _frame: FrameType | None) -> None:
        threading.Thread(target=end, name="ssh-end", daemon=True).start()

    numbers = (signal.SIGTERM, signal.SIGHUP)
    before = [signal.signal(number, handle) for number in numbers]
    try:
        yield
    finally:
        for number, handler in zip(numbers, before, strict=True):
            signal.signal(number, handler)
