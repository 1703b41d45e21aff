"""What can go wrong on the way to a node, in our words: one table from foreign exceptions to stable references."""

from __future__ import annotations

import errno
import socket

from paramiko.ssh_exception import (
    AuthenticationException,
    BadAuthenticationType,
    ChannelException,
    IncompatiblePeer,
    PasswordRequiredException,
    SSHException,
)

from rollout.errors import RemoteError

REFUSING = frozenset({"connection-refused", "auth-failed", "no-channel"})
OURS = frozenset({"too-many-files", "no-local-port", "no-thread", "closed", "busy", "known-hosts-unreadable"})
PROHIBITED = 1  # SSH_OPEN_ADMINISTRATIVELY_PROHIBITED
BEHIND = (  # sshd's words for why it could not connect onwards
    ("refused", "connection-refused"),
    ("in time", "connect-timeout"),
    ("timed out", "connect-timeout"),
    ("not known", "name-not-known"),
    ("name resolution", "name-not-known"),
    ("unknown host", "name-not-known"),
)


class DroppedError(RemoteError):
    """The node closed the connection before its banner, as sshd does past MaxStartups: worth another try."""


class CarrierLostError(RemoteError):
    """A bastion lost the connection that carried us, whatever it looked like from here: worth another try."""


TABLE: tuple[tuple[type[BaseException], str, str], ...] = (
    (ConnectionRefusedError, "connection-refused", "nothing listens there"),
    (ConnectionResetError, "connection-lost", "the connection was reset"),
    (BrokenPipeError, "connection-lost", "the connection broke"),
    (TimeoutError, "connect-timeout", "no answer in time"),
    (socket.gaierror, "name-not-known", "the name does not resolve"),
    (PasswordRequiredException, "auth-failed", "the private key needs a passphrase; add it to an agent"),
    (BadAuthenticationType, "auth-failed", "the node does not allow public keys for this user"),
    (AuthenticationException, "auth-failed", "the node accepted none of our keys"),
    (ChannelException, "no-channel", "the node refused to open a session"),
    (IncompatiblePeer, "handshake-failed", "no algorithm in common, or not SSH 2"),
    (SSHException, "handshake-failed", "the SSH protocol broke"),
    (EOFError, "connection-lost", "the node closed the connection"),
    (RuntimeError, "no-thread", "this machine cannot start another thread"),
)
ERRNO = {
    errno.EHOSTUNREACH: ("host-unreachable", "no route to the host"),
    errno.ENETUNREACH: ("host-unreachable", "no route to the network"),
    errno.EHOSTDOWN: ("host-unreachable", "the host is down"),
    errno.EMFILE: ("too-many-files", "this machine has no file descriptor left"),
    errno.ENFILE: ("too-many-files", "this machine has no file descriptor left"),
    errno.EADDRNOTAVAIL: ("no-local-port", "this machine has no address or port left to connect from"),
}


def translate(error: BaseException) -> RemoteError:
    """The error in our words. What is in no table broke the protocol: a node may send anything."""
    if isinstance(error, RemoteError):
        return error
    if isinstance(error, OSError) and error.errno in ERRNO:
        reference, words = ERRNO[error.errno]
    else:
        reference, words = next(
            ((reference, words) for kind, reference, words in TABLE if isinstance(error, kind)),
            ("connection-lost", "the connection failed")
            if isinstance(error, OSError)
            else ("handshake-failed", "the node sent something that is not SSH"),
        )
    detail = printable(str(error))
    return RemoteError(reference, f"{words}: {detail}" if detail else words)


def unless_exhausted(error: OSError) -> None:
    """Raises ``RemoteError`` when it is this machine that has run out of something, not the file's or node's fault."""
    if error.errno in (errno.EMFILE, errno.ENFILE):
        raise translate(error) from None


def printable(text: str, limit: int = 200) -> str:
    """Text that may come from a node: printable ASCII only, bounded, so that no terminal escape gets through."""
    return "".join(char if " " <= char <= "~" else "?" for char in text[:limit])


def at_bastion(bastion: object, error: RemoteError) -> RemoteError:
    """The trouble of a bastion itself, in the shape of a node's behind it."""
    if error.reference in OURS or error.reference.startswith("bastion-"):
        return error
    if error.reference.startswith("host-"):
        reference = f"bastion-{error.reference}" if error.reference != "host-unreachable" else "bastion-unreachable"
    else:
        reference = "bastion-refused" if error.reference in REFUSING else "bastion-unreachable"
    return RemoteError(reference, f"bastion {bastion}: {error.message}")


def carried(error: RemoteError, blame: str) -> RemoteError:
    """The trouble of what goes over a bastion's connection. ``blame`` says what became of that, nothing while it lives."""
    if not blame or error.reference in OURS or error.reference.startswith(("bastion-", "host-key-", "host-cert")):
        return error
    return CarrierLostError("bastion-unreachable", blame)


def behind_bastion(bastion: object, node: object, code: int, text: str) -> RemoteError:
    """Why a bastion that answers opened no tunnel; ``code`` and ``text`` are its own."""
    said = printable(text)
    if code == PROHIBITED:
        return RemoteError("bastion-forbids", f"bastion {bastion} does not forward to {node}: {said}")
    reference = next((reference for word, reference in BEHIND if word in text.lower()), "host-unreachable")
    return RemoteError(reference, f"bastion {bastion} does not reach {node}: {said}")
