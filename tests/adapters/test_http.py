"""HTTP: one deadline for the look-up of the name, every address, the request and the answer."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any

import pytest

from rollout.adapters.http import Http
from rollout.errors import AwayError, RemoteError
from tests.adapters.web import Reply, web

pytestmark = pytest.mark.process
Addresses = list[tuple[socket.AddressFamily, socket.SocketKind, int, str, tuple[str, int]]]


def addresses(*names: str, port: int) -> Addresses:
    return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (name, port)) for name in names]


@pytest.fixture
def silent() -> Iterator[int]:
    """A port that answers no connection on any address of loopback: its queue is full."""
    with socket.create_server(("0.0.0.0", 0), backlog=0) as full:  # noqa: S104 - loopback has many addresses
        port: int = full.getsockname()[1]
        waiting = [socket.socket() for _ in range(4)]
        for each in waiting:
            each.settimeout(0)
            each.connect_ex(("127.0.0.1", port))
        yield port
        for each in waiting:
            each.close()


def error(url: str, body: bytes = b"", timeout: float = 0.5) -> str:
    with closing(Http()) as http, pytest.raises(RemoteError) as raised:
        http.ask("POST" if body else "GET", url, body=body, timeout=timeout)
    return raised.value.reference


def test_a_name_with_many_silent_addresses_gets_one_deadline(silent: int, monkeypatch: pytest.MonkeyPatch) -> None:
    many = addresses(*(f"127.0.{high}.{low}" for high in range(9) for low in range(1, 250)), port=silent)
    monkeypatch.setattr(socket, "getaddrinfo", _known(many))
    assert error(f"http://prometheus.example:{silent}/") == "deadline"


def test_the_next_address_of_a_name_is_tried_in_time(silent: int, monkeypatch: pytest.MonkeyPatch) -> None:
    with web(Reply(body=b"here")) as found, closing(Http()) as http:
        port = int(found.url.rpartition(":")[2])
        two = [*addresses("127.0.0.9", port=silent), *addresses("127.0.0.1", port=port)]
        monkeypatch.setattr(socket, "getaddrinfo", _known(two))
        assert http.ask("GET", "http://shop.example/", timeout=10.0).body == b"here"


def test_a_resolver_that_never_answers_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    over = threading.Event()

    def resolve(*_words: object, **_named: object) -> Addresses:
        over.wait()
        return []

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    assert error("http://prometheus.example/") == "deadline"
    over.set()


def test_a_connection_that_is_closed_before_tls_shows_nothing_about_a_certificate() -> None:
    """So does a load balancer without a back end, while an API server restarts. A retry may succeed."""

    def close(server: socket.socket) -> None:
        wire, _ = server.accept()
        with wire:
            wire.recv(1 << 14)  # the beginning of TLS; what is unread would be a reset
            wire.shutdown(socket.SHUT_WR)
            wire.recv(1)

    with socket.create_server(("127.0.0.1", 0)) as server, closing(Http()) as http:
        threading.Thread(target=close, args=(server,), daemon=True).start()
        with pytest.raises(AwayError, match="the connection was closed before TLS had begun"):
            http.ask("GET", f"https://127.0.0.1:{server.getsockname()[1]}/", timeout=30.0)


def test_half_an_answer_is_not_told_as_something_else_than_http() -> None:
    with (
        web(Reply(raw=b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf")) as found,
        closing(Http()) as http,
        pytest.raises(AwayError, match="not a whole HTTP answer"),
    ):
        http.ask("GET", found.url, timeout=30.0)


def test_a_server_that_reads_a_request_slowly_does_not_get_all_of_it() -> None:
    body, taken, pace = b"x" * 50_000_000, [0], threading.Event()

    def read(server: socket.socket) -> None:
        wire, _ = server.accept()
        with wire:
            while got := len(wire.recv(1 << 18)):
                taken[0] += got
                pace.wait(0.05)

    with socket.create_server(("127.0.0.1", 0)) as server:
        reader = threading.Thread(target=read, args=(server,))
        reader.start()
        assert error(f"http://127.0.0.1:{server.getsockname()[1]}/", body, timeout=1.0) == "deadline"
        reader.join()
    assert taken[0] < len(body)


def _known(found: Addresses) -> Callable[..., Any]:
    """A resolver that knows one name; an address is its own name."""
    asked: Callable[..., Any] = socket.getaddrinfo
    return lambda host, *words, **named: found if host.endswith(".example") else asked(host, *words, **named)
