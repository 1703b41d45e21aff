"""How many connections of strangers are kept, and that they take no place of those that have shown a secret."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, cast

import pytest
from uvicorn.config import Config
from uvicorn.server import ServerState

from rollout.features.serve.client.server import (
    ACCEPTED_AT_ONCE,
    MOST_KNOWN,
    MOST_STRANGERS,
    STRANGER_SECONDS,
    Lobby,
    Visitor,
)


@dataclass(eq=False)
class Stranger:
    """What the lobby uses of a connection."""

    ended: bool = False
    transport: Stranger = field(init=False)

    def __post_init__(self) -> None:
        self.transport = self

    def abort(self) -> None:
        self.ended = True


def come(lobby: Lobby, many: int) -> list[Stranger]:
    found = [Stranger() for _ in range(many)]
    for each in found:
        lobby.enter(cast("Visitor", each))
    return found


def test_the_oldest_strangers_are_ended_and_no_one_that_was_let_in() -> None:
    lobby = Lobby()
    (operator,) = come(lobby, 1)
    assert lobby.let_in(cast("Visitor", operator))
    strangers = come(lobby, MOST_STRANGERS + 3)
    assert [each.ended for each in strangers[:4]] == [True, True, True, False]
    assert not any(each.ended for each in [operator, *strangers[3:]])
    lobby.dismiss(cast("Visitor", operator))
    assert not operator.ended, "its time is not limited"


def test_a_connection_survives_what_the_loop_accepts_with_it_on_both_addresses() -> None:
    assert MOST_STRANGERS > 2 * ACCEPTED_AT_ONCE


def test_those_that_were_let_in_are_bounded_too_and_leave_room() -> None:
    lobby = Lobby()
    known = come(lobby, MOST_KNOWN + 1)
    let_in = [lobby.let_in(cast("Visitor", each)) for each in known]
    assert let_in == [True] * MOST_KNOWN + [False]
    assert lobby.let_in(cast("Visitor", known[0])), "its next request"
    lobby.leave(cast("Visitor", known[0]))
    assert lobby.let_in(cast("Visitor", known[-1]))


class VirtualLoop(asyncio.SelectorEventLoop):
    """A loop with a clock that only the test moves."""

    at = 0.0

    def time(self) -> float:
        return self.at

    def spend(self, seconds: float) -> None:
        """Time passes, and what is due by then is done."""
        self.at += seconds
        for _ in range(3):
            self.call_soon(self.stop)
            self.run_forever()


@contextmanager
def connected(lobby: Lobby, loop: VirtualLoop) -> Iterator[tuple[socket.socket, Visitor]]:
    """A browser's end of a real connection, and the server's protocol on the other end."""
    browser, server = socket.socketpair()
    browser.settimeout(0)
    made: list[Any] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        made.append(scope["state"]["let_in"]())
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"x"})

    config = Config(app, http="h11", ws="none", lifespan="off", log_config=None)
    config.load()

    def protocol() -> asyncio.Protocol:
        return lobby.protocol()(config=config, server_state=ServerState(), app_state={}, _loop=loop)  # type: ignore[call-arg]

    _, visitor = loop.run_until_complete(loop.create_connection(protocol, sock=server))
    with browser:
        yield browser, cast("Visitor", visitor)


def is_open(browser: socket.socket) -> bool:
    """Whether the other end has not ended the connection, after what it has sent."""
    try:
        while browser.recv(4096):
            pass
    except BlockingIOError:
        return True
    except ConnectionResetError:
        return False
    return False


@pytest.fixture
def loop() -> Iterator[VirtualLoop]:
    made = VirtualLoop()
    yield made
    made.spend(3600)
    made.close()


@pytest.mark.process
@pytest.mark.parametrize("sent", [b"", b"GET / HT", b"GET / HTTP/1.1\r\nHost: x\r\nX: "])
def test_a_stranger_that_shows_no_secret_is_ended_when_its_time_is_over(loop: VirtualLoop, sent: bytes) -> None:
    """Also when it goes on sending: its time counts from the beginning."""
    lobby = Lobby()
    with connected(lobby, loop) as (browser, _):
        browser.send(sent)
        for _ in range(9):
            loop.spend(STRANGER_SECONDS / 10)
            browser.send(b"y" if sent else b"")
        assert is_open(browser)
        loop.spend(STRANGER_SECONDS / 10 + 0.01)
        assert not is_open(browser)
        assert not lobby.strangers


@pytest.mark.process
def test_a_browser_that_was_let_in_may_stay(loop: VirtualLoop) -> None:
    lobby = Lobby()
    with connected(lobby, loop) as (browser, visitor):
        browser.send(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        loop.spend(0.1)
        assert visitor in lobby.known
        visitor.timeout_keep_alive_task.cancel()  # type: ignore[union-attr]  # uvicorn's own limit between two requests
        loop.spend(10 * STRANGER_SECONDS)
        assert is_open(browser)
