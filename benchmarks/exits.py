"""What each program that ends costs, as the kernel counts it: nanoseconds of CPU, by the names of programs (root).

The kernel reports the end of every process of this machine over netlink (``linux/taskstats.h``). A process that lives on is not in it.
"""

from __future__ import annotations

import os
import socket
import struct
import sys
import threading
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

_GENERIC = 16
_GET_FAMILY, _FAMILY_ID, _FAMILY_NAME = 3, 1, 2
_CONTROLLER = 16
_REQUEST = 1
_ANY_BUFFER = 33
"""``SO_RCVBUFFORCE``."""
_GET, _REGISTER, _DEREGISTER = 1, 3, 4
_OF_PROCESS, _STATS = 4, 3
_ENDED = struct.Struct("=72xQ32s16xII")
"""In ``struct taskstats``: ``cpu_run_virtual_total`` in nanoseconds, ``ac_comm``, ``ac_pid`` and ``ac_ppid``."""
BUFFER = 64 << 20


@dataclass(frozen=True, slots=True)
class Ended:
    """One process. ``nanoseconds``: of CPU, without those of its children."""

    program: str
    nanoseconds: int
    pid: int
    parent: int


@dataclass
class Exits:
    """Name of a program → how many of its processes ended, and their nanoseconds of CPU."""

    times: Counter[str] = field(default_factory=Counter)
    nanoseconds: dict[str, int] = field(default_factory=lambda: defaultdict(int))

    def add(self, ended: Iterable[Ended], alive: Collection[int]) -> None:
        """Those that descend from these processes."""
        waiting, known = list(ended), set(alive)
        while found := [each for each in waiting if each.parent in known]:
            for each in found:
                self.times[each.program] += 1
                self.nanoseconds[each.program] += each.nanoseconds
            waiting = [each for each in waiting if each.parent not in known]
            known |= {each.pid for each in found}

    def of(self, name: str, times: int) -> str:
        """Of one of so many repetitions."""
        return f"{self.nanoseconds[name] / 1e6 / times:.1f} ms, {self.times[name] / times:.3g} ×"


@contextmanager
def exits() -> Iterator[list[Ended]]:
    """All processes that end until the end; complete only after it."""
    found: list[Ended] = []
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, _GENERIC) as link:
        link.setsockopt(socket.SOL_SOCKET, _ANY_BUFFER, BUFFER)
        link.bind((0, 0))
        family = _family(link)
        processors = f"0-{(os.cpu_count() or 1) - 1}\0".encode()
        link.send(_message(family, _GET, _REGISTER, processors))
        over = threading.Event()
        reader = threading.Thread(target=_read, args=(link, over, found))
        reader.start()
        try:
            yield found
        finally:
            over.set()
            reader.join()
            link.send(_message(family, _GET, _DEREGISTER, processors))


def _read(link: socket.socket, over: threading.Event, found: list[Ended]) -> None:
    link.settimeout(0.2)
    while True:
        try:
            said = link.recv(65536)
        except TimeoutError:
            if over.is_set():
                return
            continue
        for kind, stats in _attributes(said[20:]):
            for inner, value in _attributes(stats) if kind == _OF_PROCESS else ():
                if inner == _STATS:
                    cost, name, pid, parent = _ENDED.unpack_from(value)
                    found.append(Ended(name.partition(b"\0")[0].decode(errors="replace"), cost, pid, parent))


def _family(link: socket.socket) -> int:
    link.send(_message(_CONTROLLER, _GET_FAMILY, _FAMILY_NAME, b"TASKSTATS\0"))
    said = link.recv(65536)
    return next(
        int.from_bytes(value[:2], sys.byteorder) for kind, value in _attributes(said[20:]) if kind == _FAMILY_ID
    )


def _message(family: int, command: int, attribute: int, value: bytes) -> bytes:
    body = struct.pack("=BBH", command, 1, 0) + struct.pack("=HH", 4 + len(value), attribute) + value
    body += b"\0" * (-len(body) % 4)
    return struct.pack("=IHHII", 16 + len(body), family, _REQUEST, 1, 0) + body


def _attributes(data: bytes) -> Iterator[tuple[int, bytes]]:
    while len(data) >= 4:
        size, kind = struct.unpack_from("=HH", data)
        if size < 4:
            return
        yield kind, data[4:size]
        data = data[(size + 3) & ~3 :]
