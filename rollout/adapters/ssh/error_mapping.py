"""Maps exceptions of paramiko and of the system to our references."""

from __future__ import annotations

import errno
import socket

from paramiko.ssh_exception import AuthenticationException, ChannelException, SSHException

from rollout.adapters.ssh.troubles import printable, told
from rollout.errors import RemoteError

KINDS: tuple[tuple[type[BaseException], str], ...] = (
    (ConnectionRefusedError, "connection-refused"),
    (TimeoutError, "connect-timeout"),
    (socket.gaierror, "name-not-known"),
    (AuthenticationException, "auth-failed"),
    (ChannelException, "no-channel"),
    (SSHException, "handshake-failed"),
    (EOFError, "connection-lost"),
    (OSError, "connection-lost"),
    (RuntimeError, "no-thread"),
)
ERRNO = {
    errno.EHOSTUNREACH: "host-unreachable",
    errno.ENETUNREACH: "host-unreachable",
    errno.EHOSTDOWN: "host-unreachable",
    errno.EMFILE: "too-many-files",
    errno.ENFILE: "too-many-files",
    errno.EADDRNOTAVAIL: "no-local-port",
}


def translate(error: BaseException, *, at: object = "") -> RemoteError:
    """The error as ``RemoteError``. An unlisted error is a protocol violation: a node may send anything."""
    if isinstance(error, RemoteError):
        return error
    if isinstance(error, OSError) and error.errno in ERRNO:
        reference = ERRNO[error.errno]
    else:
        reference = next((reference for kind, reference in KINDS if isinstance(error, kind)), "handshake-failed")
    return told(reference, detail_of(error), at=at)


def detail_of(error: BaseException) -> str:
    """The error's own message, without the number."""
    words = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return printable(words)


def unless_exhausted(error: OSError) -> None:
    """Raises ``RemoteError`` when this machine ran out of a resource, so neither file nor node is to blame."""
    if error.errno in (errno.EMFILE, errno.ENFILE):
        raise translate(error) from None
