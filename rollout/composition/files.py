"""Files that a command names: texts that it reads, and what it writes; the password of nodes in a private file."""

from __future__ import annotations

from pathlib import Path

from rollout.adapters.files import FolderFiles, write_for_all
from rollout.adapters.private_files import read_password, usable_password, write_privately

__all__ = ["read_password", "text_in", "usable_password", "write_for_all", "write_privately"]


def text_in(path: str) -> str:
    """The text of a file; ``InputError``: it cannot be read."""
    return FolderFiles(Path()).read(path)
