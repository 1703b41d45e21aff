"""The SSH server's side of a connection: paramiko's transport, one small thread each, that passes events to the loop.

The lab's only module that uses paramiko's server.
"""

from __future__ import annotations

import hmac
import logging
import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any

import paramiko
from paramiko.common import AUTH_FAILED, AUTH_SUCCESSFUL, OPEN_FAILED_ADMINISTRATIVELY_PROHIBITED, OPEN_SUCCEEDED

from rollout.lab.loop import Loop

STACK = 256 * 1024
KEX = ("curve25519-sha256@libssh.org", "ecdh-sha2-nistp256")
"""The offered key exchanges: the cheapest; every client in use supports one of them."""

Start = Callable[["Connection", paramiko.Channel, str], None]
Touch = Callable[[paramiko.Channel], None]
Gone = Callable[["Connection"], None]


def prepare() -> None:
    """Once per process: small stacks, no log lines for disconnecting scanners."""
    threading.stack_size(STACK)
    logging.getLogger("paramiko").setLevel(logging.CRITICAL)


def _then_tell(handler: Callable[[Any, Any], None]) -> Callable[[Any, Any], None]:
    def handle(channel: Any, message: Any) -> None:
        handler(channel, message)
        transport = channel.get_transport()
        if isinstance(transport, _Transport):
            transport.told(channel)

    return handle


class _Transport(paramiko.Transport):
    """Notifies the loop after each handled channel message, so that no command starts before its request is answered.

    paramiko has no public hook for that; its table of channel handlers is wrapped instead (the same since 1.x).
    """

    _active_check_timeout = 30.0  # paramiko wakes ten times a second otherwise: 300 idle sessions cost 8 % of a core
    _channel_handler_table = {  # noqa: RUF012 (paramiko's own shape)
        kind: _then_tell(handler) for kind, handler in vars(paramiko.Transport)["_channel_handler_table"].items()
    }
    told: Touch
    ended: Callable[[], None]

    def run(self) -> None:
        try:
            super().run()
        finally:
            self.ended()


def decline(channel: paramiko.Channel, why: str) -> None:
    """End an exec that could not be started, as sshd does."""
    with suppress(OSError, EOFError, paramiko.SSHException):
        channel.send_stderr(f"{why}\n".encode())
        channel.send_exit_status(255)
        channel.close()


class Connection(paramiko.ServerInterface):
    """One client's connection to one node. Only the lab's key is accepted, and only to run commands."""

    def __init__(self, loop: Loop, client: socket.socket, key: bytes, start: Start, touch: Touch, gone: Gone) -> None:
        self._loop, self._key, self._start, self._touch = loop, key, start, touch
        self._socket = client
        self._asked: dict[int, str] = {}
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._transport = _Transport(client)
        self._transport.local_version = "SSH-2.0-rollout-lab"
        self._transport.get_security_options().kex = KEX
        self._transport.told = lambda channel: loop.call(partial(self._told, channel))
        self._transport.ended = lambda: loop.call(partial(gone, self))

    def serve(self, host_key: paramiko.PKey) -> None:
        """Begin the handshake, in its own thread."""
        self._transport.add_server_key(host_key)
        self._transport.start_server(event=threading.Event(), server=self)

    def cut(self) -> None:
        """End it at once, like a pulled cable and a reset."""
        try:
            self._socket.shutdown(socket.SHUT_RDWR)
        except OSError:
            return
        self._transport.close()

    def _told(self, channel: paramiko.Channel) -> None:
        line = self._asked.pop(channel.get_id(), None)
        if line is not None:
            self._start(self, channel, line)
        self._touch(channel)

    def get_allowed_auths(self, username: str) -> str:  # noqa: ARG002
        return "publickey"

    def check_auth_publickey(self, username: str, key: paramiko.PKey) -> int:  # noqa: ARG002
        same = hmac.compare_digest(key.asbytes(), self._key)
        return AUTH_SUCCESSFUL if same else AUTH_FAILED

    def check_channel_request(self, kind: str, chanid: int) -> int:  # noqa: ARG002
        return OPEN_SUCCEEDED if kind == "session" else OPEN_FAILED_ADMINISTRATIVELY_PROHIBITED

    def check_channel_exec_request(self, channel: paramiko.Channel, command: bytes) -> bool:
        self._asked[channel.get_id()] = command.decode("utf-8", "surrogateescape")
        return True

    def check_channel_shell_request(self, channel: paramiko.Channel) -> bool:
        self._asked[channel.get_id()] = "exec /bin/sh"
        return True
