"""What is sent without waiting for an answer: each server here gives an answer only when it has what an impatient client sends behind the question."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import paramiko
import pytest
from paramiko.auth_handler import AuthHandler
from paramiko.common import AUTH_SUCCESSFUL
from paramiko.message import Message

from rollout.adapters.ssh.handshake import _signs_at_once
from rollout.adapters.ssh.limits import Deadline
from rollout.adapters.ssh.transport import NodeTransport
from rollout.adapters.ssh.wire import VERSION, connect, exchange_versions
from tests.adapters.ssh.scripted import hang, scripted

pytestmark = pytest.mark.process
LONG = 600.0


class LateGrant(AuthHandler):
    """Grants the service when the login was requested."""

    held: Message | None = None

    def _parse_service_request(self, message: Message) -> None:
        self.held = message

    def _parse_userauth_request(self, message: Message) -> None:
        if self.held is not None:
            super()._parse_service_request(self.held)  # type: ignore[misc]
        super()._parse_userauth_request(message)  # type: ignore[misc]


class Rules(paramiko.ServerInterface):
    """Everybody may log in."""

    def check_auth_publickey(self, username: str, key: paramiko.PKey) -> int:
        return AUTH_SUCCESSFUL


class Server(paramiko.Transport):
    def __init__(self, wire: socket.socket) -> None:
        super().__init__(wire)
        self.add_server_key(paramiko.ECDSAKey.generate())

    def _parse_newkeys(self, message: Message) -> None:
        self.auth_handler = LateGrant(self)
        super()._parse_newkeys(message)  # type: ignore[misc]


@contextmanager
def connected() -> Iterator[NodeTransport]:
    """A client that is logged in."""
    near, far = socket.socketpair()
    server, client = Server(far), NodeTransport(near)
    try:
        server.start_server(event=threading.Event(), server=Rules())
        client.start_client(timeout=LONG)
        done = threading.Event()
        client.log_in("sre", paramiko.ECDSAKey.generate(), done)
        assert done.wait(LONG)
        yield client
    finally:
        client.close()
        server.close()


def test_our_version_does_not_wait_for_the_nodes() -> None:
    heard: list[bytes] = []

    def server(connection: socket.socket) -> None:
        heard.append(connection.recv(100))
        connection.sendall(b"SSH-2.0-OpenSSH_9.2\r\n")
        hang(connection)

    with scripted(server) as at, connect("127.0.0.1", at.port, 0, Deadline(LONG)) as wire:
        exchange_versions(wire, Deadline(LONG))
        assert heard == [VERSION]
        assert (wire.said, wire.ahead) == (VERSION, b"SSH-2.0-OpenSSH_9.2\r\n")


def test_the_login_does_not_wait_for_its_service() -> None:
    with connected() as client:
        assert client.is_authenticated()


@pytest.mark.parametrize(
    ("key", "extensions", "expected"),
    [
        (paramiko.ECDSAKey.generate(), {}, True),
        (paramiko.RSAKey.generate(2048), {}, False),
        (paramiko.RSAKey.generate(2048), {"server-sig-algs": b"rsa-sha2-256"}, True),
    ],
    ids=["ecdsa", "rsa", "rsa that the server has spoken of"],
)
def test_a_signature_that_must_be_agreed_on_waits(
    key: paramiko.PKey, extensions: dict[str, bytes], *, expected: bool
) -> None:
    with connected() as client:
        client.server_extensions = extensions  # type: ignore[attr-defined]
        assert _signs_at_once(client, key) is expected
