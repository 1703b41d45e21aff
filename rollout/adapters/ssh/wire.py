"""From a host name to a socket with a received SSH banner, every step within a deadline."""

from __future__ import annotations

import socket
from contextlib import suppress
from typing import Any, Protocol

import paramiko

from rollout.adapters.ssh.ascii_text import printable
from rollout.adapters.ssh.limits import KIB, Deadline
from rollout.adapters.ssh.patterns import is_address
from rollout.adapters.ssh.troubles import DroppedError, told, translate
from rollout.adapters.ssh.watchdog import aside
from rollout.errors import RemoteError

BANNER_LIMIT = 8192
CHUNK = 4 * KIB
"""A thread that waits for a packet holds so much memory: 32 KiB for each of 2,000 idle connections took 200 MB."""
VERSION = f"SSH-2.0-paramiko_{paramiko.__version__}\r\n".encode()
Address = tuple[int, tuple[Any, ...]]


QUICKACK = getattr(socket, "TCP_QUICKACK", None)


class Carrier(Protocol):
    """The medium of a connection: a TCP socket, a tunnel through a bastion, or a program. ``ahead`` is read first; ``said`` was sent already.

    ``blame`` names the bastion that lost the tunnel's own connection, or how the program stands.
    """

    ahead: bytes
    said: bytes

    def settimeout(self, seconds: float, /) -> None: ...

    def recv(self, size: int, /) -> bytes: ...

    def send(self, data: bytes, /) -> int: ...

    def shutdown(self, how: int, /) -> None: ...

    def close(self) -> None: ...

    def blame(self) -> RemoteError | None: ...


class Wire(socket.socket):
    """A TCP socket that returns bytes read ahead, and acknowledges at once.

    sshd leaves Nagle's algorithm on: with delayed acknowledgements, connecting stalls for 40 ms at a time. Connect and
    ``true`` on a systemd node then take 135 ms instead of 82. Linux resets quick acknowledgements, so the option is set
    again.
    """

    ahead = b""
    said = b""

    def blame(self) -> None:
        return None

    def recv(self, bufsize: int, flags: int = 0, /) -> bytes:
        """paramiko reads a packet in two small parts: what has arrived is taken from the kernel together."""
        if not self.ahead:
            self.ahead = super().recv(max(bufsize, CHUNK), flags)
            if QUICKACK is not None and self.ahead:
                self.setsockopt(socket.IPPROTO_TCP, QUICKACK, 1)
        data, self.ahead = self.ahead[:bufsize], self.ahead[bufsize:]
        return data


def connect(host: str, port: int, family: int, deadline: Deadline) -> Wire:
    """A connected socket: tries every address of the name, each with its share of the remaining time."""
    addresses = look_up(host, port, family, deadline)
    trouble: OSError = TimeoutError("")
    for position, (kind, address) in enumerate(addresses):
        try:
            return _open(kind, address, max(0.001, deadline.left() / (len(addresses) - position)))
        except OSError as error:
            trouble = error
    raise translate(trouble, at=printable(f"[{host}]:{port}" if ":" in host else f"{host}:{port}", 120))


def _open(kind: int, address: tuple[Any, ...], seconds: float) -> Wire:
    wire = Wire(kind, socket.SOCK_STREAM)
    try:
        wire.settimeout(seconds)
        wire.connect(address)
        _tune(wire)
    except BaseException:
        wire.close()
        raise
    return wire


def look_up(host: str, port: int, family: int, deadline: Deadline) -> list[Address]:
    """Addresses of a host. getaddrinfo has no deadline, so the look-up runs on a thread that may be abandoned."""
    if is_address(host):
        return _ask(host, port, family, socket.AI_NUMERICHOST)
    late = told("name-not-known", "no answer in time", at=printable(host))
    return aside(lambda: _ask(host, port, family, 0), deadline.left(), late)


def _ask(host: str, port: int, family: int, flags: int) -> list[Address]:
    try:
        addresses = socket.getaddrinfo(host, port, family, socket.SOCK_STREAM, 0, flags)
    except UnicodeError:
        raise told("name-not-known", "it is not a host name", at=printable(host)) from None
    except OSError as error:
        raise translate(error, at=printable(host)) from None
    return [(entry[0], entry[4]) for entry in addresses]


def _tune(wire: Wire) -> None:
    """No Nagle stalls (two of 40 ms an exec); the kernel detects a dead peer in 30 s."""
    wire.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    wire.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in (("TCP_KEEPIDLE", 15), ("TCP_KEEPINTVL", 5), ("TCP_KEEPCNT", 3), ("TCP_USER_TIMEOUT", 30_000)):
        if hasattr(socket, name):
            with suppress(OSError):
                wire.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)


def exchange_versions(wire: Carrier, deadline: Deadline) -> None:
    """Send our version, and wait for the node's; its bytes are kept for paramiko to read again.

    Ours does not wait for the node's, as with OpenSSH's client: the node begins the key exchange when it has it, a round trip earlier.
    This runs before the handshake slot is taken and before paramiko's thread starts. So a hanging node costs one socket
    only. Endless garbage is cut off (paramiko would collect a line without end).
    """
    with suppress(OSError):  # who has ended may have said why
        while len(wire.said) < len(VERSION):
            wire.settimeout(deadline.left())
            wire.said = VERSION[: len(wire.said) + wire.send(VERSION[len(wire.said) :])]
    seen = b""
    while not any(line.startswith(b"SSH-") for line in seen.split(b"\n")[:-1]):
        if len(seen) >= BANNER_LIMIT:
            raise RemoteError("no-banner", f"the server is not SSH: {_start(seen)}")
        left = deadline.left()
        if not left:
            raise RemoteError("no-banner", f"no SSH banner in time{_sent_by_peer(seen)}")
        wire.settimeout(left)
        try:
            data = wire.recv(BANNER_LIMIT)
        except TimeoutError:
            continue
        except OSError as error:
            raise DroppedError("no-banner", f"the connection broke before the SSH banner: {error.strerror}") from None
        if not data:
            raise DroppedError("no-banner", f"the connection was closed before the SSH banner{_sent_by_peer(seen)}")
        seen += data
    wire.ahead = seen + wire.ahead


def _sent_by_peer(seen: bytes) -> str:
    return f"; it sent: {_start(seen)}" if seen else ""


def _start(seen: bytes) -> str:
    return printable(seen.decode("ascii", "replace").strip(), 80)
