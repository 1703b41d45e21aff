"""One command on an open channel: input in, capped output and the exit status out, until its deadline."""

from __future__ import annotations

import time

from paramiko.channel import Channel
from paramiko.ssh_exception import ChannelException

from rollout.adapters.ssh.ascii_text import printable
from rollout.adapters.ssh.elevation import Elevation
from rollout.adapters.ssh.limits import Deadline, SshLimits
from rollout.adapters.ssh.pipes import Pipes
from rollout.adapters.ssh.transport import NodeTransport
from rollout.adapters.ssh.troubles import detail_of, translate
from rollout.core.model.report import RemoteAnswer, RemoteCommand
from rollout.errors import RemoteError

TICK = 1.0  # an exit status alone wakes no thread
TURN = 0.2  # another node's answer to the password wakes no thread either
FIRST_PAUSE = 0.05  # wait before the first retry of a refused session; doubled each time
FULL = 0.01  # free space for input wakes no thread either; it is rarely needed: a node accepts 2 MiB at once


class SessionRefusedError(RemoteError):
    """The node responded and refused another session on this connection."""


def open_channel(transport: NodeTransport, deadline: Deadline, patience: float) -> Channel:
    """A session channel. After any error here the command has certainly not started.

    A refusal is retried for ``patience`` seconds: sshd counts a session until it has read its end.
    """
    patient, pause = deadline.within(patience), FIRST_PAUSE
    while True:
        try:
            return _open_channel(transport, deadline)
        except SessionRefusedError:
            if patient.left() < pause:
                raise
        time.sleep(pause)
        pause *= 2


def _open_channel(transport: NodeTransport, deadline: Deadline) -> Channel:
    try:
        return transport.session(deadline.left())
    except ChannelException as error:
        raise SessionRefusedError("no-channel", translate(error).message) from None
    except Exception as error:  # noqa: BLE001 - paramiko raises any exception of its thread here, caused by the node's data
        if not deadline.left():
            raise RemoteError("no-channel", "the node did not open a session in time") from None
        raise RemoteError(
            "connection-lost", f"the connection was lost before the command started: {detail_of(error)}"
        ) from None


class SshSession:
    """Runs one command on one channel."""

    def __init__(
        self,
        channel: Channel,
        command: RemoteCommand,
        deadline: Deadline,
        limits: SshLimits,
        elevation: Elevation | None = None,
    ) -> None:
        """``elevation``: sudo comes first."""
        self._channel = channel
        self._command = command
        self._elevation = elevation
        self._deadline = deadline
        self._limits = limits
        self._pipes = Pipes(channel, limits)
        self._fed = False
        self._quiet_since: float | None = None
        if elevation is None:
            self._pipes.put(command.stdin)

    def run(self) -> RemoteAnswer:
        """The result. Once the request is sent, the command counts as started: nothing can prove otherwise."""
        try:
            self._channel.exec_command(self._line)
            while (answer := self._turn()) is None:
                self._pipes.wait(min(self._deadline.left(), self._patience))
        except RemoteError as error:
            return self._answer(None, error.reference, error.message)
        except (OSError, EOFError) as error:
            return self._answer(None, "connection-lost", translate(error).message)
        except Exception as error:  # noqa: BLE001 - paramiko raises any exception of its thread here, caused by the node's data
            return self._answer(None, "no-channel", f"the node refused the command: {printable(str(error))}")
        finally:
            if self._elevation:
                self._elevation.give_up()
        return answer

    @property
    def _line(self) -> str:
        return self._elevation.line(self._command.bare) if self._elevation else self._command.line

    @property
    def _asking(self) -> bool:
        """The command has not started and gets none of its input: sudo is still in front of it."""
        return self._elevation is not None and not self._elevation.through

    @property
    def _patience(self) -> float:
        if self._elevation is not None and self._elevation.waiting:
            return TURN
        return FULL if self._pipes.waiting else TICK

    def _turn(self) -> RemoteAnswer | None:
        """Move available bytes; the answer if the command ended."""
        over = self._channel.closed
        moved = self._pipes.drain(self._deadline)
        if self._elevation is not None and self._asking:
            self._pipes.put(self._elevation.next(self._pipes.err.all))
            if self._elevation.through:
                self._pipes.put(self._command.stdin)
        if over:
            channel = self._channel
            if self._elevation is not None and self._asking and channel.exit_status >= 0:
                raise self._elevation.ended(self._pipes.err.all, channel.exit_status)
            if channel.exit_status >= 0 and channel.eof_received:
                return self._answer(channel.exit_status, "", "")
            if not channel.get_transport().is_active():
                return self._answer(None, "connection-lost", "the connection was lost while the command ran")
            return self._answer(
                None, "no-status", "the channel closed without an exit status; a signal may have ended it"
            )
        self._pipes.feed(self._deadline)
        if not self._fed and not self._pipes.waiting and not self._asking:
            self._pipes.shut()
            self._fed = True
        if self._pipes.flooded:
            return self._answer(None, "output-flood", "the command's output does not end")
        if not self._deadline.left():
            return self._answer(None, "deadline", f"not finished after {self._command.deadline:g} s")
        if self._held_open(moved=moved):
            status = self._channel.exit_status if self._channel.exit_status >= 0 else None  # a signal ended it
            return self._answer(status, "output-held-open", "a process that the command started keeps its output open")
        return None

    def _held_open(self, *, moved: bool) -> bool:
        """The command ended a while ago without output since, but the channel is open: a child holds the output."""
        if not self._channel.exit_status_ready() or moved:
            self._quiet_since = None
            return False
        now = time.monotonic()
        self._quiet_since = self._quiet_since or now
        return now - self._quiet_since >= self._limits.held

    def _answer(self, status: int | None, reference: str, message: str) -> RemoteAnswer:
        """Excludes sudo's dialogue; before sudo succeeds, the command has not started."""
        out, stderr = self._pipes.out, self._pipes.err.all
        if self._elevation is not None:
            stderr = self._elevation.rest(stderr)
        return RemoteAnswer(
            status=None if self._asking else status,
            stdout=b"" if self._asking else out.all,
            stderr=stderr,
            started=not self._asking,
            truncated=bool(out.lost or self._pipes.err.lost),
            reference=reference,
            message=message,
        )
