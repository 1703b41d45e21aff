"""Virtual time: a queue of events in order."""

from __future__ import annotations

import heapq
import threading
from collections.abc import Callable
from itertools import count

# A call that can pause while others run: a thread that runs only when it is resumed.


class Task:
    """``resume`` runs it until it pauses or ends, and raises its exceptions. One of the two sides runs at a time."""

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
    """Only running events advances ``now``."""

    def __init__(self) -> None:
        self.now = 0.0
        self._tie = count()
        self._heap: list[tuple[float, int, Callable[[], None]]] = []

    def at(self, when: float, action: Callable[[], None]) -> None:
        """Schedule a call; a time in the past means next."""
        heapq.heappush(self._heap, (max(when, self.now), next(self._tie), action))

    def after(self, seconds: float, action: Callable[[], None]) -> None:
        self.at(self.now + seconds, action)

    def run(self, until: float, awaited: Callable[[], bool] = lambda: False) -> None:
        """Run all events up to ``until``, or until the awaited condition."""
        heap = self._heap
        while heap and heap[0][0] <= until and not awaited():
            self.now, _, action = heapq.heappop(heap)  # never in the past: see ``at``
            action()
        if not awaited():
            self.now = max(self.now, until)
