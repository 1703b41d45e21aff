"""The input of a command on its way to a node, and the output that wakes its reader."""

from __future__ import annotations

import tracemalloc
from typing import Any, cast

from paramiko.buffered_pipe import BufferedPipe
from paramiko.channel import Channel

from rollout.adapters.ssh.limits import Deadline, SshLimits
from rollout.adapters.ssh.pipes import CHUNK, Pipes

SIZE = 1_000_000


class Taking:
    """A channel. Its other side takes everything."""

    def __init__(self) -> None:
        self.in_buffer: Any = BufferedPipe()
        self.in_stderr_buffer: Any = BufferedPipe()
        self.taken = 0

    def recv_ready(self) -> bool:
        return bool(self.in_buffer.read_ready())

    def recv(self, size: int) -> bytes:
        return bytes(self.in_buffer.read(size))

    def recv_stderr_ready(self) -> bool:
        return False

    def recv_stderr(self, _size: int) -> bytes:
        return b""

    def send_ready(self) -> bool:
        return True

    def send(self, data: bytes) -> int:
        self.taken += len(data)
        return len(data)


def test_input_that_was_sent_takes_no_memory() -> None:
    """An idle conversation would keep the program, and there are thousands of them."""
    channel = Taking()
    pipes = Pipes(cast(Channel, channel), SshLimits())
    tracemalloc.start()
    try:
        pipes.put(bytes(SIZE))
        pipes.feed(Deadline(60))
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert channel.taken == SIZE
    assert kept < SIZE / 10


MARK = b"over 0123 "


def woken(pipes: Pipes) -> bool:
    """Whether output has woken the reader since the last time. It reads all of it then."""
    woke = pipes.wait(0)
    pipes.drain(Deadline(60))
    return woke


def test_lines_of_an_answer_do_not_wake_its_reader_and_its_end_does() -> None:
    channel = Taking()
    pipes = Pipes(cast(Channel, channel), SshLimits())
    channel.in_buffer.feed(b"a banner")
    assert woken(pipes), "without a mark, any byte does"
    pipes.wait_for(MARK)
    for line in (b"begin 0123\n", b"say one\n", b"over 0124 0\n"):
        channel.in_buffer.feed(line)
        assert not pipes.wait(0), line
    channel.in_buffer.feed(b"say two\nover 0123 0\n")
    assert woken(pipes)
    channel.in_buffer.feed(b"over 01")
    assert not pipes.wait(0)
    channel.in_buffer.feed(b"23 0\n")
    assert woken(pipes), "in two parts"


def test_a_long_answer_and_a_lost_connection_wake_the_reader_too() -> None:
    """Unread output fills the window, and then the node sends no more."""
    channel = Taking()
    pipes = Pipes(cast(Channel, channel), SshLimits())
    pipes.wait_for(MARK)
    for _ in range(2):
        channel.in_buffer.feed(bytes(CHUNK))
        assert not pipes.wait(0)
        channel.in_buffer.feed(b"x")
        assert woken(pipes)
    channel.in_buffer.close()
    assert pipes.wait(0)
