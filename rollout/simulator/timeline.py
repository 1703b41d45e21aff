"""Virtual time: what is to happen, in order. Nobody waits."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from itertools import count


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
