"""What we write that only we may read or change: the folder of the journal, and files that hold what nodes' files hold.

Others may share this machine. A link that lies where we write is not followed, a folder that others may write to is not
trusted, and what is there already with wider rights than ours does not keep them.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from tempfile import mkstemp
from threading import Lock

from rollout.core.text.terminal import printable
from rollout.errors import InputError, Problem, StateError

# Traces of what failed inside rollout on one node's content: kept in one file, for whoever reports them.


FILE = "failed-on-nodes.txt"
MOST = 20
LONGEST = 64 * 1024


class Traces:
    """The traces of one command. Its first begins the file anew; nodes that fail alike are kept once. Thread-safe."""

    def __init__(self, state: Path) -> None:
        self._state = state
        self._kept: dict[str, str] = {}
        self._lock = Lock()

    def keep(self, node: str, trace: str) -> str:
        """Where the trace is, or why it is nowhere: that is no reason to end what the other nodes are asked for."""
        path = self._state / FILE
        with self._lock:
            if trace not in self._kept and len(self._kept) < MOST:
                self._kept[trace] = node
                try:
                    private_state(self._state)
                    write_privately(path, self._text().encode("utf-8", "replace"))
                except (InputError, StateError) as error:
                    del self._kept[trace]
                    return f"The trace could not be kept: {error}"
        return f"The trace is in {path}, readable by you alone"

    def _text(self) -> str:
        return "\n".join(f"{node}\n{trace[:LONGEST]}" for trace, node in self._kept.items())


JOURNAL = "journal.db"
_OURS = (JOURNAL, f"{JOURNAL}-wal", f"{JOURNAL}-shm")


def write_privately(path: Path, content: bytes) -> None:
    """A regular file 0600 with this content, in one step: a reader sees all of it or what was there before."""
    try:
        _check_replaceable(path)
        descriptor, name = mkstemp(prefix=f".{path.name}.", dir=path.parent)  # 0600, and never a file that was there
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
        found = path.lstat().st_mode
    except FileNotFoundError:
        return
    if not stat.S_ISREG(found):
        what = "a symbolic link lies there" if stat.S_ISLNK(found) else "it is no regular file"
        raise _not_written("file-not-writable", path, f"{what}, and it is not written through")


def _not_written(reference: str, path: Path, why: str) -> InputError:
    return InputError((Problem(reference, f"{printable(str(path))}: {printable(why)}"),))


def private_state(folder: Path) -> None:
    """Make the journal's folder (0700) and its file (0600), or ``StateError`` where others could change what is in it."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        _check(folder, folder.stat(), stat.S_ISDIR)
        for name in _OURS:
            with suppress(FileNotFoundError):
                _check(folder / name, (folder / name).lstat(), stat.S_ISREG)
        journal = folder / JOURNAL
        journal.touch(mode=0o600)
        found = journal.lstat()
        if found.st_mode & 0o077 and found.st_uid == os.geteuid():
            journal.chmod(0o600)  # it holds plans, and they hold files of nodes
    except OSError as exc:
        raise StateError("journal-unusable", f"{folder}: {exc.strerror}") from exc


def _check(path: Path, found: os.stat_result, is_kind: Callable[[int], bool]) -> None:
    shown = printable(str(path))
    if not is_kind(found.st_mode):
        raise StateError("state-not-private", f"{shown} is not what belongs there: a link, or another kind of file")
    if found.st_uid not in (os.geteuid(), 0):
        hint = "run it as who owns it, or name another folder: --state"
        raise StateError("state-not-private", f"{shown} belongs to another user (uid {found.st_uid})", hint=hint)
    if found.st_mode & 0o002:
        raise StateError("state-not-private", f"everybody may write to {shown}", hint=f"chmod o-w {shown}")
