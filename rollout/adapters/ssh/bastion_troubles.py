"""Whose fault it is where a bastion is on the way: the bastion's, or that of the node behind it."""

from __future__ import annotations

from rollout.adapters.ssh.troubles import printable
from rollout.errors import RemoteError

REFUSING = frozenset({"connection-refused", "auth-failed", "auth-too-many-keys", "no-channel"})
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
