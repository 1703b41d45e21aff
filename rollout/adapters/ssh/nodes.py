"""``Nodes`` over SSH: resolve, connect, run, keep. Every error of a node is in the answer."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Protocol

from paramiko.channel import Channel
from paramiko.ssh_exception import SSHException

from rollout.adapters.ssh.ascii_text import printable
from rollout.adapters.ssh.conversation import Conversation
from rollout.adapters.ssh.dial import Dialer
from rollout.adapters.ssh.elevation import Elevation, proof_of
from rollout.adapters.ssh.handshake import Handshake
from rollout.adapters.ssh.identities import Identities
from rollout.adapters.ssh.known_hosts import KnownHostsFiles
from rollout.adapters.ssh.limits import Deadline, SshLimits
from rollout.adapters.ssh.pool import Pool, PooledConnection
from rollout.adapters.ssh.proxy_lines import shown
from rollout.adapters.ssh.proxy_process import ProxyProcesses, ProxyWire
from rollout.adapters.ssh.resolve import Endpoint, Resolver
from rollout.adapters.ssh.session import SessionRefusedError, SshSession, open_channel
from rollout.adapters.ssh.transport import answer_seconds
from rollout.adapters.ssh.troubles import carried, detail_of, translate
from rollout.adapters.ssh.watchdog import Watchdog, WatchedConnection, aside
from rollout.app.ports import Target
from rollout.core.model.report import RemoteAnswer, RemoteCommand
from rollout.core.model.ways_in import Become, Way
from rollout.errors import RemoteError
from rollout.kubelet.agent.sudo import Secret, quiet

GRACE = 0.5  # between our own deadline and the watchdog's


class CommandSession(Protocol):
    """One command on an open channel."""

    def run(self) -> RemoteAnswer: ...


Sessions = Callable[[Channel, RemoteCommand, Deadline, SshLimits, Elevation | None], CommandSession]


class SshNodes:
    """Implements the port ``Nodes``. A node's requests to the agent share one conversation. ``/etc/ssh/ssh_config`` is not read; unsupported options of ssh_config are refused.
    StrictHostKeyChecking never weakens: anything but ``accept-new`` means ``yes``.
    """

    def __init__(
        self,
        resolver: Resolver | None = None,
        *,
        ssh_config: Path | None = None,
        accept_new: bool = False,
        limits: SshLimits | None = None,
        sudo_password: Secret | None = None,
        notice: Callable[[str], None] = lambda _: None,
        sessions: Sessions = SshSession,
    ) -> None:
        """``resolver``, or ``Resolver.reading`` of ``ssh_config`` and ``accept_new``. ``sudo_password`` is for every sudo
        that needs one; ``notice`` gets messages for the operator at once; ``sessions`` runs commands on channels.
        """
        _quiet_paramiko()
        self._sessions = sessions
        self._limits = limits or SshLimits()
        self._resolver = resolver or Resolver.reading(ssh_config, accept_new=accept_new)
        self._proof = proof_of(sudo_password) if sudo_password else None
        self._accepted: dict[Target, str] = {}
        self._watchdog = Watchdog()
        self._identities = Identities(lambda key: notice(printable(f"the hardware key {key} may wait for a touch")))
        known = KnownHostsFiles()
        handshake = Handshake(self._identities, known, self._watchdog, self._limits)
        programs = ProxyProcesses(self._limits, lambda: self._pool.make_room(_through_program))
        self._dialer = Dialer(self._limits, handshake, known, programs)
        self._pool = Pool(self._limits.sessions, self._limits.idle, self._watchdog, self._dial)

    def run(self, target: Target, command: RemoteCommand) -> RemoteAnswer:
        """Connect if needed and run, all within the command's deadline (plus a short grace)."""
        deadline, command = Deadline(command.deadline), _as_root(target, command)
        try:
            # Before the command is sent nothing has started, so retry once over a new connection.
            # A kept connection may be dead, or full if sshd refuses a session (MaxSessions).
            link, new = self._pool.borrow(target, deadline)
            try:
                return self._on(target, link, command, deadline)
            except SessionRefusedError:
                pass
            except RemoteError:
                if new:
                    raise
            link, _ = self._pool.borrow(target, deadline)
            return self._on(target, link, command, deadline)
        except (RemoteError, OSError, RuntimeError) as error:  # the last two: this machine ran out of a resource
            trouble = translate(error)
            return RemoteAnswer(None, b"", b"", started=False, reference=trouble.reference, message=trouble.message)

    @contextmanager
    def shell(self, target: Target, seconds: float, kind: str, size: tuple[int, int]) -> Iterator[Channel]:
        """The login shell of a node on a terminal of this kind (``TERM``) and size (columns, rows).

        It begins within ``seconds`` and then has no deadline. Raises ``RemoteError``.
        """
        deadline = Deadline(seconds)
        link, _ = self._pool.borrow(target, deadline)
        try:
            with self._watchdog.over(link.wire, deadline.at + GRACE):
                channel = _shell_on(open_channel(link.transport, deadline, self._limits.refusals), kind, size)
            yield channel
        except RemoteError as error:
            raise carried(error, link.wire.blame()) from None
        finally:
            self._pool.give_back(target, link, keep=False)

    def way(self, target: Target) -> Way:
        """How this node is reached, with the key that it accepted last. Raises ``RemoteError`` for unsupported options."""
        to = self._resolver.resolve(target)
        known = str(to.known_hosts[0]) if to.known_hosts else ""
        via = _through(to)
        key = self._accepted.get(target, "")
        return Way(target.address, to.host, to.port, printable(to.user, 80), via, known, key)

    def round_trip(self, target: Target, times: int, seconds: float) -> float:
        """The least time, of so many, between a question and its answer over the node's connection. Raises ``RemoteError``.

        sshd answers it itself: no program starts.
        """
        deadline, keep = Deadline(seconds), False
        link, _ = self._pool.borrow(target, deadline)
        late = RemoteError("no-answer", f"no answer after {seconds:g} s")
        try:
            took = aside(lambda: min(answer_seconds(link.transport) for _ in range(times)), deadline.left(), late)
            keep = link.alive
            return took
        finally:
            self._pool.give_back(target, link, keep=keep)

    def release(self, target: Target) -> None:
        self._pool.release(target)

    def close(self) -> None:
        deadline = Deadline(self._limits.close)
        self._pool.close(deadline)
        self._dialer.close(deadline)
        self._watchdog.close(deadline.left())
        self._identities.close()

    def _on(self, target: Target, link: PooledConnection, command: RemoteCommand, deadline: Deadline) -> RemoteAnswer:
        """Raises ``RemoteError`` only if the command has certainly not started."""
        try:
            keep = False
            try:
                talk = self._command if command.request is None else self._verb
                answer, sound = talk(target, link, command, deadline)
                keep = link.alive and sound
                # Names the bastion when its connection was lost; the reference stays, the command's end is unknown.
                blame = link.wire.blame() if answer.reference == "connection-lost" else None
                return replace(answer, message=f"{answer.message}: {blame.message}") if blame else answer
            finally:
                self._pool.give_back(target, link, keep=keep)
        except SessionRefusedError:
            raise
        except RemoteError as error:
            raise carried(error, link.wire.blame()) from None

    def _command(
        self, target: Target, link: PooledConnection, command: RemoteCommand, deadline: Deadline
    ) -> tuple[RemoteAnswer, bool]:
        """The answer of a command on a channel of its own, and whether the connection is still good."""
        channel = self._channel(link, deadline)
        with self._watchdog.over(link.wire, deadline.at + GRACE) as watch:
            asking = self._elevation(target, command)
            answer = self._sessions(channel, command, deadline, self._limits, asking).run()
            with suppress(SSHException, EOFError, OSError):
                channel.close()
        return _late(answer, watch, command), answer.status is not None

    def _verb(
        self, target: Target, link: PooledConnection, command: RemoteCommand, deadline: Deadline
    ) -> tuple[RemoteAnswer, bool]:
        """The answer of the agent to a request, and whether the conversation can go on."""
        if command.request is None:
            raise LookupError("a command without a request")
        if not link.talking.acquire(timeout=deadline.left()):
            raise RemoteError("busy", "another verb was still running on this node")
        try:
            talk = self._conversation(target, link, command, deadline)
            with self._watchdog.over(link.wire, deadline.at + GRACE) as watch:
                answer = talk.ask(command, command.request, deadline)
            return _late(answer, watch, command), talk.usable
        finally:
            link.talking.release()

    def _conversation(
        self, target: Target, link: PooledConnection, command: RemoteCommand, deadline: Deadline
    ) -> Conversation:
        """The connection's conversation, or a new one. Raises ``RemoteError`` if it is of no use any more."""
        kept = link.conversation
        if kept is not None and kept.usable and kept.line == command.line:
            opening = deadline.within(self._limits.channel)
            with self._watchdog.over(link.wire, opening.at + GRACE):
                kept.check(opening)
            return kept
        if kept is not None:
            raise SessionRefusedError("no-channel", "the connection has a conversation with another program")
        asking = self._elevation(target, command)
        link.conversation = Conversation(self._channel(link, deadline), command, self._limits, asking)
        return link.conversation

    def _channel(self, link: PooledConnection, deadline: Deadline) -> Channel:
        opening = deadline.within(self._limits.channel)
        with self._watchdog.over(link.wire, opening.at + GRACE):
            return open_channel(link.transport, opening, self._limits.refusals)

    def _elevation(self, target: Target, command: RemoteCommand) -> Elevation | None:
        return Elevation(self._proof, target) if self._proof and command.bare else None

    def _dial(self, target: Target, deadline: Deadline) -> PooledConnection:
        transport, wire = self._dialer.dial(self._resolver.resolve(target), deadline)
        self._accepted[target] = transport.accepted_key
        return PooledConnection(transport, wire)


