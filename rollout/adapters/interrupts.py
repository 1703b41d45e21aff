"""Ctrl-C in two steps: the first finishes nodes in flight, the second stops at once. Then the run can be resumed."""

from __future__ import annotations

import signal
from types import FrameType


class Interrupts:
    """Counts SIGINT, SIGTERM and SIGHUP. The second raises ``KeyboardInterrupt`` in the main thread."""

    def __init__(self) -> None:
        self._count = 0

    def install(self) -> None:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, self._on_signal)

    def asked(self) -> bool:
        return self._count > 0

    def _on_signal(self, _number: int, _frame: FrameType | None) -> None:
        self._count += 1
        if self._count > 1:
            raise KeyboardInterrupt
