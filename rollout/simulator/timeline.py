"""Virtual time: what is to happen, in order. Nobody waits."""

from __future__ import annotations

import heapq
import threading
from collections.abc import Callable
from itertools import count

# A call that can stand still in its middle while others go on: a thread that runs only when it is told to.


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


class Timeline:
    """``now`` moves on only by what is run."""

    def __init__(self) -> None:
        self.now = 0.0
        self._tie = count()
        self._heap: list[tuple[float, int, Callable[[], None]]] = []

    def at(self, when: float, action: Callable[[], None]) -> None:
        """Do it then; what lies in the past is done next."""
        heapq.heappush(self._heap, (max(when, self.now), next(self._tie), action))

    def after(self, seconds: float, action: Callable[[], None]) -> None:
        self.at(self.now + seconds, action)

    def run(self, until: float, awaited: Callable[[], bool] = lambda: False) -> None:
        """All that happens up to ``until``, or up to what is awaited."""
        while self._heap and self._heap[0][0] <= until and not awaited():
            when, _, action = heapq.heappop(self._heap)
            self.now = max(self.now, when)
            action()
        if not awaited():
            self.now = max(self.now, until)