def _through(to: Endpoint) -> str:
    """What a connection passes on its way; ``""``: nothing."""
    if to.program:
        return f"the ProxyCommand {shown(to.program)}"
    return str(to.via) if to.via else ""


def _as_root(target: Target, command: RemoteCommand) -> RemoteCommand:
    """``command`` by the program of the node. doas reads passwords from a terminal only: it gets none."""
    if target.become is Become.SUDO or not command.bare:
        return command
    return replace(command, line=quiet(command.bare, target.become), bare="")


def _through_program(link: PooledConnection) -> bool:
    return isinstance(link.wire, ProxyWire)


def _shell_on(channel: Channel, kind: str, size: tuple[int, int]) -> Channel:
    try:
        channel.get_pty(kind, *size)
        channel.invoke_shell()
    except (SSHException, OSError, EOFError) as error:
        message = f"the node opened no terminal or started no shell: {detail_of(error)}"
        raise RemoteError("no-channel", message) from None
    return channel


def _late(answer: RemoteAnswer, watch: WatchedConnection, command: RemoteCommand) -> RemoteAnswer:
    """Names the deadline where the watchdog closed the connection."""
    if watch.rang and answer.status is None:
        return replace(answer, reference="deadline", message=f"no answer after {command.deadline:g} s")
    return answer


def _quiet_paramiko() -> None:
    """paramiko logs a traceback for every refused node, and Python would print it; our answers contain it."""
    logger = logging.getLogger("paramiko")
    logger.setLevel(max(logger.level, logging.WARNING))
    if not any(isinstance(handler, logging.NullHandler) for handler in logger.handlers):
        logger.addHandler(logging.NullHandler())
