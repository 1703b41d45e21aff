"""Files of logs and events for a diagnosis: of any size, gzip too, or standard input."""

from __future__ import annotations

import gzip
import io
import os
import stat
import sys
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import IO

from rollout.core.text.terminal import printable
from rollout.errors import InputError, Problem
from rollout.features.diagnose.rules.reading import PIECE

STANDARD_INPUT = "-"
_GZIP = b"\x1f\x8b"


class DiagnosisFiles:
    """Each file is read once, in pieces of at most ``PIECE`` bytes."""

    def latest(self, path: str) -> datetime:
        """A time after the file's last line: when it was changed, for standard input now."""
        if path == STANDARD_INPUT:
            return datetime.now(UTC)
        return datetime.fromtimestamp(self._status(path).st_mtime, UTC)

    def pieces(self, path: str) -> Iterator[bytes]:
        """The lines of a file. A gzip file that is cut ends where it is cut. Raises ``InputError``."""
        try:
            with _opened(path) as stream:
                try:
                    while piece := stream.readline(PIECE):
                        yield piece
                except (EOFError, zlib.error, gzip.BadGzipFile):
                    yield b"\n(the compressed file is cut or damaged here)\n"
        except OSError as error:
            raise _problem(path, error.strerror or str(error)) from None

    def _status(self, path: str) -> os.stat_result:
        try:
            status = Path(path).stat()
        except FileNotFoundError:
            raise InputError((Problem("file-missing", f"{printable(path)}: there is no such file"),)) from None
        except (OSError, ValueError) as error:
            raise _problem(path, str(error)) from None
        if stat.S_ISDIR(status.st_mode):
            raise _problem(path, "it is a folder")
        return status


@contextmanager
def _opened(path: str) -> Iterator[IO[bytes]]:
    if path == STANDARD_INPUT:
        yield _unpacked(sys.stdin.buffer)
        return
    with Path(path).open("rb") as file:
        yield _unpacked(file)


def _unpacked(stream: IO[bytes]) -> IO[bytes]:
    """The stream, through gzip if its first bytes say so."""
    buffered = io.BufferedReader(stream, 1 << 20) if isinstance(stream, io.RawIOBase) else stream
    peek = getattr(buffered, "peek", None)
    if peek is not None and peek(2)[:2] == _GZIP:
        return io.BufferedReader(gzip.GzipFile(fileobj=buffered), 1 << 20)
    return buffered


def _problem(path: str, message: str) -> InputError:
    return InputError((Problem("file-unreadable", f"{printable(path)}: {printable(message)}"),))
