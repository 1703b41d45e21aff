"""known_hosts, indexed once: whether a host key is the one we know.

Plain names are a dictionary. Hashed names are found through the key that the host showed, so that a known host costs
one HMAC instead of one for each line; only a stranger costs a walk over all of them.
"""

from __future__ import annotations

import base64
import enum
import fcntl
import hmac
import os
import re
import threading
from collections import defaultdict
from dataclasses import dataclass
from fnmatch import translate
from functools import lru_cache
from pathlib import Path

from rollout.adapters.ssh.troubles import unless_exhausted
from rollout.errors import RemoteError

Digest = tuple[bytes, bytes]


def matches(name: str, pattern: str) -> bool:
    """As in ssh_config: ``*`` and ``?`` only; the brackets of ``[host]:port`` mean themselves."""
    return _pattern(pattern).fullmatch(name) is not None


@lru_cache(4096)
def _pattern(pattern: str) -> re.Pattern[str]:
    """``translate`` makes a pattern that never goes back over what a ``*`` has passed: many of them take no longer."""
    return re.compile(translate(pattern.replace("[", "[[]")))


class Verdict(enum.Enum):
    KNOWN = "known"
    UNKNOWN = "unknown"
    CHANGED = "changed"
    REVOKED = "revoked"


@dataclass(frozen=True, slots=True)
class _Entry:
    """One line. ``names`` is ``None`` for a hashed name, then ``digest`` holds salt and hash."""

    marker: str
    names: tuple[str, ...] | None
    digest: Digest | None
    kind: str
    key: str

    def is_for(self, name: str) -> bool:
        if self.digest is not None:
            salt, expected = self.digest
            return hmac.compare_digest(hmac.digest(salt, name.encode(), "sha1"), expected)
        found = False
        for pattern in self.names or ():
            if pattern.startswith("!"):
                if matches(name, pattern[1:]):
                    return False
            else:
                found = found or matches(name, pattern)
        return found


class KnownHosts:
    """The lines of some files. Lines that do not parse are skipped, as OpenSSH does."""

    def __init__(self, texts: tuple[str, ...]) -> None:
        self._exact: dict[str, list[_Entry]] = defaultdict(list)
        self._patterns: list[_Entry] = []
        self._hashed: list[_Entry] = []
        self._hashed_keys: dict[str, list[_Entry]] = defaultdict(list)
        self._authorities: list[_Entry] = []
        for text in texts:
            for line in text.splitlines():
                entry = _parse(line)
                if entry is not None:
                    self.add(entry)

    def add(self, entry: _Entry) -> None:
        if entry.marker == "@cert-authority":
            self._authorities.append(entry)
        elif entry.digest is not None:
            self._hashed.append(entry)
            self._hashed_keys[entry.key].append(entry)
        elif any(set(name) & set("*?!") for name in entry.names or ()):
            self._patterns.append(entry)
        else:
            for name in entry.names or ():
                self._exact[name].append(entry)

    def kinds(self, name: str, *, hashed: bool) -> frozenset[str]:
        """The key types known for a name; with ``hashed`` also from hashed lines, which is a walk over all of them."""
        entries = [*self._plain(name), *(entry for entry in self._hashed if hashed and entry.is_for(name))]
        return frozenset(entry.kind for entry in entries if not entry.marker)

    def authorities(self, names: tuple[str, ...]) -> frozenset[str]:
        """The keys (base64) of the certificate authorities that may vouch for this host."""
        return frozenset(entry.key for entry in self._authorities if any(entry.is_for(name) for name in names))

    def verdict(self, names: tuple[str, ...], key: str) -> Verdict:
        """Of the key (base64) that a host showed; ``names``: the decisive one first."""
        same = [
            entry
            for name in names
            for entry in (*self._plain(name), *(held for held in self._hashed_keys.get(key, ()) if held.is_for(name)))
            if entry.key == key
        ]
        if any(entry.marker == "@revoked" for entry in same):
            return Verdict.REVOKED
        if same:
            return Verdict.KNOWN
        return Verdict.CHANGED if self.kinds(names[0], hashed=True) else Verdict.UNKNOWN

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

    def accept(self, paths: tuple[Path, ...], names: tuple[str, ...], kind: str, key: str) -> Verdict:
        """Append a new host to the first file, unless the file has learnt of it since; the verdict after that."""
        with self._lock:
            verdict = _append(paths, names, f"{names[0]} {kind} {key}\n", key)
            if verdict is Verdict.UNKNOWN:
                if paths in self._read:
                    self._read[paths].add(_Entry("", (names[0],), None, kind, key))
                return Verdict.KNOWN
            self._read[paths] = KnownHosts(tuple(_read(path) for path in paths))
            return verdict


def _append(paths: tuple[Path, ...], names: tuple[str, ...], line: str, key: str) -> Verdict:
    """One locked write, if the host is still unknown to the files: the verdict before it."""
    try:
        paths[0].parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(paths[0], os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            now = KnownHosts(tuple(_read(path) for path in paths)).verdict(names, key)
            if now is not Verdict.UNKNOWN:
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


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except (FileNotFoundError, NotADirectoryError):
        return ""
    except OSError as error:
        unless_exhausted(error)
        raise RemoteError("known-hosts-unreadable", f"cannot read {path}: {error.strerror}") from None


def _parse(line: str) -> _Entry | None:
    words = line.split(None, 4)
    if not words or words[0].startswith("#"):
        return None
    marker = words.pop(0) if words[0].startswith("@") else ""
    if len(words) < 3 or marker not in ("", "@revoked", "@cert-authority"):
        return None
    names, kind, key = words[:3]
    if not names.startswith("|"):
        return _Entry(marker, tuple(names.lower().split(",")), None, kind, key)
    digest = _digest(names)
    return _Entry(marker, None, digest, kind, key) if digest else None


def _digest(word: str) -> Digest | None:
    parts = word.split("|")
    if len(parts) != 4 or parts[1] != "1":
        return None
    try:
        return base64.b64decode(parts[2], validate=True), base64.b64decode(parts[3], validate=True)
    except ValueError:  # not base64, or not even ASCII
        return None
