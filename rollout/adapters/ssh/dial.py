"""From an endpoint to an authenticated transport: directly or through its bastions, within the handshake limits."""

from __future__ import annotations

import math
import random
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import TypeVar

from paramiko.ssh_exception import ChannelException

from rollout.adapters.ssh.handshake import Handshake, OtherKindError
from rollout.adapters.ssh.known_hosts import KnownHostsFiles
from rollout.adapters.ssh.limits import Deadline, SshLimits
from rollout.adapters.ssh.proxy_process import ProxyProcesses
from rollout.adapters.ssh.resolve import Endpoint
from rollout.adapters.ssh.transport import CarrierTransport, NodeTransport, answer_seconds
from rollout.adapters.ssh.troubles import CarrierLostError, DroppedError, at_bastion, behind_bastion, carried
from rollout.adapters.ssh.tunnel import Tunnel
from rollout.adapters.ssh.watchdog import aside, hang_up
from rollout.adapters.ssh.wire import Carrier, connect, exchange_versions
from rollout.errors import RemoteError

RETRY = (0.2, 1.0)

T = TypeVar("T", bound=NodeTransport)


class Dialer:
    """Connects to nodes and to their bastions."""

    def __init__(
        self, limits: SshLimits, handshake: Handshake, known_hosts: KnownHostsFiles, programs: ProxyProcesses
    ) -> None:
        self._limits = limits
        self._programs = programs
        self._handshake = handshake
        self._known_hosts = known_hosts
        self._gate = threading.BoundedSemaphore(limits.handshakes)
        self._bastions = Bastions(limits, lambda endpoint, deadline: self._dial(endpoint, deadline, CarrierTransport))

    def dial(self, endpoint: Endpoint, deadline: Deadline) -> tuple[NodeTransport, Carrier]:
        """Raises ``RemoteError``."""
        return self._dial(endpoint, deadline, NodeTransport)

    def close(self, deadline: Deadline) -> None:
        self._bastions.close(deadline)
        self._programs.close(deadline)

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
                # The bastion's slot before the global slot: a node behind a slow bastion does not delay other nodes.
                if endpoint.via is not None:
                    places.enter_context(self._bastions.handshake(endpoint.via, deadline))
                places.enter_context(self._place(deadline))
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
        raise RemoteError("no-banner", "the limit of connection attempts is 0")

    def _try(self, endpoint: Endpoint, deadline: Deadline) -> Carrier:
        seconds = endpoint.connect_timeout or self._limits.connect
        banner = self._limits.banner
        if endpoint.program:
            line: Carrier = self._programs.start(endpoint.program, deadline)
            banner += seconds  # it connects first
        elif endpoint.via is None:
            line = connect(endpoint.host, endpoint.port, endpoint.family, deadline.within(seconds))
        else:
            line = self._bastions.tunnel(endpoint, endpoint.via, seconds, deadline)
        try:
            exchange_versions(line, deadline.within(banner))
        except RemoteError as error:
            blame = line.blame()
            line.close()
            raise carried(error, blame) from None
        except BaseException:
            line.close()
            raise
        return line


# Bastions: shared connections that carry the nodes behind them, limited in number, re-opened when they die.
#
# A bastion is an endpoint like any other: verified against known_hosts, authenticated, perhaps behind another
# bastion. Its connections are opened one at a time; when one carries ``tunnels`` nodes, another is opened.


SHORTAGE = 4  # SSH_OPEN_RESOURCE_SHORTAGE

Dial = Callable[[Endpoint, Deadline], tuple[CarrierTransport, Carrier]]


@dataclass(slots=True, eq=False)
class _Carrier:
    """One connection to a bastion. ``room``: the most tunnels it takes; ``tunnels`` counts those open or opening."""

    transport: CarrierTransport
    line: Carrier
    room: int
    tunnels: int = 0
    answered: float = -math.inf  # when it last answered a liveness check
    probing: threading.Lock = field(default_factory=threading.Lock)

    @property
    def alive(self) -> bool:
        return not self.transport.lost


