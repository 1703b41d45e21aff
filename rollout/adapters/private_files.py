"""Private files: the journal's folder, and files with contents of nodes' files.

Others may use this machine. Links at the target are not followed, folders that others may write to are refused, and
existing files with wider permissions get ours.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from tempfile import mkstemp
from threading import Lock

from rollout.adapters.owners import REMEDY, others_hold
from rollout.core.text.terminal import printable
from rollout.errors import InputError, Problem, StateError, UsageError
from rollout.kubelet.agent.sudo import Secret

# Traces of internal errors on one node's content: kept in one file, for bug reports.


FILE = "failed-on-nodes.txt"
MOST = 20
LONGEST = 64 * 1024


class Traces:
    """The traces of one command. The first starts the file anew; identical failures are kept once. Thread-safe."""

    def __init__(self, state: Path) -> None:
        self._state = state
        self._kept: dict[str, str] = {}
        self._lock = Lock()

    def keep(self, node: str, trace: str) -> str:
        """Where the trace is, or why it was not kept: a failure here does not stop the work on other nodes."""
        path = self._state / FILE
        with self._lock:
            if trace not in self._kept and len(self._kept) < MOST:
                self._kept[trace] = node
                try:
                    private_state(self._state)
                    write_privately(path, self._text().encode("utf-8", "replace"))
                except (InputError, StateError) as error:
                    del self._kept[trace]
                    return f"The trace could not be saved: {error}"
        return f"The trace is in {path}, readable by you alone"

    def _text(self) -> str:
        return "\n".join(f"{node}\n{trace[:LONGEST]}" for trace, node in self._kept.items())


JOURNAL = "journal.db"
_OURS = (JOURNAL, f"{JOURNAL}-wal", f"{JOURNAL}-shm")


def write_privately(path: Path, content: bytes) -> None:
    """Writes a regular 0600 file atomically: a reader sees the old or the new content, never a part."""
    try:
        _check_replaceable(path)
        descriptor, name = mkstemp(prefix=f".{path.name}.", dir=path.parent)  # 0600, and never an existing file
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            Path(name).replace(path)
        except BaseException:
            with suppress(OSError):
                Path(name).unlink()
            raise
    except OSError as exc:
        raise _not_written("file-not-writable", path, exc.strerror or str(exc)) from exc


def _check_replaceable(path: Path) -> None:
    try:
        mode = path.lstat().st_mode
    except FileNotFoundError:
        return
    if not stat.S_ISREG(mode):
        what = "it is a symbolic link" if stat.S_ISLNK(mode) else "it is not a regular file"
        raise _not_written("file-not-writable", path, f"{what}; refusing to write through it")


def _not_written(reference: str, path: Path, why: str) -> InputError:
    return InputError((Problem(reference, f"{printable(str(path))}: {printable(why)}"),))


def private_state(folder: Path) -> None:
    """Make the journal's folder (0700) and its file (0600), or ``StateError`` where others could change its content."""
    try:
        with suppress(FileExistsError):  # what it is instead of a folder is named below
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        check_private(folder)
        journal = folder / JOURNAL
        journal.touch(mode=0o600)
        status = journal.lstat()
        if status.st_mode & 0o077 and status.st_uid == os.geteuid():
            journal.chmod(0o600)  # it contains plans, and plans contain files of nodes
    except OSError as exc:
        raise StateError("journal-unusable", f"{folder}: {exc.strerror}") from exc


def remove_empty_journal(folder: Path) -> None:
    """Leave no empty file of a journal that could not be made. The folder may be the operator's own: it stays."""
    with suppress(OSError):
        journal = folder / JOURNAL
        if not journal.stat().st_size:
            journal.unlink()


def check_private(folder: Path) -> None:
    """``StateError`` where others could change the journal in a folder. Writes nothing: the folder may be read-only."""
    try:
        _check(folder, folder.stat(), stat.S_ISDIR)
        for name in _OURS:
            with suppress(FileNotFoundError):
                _check(folder / name, (folder / name).lstat(), stat.S_ISREG)
    except OSError as exc:
        raise StateError("journal-unusable", f"{folder}: {exc.strerror}") from exc


def _check(path: Path, status: os.stat_result, is_kind: Callable[[int], bool]) -> None:
    shown = printable(str(path))
    if not is_kind(status.st_mode):
        raise StateError("state-not-private", f"{shown} is a link or another unexpected kind of file")
    if why := others_hold(path):
        hint = f"run as its owner, or name another folder: --state; {REMEDY}"
        raise StateError("state-not-private", why, hint=hint)


# The sudo password of the nodes, from a private file.


LONGEST_PASSWORD = 1024


def read_password(file: Path) -> Secret:
    """The sudo password in a file. Raises ``UsageError``."""
    return usable_password(_password_text(file), str(file))


def _password_text(file: Path) -> str:
    """Checks the open file, so that nobody can replace the file after the check."""
    try:
        with file.open("rb", buffering=0) as stream:
            _check_private(os.fstat(stream.fileno()), file)
            if why := others_hold(file):
                raise UsageError("password-not-private", why, hint=REMEDY)
            return _all(stream.read).decode("utf-8").removesuffix("\n").removesuffix("\r")
    except OSError as error:
        raise UsageError("password-unreadable", f"cannot read {file}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise UsageError("password-unusable", f"{file} is not text in UTF-8") from None


def _all(read: Callable[[int], bytes | None]) -> bytes:
    """Read until the end, or until the text is longer than any password. A pipe may return less than requested."""
    password = b""
    while len(password) <= LONGEST_PASSWORD and (more := read(LONGEST_PASSWORD + 1)):
        password += more
    return password


def _check_private(status: os.stat_result, file: Path) -> None:
    if not stat.S_ISREG(status.st_mode):
        return
    if status.st_mode & 0o077 or status.st_uid not in (os.geteuid(), 0):
        hint = f"chmod 600 {file}"
        raise UsageError("password-not-private", f"other users can read {file}, or you do not own it", hint=hint)


def usable_password(word: str, where: str) -> Secret:
    if not word or len(word) > LONGEST_PASSWORD or any(char in word for char in "\n\r\0"):
        raise UsageError(
            "password-unusable", f"{where} is not a usable password: empty, too long, or more than one line"
        )
    return Secret(word)
