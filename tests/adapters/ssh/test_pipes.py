"""The input of a command on its way to a node."""

from __future__ import annotations

import tracemalloc
from typing import cast

from paramiko.buffered_pipe import BufferedPipe
from paramiko.channel import Channel

from rollout.adapters.ssh.limits import Deadline, SshLimits
from rollout.adapters.ssh.pipes import Pipes

SIZE = 1_000_000


class Taking:
    """A channel. Its other side takes everything."""

    def __init__(self) -> None:
        self.in_buffer, self.in_stderr_buffer = BufferedPipe(), BufferedPipe()
        self.taken = 0

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
