"""From a socket with a received banner to an authenticated transport: key exchange, host key, our key.

Nothing here polls: paramiko sets an event, and the watchdog closes the connection at the deadline.
"""

from __future__ import annotations

import base64
import threading
from dataclasses import dataclass
from typing import TypeVar

from paramiko.pkey import PKey
from paramiko.ssh_exception import AuthenticationException, BadAuthenticationType, PartialAuthentication, SSHException
from paramiko.transport import Transport

from rollout.adapters.ssh.ascii_text import printable
from rollout.adapters.ssh.certificates import refusal
from rollout.adapters.ssh.identities import Identities, SharedAgentKey
from rollout.adapters.ssh.known_hosts import HostKeyVerdict, KnownHosts, KnownHostsFiles
from rollout.adapters.ssh.limits import KIB, Deadline, SshLimits
from rollout.adapters.ssh.resolve import Endpoint
from rollout.adapters.ssh.transport import NodeTransport
from rollout.adapters.ssh.troubles import detail_of, told, translate
from rollout.adapters.ssh.watchdog import Watchdog, hang_up
from rollout.adapters.ssh.wire import Carrier
from rollout.errors import RemoteError

STACK = 512 * KIB
POLL = 60.0  # paramiko's polling interval; its default of 0.1 s costs 8 % of a core for 300 idle sessions
FAST_CIPHERS = ("aes128-gcm@openssh.com", "aes256-gcm@openssh.com")
"""Preferred: paramiko has these authenticated by OpenSSL. The MAC of its other ciphers is compared byte by byte in Python, a fifth of a run's CPU."""
_stack = threading.Lock()

T = TypeVar("T", bound=NodeTransport)


class OtherKindError(RemoteError):
    """The host presented a key of a type that is not in known_hosts; it may also have a known type."""

    def __init__(self, kinds: frozenset[str]) -> None:
        super().__init__("host-key-changed", f"the host presents no key of a known type ({', '.join(sorted(kinds))})")
        self.kinds = kinds


@dataclass(frozen=True, slots=True)
class Handshake:
    """Shared by every handshake."""

    identities: Identities
    known_hosts: KnownHostsFiles
    watchdog: Watchdog
    limits: SshLimits

    def perform(
        self, kind: type[T], wire: Carrier, endpoint: Endpoint, prefer: frozenset[str], deadline: Deadline
    ) -> T:
        """An authenticated transport on ``wire``, which is closed on any error."""
        known = self.known_hosts.of(endpoint.known_hosts)
        transport = kind(wire)
        transport.certified = bool(known.authorities(endpoint.key_names))
        try:
            self._exchange_keys(transport, wire, prefer, deadline.within(self.limits.handshake))
            self._verify(transport, endpoint, known, prefer)
            self._authenticate(transport, wire, endpoint, deadline)
        except BaseException:
            hang_up(wire)
            if transport.ident is None:  # otherwise paramiko's thread closes it when it ends
                wire.close()
            raise
        return transport

    def _exchange_keys(
        self, transport: NodeTransport, wire: Carrier, prefer: frozenset[str], deadline: Deadline
    ) -> None:
        wire.settimeout(POLL)
        options = transport.get_security_options()
        options.ciphers = (*FAST_CIPHERS, *(cipher for cipher in options.ciphers if cipher not in FAST_CIPHERS))
        options.key_types = tuple(sorted(options.key_types, key=lambda kind: _family(kind) not in prefer))
        done = threading.Event()
        with self.watchdog.over(wire, deadline.at) as watch:
            with _stack:
                before = threading.stack_size(STACK)
                try:
                    transport.start_behind(wire.said, done)
                finally:
                    threading.stack_size(before)
            done.wait(deadline.left() + 1)
        if watch.rang or not done.is_set():
            raise told("handshake-timeout")
        if not transport.is_active():
            raise translate(transport.get_exception() or SSHException("the key exchange failed"))

    def _verify(
        self, transport: NodeTransport, endpoint: Endpoint, known: KnownHosts, preferred: frozenset[str]
    ) -> None:
        shown = _remote_key(transport)
        kind, key = shown.get_name(), base64.b64encode(shown.asbytes()).decode("ascii")
        verdict, certified = known.verdict(endpoint.key_names, key), shown.public_blob
        if transport.certified and verdict in (HostKeyVerdict.UNKNOWN, HostKeyVerdict.CHANGED):
            why = refusal(certified.key_blob, known, endpoint.key_names) if certified else "it presents no certificate"
            if not why:
                return
            if certified or (verdict is HostKeyVerdict.UNKNOWN and not endpoint.accept_new):
                name = endpoint.key_names[-1]
                raise told("host-certificate-refused", printable(why, 300), at=name)
        if verdict is HostKeyVerdict.UNKNOWN and endpoint.accept_new:
            verdict = self.known_hosts.accept(endpoint.known_hosts, endpoint.key_names, kind, key)
        _judge(verdict, shown, endpoint, known, preferred)

    def _authenticate(self, transport: NodeTransport, wire: Carrier, endpoint: Endpoint, deadline: Deadline) -> None:
        keys, notes = self.identities.keys(endpoint)
        fingers = self.limits.touch if any(key.get_name().startswith("sk-") for key in keys) else 0.0
        deadline = deadline.within(self.limits.auth + fingers)
        if not keys:
            raise told("auth-failed", printable("; ".join(("there is no private key to offer", *notes)), 500))
        trouble: BaseException | None = None
        with self.watchdog.over(wire, deadline.at) as watch:
            for key in keys:
                trouble = _offer(transport, endpoint.user, key, deadline, alone=len(keys) == 1)
                if trouble is None or not transport.is_active():
                    transport.accepted_key = f"{key.get_name()} {key.fingerprint}" if trouble is None else ""
                    break
        if trouble is None and transport.is_authenticated():
            return
        if watch.rang or isinstance(trouble, TimeoutError):
            raise told("auth-timeout")
        raise _refused(transport, trouble, endpoint.user, len(keys), notes)


