"""What differs between the supported databases; everything else is the same SQL."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import sqlalchemy as sa


def _keep_nothing(_name: str) -> None:
    """The operator of a server makes its backups."""


def _never(_error: sa.exc.SQLAlchemyError) -> bool:
    return False


@dataclass(frozen=True, slots=True)
class Store:
    """``place`` names the database in errors, and ``next`` what to do then.

    ``begin`` opens a writing transaction; ``alone`` then blocks others that use it too.

    ``clock`` is SQL for epoch seconds by the database's own clock. ``away``: a retry after this error may succeed.
    ``denied``: whether the error means a wrong address (user, password or database). ``lacks_rights``: whether the user may
    not do this in the database. ``keep`` copies all committed data
    under a name before a schema change; ``OSError`` when it cannot.
    """

    engine: sa.Engine
    place: str
    next: str
    begin: str
    alone: str
    clock: str
    away: Callable[[sa.exc.SQLAlchemyError], bool]
    denied: Callable[[sa.exc.SQLAlchemyError], bool] = _never
    lacks_rights: Callable[[sa.exc.SQLAlchemyError], bool] = _never
    keep: Callable[[str], None] = _keep_nothing
