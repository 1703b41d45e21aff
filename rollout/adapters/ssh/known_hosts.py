"""known_hosts, indexed once: whether a host key is the known one.

Plain names are a dictionary. Hashed names are found through the presented key: a known host costs one HMAC instead of
one per line. Only an unknown host costs a scan of all lines.
"""

from __future__ import annotations

import base64
import enum
import fcntl
import hmac
import os
import threading
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from rollout.adapters.files import content_of
from rollout.adapters.owners import REMEDY, others_hold
from rollout.adapters.ssh.patterns import is_literal, listed
from rollout.adapters.ssh.troubles import unless_exhausted
from rollout.errors import RemoteError

Digest = tuple[bytes, bytes]

KINDS = frozenset(
    (
        "ssh-ed25519",
        "ssh-rsa",
        "ssh-dss",
        *(f"ecdsa-sha2-nistp{bits}" for bits in (256, 384, 521)),
        "sk-ssh-ed25519@openssh.com",
        "sk-ecdsa-sha2-nistp256@openssh.com",
    )
)


class HostKeyVerdict(enum.Enum):
    KNOWN = "known"
    UNKNOWN = "unknown"
    CHANGED = "changed"
    REVOKED = "revoked"


@dataclass(frozen=True, slots=True)
class _Entry:
    """One line. ``names`` is ``None`` for a hashed name; then ``digest`` contains salt and hash."""

    marker: str
    names: tuple[str, ...] | None
    digest: Digest | None
    kind: str
    key: str

    def is_for(self, name: str) -> bool:
        if self.digest is not None:
            salt, expected = self.digest
            return hmac.compare_digest(hmac.digest(salt, name.encode(), "sha1"), expected)
        return listed(name, self.names or ())


class KnownHosts:
    """The lines of some files. Lines that do not parse are skipped, as OpenSSH does."""

    def __init__(self, texts: tuple[str, ...]) -> None:
        self._exact: dict[str, list[_Entry]] = defaultdict(list)
        self._patterns: list[_Entry] = []
        self._hashed: list[_Entry] = []
        self._hashed_keys: dict[str, list[_Entry]] = defaultdict(list)
        self._authorities: list[_Entry] = []
        for text in texts:
            for line in text.split("\n"):
                entry = _parse(line)
                if entry is not None:
                    self.add(entry)

    def add(self, entry: _Entry) -> None:
        if entry.marker == "@cert-authority":
            self._authorities.append(entry)
        elif entry.digest is not None:
            self._hashed.append(entry)
            self._hashed_keys[entry.key].append(entry)
        elif not all(map(is_literal, entry.names or ())):
            self._patterns.append(entry)
        else:
            for name in entry.names or ():
                self._exact[name].append(entry)

    def kinds(self, name: str, *, hashed: bool) -> frozenset[str]:
        """The known key types of a name; ``hashed`` also scans all hashed lines."""
        entries = [*self._plain(name), *(entry for entry in self._hashed if hashed and entry.is_for(name))]
        return frozenset(entry.kind for entry in entries if not entry.marker)

    def authorities(self, names: tuple[str, ...]) -> frozenset[str]:
        """The keys (base64) of the certificate authorities for this host: those of its first known name."""
        of_each = (frozenset(entry.key for entry in self._authorities if entry.is_for(name)) for name in names)
        return next(filter(None, of_each), frozenset())

    def verdict(self, names: tuple[str, ...], key: str) -> HostKeyVerdict:
        """The verdict on a presented key (base64); ``names``: the decisive one first.

        As in OpenSSH, the name without port counts only when the name with port is unknown. Unlike OpenSSH, a key that
        is revoked under any of the names is revoked.
        """
        same = [[entry for entry in self._showing(key, name) if entry.key == key] for name in names]
        if any(entry.marker == "@revoked" for entries in same for entry in entries):
            return HostKeyVerdict.REVOKED
        if same[0]:
            return HostKeyVerdict.KNOWN
        if self.kinds(names[0], hashed=True):
            return HostKeyVerdict.CHANGED
        return HostKeyVerdict.KNOWN if any(same) else HostKeyVerdict.UNKNOWN

    def _showing(self, key: str, name: str) -> list[_Entry]:
        return [*self._plain(name), *(held for held in self._hashed_keys.get(key, ()) if held.is_for(name))]

    def _plain(self, name: str) -> list[_Entry]:
        return [*self._exact.get(name, ()), *(entry for entry in self._patterns if entry.is_for(name))]


