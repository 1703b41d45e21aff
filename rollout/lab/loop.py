"""One thread that waits for descriptors, moments and calls from other threads. All of the lab's state lives in it."""

from __future__ import annotations

import heapq
import itertools
import os
import select
import sys
import time
import traceback
from collections import deque
from collections.abc import Callable

Handler = Callable[[], None]


class Loop:
    """``epoll`` with a heap of timers. An exception of a handler is written to stderr; the loop continues."""

    def __init__(self) -> None:
        self._epoll = select.epoll()
        self._handlers: dict[int, Handler] = {}
        self._moments: list[tuple[float, int, Handler]] = []
        self._calls: deque[Handler] = deque()
        self._numbers = itertools.count()
        self._wake = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._running = False
        self.watch(self._wake, self._woken)

    @staticmethod
    def now() -> float:
        """The lab's clock: the host's CLOCK_MONOTONIC, like systemd's."""
        return time.monotonic()

    def watch(self, descriptor: int, handler: Handler, *, writing: bool = False) -> None:
        """Call ``handler`` whenever the descriptor can be read (or written)."""
        self._handlers[descriptor] = handler
        self._epoll.register(descriptor, select.EPOLLOUT if writing else select.EPOLLIN)

    def forget(self, descriptor: int) -> None:
        """No more calls for this descriptor; before it is closed."""
        if self._handlers.pop(descriptor, None) is not None:
            self._epoll.unregister(descriptor)

    def at(self, moment: float, handler: Handler) -> None:
        """Call ``handler`` at a moment of ``now``."""
        heapq.heappush(self._moments, (moment, next(self._numbers), handler))

    def call(self, handler: Handler) -> None:
        """Call ``handler`` soon; the one method that other threads may use."""
        self._calls.append(handler)
        os.eventfd_write(self._wake, 1)

    def run(self) -> None:
        """Until ``stop``."""
        self._running = True
        while self._running:
            ready = self._epoll.poll(self._patience(), 256)
            for descriptor, handler in [(each, self._handlers.get(each)) for each, _ in ready]:
                if handler is not None and self._handlers.get(descriptor) is handler:  # its number may be reused by now
                    self._guarded(handler)
            now = self.now()
            while self._moments and self._moments[0][0] <= now:
                self._guarded(heapq.heappop(self._moments)[2])

    def stop(self) -> None:
        self._running = False

    def _patience(self) -> float:
        if not self._moments:
            return 60.0
        return min(max(self._moments[0][0] - self.now(), 0.0), 60.0)

    def _woken(self) -> None:
        os.eventfd_read(self._wake)
        for _ in range(len(self._calls)):
            self._guarded(self._calls.popleft())

    @staticmethod
    def _guarded(handler: Handler) -> None:
        try:
            handler()
        except Exception:  # noqa: BLE001 (one node's trouble must not take the fleet down; it is in lab.log)
            traceback.print_exc(file=sys.stderr)
