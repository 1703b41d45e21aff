"""Bearer tokens in files, which others rotate: read again every minute, never shown."""

from __future__ import annotations

import threading
import time
from pathlib import Path

from rollout.errors import RemoteError

MOST_BYTES = 64 * 1024
EVERY = 60.0


class TokenFile:
    """The token in a file, as of at most a minute ago. Thread-safe."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._token = ""
        self._read_at = 0.0

    def read(self) -> str:
        with self._lock:
            if not self._token or time.monotonic() - self._read_at > EVERY:
                self._token = self._fresh()
                self._read_at = time.monotonic()
            return self._token

    def forget(self) -> None:
        """It was not believed: the next read looks into the file."""
        with self._lock:
            self._token = ""

    def _fresh(self) -> str:
        try:
            with self._path.open("rb") as file:
                token = file.read(MOST_BYTES).decode("ascii").strip()
        except OSError as exc:
            raise RemoteError("no-token", f"{self._path}: {exc.strerror}") from None
        except UnicodeDecodeError:
            token = ""
        return bearer(token, str(self._path))


def bearer(token: str, where: str) -> str:
    """``token`` if it can be one: printable, without blanks. What is wrong is said without showing it."""
    if not token or not token.isprintable() or any(character.isspace() for character in token) or not token.isascii():
        raise RemoteError("no-token", f"{where} holds no bearer token")
    return token
