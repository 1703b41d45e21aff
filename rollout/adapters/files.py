"""The real file system: small regular UTF-8 files under one folder, and files that every user may read."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import BinaryIO

from rollout.core.text.terminal import printable
from rollout.errors import InputError, Problem

MAX_BYTES = 128 * 1024 * 1024
MOST_KEY_BYTES = 1024 * 1024
"""Of a key, or of a certificate for one."""


@contextmanager
def opened(path: Path) -> Iterator[BinaryIO]:
    """A file that a project may name. ``OSError``: it is no regular file, no ``/dev/null`` and no pipe of the shell's ``<(…)``.

    A named pipe would block, and a device has no end or does something when it is opened.
    """
    with os.fdopen(_descriptor(path), "rb") as file:
        status = os.fstat(file.fileno())
        if stat.S_ISFIFO(status.st_mode) and _is_inherited(path, file.fileno()):
            os.set_blocking(file.fileno(), True)
        elif stat.S_ISDIR(status.st_mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        elif not stat.S_ISREG(status.st_mode) and not os.path.samestat(status, Path(os.devnull).stat()):
            raise OSError(*_NOT_REGULAR)
        yield file


_NOT_REGULAR = (errno.EINVAL, "not a regular file")


def _descriptor(path: Path) -> int:
    """To read, of no device but ``/dev/null``: a watchdog's resets the machine once it was opened. Opening a pipe does not block."""
    mode = path.stat().st_mode
    if (stat.S_ISCHR(mode) or stat.S_ISBLK(mode)) and not path.samefile(os.devnull):
        raise OSError(*_NOT_REGULAR)
    return os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)


def _is_inherited(path: Path, descriptor: int) -> bool:
    """Whether the pipe has no name: Linux shows it so, also behind a link, and macOS has them in ``/dev/fd`` alone."""
    with suppress(OSError):
        return str(Path(f"/proc/self/fd/{descriptor}").readlink()).startswith("pipe:")
    return path.parent == Path("/dev/fd")


def whole(file: BinaryIO, most: int) -> bytes:
    """All of it. ``OSError`` with ``EFBIG``: it has more than ``most`` bytes."""
    content = file.read(most + 1)
    if len(content) > most:
        raise OSError(errno.EFBIG, f"it is larger than {most >> 10} KiB")
    return content


def content_of(path: Path, most: int) -> bytes:
    """The bytes of a file that a project may name. ``OSError`` as of ``opened`` and ``whole``."""
    with opened(path) as file:
        return whole(file, most)


class FolderFiles:
    """Paths are relative to ``root``; absolute paths are used unchanged."""

    def __init__(self, root: Path, max_bytes: int = MAX_BYTES) -> None:
        self._root = root
        self._max_bytes = max_bytes

    def read(self, path: str) -> str:
        """The text of a file, or ``InputError``."""
        try:
            return self.content(path).decode("utf-8")
        except UnicodeDecodeError as error:
            raise _problem("file-not-text", path, f"not UTF-8 at byte {error.start}") from None

    def content(self, path: str) -> bytes:
        """The bytes of a file, or ``InputError``."""
        try:
            with os.fdopen(_descriptor(self._root / path), "rb") as file:
                if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                    raise OSError(*_NOT_REGULAR)
                content = file.read(self._max_bytes + 1)
            if len(content) > self._max_bytes:
                raise _problem("file-too-large", path, f"larger than {self._max_bytes} bytes")
            return content
        except FileNotFoundError:
            raise _problem("file-missing", path, "there is no such file") from None
        except (OSError, ValueError) as error:
            raise _problem("file-unreadable", path, getattr(error, "strerror", None) or str(error)) from None

    def exists(self, path: str) -> bool:
        return (self._root / path).is_file()

    def at(self, path: str) -> str:
        """The path from the current folder. ``~`` is left to its reader."""
        is_as_written = not path or path.startswith("~") or self._root == Path()
        return path if is_as_written else str(self._root / path)

    def list(self, folder: str, suffix: str) -> tuple[str, ...]:
        """Sorted names of the files in a folder with this ending; empty when the folder does not exist."""
        here = self._root / folder
        try:
            names = [entry.name for entry in here.iterdir() if entry.name.endswith(suffix) and entry.is_file()]
        except (FileNotFoundError, NotADirectoryError):
            return ()
        except OSError as error:
            raise _problem("file-unreadable", folder, error.strerror or str(error)) from None
        return tuple(sorted(names))


def _problem(reference: str, path: str, message: str) -> InputError:
    return InputError((Problem(reference, f"{printable(path)}: {printable(message)}"),))


def write_for_all(path: Path, text: str) -> None:
    """Replace a file, readable by everyone. Another process reads the old text or the new one, never a part.

    ``InputError`` ``file-not-writable``.
    """
    fresh: Path | None = None
    try:
        with NamedTemporaryFile("w", dir=path.parent, prefix=f".{path.name}.", encoding="utf-8", delete=False) as file:
            fresh = Path(file.name)
            file.write(text)
        fresh.chmod(0o644)
        fresh.replace(path)
    except OSError as error:
        if fresh is not None:
            with suppress(OSError):
                fresh.unlink()
        raise InputError((Problem("file-not-writable", f"{path}: {error.strerror}"),)) from error


def paths_matching(pattern: Path) -> list[Path]:
    """What a path with ``*`` in its name matches, in the order of names.

    Like for the glob of OpenSSH, a ``*`` at its begin takes no dot: editors and macOS keep files of their own beside these.
    """
    dots = pattern.name.startswith(".")
    return sorted(path for path in pattern.parent.glob(pattern.name) if dots or not path.name.startswith("."))
