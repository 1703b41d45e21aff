"""fabric over connections that this package has opened and verified. The only module that imports fabric.

By itself fabric connects with a client that accepts every host key, and reads ssh_config and files of its own, some of
which are programs. Here it reads no file and has no client: it gets an open channel, and an attempt to connect is an
error.

fabric keeps all output, and decodes it piece by piece. So these runners read at most so many bytes and count the rest,
and fabric sees each byte as one character (latin-1), which loses none.
"""

from __future__ import annotations

import os
import signal
import sys
import termios
import threading
import tty
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any

from fabric import Config, Connection, Remote, RemoteShell
from invoke.exceptions import CommandTimedOut, ThreadException, UnexpectedExit
from paramiko.channel import Channel
from paramiko.ssh_exception import SSHException

from rollout.adapters.ssh.ascii_text import printable
from rollout.adapters.ssh.elevation import Elevation
from rollout.adapters.ssh.limits import Deadline, SshLimits
from rollout.adapters.ssh.pipes import CHUNK, Capped
from rollout.adapters.ssh.session import TICK
from rollout.adapters.ssh.troubles import translate
from rollout.core.model.report import RemoteAnswer, RemoteCommand
from rollout.errors import RemoteError

ANY_BYTE = "latin-1"
SUDO_LOOK = 0.05  # seconds between two looks at what sudo asks


class _OurConnection(Connection):  # type: ignore[misc]  # fabric publishes no types
    """A fabric connection over one open channel. ``session`` is for its runner."""

    channel: Any = None
    session: Any = None

    def __init__(self, channel: Channel, session: Any = None) -> None:
        runners = {"remote": _BoundedRunner, "remote_shell": _Terminal}
        overrides = {"load_ssh_configs": False, "runners": runners}
        super().__init__("node", user="node", config=Config(overrides=overrides, lazy=True))
        self.client = None
        self.transport = channel.get_transport()
        self.channel, self.session = channel, session

    def open(self) -> None:
        """fabric calls this first. It may find a connection, and never opens one."""
        if not self.is_connected:
            raise RemoteError("connection-lost", "the connection was lost before the command started")

    def create_session(self) -> Channel:
        channel: Channel = self.channel
        return channel


class _BoundedRunner(Remote):  # type: ignore[misc]  # fabric publishes no types
    """fabric's runner of one command, with the bounds of its ``FabricSession``."""

    read_chunk_size = CHUNK

    def send_start_message(self, command: str) -> None:
        super().send_start_message(command)
        self.context.session.begin()

    def read_proc_stdout(self, num_bytes: int) -> bytes:  # noqa: ARG002 - fabric's signature
        output: bytes = self.context.session.read_stdout()
        return output

    def read_proc_stderr(self, num_bytes: int) -> bytes:  # noqa: ARG002 - fabric's signature
        output: bytes = self.context.session.read_stderr()
        return output

    def kill(self) -> None:
        """The time is up. fabric would conclude it from its timer, which may still be alive when the command has ended."""
        self.context.session.late = True
        with suppress(
            SSHException, OSError, EOFError
        ):  # the connection may be lost by now, and this is a timer's thread
            super().kill()

    def wait(self) -> None:
        """fabric would look every 10 ms; an exit status ends this wait at once."""
        while not (self.process_is_finished or self.has_dead_threads):
            self.channel.status_event.wait(self.context.session.look())
        if not self.has_dead_threads:
            self.context.session.let_output_end(self.threads.values())


