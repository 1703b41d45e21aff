"""Round trips are counted by what waits for what: neither the delay nor the number of pieces matters."""

from __future__ import annotations

import socket
import threading
from contextlib import closing, suppress

import pytest

from benchmarks.round_trips import CLIENT, OTHER, SERVER, Relay, Trips


@pytest.mark.parametrize(
    ("talk", "whole", "asked"),
    [
        ("", 1, 0),
        ("s.", 2, 0),
        ("s.c.", 2, 0),
        ("c.s.", 2, 1),
        ("cs.s.", 2, 1),
        ("s.c.s.", 3, 1),
        ("s.ccc.ss.", 3, 1),
        ("s.c.s.c.s.", 4, 2),
    ],
)
def test_what_waits_counts_and_what_does_not_is_free(talk: str, whole: int, asked: int) -> None:
    """``c`` and ``s``: the client or the server sends a piece; ``.``: all that was sent arrives. TCP's round trip counts."""
    trips = Trips()
    under_way: list[tuple[str, int]] = []
    for letter in talk:
        if letter == ".":
            for to, clock in under_way:
                trips.delivered(to, clock)
            under_way.clear()
        else:
            side = CLIENT if letter == "c" else SERVER
            under_way.append((OTHER[side], trips.sent(side, 1)))
    assert (trips.whole, trips.asked) == (whole, asked)


def answering(listener: socket.socket) -> None:
    with suppress(OSError), listener.accept()[0] as end:
        while data := end.recv(100):
            end.sendall(data)


@pytest.mark.process
def test_three_questions_after_each_others_answer_and_one_in_two_pieces() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        server = threading.Thread(target=answering, args=(listener,))
        server.start()
        with (
            closing(Relay("127.0.0.1", 0, listener.getsockname()[1], one_way=0.0)) as relay,
            socket.create_connection(("127.0.0.1", relay.port)) as client,
        ):
            for question in (b"one", b"two", b"three"):
                client.sendall(question)
                assert client.recv(100) == question
            client.shutdown(socket.SHUT_WR)
            assert client.recv(100) == b""
        server.join()
    (trips,) = relay.connections
    assert (trips.whole, trips.asked) == (1 + 3, 3)
    assert (trips.bytes_from(CLIENT), trips.bytes_from(SERVER)) == (11, 11)
