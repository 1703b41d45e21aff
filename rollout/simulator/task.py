"""A call that can stand still in its middle while others go on: a thread that runs only when it is told to."""

from __future__ import annotations

import threading
from collections.abc import Callable


class Task:
    """``resume`` runs it until it pauses or ends; what it raises is raised there. One of both sides runs, never two."""

    def __init__(self, call: Callable[[], None]) -> None:
        self.done = False
        self._call = call
        self._go = threading.Semaphore(0)
        self._back = threading.Semaphore(0)
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def resume(self) -> None:
        if self.done:
            return
        self._go.release()
        self._back.acquire()
        if self._error is not None:
            error, self._error = self._error, None
            raise error

    def pause(self) -> None:
        """Called inside."""
        self._back.release()
        self._go.acquire()

    def _run(self) -> None:
        self._go.acquire()
        try:
            self._call()
        except BaseException as exc:  # noqa: BLE001 - raised again where it was resumed
            self._error = exc
        self.done = True
        self._back.release()
