"""``Nodes`` over SSH: resolve, connect, run, keep; every trouble of a node is in the answer."""

from __future__ import annotations

import logging
import random
import threading
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from paramiko.channel import Channel
from paramiko.ssh_exception import SSHException

from rollout.adapters.ssh.handshake import Handshake, OtherKindError
from rollout.adapters.ssh.identities import Identities
from rollout.adapters.ssh.known_hosts import KnownHostsFiles
from rollout.adapters.ssh.limits import Deadline, SshLimits
from rollout.adapters.ssh.pool import Link, Pool
from rollout.adapters.ssh.resolve import Endpoint, Resolver
from rollout.adapters.ssh.session import RefusedError, Session, open_channel
from rollout.adapters.ssh.ssh_config import SshConfig
from rollout.adapters.ssh.troubles import DroppedError, translate
from rollout.adapters.ssh.watchdog import Watchdog
from rollout.adapters.ssh.wire import Wire, await_banner, connect
from rollout.app.ports import Target
from rollout.core.remote import RemoteAnswer, RemoteCommand
from rollout.errors import RemoteError

GRACE = 0.5  # between the end of our own waiting and the watchdog's hanging up
RETRY = (0.2, 1.0)


class SshNodes:
    """Implements the port ``Nodes``. ``/etc/ssh/ssh_config`` is not read; what ssh_config asks for and we cannot do is
    refused. StrictHostKeyChecking never weakens: anything but ``accept-new`` means ``yes``.
    """

    def __init__(
        self,
        *,
        ssh_config: Path | None = None,
        known_hosts: tuple[Path, ...] | None = None,
        accept_new: bool = False,
        limits: SshLimits | None = None,
    ) -> None:
        """Reads ``ssh_config`` (``~/.ssh/config`` if there is one) now: ``InputError`` when it cannot be used."""
        own = Path("~/.ssh/config").expanduser()
        config = SshConfig.read(ssh_config or (own if own.exists() else None))
        _quiet_paramiko()
        self._limits = limits or SshLimits()
        self._resolver = Resolver(config, known_hosts=known_hosts, accept_new=accept_new)
        self._watchdog = Watchdog()
        self._identities = Identities()
        self._known_hosts = KnownHostsFiles()
        self._handshake = Handshake(self._identities, self._known_hosts, self._watchdog)
        self._gate = threading.BoundedSemaphore(self._limits.handshakes)
        self._pool = Pool(self._limits.sessions, self._dial)

    def run(self, target: Target, command: RemoteCommand) -> RemoteAnswer:
        """Connect if needed and run; all of it within the command's deadline (and a moment's grace)."""
        deadline = Deadline(command.deadline)
        try:
            return self._run(target, command, deadline)
        except (RemoteError, OSError, RuntimeError) as error:  # the last two: this machine has run out of something
            trouble = translate(error)
            return RemoteAnswer(None, b"", b"", started=False, reference=trouble.reference, message=trouble.message)

    def release(self, target: Target) -> None:
        self._pool.release(target)

    def close(self) -> None:
        deadline = Deadline(self._limits.close)
        self._pool.close(deadline)
        self._watchdog.close(deadline.left())
        self._identities.close()

    def _run(self, target: Target, command: RemoteCommand, deadline: Deadline) -> RemoteAnswer:
        """A kept connection may have died unseen: as long as no channel is open nothing has started, so once more."""
        link, new = self._pool.borrow(target, deadline)
        try:
            return self._on(target, link, command, deadline)
        except RefusedError:
            raise
        except RemoteError:
            if new:
                raise
        link, _ = self._pool.borrow(target, deadline)
        return self._on(target, link, command, deadline)

    def _on(self, target: Target, link: Link, command: RemoteCommand, deadline: Deadline) -> RemoteAnswer:
        """Raises ``RemoteError`` only when the command has certainly not started."""
        keep = False
        try:
            opening = deadline.within(self._limits.channel)
            with self._watchdog.over(link.wire, opening.at + GRACE):
                channel = open_channel(link.transport, opening)
            with self._watchdog.over(link.wire, deadline.at + GRACE) as watch:
                answer = Session(channel, command, deadline, self._limits).run()
                _close_quietly(channel)
            keep = link.alive and answer.status is not None
            if watch.rang and answer.status is None:
                return replace(answer, reference="deadline", message=f"no answer after {command.deadline:g} s")
            return answer
        finally:
            self._pool.give_back(target, link, keep=keep)

    def _dial(self, target: Target, deadline: Deadline) -> Link:
        endpoint = self._resolver.resolve(target)
        known = self._known_hosts.of(endpoint.known_hosts)
        if known.needs_certificate(endpoint.key_names):
            raise RemoteError(
                "host-certificate-not-supported", f"only a certificate authority vouches for {endpoint.key_names[0]}"
            )
        try:
            return self._connect(endpoint, known.kinds(endpoint.key_names[0], hashed=False), deadline)
        except OtherKindError as other:
            return self._connect(endpoint, other.kinds, deadline)

    def _connect(self, endpoint: Endpoint, prefer: frozenset[str], deadline: Deadline) -> Link:
        wire = self._reach(endpoint, deadline)
        if not self._gate.acquire(timeout=deadline.left()):
            wire.close()
            raise RemoteError("busy", "no place in the handshake gate in time")
        try:
            transport = self._handshake.perform(
                wire,
                endpoint,
                prefer,
                exchange=deadline.within(self._limits.handshake),
                auth=deadline.within(self._limits.handshake + self._limits.auth),
            )
        finally:
            self._gate.release()
        return Link(transport, wire)

    def _reach(self, endpoint: Endpoint, deadline: Deadline) -> Wire:
        """A socket that has shown its banner. A node that drops us before it, as a busy sshd does, gets another try."""
        connect_timeout = endpoint.connect_timeout or self._limits.connect
        whole = deadline.within(connect_timeout + self._limits.banner)
        for attempt in range(1, self._limits.tries + 1):
            wire = connect(endpoint.host, endpoint.port, endpoint.family, whole.within(connect_timeout))
            try:
                await_banner(wire, whole.within(self._limits.banner))
            except DroppedError:
                wire.close()
                if attempt == self._limits.tries or whole.left() < RETRY[1]:
                    raise
                time.sleep(random.uniform(*RETRY))  # noqa: S311 - jitter, no secret
            except BaseException:
                wire.close()
                raise
            else:
                return wire
        raise RemoteError("no-banner", "no try was allowed")


def _close_quietly(channel: Channel) -> None:
    with suppress(SSHException, EOFError, OSError):
        channel.close()


def _quiet_paramiko() -> None:
    """paramiko logs a traceback for every refused node, which Python would print; all of it is in our answers."""
    logger = logging.getLogger("paramiko")
    logger.setLevel(max(logger.level, logging.WARNING))
    if not any(isinstance(handler, logging.NullHandler) for handler in logger.handlers):
        logger.addHandler(logging.NullHandler())
