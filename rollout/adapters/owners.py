"""Whether only this user and root decide what a path leads to: each link on the way, the target, and each folder above.

The owner of a folder can put another file into it, and the owner of a link chooses its target. So a test of the file
alone proves nothing of what the next command reads.
"""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

from rollout.core.text.terminal import printable
from rollout.errors import InputError, Problem

MOST_LINKS = 40
"""As in Linux."""


def trusted_users() -> frozenset[int]:
    """Root, this user, and the user who called sudo."""
    sudo = os.environ.get("SUDO_UID", "")
    caller = {int(sudo)} if os.geteuid() == 0 and sudo.isdecimal() else set[int]()
    return frozenset({0, os.geteuid(), *caller})


def others_hold(path: Path) -> str:
    """What another user controls on the way to ``path``, for people; ``""``: nothing. ``OSError``: it cannot be followed.

    The members of a group that may write are trusted. In a folder with the sticky bit, as ``/tmp``, each user controls
    the own names only. The way ends at a descriptor of ``/proc``: a process inherits it from the one that started it.
    """
    trusted = trusted_users()
    at, links = Path("/"), 0
    left = [*reversed(path.absolute().parts)]
    while left:
        word = left.pop()
        here = at.parent if word == ".." else at / word
        status = here.lstat()
        if status.st_uid not in trusted:
            return f"{printable(str(here), 300)} belongs to another user (uid {status.st_uid})"
        if stat.S_ISLNK(status.st_mode):
            if at.parts[1:2] == ("proc",) and at.name == "fd":
                return ""
            links += 1
            if links > MOST_LINKS:
                raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
            target = here.readlink()
            if target.is_absolute():
                at = Path("/")
            left += reversed(target.parts[1:] if target.is_absolute() else target.parts)
            continue
        sticky = stat.S_ISDIR(status.st_mode) and status.st_mode & stat.S_ISVTX
        device = not stat.S_ISDIR(status.st_mode) and not stat.S_ISREG(status.st_mode)  # as /dev/null: it keeps nothing
        if status.st_mode & stat.S_IWOTH and not sticky and not device:
            return f"{printable(str(here), 300)} is writable by everybody"
        at = here
    return ""


NOT_PRIVATE = "own the file, and run `chmod go-w` on it"


def not_private(path: Path, descriptor: int) -> str:
    """As OpenSSH checks its configuration: no group may write the file either. ``""``: it is private."""
    status = os.fstat(descriptor)
    if status.st_uid not in (0, os.getuid()) or status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        return f"{path} must belong to you or to root, and must not be writable by others"
    return others_hold(path)


REMEDY = "own the file and each folder above it, and run `chmod o-w` on them"


def check_ours(path: Path) -> None:
    """``InputError`` ``file-not-yours``: another user decides what this file contains. A missing file is nobody's."""
    try:
        why = others_hold(path)
    except OSError:
        return  # its reader reports that
    if why:
        raise InputError((Problem("file-not-yours", f"{printable(str(path), 300)}: {why}", hint=REMEDY),))
