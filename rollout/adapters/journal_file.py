"""The file of a journal in a folder. A command that finds none there does not import the database's library."""

from __future__ import annotations

from pathlib import Path

FILE = "journal.db"
REVISIONS = ("0001", "0002", "0003")
"""Of the journal's tables, oldest first: names of the scripts in ``rollout/adapters/journal/migrations/``."""


def has_journal(folder: Path) -> bool:
    return (folder / FILE).exists()
