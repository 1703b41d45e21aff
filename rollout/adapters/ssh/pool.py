"""Open connections, one for each active node, limited in number."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from rollout.adapters.ssh.conversation import Conversation
from rollout.adapters.ssh.limits import Deadline
from rollout.adapters.ssh.transport import NodeTransport
from rollout.adapters.ssh.watchdog import Watchdog, WatchedConnection, hang_up
from rollout.adapters.ssh.wire import Carrier
from rollout.app.ports import Target
from rollout.errors import RemoteError


@dataclass(slots=True, eq=False)
class PooledConnection:
    """A connection. ``users``: commands running on it; ``used``: when it was last released.

    ``conversation`` with the node's agent, which serves the owner of ``talking``. ``rest``: closes it when it is idle.
    """

    transport: NodeTransport
    wire: Carrier
    users: int = 0
    used: float = 0.0
    conversation: Conversation | None = None
    talking: threading.Lock = field(default_factory=threading.Lock)
    rest: WatchedConnection | None = None

    @property
    def alive(self) -> bool:
        return self.transport.is_active()


@dataclass(slots=True)
class _Slot:
    """A node's slot: a thread holds the lock while it connects."""

    connecting: threading.Lock = field(default_factory=threading.Lock)
    link: PooledConnection | None = None


class Pool:
    """Lends connections. At the limit the longest idle connection is closed; if none is idle, callers wait.

    A connection that is idle for ``idle`` seconds is closed.
    """

    def __init__(
        self, limit: int, idle: float, watchdog: Watchdog, dial: Callable[[Target, Deadline], PooledConnection]
    ) -> None:
        self._limit = limit
        self._idle = idle
        self._watchdog = watchdog
        self._dial = dial
        self._changed = threading.Condition()
        self._slots: dict[Target, _Slot] = {}
        self._live: set[PooledConnection] = set()
        self._reserved = 0
        self._closed = False

    def borrow(self, target: Target, deadline: Deadline) -> tuple[PooledConnection, bool]:
        """A connection and whether it is new. Raises ``RemoteError``."""
        with self._changed:
            slot = self._slots.setdefault(target, _Slot())
        if not slot.connecting.acquire(timeout=deadline.left()):
            raise RemoteError("busy", "another command was still connecting to this node")
        try:
            with self._changed:
                link = slot.link
                if link is not None and self._wakes(link):
                    link.users += 1
                    return link, False
            if link is not None:
                self.discard(target, link)
            link = self._connect(target, deadline)
            with self._changed:
                slot.link = link
            return link, True
        finally:
            slot.connecting.release()

    def give_back(self, target: Target, link: PooledConnection, *, keep: bool) -> None:
        with self._changed:
            link.users -= 1
            link.used = time.monotonic()
            if not link.users:
                link.rest = self._watchdog.begin(link.wire, link.used + self._idle)
            slot = self._slots.get(target)
            if not keep and slot is not None and slot.link is link:
                slot.link = None
            orphan = (slot is None or slot.link is not link) and not link.users
            if orphan:
                self._live.discard(link)
            self._changed.notify()
        if orphan:
            self._hang_up(link)

    def _wakes(self, link: PooledConnection) -> bool:
        """Whether it can be used again: it is alive, and was not closed because it was idle."""
        rest, link.rest = link.rest, None
        return (rest is None or self._watchdog.end(rest)) and link.alive

    def _hang_up(self, link: PooledConnection) -> None:
        self._wakes(link)
        hang_up(link.wire)

    def discard(self, target: Target, link: PooledConnection) -> None:
        """Drop a useless connection; commands that still use it end."""
        with self._changed:
            slot = self._slots.get(target)
            if slot is not None and slot.link is link:
                slot.link = None
            self._live.discard(link)
            self._changed.notify()
        self._hang_up(link)

    def release(self, target: Target) -> None:
        with self._changed:
            slot = self._slots.pop(target, None)
            link = slot.link if slot is not None else None
            if link is None or link.users:
                return
            self._live.discard(link)
            self._changed.notify()
        self._hang_up(link)

    def close(self, deadline: Deadline) -> None:
        with self._changed:
            self._closed = True
            links = list(self._live)
            self._live.clear()
            self._slots.clear()
            self._changed.notify_all()
        for link in links:
            self._hang_up(link)
        for link in links:
            link.transport.join(deadline.left())

    def _connect(self, target: Target, deadline: Deadline) -> PooledConnection:
        self._reserve(deadline)
        link = None
        try:
            link = self._dial(target, deadline)
            link.users = 1
        finally:
            with self._changed:
                self._reserved -= 1
                closed = self._closed
                if link is not None and not closed:
                    self._live.add(link)
                self._changed.notify()
        if closed:
            hang_up(link.wire)
            raise RemoteError("closed", "SSH was shut down")
        return link

    def _reserve(self, deadline: Deadline) -> None:
        with self._changed:
            while not self._closed and len(self._live) + self._reserved >= self._limit:
                if not self._evict():
                    left = deadline.left()
                    if not left:
                        raise RemoteError("busy", f"all {self._limit} sessions are in use")
                    self._changed.wait(left)
            if self._closed:
                raise RemoteError("closed", "SSH was shut down")
            self._reserved += 1

    def make_room(self, which: Callable[[PooledConnection], bool]) -> bool:
        """Close the longest idle connection of these. Whether there was one."""
        with self._changed:
            return self._evict(which)

    def _evict(self, which: Callable[[PooledConnection], bool] = lambda _: True) -> bool:
        idle = [
            (slot.link.used, target)
            for target, slot in self._slots.items()
            if slot.link and not slot.link.users and which(slot.link)
        ]
        if not idle:
            return False
        _, target = min(idle, key=lambda entry: entry[0])
        link = self._slots[target].link
        self._slots[target].link = None
        if link is not None:
            self._live.discard(link)
            self._hang_up(link)
        return True
