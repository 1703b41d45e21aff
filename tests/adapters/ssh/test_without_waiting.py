"""What is sent without waiting for an answer: each server here gives an answer only when it has what an impatient client sends behind the question."""

from __future__ import annotations

import gc
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import paramiko
import pytest
from paramiko.auth_handler import AuthHandler
from paramiko.common import AUTH_FAILED, AUTH_SUCCESSFUL, OPEN_SUCCEEDED
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


class LateLogin(AuthHandler):
    """Checks the login when a session was requested behind it."""

    held: Message | None = None

    def _parse_userauth_request(self, message: Message) -> None:
        self.held = message

    def check(self) -> None:
        if self.held is not None:
            super()._parse_userauth_request(self.held)  # type: ignore[misc]


class Rules(paramiko.ServerInterface):
    """Everybody may log in, or nobody, and open a session."""

    def __init__(self, answer: int = AUTH_SUCCESSFUL) -> None:
        self._answer = answer

    def check_auth_publickey(self, username: str, key: paramiko.PKey) -> int:
        return self._answer

    def check_channel_request(self, kind: str, chanid: int) -> int:
        return OPEN_SUCCEEDED


class Server(paramiko.Transport):
    def __init__(self, wire: socket.socket, auth: type[AuthHandler]) -> None:
        super().__init__(wire)
        self._auth = auth
        self.add_server_key(paramiko.ECDSAKey.generate())

    def _parse_newkeys(self, message: Message) -> None:
        self.auth_handler = self._auth(self)
        super()._parse_newkeys(message)  # type: ignore[misc]

    def _ensure_authed(self, kind: int, message: Message) -> Message | None:
        if isinstance(self.auth_handler, LateLogin):
            self.auth_handler.check()
        refusal: Message | None = super()._ensure_authed(kind, message)  # type: ignore[misc]
        return refusal


@contextmanager
def connected(auth: type[AuthHandler] = LateGrant, answer: int = AUTH_SUCCESSFUL) -> Iterator[NodeTransport]:
    """A client of this server."""
    near, far = socket.socketpair()
    server, client = Server(far, auth), NodeTransport(near)
    try:
        server.start_server(event=threading.Event(), server=Rules(answer))
        client.start_client(timeout=LONG)
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


def log_in(client: NodeTransport) -> threading.Event:
    """Set when the login has been answered."""
    done = threading.Event()
    client.log_in("sre", paramiko.ECDSAKey.generate(), done)
    return done


def test_the_login_does_not_wait_for_its_service() -> None:
    with connected() as client:
        assert log_in(client).wait(LONG)
        assert client.is_authenticated()


def test_a_session_does_not_wait_for_the_login() -> None:
    with connected(LateLogin) as client:
        done = log_in(client)
        client.open_ahead()
        gc.collect()  # paramiko itself would forget the channel
        assert done.wait(LONG)
        first = client.session(LONG)
        assert (client.is_authenticated(), first.closed) == (True, False)
        assert client.session(LONG).get_id() != first.get_id()


def test_a_login_that_is_refused_is_not_hidden_by_the_session_behind_it() -> None:
    with connected(LateLogin, AUTH_FAILED) as client:
        done = log_in(client)
        client.open_ahead()
        assert done.wait(LONG)
        assert isinstance(client.get_exception(), paramiko.AuthenticationException)
        assert not client.is_authenticated()


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
        assert log_in(client).wait(LONG)
        client.server_extensions = extensions  # type: ignore[attr-defined]
        assert _signs_at_once(client, key) is expected
