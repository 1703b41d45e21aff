"""One exec on a lab node: all input from the connection reaches the command."""

from __future__ import annotations

import os

import paramiko
import pytest

from rollout.core.model.report import AgentRequest
from rollout.kubelet.agent import conversation
from rollout.lab import children
from rollout.lab.loop import Loop
from rollout.lab.session import LabSession, Verbs

pytestmark = pytest.mark.process


class LateChannel(paramiko.Channel):
    """Input and its end arrive right after the check for input."""

    def __init__(self, text: bytes) -> None:
        super().__init__(1)
        self._text = text
        self.statuses: list[int] = []

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
        """Kept: there is no connection."""
        self.statuses.append(status)

    def close(self) -> None:
        """There is none."""


def test_input_that_arrives_with_its_end_during_the_check_is_not_lost() -> None:
    loop = Loop()
    child = children.spawn(("/bin/sh", "-c", "read line && [ $line = whole ]"), os.environ, piped=True)
    channel = LateChannel(b"whole\n")
    verbs = Verbs("read line", lambda _: None, lambda _, __: None)
    session = LabSession(loop, channel, child, verbs, loop.stop)
    session.touch()  # an event for something else
    session.touch()  # the event for the input and its end
    loop.at(loop.now() + 10, loop.stop)
    loop.run()
    child.line.close()
    assert channel.statuses == [0]


def test_the_verbs_of_a_conversation_are_seen_whatever_the_pieces() -> None:
    """Payloads and programs are skipped, even where they look like frames."""
    request = AgentRequest("x 1 apply\n", "apply tx=t1", b"n2 0 confirm\n")
    line = conversation.boot(request.program)
    sent = conversation.alone(request) + b"n3 0 status claim=1\nn4 0 \n"
    said = b"begin n1\nover n1 137\nbegin n3\nend status\nover n3 0\nbegin n4\nover n4 0\n".replace(b"n", b"0")
    for size in (1, 7, 4096):
        seen: list[tuple[str, int]] = []
        verbs = Verbs(line, lambda verb: seen.append((verb, -1)), lambda verb, status: seen.append((verb, status)))  # noqa: B023
        for at in range(0, len(sent), size):
            verbs.sent(sent[at : at + size])
        for at in range(0, len(said), size):
            verbs.answered(said[at : at + size])
        assert seen == [("apply", -1), ("status", -1), ("", -1), ("apply", 137), ("status", 0), ("", 0)]


def test_other_commands_have_no_verbs() -> None:
    seen: list[str] = []
    verbs = Verbs("cat", seen.append, lambda _, __: None)
    verbs.sent(b"n1 0 apply\n")
    assert seen == []