class FabricSession:
    """Runs one command on one channel by fabric's ``Connection.run``. Standard input is empty.

    The same arguments and answers as ``SshSession``.
    """

    def __init__(
        self,
        channel: Channel,
        command: RemoteCommand,
        deadline: Deadline,
        limits: SshLimits,
        elevation: Elevation | None = None,
    ) -> None:
        self._channel = channel
        self._command = command
        self._deadline = deadline
        self._limits = limits
        self._elevation = elevation
        self._out = Capped(limits.stdout)
        self._err = Capped(limits.stderr)
        self._moved = 0
        self._held = False
        self.late = False

    def run(self) -> RemoteAnswer:
        connection = _OurConnection(self._channel, self)
        line = self._elevation.line(self._command.bare) if self._elevation else self._command.line
        try:
            with suppress(CommandTimedOut):  # ``late`` says it, too
                connection.run(
                    line, hide=True, warn=True, in_stream=False, pty=False, encoding=ANY_BYTE,
                    timeout=self._deadline.left(),
                )  # fmt: skip
            status = self._channel.exit_status
            if self._elevation is not None and self._asking and status >= 0:
                self._elevation.next(self._err.all)  # it may have started and ended between two looks
                if self._asking:
                    return self._troubled(self._elevation.ended(self._err.all, status))
            if status >= 0 and (self._held or self.late):
                return self._answer(
                    status, "output-held-open", "a process that the command started keeps its output open"
                )
            if status >= 0:
                return self._answer(status, "", "")
            if self.late:
                message = f"not finished after {self._command.deadline:g} s; it may still run on the node"
                return self._answer(None, "deadline", message)
            if not self._channel.get_transport().is_active():
                return self._answer(None, "connection-lost", "the connection was lost while the command ran")
            return self._answer(
                None, "no-status", "the channel closed without an exit status; a signal may have ended it"
            )
        except ThreadException as error:
            return self._troubled(error.exceptions[0].value)
        except Exception as error:  # noqa: BLE001 - paramiko raises here whatever its thread met in what the node sent
            return self._troubled(error)
        finally:
            if self._elevation:
                self._elevation.give_up()

    # What the runner asks for, on its own threads.

    def begin(self) -> None:
        """The request was sent. Without sudo's dialogue the command gets the end of its input at once."""
        if not self._asking:
            self._channel.shutdown_write()

    def read_stdout(self) -> bytes:
        return self._read(self._channel.recv, self._out)

    def read_stderr(self) -> bytes:
        return self._read(self._channel.recv_stderr, self._err)

    def look(self) -> float:
        """Answers sudo and stops a flood. How long to wait until the next look."""
        try:
            if self._flooded:
                raise RemoteError("output-flood", "the command's output does not end")
            if self._elevation is None or not self._asking:
                return TICK
            self._channel.sendall(self._elevation.next(self._err.all))
            if not self._asking:
                self._channel.shutdown_write()
        except BaseException:
            self._channel.close()  # else the readers wait forever
            raise
        return SUDO_LOOK

    def let_output_end(self, readers: Iterable[threading.Thread]) -> None:
        """The command has ended. What it started may hold the output open: wait while there is some."""
        for reader in readers:
            while reader.is_alive() and not self._held:
                before = self._moved
                reader.join(self._limits.held)
                self._held = reader.is_alive() and self._moved == before
        if self._held:
            self._channel.close()

    def _read(self, receive: Callable[[int], bytes], sink: Capped) -> bytes:
        """The next bytes that are kept; empty at the end. Bytes past the cap are only counted."""
        while not self._flooded and (data := receive(CHUNK)):
            self._moved += len(data)
            had = sink.size
            sink.add(data)
            if sink.size > had:
                return data[: sink.size - had]
        return b""

    @property
    def _flooded(self) -> bool:
        return self._out.lost + self._err.lost > self._limits.flood

    @property
    def _asking(self) -> bool:
        """The command has not started: sudo is still in front of it."""
        return self._elevation is not None and not self._elevation.through

    # The answer.

    def _troubled(self, error: BaseException) -> RemoteAnswer:
        if isinstance(error, RemoteError):
            return self._answer(None, error.reference, error.message)
        if isinstance(error, RuntimeError):  # this machine ran out of threads
            trouble = translate(error)
            return self._answer(None, trouble.reference, trouble.message)
        if isinstance(error, (OSError, EOFError)):
            return self._answer(None, "connection-lost", translate(error).message)
        return self._answer(None, "no-channel", f"the node refused the command: {printable(str(error))}")

    def _answer(self, status: int | None, reference: str, message: str) -> RemoteAnswer:
        """Without sudo's dialogue. Before sudo succeeds, the command has not started."""
        stderr = self._err.all if self._elevation is None else self._elevation.rest(self._err.all)
        return RemoteAnswer(
            status=None if self._asking else status,
            stdout=b"" if self._asking else self._out.all,
            stderr=stderr,
            started=not self._asking,
            truncated=bool(self._out.lost or self._err.lost),
            reference=reference,
            message=message,
        )


