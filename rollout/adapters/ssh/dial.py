"""From an endpoint to an authenticated transport: directly or through its bastion, within the handshake limits."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import TypeVar

from rollout.adapters.ssh.bastion_troubles import CarrierLostError, DroppedError, carried
from rollout.adapters.ssh.bastions import Bastions
from rollout.adapters.ssh.handshake import Handshake, OtherKindError
from rollout.adapters.ssh.known_hosts import KnownHostsFiles
from rollout.adapters.ssh.limits import Deadline, SshLimits
from rollout.adapters.ssh.resolve import Endpoint
from rollout.adapters.ssh.transport import CarrierTransport, NodeTransport
from rollout.adapters.ssh.wire import Carrier, await_banner, connect
from rollout.errors import RemoteError

RETRY = (0.2, 1.0)

T = TypeVar("T", bound=NodeTransport)


class Dialer:
    """Connects to nodes and to their bastions."""

    def __init__(self, limits: SshLimits, handshake: Handshake, known_hosts: KnownHostsFiles) -> None:
        self._limits = limits
        self._handshake = handshake
        self._known_hosts = known_hosts
        self._gate = threading.BoundedSemaphore(limits.handshakes)
        self._bastions = Bastions(limits, lambda endpoint, deadline: self._dial(endpoint, deadline, CarrierTransport))

    def dial(self, endpoint: Endpoint, deadline: Deadline) -> tuple[NodeTransport, Carrier]:
        """Raises ``RemoteError``."""
        return self._dial(endpoint, deadline, NodeTransport)

    def close(self, deadline: Deadline) -> None:
        self._bastions.close(deadline)

    def _dial(self, endpoint: Endpoint, deadline: Deadline, kind: type[T]) -> tuple[T, Carrier]:
        """Connections that are lost with a bastion's connection are retried over a new one."""
        for _ in range(1, self._limits.tries):
            try:
                return self._dial_once(endpoint, deadline, kind)
            except CarrierLostError:
                if deadline.left() < RETRY[1]:
                    raise
        return self._dial_once(endpoint, deadline, kind)

    def _dial_once(self, endpoint: Endpoint, deadline: Deadline, kind: type[T]) -> tuple[T, Carrier]:
        known = self._known_hosts.of(endpoint.known_hosts)
        try:
            return self._connect(endpoint, known.kinds(endpoint.key_names[0], hashed=False), deadline, kind)
        except OtherKindError as other:
            return self._connect(endpoint, other.kinds, deadline, kind)

    def _connect(
        self, endpoint: Endpoint, prefer: frozenset[str], deadline: Deadline, kind: type[T]
    ) -> tuple[T, Carrier]:
        line = self._reach(endpoint, deadline)
        with ExitStack() as places:
            try:
                self._take_places(places, endpoint, deadline)
            except BaseException:
                line.close()
                raise
            try:
                return self._handshake.perform(
                    kind, line, endpoint, prefer, deadline
                ), line  # which closes the line itself
            except OtherKindError:
                raise
            except RemoteError as error:
                raise carried(error, line.blame()) from None

    def _take_places(self, places: ExitStack, endpoint: Endpoint, deadline: Deadline) -> None:
        """The bastion's slot before the global slot: a node behind a slow bastion does not delay other nodes."""
        if endpoint.via is not None:
            places.enter_context(self._bastions.handshake(endpoint.via, deadline))
        places.enter_context(self._place(deadline))

    @contextmanager
    def _place(self, deadline: Deadline) -> Iterator[None]:
        if not self._gate.acquire(timeout=deadline.left()):
            raise RemoteError("busy", "no free handshake slot in time")
        try:
            yield
        finally:
            self._gate.release()

    def _reach(self, endpoint: Endpoint, deadline: Deadline) -> Carrier:
        """A line with its banner received. A drop before the banner, as of a busy sshd, is retried."""
        for attempt in range(1, self._limits.tries + 1):
            try:
                return self._try(endpoint, deadline)
            except DroppedError:
                if attempt == self._limits.tries or deadline.left() < RETRY[1]:
                    raise
                time.sleep(random.uniform(*RETRY))  # noqa: S311 - jitter, no secret
        raise RemoteError("no-banner", "no attempt was allowed")

    def _try(self, endpoint: Endpoint, deadline: Deadline) -> Carrier:
        seconds = endpoint.connect_timeout or self._limits.connect
        if endpoint.via is None:
            line: Carrier = connect(endpoint.host, endpoint.port, endpoint.family, deadline.within(seconds))
        else:
            line = self._bastions.tunnel(endpoint, endpoint.via, seconds, deadline)
        try:
            await_banner(line, deadline.within(self._limits.banner))
        except RemoteError as error:
            line.close()
            raise carried(error, line.blame()) from None
        except BaseException:
            line.close()
            raise
        return line