class _Bastion:
    """The connections to one bastion."""

    def __init__(self, endpoint: Endpoint, limits: SshLimits, dial: Dial) -> None:
        self._endpoint = endpoint
        self._limits = limits
        self._dial = dial
        self._changed = threading.Condition()
        self._carriers: list[_Carrier] = []
        self._dialling = False
        self._closed = False
        self._trouble: RemoteError | None = None
        self._trouble_until = 0.0
        self.handshakes = threading.BoundedSemaphore(limits.bastion_handshakes)

    def tunnel(self, to: Endpoint, connect: float, deadline: Deadline) -> Tunnel:
        """Raises ``RemoteError`` that names the bastion. A dead or full connection is followed by a retry."""
        for left in reversed(range(self._limits.bastion_connections)):
            carrier = self._board(deadline)
            try:
                channel = carrier.transport.open_tunnel(to.host, to.port, deadline.within(connect))
            except Exception as error:  # noqa: BLE001 - paramiko raises any exception of its thread here; raised again with the bastion's name
                self._leave(carrier)
                if not left or not self._worth_another_try(error, carrier, deadline):
                    raise self._named(error, to) from None
            else:
                leave, blame = partial(self._leave, carrier), partial(_blame, self._endpoint, carrier)
                return Tunnel(channel, carrier.transport.closer, leave, blame)
        raise RemoteError("bastion-busy", f"bastion {self._endpoint}: the limit of connection attempts is 0")

    def _worth_another_try(self, error: Exception, carrier: _Carrier, deadline: Deadline) -> bool:
        if isinstance(error, TimeoutError):
            self._still_there(carrier, deadline)
        if isinstance(error, ChannelException):
            return error.code == SHORTAGE and self._is_full(carrier)
        return isinstance(error, RemoteError) and bool(deadline.left())

    def _named(self, error: Exception, to: Endpoint) -> Exception:
        if isinstance(error, ChannelException):
            return behind_bastion(self._endpoint, to, error.code, error.text)
        if isinstance(error, TimeoutError):
            return behind_bastion(self._endpoint, to, 0, "no answer in time")
        return at_bastion(self._endpoint, error) if isinstance(error, RemoteError) else error

    def close(self, deadline: Deadline) -> None:
        with self._changed:
            self._closed = True
            carriers, self._carriers = self._carriers, []
            self._changed.notify_all()
        for carrier in carriers:
            hang_up(carrier.line)
        for carrier in carriers:
            carrier.transport.closer.stop(deadline.left())
            carrier.transport.join(deadline.left())

    def _board(self, deadline: Deadline) -> _Carrier:
        """Reserves a tunnel; opens a connection when all are full and no other thread is opening one."""
        with self._changed:
            while True:
                carrier = self._with_room()
                if carrier is not None:
                    carrier.tunnels += 1
                    return carrier
                if not self._dialling and len(self._carriers) < self._limits.bastion_connections:
                    self._dialling = True
                    break
                left = deadline.left()
                if not left:
                    raise RemoteError("bastion-busy", f"bastion {self._endpoint}: no free tunnel in time")
                self._changed.wait(left)
        return self._connect(deadline)

    def _with_room(self) -> _Carrier | None:
        """Called under the lock. Raises a known obstacle."""
        if self._closed:
            raise RemoteError("closed", "SSH was shut down")
        for dead in [carrier for carrier in self._carriers if not carrier.alive]:
            self._forget(dead)
        open_ones = [carrier for carrier in self._carriers if carrier.tunnels < carrier.room]
        if not open_ones and self._trouble is not None and time.monotonic() < self._trouble_until:
            raise self._trouble
        return min(open_ones, key=lambda carrier: carrier.tunnels, default=None)

    def _connect(self, deadline: Deadline) -> _Carrier:
        carrier, trouble = None, None
        fair = deadline.left() >= self._limits.connect  # otherwise perhaps only our own deadline passed
        try:
            transport, line = self._dial(self._endpoint, deadline)
            transport.closer.start()
            carrier = _Carrier(transport, line, self._limits.tunnels, tunnels=1)
        except RemoteError as error:
            trouble = at_bastion(self._endpoint, error)
            raise trouble from None
        finally:
            with self._changed:
                self._dialling = False
                closed = self._closed
                if carrier is not None and not closed:
                    self._carriers.append(carrier)
                if fair or trouble is None:
                    self._trouble, self._trouble_until = trouble, time.monotonic() + self._limits.bastion_rest
                self._changed.notify_all()
        if closed:
            hang_up(line)
            carrier.transport.closer.stop(0)
            raise RemoteError("closed", "SSH was shut down")
        return carrier

    def _leave(self, carrier: _Carrier) -> None:
        with self._changed:
            carrier.tunnels -= 1
            self._changed.notify()

    def _is_full(self, carrier: _Carrier) -> bool:
        """The bastion refused one more: the current number is the new limit. Returns whether it carries any."""
        with self._changed:
            carrier.room = min(carrier.room, carrier.tunnels)
            return carrier.room > 0

    def _still_there(self, carrier: _Carrier, deadline: Deadline) -> None:
        """A late tunnel may be caused by the node or the bastion: only a dead bastion ends all its tunnels."""
        late = RemoteError("no-answer", "it no longer responds")
        seconds = min(self._limits.bastion_probe, max(deadline.left(), 1.0))
        if not carrier.probing.acquire(timeout=seconds):
            return  # another thread is checking
        try:
            if time.monotonic() - carrier.answered < self._limits.bastion_probe and carrier.alive:
                return
            if not carrier.alive:
                raise late
            aside(lambda: answer_seconds(carrier.transport), seconds, late)
            carrier.answered = time.monotonic()
        except RemoteError as error:
            with self._changed:
                self._forget(carrier)
            raise at_bastion(self._endpoint, error) from None
        finally:
            carrier.probing.release()

    def _forget(self, carrier: _Carrier) -> None:
        """Called under the lock. Connections that it still carries end."""
        if carrier in self._carriers:
            self._carriers.remove(carrier)
        hang_up(carrier.line)
        carrier.transport.closer.stop(0)


