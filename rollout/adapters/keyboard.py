"""Single keys from the terminal of this process, and a terminal that is as it was on every way out."""

from __future__ import annotations

import os
import select
import signal
import termios
import tty
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any, TextIO

MOST_KEYS = 64
"""Bytes that are read at once: more is a paste, and a paste is no set of keys."""


@contextmanager
def ended_by_signals() -> Iterator[None]:
    """SIGTERM and SIGHUP end the process as an exception does, so that everything is restored on the way out."""

    def end(number: int, _frame: FrameType | None) -> None:
        raise SystemExit(128 + number)

    before = {number: signal.signal(number, end) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def has_keys(source: TextIO) -> bool:
    """Whether ``source`` is a terminal and its keys are for this process: in the background they are not."""
    try:
        return source.isatty() and os.tcgetpgrp(source.fileno()) == os.getpgrp()
    except (OSError, ValueError):
        return False


class TerminalKeys:
    """Keys without Enter and without an echo, inside the ``with`` block. Ctrl-C and Ctrl-Z keep their meaning."""

    def __init__(self, source: TextIO) -> None:
        self._fd = source.fileno()
        self._before: list[Any] = []
        self._stopped: Any = None

    def __enter__(self) -> TerminalKeys:
        self._before = termios.tcgetattr(self._fd)
        self._stopped = signal.signal(signal.SIGTSTP, self._stop)
        tty.setcbreak(self._fd, termios.TCSADRAIN)
        return self

    def __exit__(self, *_error: object) -> None:
        signal.signal(signal.SIGTSTP, self._stopped)
        self._restore()

    def within(self, seconds: float) -> str:
        """The keys that were pressed within ``seconds``; returns at the first. Cursor keys and pastes are left out.

        ``EOFError``: the terminal is gone.
        """
        if not select.select([self._fd], [], [], max(0.0, seconds))[0]:
            return ""
        try:
            keys = os.read(self._fd, MOST_KEYS)
        except OSError as error:
            raise EOFError from error
        if not keys:
            raise EOFError
        return "" if keys[:1] == b"\x1b" or len(keys) == MOST_KEYS else keys.decode("ascii", "ignore")

    def forget(self) -> None:
        """Drop keys that were pressed while nobody read them."""
        with suppress(termios.error):
            termios.tcflush(self._fd, termios.TCIFLUSH)

    def _restore(self) -> None:
        with suppress(termios.error, OSError):  # the terminal may be gone
            termios.tcsetattr(self._fd, termios.TCSADRAIN, self._before)

    def _stop(self, number: int, _frame: FrameType | None) -> None:
        """Ctrl-Z: the shell gets its terminal back, and the keys return with this process."""
        self._restore()
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)  # here it stops, until it is continued
        signal.signal(number, self._stop)
        with suppress(termios.error):
            tty.setcbreak(self._fd, termios.TCSADRAIN)