# An interactive shell on the operator's terminal.


class _Terminal(RemoteShell):  # type: ignore[misc]  # fabric publishes no types
    """fabric's runner of a shell that has begun. It keeps nothing of the session: fabric would keep all of it."""

    def start(self, command: None, shell: str, env: object, timeout: None = None) -> None:  # noqa: ARG002 - fabric's
        self.channel = self.context.create_session()
        signal.signal(signal.SIGWINCH, self.handle_window_change)

    def handle_window_change(self, signum: int, frame: FrameType | None) -> None:
        with suppress(SSHException, OSError, EOFError):  # the shell may have ended
            super().handle_window_change(signum, frame)

    def wait(self) -> None:
        while not (self.process_is_finished or self.has_dead_threads):
            self.channel.status_event.wait(TICK)
        if self.has_dead_threads:
            self.channel.close()  # else the other reader waits forever

    def respond(self, buffer_: list[str]) -> None:
        buffer_.clear()

    def write_our_output(self, stream: object, string: str) -> None:  # noqa: ARG002 - fabric's signature
        sys.stdout.buffer.write(string.encode(ANY_BYTE))
        sys.stdout.buffer.flush()


def interact(channel: Channel) -> int:
    """Connect this process's terminal with a shell until it ends, and return the shell's exit status.

    Call it in the main thread. All keys go to the node, Ctrl-C too. Raises ``RemoteError``.
    """

    def hang_up() -> None:
        with suppress(SSHException, OSError, EOFError):
            channel.close()

    keys = Keys(sys.stdin.fileno())
    with raw(keys.fileno()), ended_by_signals(hang_up), suppress(UnexpectedExit):  # a status other than 0
        try:
            _OurConnection(channel).shell(in_stream=keys, encoding=ANY_BYTE)
        except ThreadException as error:  # the terminal is gone
            raise RemoteError("terminal-lost", f"the terminal was lost: {error.exceptions[0].value}") from None
    if channel.exit_status < 0:
        raise RemoteError("connection-lost", "the connection was lost, or a signal ended the shell")
    return channel.exit_status


# The operator's terminal during an interactive shell: what is typed, its modes, and signals that end the session.


class Keys:
    """What is typed on a terminal. For fabric it is no terminal: else fabric reads key by key and changes the modes."""

    def __init__(self, terminal: int) -> None:
        self._terminal = terminal

    def fileno(self) -> int:
        return self._terminal

    def isatty(self) -> bool:
        return False

    def read(self, _size: int) -> bytes:
        return os.read(self._terminal, CHUNK)


@contextmanager
def raw(terminal: int) -> Iterator[None]:
    """Every key goes to the node, Ctrl-C and Ctrl-Z too. The terminal's modes are restored at the end."""
    before = termios.tcgetattr(terminal)
    tty.setraw(terminal, termios.TCSADRAIN)  # keys typed before are kept
    try:
        yield
    finally:
        termios.tcsetattr(terminal, termios.TCSADRAIN, before)


@contextmanager
def ended_by_signals(end: Callable[[], None]) -> Iterator[None]:
    """SIGTERM and SIGHUP call ``end``, so that the session ends in order and the terminal is restored.

    ``end`` runs on a thread of its own: the main thread may hold a lock that it needs.
    """

    def handle(_number: int, _frame: FrameType | None) -> None:
        threading.Thread(target=end, name="ssh-end", daemon=True).start()

    numbers = (signal.SIGTERM, signal.SIGHUP)
    before = [signal.signal(number, handle) for number in numbers]
    try:
        yield
    finally:
        for number, handler in zip(numbers, before, strict=True):
            signal.signal(number, handler)
