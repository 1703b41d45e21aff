"""The journal in a database, through SQLAlchemy Core: SQLite by default, in WAL mode with full sync.

The only package that knows the database. ``SqlJournal`` is all of it to the rest of the program.
"""

from rollout.adapters.journal.journal import SqlJournal

__all__ = ["SqlJournal"]