def _judge(
    verdict: HostKeyVerdict, shown: PKey, endpoint: Endpoint, known: KnownHosts, preferred: frozenset[str]
) -> None:
    """Raises ``RemoteError`` unless the key is the known one."""
    kind, name = shown.get_name(), endpoint.key_names[0]
    whence = f"{name}, which presents {kind} {shown.fingerprint}"
    if verdict is HostKeyVerdict.CHANGED:
        kinds = known.kinds(name, hashed=True)
        if kind not in kinds and not kinds <= preferred:
            raise OtherKindError(kinds)
        raise told("host-key-changed", at=whence)
    if verdict is HostKeyVerdict.REVOKED:
        raise told("host-key-revoked", at=whence)
    if verdict is HostKeyVerdict.UNKNOWN:
        files = f"none is in {endpoint.known_hosts[0]}" if endpoint.known_hosts else "there is no known_hosts file"
        raise told("host-key-unknown", files, at=whence)


def _offer(transport: NodeTransport, user: str, key: PKey, deadline: Deadline, *, alone: bool) -> BaseException | None:
    """``None`` when the login succeeded; otherwise why not. ``alone``: no other key will be offered."""
    done = threading.Event()
    try:
        if _signs_at_once(transport, key):
            transport.log_in(user, key, done)
            if alone and transport.opens_ahead:
                transport.open_ahead()
        else:
            transport.auth_publickey(user, key, done)
    except (SSHException, OSError, EOFError, ValueError) as error:
        return error
    if not done.wait(deadline.left() + 1):
        return TimeoutError()
    if transport.is_authenticated():
        return None
    return transport.get_exception() or AuthenticationException()


def _signs_at_once(transport: NodeTransport, key: PKey) -> bool:
    """A key of an agent may wait for a person. For an RSA key the server first says which signatures it takes."""
    if isinstance(key, SharedAgentKey):
        return False
    return key.get_name() != "ssh-rsa" or bool(transport.extensions)


def _refused(
    transport: NodeTransport, trouble: BaseException | None, user: str, tried: int, notes: tuple[str, ...]
) -> RemoteError:
    offered = f"user {user}, {tried} {'key' if tried == 1 else 'keys'} to offer"
    if isinstance(trouble, PartialAuthentication):
        words = f"it requires a second factor: {', '.join(trouble.allowed_types)}"
    elif isinstance(trouble, BadAuthenticationType):
        words = f"it accepts no public keys for this user, only {', '.join(trouble.allowed_types)}"
    elif "too many authentication failures" in transport.farewell.lower():
        return told("auth-too-many-keys", printable("; ".join((offered, *notes)), 500))
    elif transport.lost or isinstance(trouble, (EOFError, OSError)):
        words = f"it ended the connection{transport.farewell and f': {transport.farewell}'}"
    elif isinstance(trouble, (AuthenticationException, type(None))):
        words = "it accepted none of them"
    else:
        words = detail_of(trouble)
    return told("auth-failed", printable("; ".join((f"{offered}: {words}", *notes)), 500))


def _remote_key(transport: Transport) -> PKey:
    try:
        return transport.get_remote_server_key()
    except SSHException as error:
        raise translate(transport.get_exception() or error) from None


def _family(algorithm: str) -> str:
    """RSA keys have several signature algorithms, but one name in known_hosts."""
    return "ssh-rsa" if algorithm.startswith("rsa-sha2") else algorithm
