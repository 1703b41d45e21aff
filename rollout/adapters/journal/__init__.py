"""The journal in a database, through SQLAlchemy Core: a file of SQLite by default, a PostgreSQL for a team.

The only package that knows the databases. The rest of the program uses ``SqlJournal``; ``is_there`` checks for a
journal without creating one.
"""

from rollout.adapters.journal.address import PostgresUrl
from rollout.adapters.journal.database import is_there
from rollout.adapters.journal.journal import SqlJournal

__all__ = ["PostgresUrl", "SqlJournal", "is_there"]
