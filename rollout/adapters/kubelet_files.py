"""A kubelet's configuration files on this machine: a file, and the drop-ins of a folder."""

from __future__ import annotations

import os
from pathlib import Path

from rollout.adapters.files import FolderFiles
from rollout.errors import InputError, Problem
from rollout.kubelet.configuration.drop_ins import in_order
from rollout.kubelet.configuration.outcome import File

_MAX_BYTES = 4 * 1024 * 1024


def configuration_file(path: str) -> File:
    """The file with the given name, or ``InputError``."""
    return File(path, FolderFiles(Path(), _MAX_BYTES).content(path))


def drop_ins(folder: str) -> tuple[File, ...]:
    """The files that a kubelet would merge, in its order; ``InputError`` for a folder or a file that cannot be read."""
    below: list[str] = []
    try:
        for here, _, names in os.walk(folder, onerror=_raise):
            inside = Path(here).relative_to(folder)
            below += [str(inside / name) for name in names]
    except OSError as error:
        problem = Problem("folder-unreadable", f"{folder}: {error.strerror or error}")
        raise InputError((problem,)) from None
    return tuple(configuration_file(str(Path(folder, name))) for name in in_order(below))


def _raise(error: OSError) -> None:
    raise error
