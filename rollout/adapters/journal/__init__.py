"""The journal in a database, through SQLAlchemy Core: a file of SQLite by default, a PostgreSQL for a team.

The only package that knows the databases. The rest of the program uses ``SqlJournal``; ``is_there`` checks for a
journal without creating one. Both import SQLAlchemy, so they are imported when they are asked for: ``sqlite_file`` reads
without it.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from rollout.adapters.journal.address import PostgresUrl

if TYPE_CHECKING:
    from rollout.adapters.journal.database import is_there
    from rollout.adapters.journal.journal import SqlJournal

__all__ = ["PostgresUrl", "SqlJournal", "is_there"]
_MODULES = {"SqlJournal": "rollout.adapters.journal.journal", "is_there": "rollout.adapters.journal.database"}


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(name)
    return getattr(import_module(_MODULES[name]), name)
