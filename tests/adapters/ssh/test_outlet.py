"""The order of a channel's messages, checked at each point where a thread may be interrupted."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from paramiko.channel import Channel
from paramiko.common import MSG_CHANNEL_CLOSE, MSG_CHANNEL_DATA, MSG_CHANNEL_EOF, MSG_CHANNEL_OPEN
from paramiko.message import Message
from paramiko.ssh_exception import SSHException

from rollout.adapters.ssh.limits import Deadline
from rollout.adapters.ssh.transport import CarrierTransport

THEIRS = 7


class Carrier(CarrierTransport):
    """Records the messages. Data waits for ``turn``, as with a full socket."""

    def __init__(self, wire: socket.socket) -> None:
        super().__init__(wire)
        self.active = True
        self.sent: list[tuple[int, int]] = []
        self.reached, self.turn = threading.Event(), threading.Event()
        self.broken = self.slow = False

    def _send_user_message(self, message: Message) -> None:
        if self.broken:
            raise SSHException("broken")
        read = Message(message.asbytes())
        kind = read.get_byte()[0]
        if kind == MSG_CHANNEL_OPEN:
            if not self.slow:
                self.opens()
            return
        if kind == MSG_CHANNEL_DATA:
            self.reached.set()
            assert self.turn.wait(60)
        self.sent.append((kind, read.get_int()))

    def opens(self) -> None:
        """The bastion opens the channel that was requested last, with the number ``THEIRS``."""
        message = Message()
        for number in (self._mine.number, THEIRS, 1 << 20, 1 << 15):
            message.add_int(number)
        message.rewind()
        self._parse_channel_open_success(message)

    def opened(self, seconds: float = 60) -> Channel:
        return self.open_tunnel("n1", 22, Deadline(seconds))

    def hears_close(self, channel: Channel) -> None:
        self._channel_handler_table[MSG_CHANNEL_CLOSE](channel, Message())


def _late(channel: Channel) -> None:
    """A thread has seen the channel open and was interrupted. It sends when the channel is closed."""
    way: Any = channel.transport
    way._send_user_message(Message(bytes([MSG_CHANNEL_DATA, 0, 0, 0, THEIRS])))  # noqa: SLF001 - as paramiko's Channel does


@pytest.fixture
def carrier() -> Iterator[Carrier]:
    near, far = socket.socketpair()
    carrier = Carrier(near)
    yield carrier
    carrier.turn.set()
    carrier.closer.stop(60)
    near.close()
    far.close()


def _sending(channel: Channel) -> threading.Thread:
    thread = threading.Thread(target=channel.send, args=(b"late",), daemon=True)
    thread.start()
    return thread


WHOLE = [(MSG_CHANNEL_DATA, THEIRS), (MSG_CHANNEL_EOF, THEIRS), (MSG_CHANNEL_CLOSE, THEIRS)]
pytestmark = pytest.mark.process


def test_data_in_progress_is_sent_before_the_close_and_blocks_no_thread(carrier: Carrier) -> None:
    channel = carrier.opened()
    sender = _sending(channel)
    assert carrier.reached.wait(60)
    carrier.closer.start()
    carrier.closer.end(channel)
    carrier.closer.stop(60)  # it is through: the end waits behind the data, and the closer does not
    assert carrier.sent == []
    carrier.turn.set()
    sender.join(60)
    assert carrier.sent == WHOLE


def test_data_after_the_close_is_not_sent(carrier: Carrier) -> None:
    channel = carrier.opened()
    carrier.turn.set()
    channel.close()
    _late(channel)
    carrier.hears_close(channel)
    assert carrier.sent == WHOLE[1:]


def test_a_new_channel_with_a_reused_number_gets_no_data_of_the_old_one(carrier: Carrier) -> None:
    old = carrier.opened()
    carrier.turn.set()
    old.close()
    new = carrier.opened()
    _late(old)
    new.send(b"mine")
    assert carrier.sent == [*WHOLE[1:], WHOLE[0]]


def test_the_other_sides_close_is_answered_by_the_closer(carrier: Carrier) -> None:
    """The thread that reads must not wait until sending is allowed again: during a key exchange only it can end the wait."""
    channel = carrier.opened()
    carrier.hears_close(channel)
    assert carrier.sent == []
    assert channel.closed
    carrier.closer.start()
    carrier.closer.stop(60)
    assert carrier.sent == WHOLE[1:]


def test_a_tunnel_that_opens_too_late_is_closed_by_the_closer(carrier: Carrier) -> None:
    carrier.slow = True
    with pytest.raises(TimeoutError):
        carrier.opened(0)
    carrier.opens()
    assert carrier.sent == []
    carrier.closer.start()
    carrier.closer.stop(60)
    assert carrier.sent == WHOLE[2:]


def test_after_an_unsent_message_no_later_message_is_sent(carrier: Carrier) -> None:
    channel = carrier.opened()
    carrier.turn.set()
    carrier.broken = True
    with pytest.raises(SSHException):
        channel.send(b"lost")
    carrier.broken = False
    channel.send(b"next")
    assert carrier.sent == []
