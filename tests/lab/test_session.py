"""One exec on a lab node: all input from the connection reaches the command."""

from __future__ import annotations

import os

import paramiko
import pytest

from rollout.lab import children
from rollout.lab.loop import Loop
from rollout.lab.session import LabSession

pytestmark = pytest.mark.process


class LateChannel(paramiko.Channel):
    """Input and its end arrive right after the check for input."""

    def __init__(self, text: bytes) -> None:
        super().__init__(1)
        self._text = text

    def recv_ready(self) -> bool:
        ready = super().recv_ready()
        if self._text:
            text, self._text = self._text, b""
            self.in_buffer.feed(text)
            self.eof_received = True
        return ready

    def recv(self, nbytes: int) -> bytes:
        return bytes(self.in_buffer.read(nbytes))

    def send_exit_status(self, status: int) -> None:
        """Discarded: there is no connection."""

    def close(self) -> None:
        """There is none."""


def test_input_that_arrives_with_its_end_during_the_check_is_not_lost() -> None:
    loop = Loop()
    child = children.spawn(("/bin/sh", "-c", "read line && [ $line = whole ]"), os.environ, piped=True)
    told: list[int] = []

    def done(status: int) -> None:
        told.append(status)
        loop.stop()

    session = LabSession(loop, LateChannel(b"whole\n"), child, done, lambda: None)
    session.touch()  # an event for something else
    session.touch()  # the event for the input and its end
    loop.at(loop.now() + 10, loop.stop)
    loop.run()
    child.line.close()
    assert told == [0]
