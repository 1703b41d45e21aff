"""What differs between the databases a journal may be in; everything else is the same SQL."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import sqlalchemy as sa


def _keep_nothing(_name: str) -> None:
    """A server's databases are copied by who runs it."""


def _never(_error: sa.exc.SQLAlchemyError) -> bool:
    return False


@dataclass(frozen=True, slots=True)
class Store:
    """``begin`` opens a transaction that writes; ``alone`` then lets no other change the tables' shape.

    ``now`` is seconds since the epoch by the database's own clock, as SQL. ``away`` tells of an error whether the same
    may go well a moment later, ``denied`` whether it says that the journal's address is wrong: who, with what, or which.
    ``keep`` copies what is committed aside, under a name, before the tables' shape is changed; ``OSError`` where it cannot.
    """

    engine: sa.Engine
    begin: str
    alone: str
    now: Callable[[], sa.ColumnElement[float]]
    away: Callable[[sa.exc.SQLAlchemyError], bool]
    denied: Callable[[sa.exc.SQLAlchemyError], bool] = _never
    keep: Callable[[str], None] = _keep_nothing