def _blame(bastion: Endpoint, carrier: _Carrier) -> RemoteError | None:
    """Why a connection ended: the previous bastion's error, if that one lost its own connection."""
    if carrier.alive:
        return None
    farewell, before = carrier.transport.farewell, carrier.line.blame()
    how = f"ended its connection: {farewell}" if farewell else "lost its connection"
    if before is not None and before.reference.startswith("bastion-"):
        return before
    return RemoteError("bastion-unreachable", f"bastion {bastion} {how}" + (f"; {before.message}" if before else ""))


class Bastions:
    """Every bastion in use. Thread-safe."""

    def __init__(self, limits: SshLimits, dial: Dial) -> None:
        self._limits = limits
        self._dial = dial
        self._lock = threading.Lock()
        self._all: dict[Endpoint, _Bastion] = {}
        self._closed = False

    def tunnel(self, to: Endpoint, via: Endpoint, connect: float, deadline: Deadline) -> Tunnel:
        return self._bastion(via).tunnel(to, connect, deadline)

    @contextmanager
    def handshake(self, via: Endpoint, deadline: Deadline) -> Iterator[None]:
        """A slot among the handshakes through this bastion."""
        places = self._bastion(via).handshakes
        if not places.acquire(timeout=deadline.left()):
            raise RemoteError("bastion-busy", f"bastion {via}: no free handshake slot in time")
        try:
            yield
        finally:
            places.release()

    def close(self, deadline: Deadline) -> None:
        """Bastions behind others first, so that their close messages still get through."""
        with self._lock:
            self._closed = True
            bastions = list(self._all.values())
        for bastion in reversed(bastions):
            bastion.close(deadline)

    def _bastion(self, endpoint: Endpoint) -> _Bastion:
        with self._lock:
            if self._closed:
                raise RemoteError("closed", "SSH was shut down")
            if endpoint not in self._all:
                self._all[endpoint] = _Bastion(endpoint, self._limits, self._dial)
            return self._all[endpoint]
