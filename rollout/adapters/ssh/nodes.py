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

from rollout.adapters.ssh.dial import Dialer
from rollout.adapters.ssh.elevation import Elevation, Proof
from rollout.adapters.ssh.error_mapping import detail_of, translate
from rollout.adapters.ssh.handshake import Handshake
from rollout.adapters.ssh.identities import Identities
from rollout.adapters.ssh.known_hosts import KnownHostsFiles
from rollout.adapters.ssh.limits import Deadline, SshLimits
from rollout.adapters.ssh.pool import Pool, PooledConnection
from rollout.adapters.ssh.resolve import Resolver
from rollout.adapters.ssh.session import SessionRefusedError, SshSession, open_channel
from rollout.adapters.ssh.troubles import carried, printable
from rollout.adapters.ssh.watchdog import Watchdog
from rollout.app.ports import Target
from rollout.core.model.report import RemoteAnswer, RemoteCommand
from rollout.errors import RemoteError
from rollout.kubelet.agent.sudo import Secret

GRACE = 0.5  # between our own deadline and the watchdog's


class CommandSession(Protocol):
    """One command on an open channel."""

    def run(self) -> RemoteAnswer: ...


Sessions = Callable[[Channel, RemoteCommand, Deadline, SshLimits, Elevation | None], CommandSession]


class SshNodes:
    """Implements the port ``Nodes``. ``/etc/ssh/ssh_config`` is not read; unsupported options of ssh_config are refused.
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
        self._proof = Proof(sudo_password) if sudo_password else None
        self._watchdog = Watchdog()
        self._identities = Identities(lambda key: notice(printable(f"the hardware key {key} may wait for a touch")))
        known = KnownHostsFiles()
        handshake = Handshake(self._identities, known, self._watchdog, self._limits)
        self._dialer = Dialer(self._limits, handshake, known)
        self._pool = Pool(self._limits.sessions, self._dial)

    def run(self, target: Target, command: RemoteCommand) -> RemoteAnswer:
        """Connect if needed and run, all within the command's deadline (plus a short grace)."""
        deadline = Deadline(command.deadline)
        try:
            return self._run(target, command, deadline)
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

    def release(self, target: Target) -> None:
        self._pool.release(target)

    def close(self) -> None:
        deadline = Deadline(self._limits.close)
        self._pool.close(deadline)
        self._dialer.close(deadline)
        self._watchdog.close(deadline.left())
        self._identities.close()

    def _run(self, target: Target, command: RemoteCommand, deadline: Deadline) -> RemoteAnswer:
        """Before a channel is open nothing has started, so retry once over a new connection.

        A kept connection may be dead, or full if sshd refuses a session (MaxSessions).
        """
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

    def _on(self, target: Target, link: PooledConnection, command: RemoteCommand, deadline: Deadline) -> RemoteAnswer:
        """Raises ``RemoteError`` only if the command has certainly not started."""
        try:
            return self._use(target, link, command, deadline)
        except SessionRefusedError:
            raise
        except RemoteError as error:
            raise carried(error, link.wire.blame()) from None

    def _use(self, target: Target, link: PooledConnection, command: RemoteCommand, deadline: Deadline) -> RemoteAnswer:
        keep = False
        try:
            opening = deadline.within(self._limits.channel)
            with self._watchdog.over(link.wire, opening.at + GRACE):
                channel = open_channel(link.transport, opening, self._limits.refusals)
            with self._watchdog.over(link.wire, deadline.at + GRACE) as watch:
                asking = Elevation(self._proof, target) if self._proof and command.bare else None
                answer = self._sessions(channel, command, deadline, self._limits, asking).run()
                _close_quietly(channel)
            keep = link.alive and answer.status is not None
            if watch.rang and answer.status is None:
                return replace(answer, reference="deadline", message=f"no answer after {command.deadline:g} s")
            return _blaming(answer, link)
        finally:
            self._pool.give_back(target, link, keep=keep)

    def _dial(self, target: Target, deadline: Deadline) -> PooledConnection:
        transport, wire = self._dialer.dial(self._resolver.resolve(target), deadline)
        return PooledConnection(transport, wire)


def _shell_on(channel: Channel, kind: str, size: tuple[int, int]) -> Channel:
    try:
        channel.get_pty(kind, *size)
        channel.invoke_shell()
    except (SSHException, OSError, EOFError) as error:
        message = f"the node opened no terminal or started no shell: {detail_of(error)}"
        raise RemoteError("no-channel", message) from None
    return channel


def _blaming(answer: RemoteAnswer, link: PooledConnection) -> RemoteAnswer:
    """Names the bastion when its connection was lost; the reference stays, the command's end is unknown."""
    blame = link.wire.blame() if answer.reference == "connection-lost" else ""
    return replace(answer, message=f"{answer.message}: {blame}") if blame else answer


def _close_quietly(channel: Channel) -> None:
    with suppress(SSHException, EOFError, OSError):
        channel.close()


def _quiet_paramiko() -> None:
    """paramiko logs a traceback for every refused node, and Python would print it; our answers contain it."""
    logger = logging.getLogger("paramiko")
    logger.setLevel(max(logger.level, logging.WARNING))
    if not any(isinstance(handler, logging.NullHandler) for handler in logger.handlers):
        logger.addHandler(logging.NullHandler())
