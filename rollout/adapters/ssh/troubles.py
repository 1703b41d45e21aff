"""Connection errors: reference, cause, and what to do. One table for every transport.

Only the address differs from node to node, and its form is always ``(at …)``: so messages of many nodes fold into one.
"""

from __future__ import annotations

import errno
import socket
from dataclasses import dataclass

from paramiko.ssh_exception import AuthenticationException, ChannelException, SSHException

from rollout.adapters.ssh.ascii_text import printable
from rollout.errors import RemoteError


@dataclass(frozen=True, slots=True)
class ConnectionTrouble:
    cause: str
    advice: str = ""


_SSH_V = "`ssh -v` with the same ssh_config shows more"
_FILES = "raise `ulimit -n`, or have fewer nodes in flight"
_KNOWN = "check that it is the right machine; then remove the line from known_hosts with `ssh-keygen -R`"

TROUBLES: dict[str, ConnectionTrouble] = {
    "connection-refused": ConnectionTrouble("connection refused", "check that sshd runs, and that the port is right"),
    "connection-lost": ConnectionTrouble("the connection was lost"),
    "connect-timeout": ConnectionTrouble(
        "no answer in time", "check that the node is up and no firewall drops the packets"
    ),
    "host-unreachable": ConnectionTrouble("no route to it", "check the address, and the routes of this machine"),
    "name-not-known": ConnectionTrouble(
        "the name does not resolve", "check the spelling, HostName in ssh_config, and DNS"
    ),
    "no-banner": ConnectionTrouble(
        "no SSH server answered", "check that sshd listens there and is not out of connections (MaxStartups)"
    ),
    "handshake-failed": ConnectionTrouble("the SSH handshake failed", _SSH_V),
    "handshake-timeout": ConnectionTrouble("the key exchange did not end in time"),
    "host-key-unknown": ConnectionTrouble(
        "its host key is not known",
        "`--accept-new` accepts and records the keys of new nodes; `ssh-keyscan` shows them",
    ),
    "host-key-changed": ConnectionTrouble("its host key is not the known one", _KNOWN),
    "host-key-revoked": ConnectionTrouble("its host key is revoked", "it needs another host key"),
    "host-certificate-refused": ConnectionTrouble("its host certificate is not valid"),
    "auth-failed": ConnectionTrouble("the login was refused", f"check the user and the keys; {_SSH_V}"),
    "auth-too-many-keys": ConnectionTrouble(
        "the login was ended after too many keys (MaxAuthTries)",
        "set the key with `IdentityFile` and `IdentitiesOnly yes` in ssh_config, or remove keys from the ssh-agent",
    ),
    "auth-timeout": ConnectionTrouble("the login was not answered in time"),
    "no-channel": ConnectionTrouble(
        "the login succeeded, but no session was opened", "check MaxSessions and sshd's log there"
    ),
    "proxy-command-failed": ConnectionTrouble("the ProxyCommand did not connect"),
    "too-many-files": ConnectionTrouble("this machine has no file descriptor left", _FILES),
    "no-local-port": ConnectionTrouble("this machine has no address or port left to connect from"),
    "no-thread": ConnectionTrouble("this machine cannot start another thread"),
}


def told(reference: str, detail: str = "", *, at: object = "") -> RemoteError:
    """``detail``: more about the cause; ``at``: the address, where it helps."""
    trouble = TROUBLES[reference]
    where = f" (at {at})" if str(at) else ""
    more = f": {detail}" if detail and detail.casefold() != trouble.cause.casefold() else ""
    advice = f"; {trouble.advice}" if trouble.advice else ""
    return RemoteError(reference, f"{trouble.cause}{where}{more}{advice}")


# Errors on a path with a bastion: is the cause the bastion, or the node behind it?


REFUSING = frozenset({"connection-refused", "auth-failed", "auth-too-many-keys", "no-channel"})
OURS = frozenset({"too-many-files", "no-local-port", "no-thread", "closed", "busy", "known-hosts-unreadable"})
LOST = frozenset({"connection-lost", "handshake-failed"})
PROHIBITED = 1  # SSH_OPEN_ADMINISTRATIVELY_PROHIBITED
BEHIND = (  # sshd's reasons for a failed onward connection
    ("refused", "connection-refused"),
    ("in time", "connect-timeout"),
    ("timed out", "connect-timeout"),
    ("not known", "name-not-known"),
    ("name resolution", "name-not-known"),
    ("unknown host", "name-not-known"),
)


class DroppedError(RemoteError):
    """The node closed the connection before its banner, as sshd does past MaxStartups: worth a retry."""


class CarrierLostError(RemoteError):
    """A bastion lost the connection that carried ours, whatever the local symptom: worth a retry."""


class ProxyEndedError(RemoteError):
    """How the program of a ``ProxyCommand`` stands. ``quietly``: it ended with status 0, as when the node hangs up."""

    def __init__(self, message: str, *, quietly: bool) -> None:
        super().__init__("proxy-command-failed", message)
        self.quietly = quietly


def at_bastion(bastion: object, error: RemoteError) -> RemoteError:
    """An error of the bastion itself, in the form of an error of the node behind it."""
    if error.reference in OURS or error.reference.startswith("bastion-"):
        return error
    if error.reference.startswith("host-"):
        reference = f"bastion-{error.reference}" if error.reference != "host-unreachable" else "bastion-unreachable"
    else:
        reference = "bastion-refused" if error.reference in REFUSING else "bastion-unreachable"
    return RemoteError(reference, f"bastion {bastion}: {error.message}")


def carried(error: RemoteError, blame: RemoteError | None) -> RemoteError:
    """An error on a connection through a bastion or a program. ``blame``: why that one's connection ended, if it did."""
    if blame is None or error.reference in OURS or error.reference.startswith(("bastion-", "host-key-", "host-cert")):
        return error
    if isinstance(blame, ProxyEndedError):  # it also ends whenever the node ends the connection
        return _through_program(error, blame)
    return CarrierLostError(blame.reference, blame.message)


def _through_program(error: RemoteError, blame: ProxyEndedError) -> RemoteError:
    message = f"{error.message}; {blame.message}"
    if error.reference == "no-banner":
        kind = DroppedError if blame.quietly and isinstance(error, DroppedError) else RemoteError
        return kind(blame.reference, message)
    return RemoteError(error.reference, message) if error.reference in LOST else error


def behind_bastion(bastion: object, node: object, code: int, text: str) -> RemoteError:
    """Why a responding bastion opened no tunnel; ``code`` and ``text`` are from the bastion."""
    message = printable(text)
    if code == PROHIBITED:
        return RemoteError("bastion-forbids", f"bastion {bastion} does not forward to {node}: {message}")
    reference = next((reference for word, reference in BEHIND if word in text.lower()), "host-unreachable")
    return RemoteError(reference, f"bastion {bastion} does not reach {node}: {message}")


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
