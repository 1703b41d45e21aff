"""The file of a journal in a folder. A command that finds none there does not import the database's library."""

from __future__ import annotations

from pathlib import Path

FILE = "journal.db"


def has_journal(folder: Path) -> bool:
    return (folder / FILE).exists()
