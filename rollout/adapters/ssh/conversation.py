"""A conversation with a node's agent on one channel: one shell as root, and one verb after the other.

No input is sent before the shell has begun; its command line has the first request, for a node that keeps the program. From the
first byte of a request on, only its own complete answer counts. Any other output, a lost connection, a flood or a deadline
ends the conversation: the verb's end is then unknown, and a late answer reaches nobody.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

from paramiko.channel import Channel

from rollout.adapters.ssh.ascii_text import printable
from rollout.adapters.ssh.elevation import Elevation
from rollout.adapters.ssh.limits import KIB, Deadline, SshLimits
from rollout.adapters.ssh.pipes import Pipes
from rollout.adapters.ssh.session import FULL, TICK, TURN
from rollout.adapters.ssh.troubles import translate
from rollout.core.model.report import AgentRequest, RemoteAnswer, RemoteCommand
from rollout.errors import RemoteError
from rollout.kubelet.agent import conversation

T = TypeVar("T")


class Conversation:
    """One shell of a node, for one caller at a time. ``usable``: it can take a request."""

    def __init__(
        self, channel: Channel, command: RemoteCommand, limits: SshLimits, elevation: Elevation | None = None
    ) -> None:
        """``command`` starts the shell. ``elevation``: sudo comes first."""
        self.line = command.line
        self.usable = True
        self._channel = channel
        self._bare = command.bare
        self._elevation = elevation
        self._limits = limits
        self._pipes = Pipes(channel, limits)
        self._begun = False
        self._ahead = False  # the command line has a request, which may be served before its greeting is seen
        self._served = 0.0

    def ask(self, command: RemoteCommand, request: AgentRequest, deadline: Deadline) -> RemoteAnswer:
        """The answer to the request of ``command``. If it is not ``usable`` then, its connection must be closed."""
        self.usable, nonce = False, secrets.token_hex(32)
        try:
            if not self._begun:
                return self._first(command, request, nonce, deadline)
            self._pipes.anew()
            self._pipes.wait_for(conversation.mark(nonce))
            self._pipes.put(conversation.frame(request, nonce))
            return self._exchange(command, nonce, deadline)
        except RemoteError as error:
            return self._unknown(error.reference, error.message)
        except (OSError, EOFError) as error:
            return self._unknown("connection-lost", translate(error).message)
        except Exception as error:  # noqa: BLE001 - paramiko raises any exception of its thread here, caused by the node's data
            return self._unknown("no-channel", f"the node refused the command: {printable(str(error))}")
        finally:
            if self._elevation:
                self._elevation.give_up()

    def check(self, deadline: Deadline) -> None:
        """Before another request: raises ``RemoteError`` if the node printed something unrequested, or does not answer.

        A conversation that has just served is not probed.
        """
        if not self._begun:
            return
        self._pipes.anew()
        self._pipes.drain(deadline)
        if self._channel.closed or self._pipes.out.size:
            raise RemoteError("connection-lost", "the kept connection has ended, or is used by another program")
        if time.monotonic() - self._served < self._limits.trusted:
            return
        nonce = secrets.token_hex(32)
        self._pipes.wait_for(conversation.mark(nonce))
        self._pipes.put(conversation.probe(nonce))
        try:
            answer = self._until(self._answer_to(nonce), deadline, deadline.left())
        except ValueError as error:
            raise RemoteError("connection-lost", str(error)) from None
        if isinstance(answer, RemoteAnswer):
            raise RemoteError("connection-lost", "the kept connection no longer answers")

    def _first(self, command: RemoteCommand, request: AgentRequest, nonce: str, deadline: Deadline) -> RemoteAnswer:
        """Start the shell with the request in its command line, and send it the program and the request if it has to."""
        line = conversation.with_frame(self._bare if self._elevation else self.line, request, nonce)
        self._channel.exec_command(self._elevation.line(line) if self._elevation else line)
        self._ahead = not request.payload
        begins = min(command.deadline, self._limits.begin)
        greeting = self._until(lambda seen: self._greeted(request, seen), deadline.within(begins), begins)
        if isinstance(greeting, RemoteAnswer):
            return greeting
        self._pipes.wait_for(conversation.mark(nonce))
        self._pipes.anew_after(greeting.end)
        if greeting.form is not conversation.ProgramForm.KEPT or request.payload:
            self._pipes.put(conversation.opening(request.program, greeting.form) + conversation.frame(request, nonce))
        answer = self._exchange(command, nonce, deadline)
        if answer.reference == "bad-answer":  # the shell may say why it refuses the program
            return replace(answer, stdout=self._pipes.out.all)
        return answer

    def _greeted(self, request: AgentRequest, seen: int) -> conversation.Greeting | None:
        if self._asking and self._elevation is not None:
            self._pipes.put(self._elevation.next(self._pipes.err.all))
        greeting = conversation.greeted(self._pipes.out.data, request.program, seen)
        self._begun = greeting is not None
        if not self._begun and self._pipes.out.size > self._limits.greeting:
            most = self._limits.greeting // KIB
            raise RemoteError("output-flood", f"the node printed more than {most} KiB before its shell began")
        return greeting

    def _answer_to(self, nonce: str) -> Callable[[int], conversation.Answer | None]:
        return lambda seen: conversation.answer(self._pipes.out.data, nonce, seen)

    def _exchange(self, command: RemoteCommand, nonce: str, deadline: Deadline) -> RemoteAnswer:
        """The answer to a request that was sent."""
        try:
            answer = self._until(self._answer_to(nonce), deadline, command.deadline)
        except ValueError as error:
            return self._unknown("bad-answer", str(error))
        if isinstance(answer, RemoteAnswer):
            return answer
        self.usable, self._served = not answer.rest, time.monotonic()
        return RemoteAnswer(answer.status, answer.output, self._pipes.err.all, started=True)

    def _until(self, find: Callable[[int], T | None], deadline: Deadline, seconds: float) -> T | RemoteAnswer:
        """What ``find`` finds in the output, or the answer if there is none. A ``ValueError`` of ``find`` passes.

        ``find`` gets the number of bytes that it has looked at before.
        """
        seen = 0
        while True:
            # A verb goes on when its shell was killed, and keeps the channel open; but nobody ends its answer any more.
            over = self._channel.closed or (self._begun and self._channel.exit_status_ready())
            self._pipes.drain(deadline)
            result = find(seen)
            if result is not None:
                return result
            seen = self._pipes.out.size
            if over:
                return self._closed()
            self._pipes.feed(deadline)
            if self._pipes.out.lost or self._pipes.flooded:
                return self._unknown("output-flood", "the answer does not end")
            if not deadline.left():
                return self._unknown("deadline", f"not finished after {seconds:g} s")
            self._pipes.wait(min(deadline.left(), self._patience))

    @property
    def _asking(self) -> bool:
        """sudo is still in front of the shell."""
        return self._elevation is not None and not self._elevation.through

    @property
    def _patience(self) -> float:
        if self._elevation is not None and self._elevation.waiting:
            return TURN
        return FULL if self._pipes.waiting else TICK

    def _closed(self) -> RemoteAnswer:
        status, out, err = self._channel.exit_status, self._pipes.out, self._pipes.err.all
        if self._elevation is not None and self._asking and status >= 0:
            raise self._elevation.ended(err, status)
        if not self._begun and status >= 0:  # what the login shell or sudo printed is the reason
            printed = self._elevation.rest(err) if self._elevation else err
            return RemoteAnswer(status, out.all, printed, started=True, truncated=bool(out.lost))
        if not self._channel.get_transport().is_active():
            return self._unknown("connection-lost", "the connection was lost while the verb ran")
        return self._unknown("no-status", "the conversation ended before the verb; a signal may have ended it")

    def _unknown(self, reference: str, message: str) -> RemoteAnswer:
        """An answer without an end."""
        started = self._begun or (self._ahead and not self._asking)
        return RemoteAnswer(None, b"", b"", started=started, reference=reference, message=message)