class KnownHostsFiles:
    """Indexes each set of files once and appends to it. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._read: dict[tuple[Path, ...], KnownHosts] = {}

    def of(self, paths: tuple[Path, ...]) -> KnownHosts:
        with self._lock:
            if paths not in self._read:
                self._read[paths] = KnownHosts(tuple(_read(path) for path in paths))
            return self._read[paths]

    def accept(self, paths: tuple[Path, ...], names: tuple[str, ...], kind: str, key: str) -> HostKeyVerdict:
        """Append a new host to the first file, unless the file has it by now; the verdict after that."""
        with self._lock:
            verdict = _append(paths, names, f"{names[0]} {kind} {key}\n", key)
            if verdict is HostKeyVerdict.UNKNOWN:
                if paths in self._read:
                    self._read[paths].add(_Entry("", (names[0],), None, kind, key))
                return HostKeyVerdict.KNOWN
            self._read[paths] = KnownHosts(tuple(_read(path) for path in paths))
            return verdict


def _append(paths: tuple[Path, ...], names: tuple[str, ...], line: str, key: str) -> HostKeyVerdict:
    """One locked write, if the host is still unknown; returns the verdict before it."""
    try:
        paths[0].parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(paths[0], os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            now = KnownHosts(tuple(_read(path) for path in paths)).verdict(names, key)
            if now is not HostKeyVerdict.UNKNOWN:
                return now  # another process was first
            size = os.fstat(descriptor).st_size
            torn = size > 0 and os.pread(descriptor, 1, size - 1) != b"\n"
            os.write(descriptor, (("\n" if torn else "") + line).encode())
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
    except (OSError, IndexError) as error:
        raise RemoteError("known-hosts-not-writable", f"the new host key could not be recorded: {error}") from None
    return now


_MOST_BYTES = 256 * 1024 * 1024
"""A line has some 400 bytes, and a node some three lines."""


def _read(path: Path) -> str:
    try:
        if why := others_hold(path):
            raise RemoteError("known-hosts-unreadable", why, hint=REMEDY)
        return content_of(path, _MOST_BYTES).decode("utf-8", errors="replace")
    except (FileNotFoundError, NotADirectoryError):
        return ""
    except OSError as error:
        unless_exhausted(error)
        raise RemoteError("known-hosts-unreadable", f"cannot read {path}: {error.strerror}") from None


def _parse(line: str) -> _Entry | None:
    words = line.replace("\t", " ").split(" ")
    words = [word for word in words if word]
    if not words or words[0].startswith("#"):
        return None
    marker = words.pop(0) if words[0].startswith("@") else ""
    if len(words) < 3 or marker not in ("", "@revoked", "@cert-authority"):
        return None
    if marker == "@cert-authority" and f"{marker}\t" in line and " " in line.lstrip(" \t"):
        return None  # OpenSSH ends a marker at the first blank; a key is revoked with any form
    names, kind, key = words[0], words[1], words[2].rstrip("\r")
    if not _is_key(kind, key):
        return None
    if not names.startswith("|"):
        return _Entry(marker, tuple(names.lower().split(",")), None, kind, key)
    digest = _digest(names)
    return _Entry(marker, None, digest, kind, key) if digest else None


def _is_key(kind: str, key: str) -> bool:
    """A truncated key or one of a wrong type is ignored with its line."""
    try:
        blob = base64.b64decode(key, validate=True)
    except ValueError:  # not base64, or not even ASCII
        return False
    fields = list(_fields(blob))
    return kind in KINDS and sum(map(len, fields)) + 4 * len(fields) == len(blob) and fields[0] == kind.encode()


def _fields(blob: bytes) -> Iterator[bytes]:
    """The strings of a key; a truncated last one is left out."""
    at = 0
    while at + 4 <= len(blob):
        size = int.from_bytes(blob[at : at + 4], "big")
        if at + 4 + size > len(blob):
            return
        yield blob[at + 4 : at + 4 + size]
        at += 4 + size


def _digest(word: str) -> Digest | None:
    parts = word.split("|")
    if len(parts) != 4 or parts[1] != "1":
        return None
    try:
        return base64.b64decode(parts[2], validate=True), base64.b64decode(parts[3], validate=True)
    except ValueError:  # not base64, or not even ASCII
        return None
