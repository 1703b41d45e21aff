"""Deadlines for calls that have none of their own: a thread that closes connections, and calls on abandoned threads.

paramiko waits without a deadline in several places (the answer to an exec request, a full socket). Shutting the socket
down ends all of these waits at once, so one watchdog limits them all.
"""

from __future__ import annotations

import heapq
import itertools
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Protocol, TypeVar

from rollout.adapters.ssh.troubles import translate
from rollout.errors import RemoteError

MANY = 1024


class Closing(Protocol):
    """A connection that can be closed."""

    def shutdown(self, how: int, /) -> None: ...


def hang_up(wire: Closing) -> None:
    """Close a connection now: threads that wait on it see its end. Never blocks."""
    with suppress(OSError):
        wire.shutdown(socket.SHUT_RDWR)


class WatchedConnection:
    """A watched connection with its deadline; ``rang``: the watchdog closed it."""

    __slots__ = ("done", "rang", "wire")

    def __init__(self, wire: Closing) -> None:
        self.wire = wire
        self.rang = False
        self.done = False


class Watchdog:
    """Watches any number of connections with one daemon thread, started at first use."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._watches: list[tuple[float, int, WatchedConnection]] = []
        self._numbers = itertools.count()
        self._done = 0  # watches that have ended and are still in the heap
        self._thread: threading.Thread | None = None
        self._closed = False

    @contextmanager
    def over(self, wire: Closing, at: float) -> Iterator[WatchedConnection]:
        """Close ``wire`` if the block has not ended at ``at`` (monotonic)."""
        watch = self.begin(wire, at)
        try:
            yield watch
        finally:
            self.end(watch)

    def begin(self, wire: Closing, at: float) -> WatchedConnection:
        """Close ``wire`` at ``at`` (monotonic), unless ``end`` comes before."""
        watch = WatchedConnection(wire)
        with self._changed:
            if self._thread is None and not self._closed:
                self._thread = threading.Thread(target=self._run, name="ssh-watchdog", daemon=True)
                self._thread.start()
            heapq.heappush(self._watches, (at, next(self._numbers), watch))
            if self._watches[0][2] is watch:
                self._changed.notify()
        return watch

    def end(self, watch: WatchedConnection) -> bool:
        """Whether the connection was not closed."""
        with self._changed:
            if not watch.done and not watch.rang:
                self._done += 1
            watch.done = True
            if self._done > MANY:
                self._done = 0
                self._watches = [entry for entry in self._watches if not entry[2].done]
                heapq.heapify(self._watches)
            return not watch.rang

    def close(self, seconds: float) -> None:
        with self._changed:
            self._closed = True
            self._changed.notify()
            thread = self._thread
        if thread is not None:
            thread.join(seconds)

    def _run(self) -> None:
        with self._changed:
            while not self._closed:
                if not self._watches:
                    self._changed.wait()
                    continue
                at, _, watch = self._watches[0]
                wait = at - time.monotonic()
                if watch.done or wait <= 0:
                    heapq.heappop(self._watches)
                    if watch.done:
                        self._done -= 1
                    else:
                        watch.rang = True
                        hang_up(watch.wire)
                else:
                    self._changed.wait(wait)


# Calls without a deadline of their own (getaddrinfo, an ssh-agent), on a thread that may be abandoned.


T = TypeVar("T")


def aside(call: Callable[[], T], seconds: float, late: RemoteError) -> T:
    """The result of ``call``. Raises its error as ``RemoteError``, or ``late`` after the timeout."""
    box: list[T | RemoteError] = []

    def work() -> None:
        try:
            box.append(call())
        except Exception as error:  # noqa: BLE001 - passed to the waiting thread
            box.append(translate(error))

    thread = threading.Thread(target=work, name="ssh-aside", daemon=True)
    thread.start()
    thread.join(seconds)
    if not box:
        raise late
    if isinstance(box[0], RemoteError):
        raise box[0]
    return box[0]
