"""Errors on a path with a bastion: is the cause the bastion, or the node behind it?"""

from __future__ import annotations

from rollout.adapters.ssh.troubles import printable
from rollout.errors import RemoteError

REFUSING = frozenset({"connection-refused", "auth-failed", "auth-too-many-keys", "no-channel"})
OURS = frozenset({"too-many-files", "no-local-port", "no-thread", "closed", "busy", "known-hosts-unreadable"})
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


def at_bastion(bastion: object, error: RemoteError) -> RemoteError:
    """An error of the bastion itself, in the form of an error of the node behind it."""
    if error.reference in OURS or error.reference.startswith("bastion-"):
        return error
    if error.reference.startswith("host-"):
        reference = f"bastion-{error.reference}" if error.reference != "host-unreachable" else "bastion-unreachable"
    else:
        reference = "bastion-refused" if error.reference in REFUSING else "bastion-unreachable"
    return RemoteError(reference, f"bastion {bastion}: {error.message}")


def carried(error: RemoteError, blame: str) -> RemoteError:
    """An error on a connection through a bastion. ``blame``: why the bastion's connection ended, else empty."""
    if not blame or error.reference in OURS or error.reference.startswith(("bastion-", "host-key-", "host-cert")):
        return error
    return CarrierLostError("bastion-unreachable", blame)


def behind_bastion(bastion: object, node: object, code: int, text: str) -> RemoteError:
    """Why a responding bastion opened no tunnel; ``code`` and ``text`` are from the bastion."""
    said = printable(text)
    if code == PROHIBITED:
        return RemoteError("bastion-forbids", f"bastion {bastion} does not forward to {node}: {said}")
    reference = next((reference for word, reference in BEHIND if word in text.lower()), "host-unreachable")
    return RemoteError(reference, f"bastion {bastion} does not reach {node}: {said}")
