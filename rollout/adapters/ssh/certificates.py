"""OpenSSH certificates: parsing, and verification of host certificates. paramiko reads only the key inside."""

from __future__ import annotations

import base64
import time
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from paramiko.message import Message
from paramiko.pkey import PKey, UnknownKeyType
from paramiko.ssh_exception import SSHException

from rollout.adapters.files import MOST_KEY_BYTES, content_of
from rollout.adapters.ssh.ascii_text import printable
from rollout.adapters.ssh.known_hosts import HostKeyVerdict, KnownHosts
from rollout.adapters.ssh.patterns import matches

SUFFIX = "-cert-v01@openssh.com"
HOST = 2
# number of strings in the public key, by certificate type
_FIELDS = {
    "ssh-ed25519": 1,
    "ssh-rsa": 2,
    "ecdsa-sha2-nistp256": 2,
    "ecdsa-sha2-nistp384": 2,
    "ecdsa-sha2-nistp521": 2,
    "sk-ssh-ed25519": 2,
    "sk-ecdsa-sha2-nistp256": 3,
}


@dataclass(frozen=True, slots=True)
class Certificate:
    """``key`` and ``authority`` are public keys in wire format; ``after`` and ``before`` are seconds since 1970."""

    blob: bytes
    kind: str
    key: bytes
    role: int
    principals: tuple[str, ...]
    after: int
    before: int
    critical: bool
    authority: bytes
    signed: bytes
    signature: bytes

    def not_now(self, now: float) -> str:
        """Why it is not valid at this time, or ``""``."""
        if now < self.after:
            return f"is not valid before {_moment(self.after)}"
        return f"expired on {_moment(self.before)}" if now >= self.before else ""


def parse(blob: bytes) -> Certificate:
    """Raises ``ValueError`` for anything but a certificate."""
    message = Message(blob)
    kind = message.get_text()
    if not kind.endswith(SUFFIX) or kind.removesuffix(SUFFIX) not in _FIELDS:
        raise ValueError(f"not a certificate of a known type: {printable(kind, 60)}")
    plain = kind.removesuffix(SUFFIX)
    message.get_binary()  # the nonce
    key = Message()
    key.add_string(f"{plain}@openssh.com" if plain.startswith("sk-") else plain)
    for _ in range(_FIELDS[plain]):
        key.add_string(message.get_binary())
    message.get_int64()  # the serial
    role = message.get_int()
    message.get_binary()  # the key id
    principals = tuple(_strings(message.get_binary()))
    after, before = message.get_int64(), message.get_int64()
    critical = bool(message.get_binary())
    message.get_binary(), message.get_binary()  # extensions, reserved
    authority = message.get_binary()
    signed = message.get_so_far()
    signature = message.get_binary()
    if message.get_remainder() or not signature:
        raise ValueError("a truncated certificate")
    return Certificate(
        blob, kind, key.asbytes(), role, principals, after, before, critical, authority, signed, signature
    )


def read(path: Path) -> Certificate:
    """From a file such as ``id-cert.pub``. Raises ``OSError`` and ``ValueError``."""
    words = content_of(path, MOST_KEY_BYTES).decode("ascii").split()
    if len(words) < 2:
        raise ValueError("not a certificate")
    return parse(base64.b64decode(words[1], validate=True))


def refusal(blob: bytes, known: KnownHosts, names: tuple[str, ...]) -> str:
    """Why this certificate does not prove the host's identity (``names``; the last without port), or ``""``."""
    try:
        certificate = parse(blob)
    except (ValueError, SSHException) as error:
        return str(error)
    authority = base64.b64encode(certificate.authority).decode("ascii")
    if known.verdict(names, authority) is HostKeyVerdict.REVOKED:
        return "its authority is revoked"
    if authority not in known.authorities(names):
        return f"no @cert-authority line for {names[-1]} has its authority"
    return _forged(certificate) or _not_this_host(certificate, names[-1]) or certificate.not_now(time.time())


def _not_this_host(certificate: Certificate, name: str) -> str:
    if certificate.role != HOST:
        return "it is not a host certificate"
    if certificate.critical:
        return "it has critical options, and none is supported"
    if not any(matches(name, principal.lower()) for principal in certificate.principals):
        return f"it is for {printable(', '.join(certificate.principals) or 'no name', 120)}, not for {name}"
    return ""


def _forged(certificate: Certificate) -> str:
    try:
        kind, algorithm = Message(certificate.authority).get_text(), Message(certificate.signature).get_text()
    except ValueError:  # not UTF-8
        return "its authority or its signature has no type"
    if algorithm == "ssh-rsa":
        return "it is signed with SHA-1"
    try:
        authority = PKey.from_type_string(kind, certificate.authority)
        good = authority.verify_ssh_sig(certificate.signed, Message(certificate.signature))
    except UnknownKeyType:
        return f"an authority of type {printable(kind, 60)} is not supported"
    except (ValueError, SSHException) as error:
        return f"its signature cannot be read: {printable(str(error), 100)}"
    return "" if good else "its signature is wrong"


def _strings(packed: bytes) -> Iterable[str]:
    message = Message(packed)
    while message.get_remainder():
        yield message.get_binary().decode("utf-8", "replace")


def _moment(seconds: int) -> str:
    if seconds > 253402300799:
        return "a day after the year 9999"
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M} UTC"
