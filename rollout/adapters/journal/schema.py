"""The schema revision of the journal's tables, and the upgrade to this version's.

A journal stores its revision. A journal without one has the first revision. A newer one is refused. An older one is
upgraded in one transaction, but never while a controller is at work: its version could not continue. An older file is
copied first, for the version that can finish its runs. Alembic does the upgrade and is imported only for it. A new
journal gets the newest schema at once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import sqlalchemy as sa

from rollout.adapters.journal.owner import is_alive, machine_of
from rollout.adapters.journal.tables import LEASES, META, RUNS
from rollout.adapters.journal_file import REVISIONS
from rollout.errors import StateError

VERSION = sa.Table(
    "alembic_version",
    sa.MetaData(),
    sa.Column("version_num", sa.String(32), nullable=False),
    sa.PrimaryKeyConstraint("version_num", name="alembic_version_pkc"),
)
"""Alembic's own table, created as Alembic creates it."""


@dataclass(frozen=True, slots=True)
class Revisions:
    """The scripts in ``folder`` and their names, oldest first; the scripts are not read."""

    folder: Path
    known: tuple[str, ...]

    @property
    def first(self) -> str:
        return self.known[0]

    @property
    def newest(self) -> str:
        return self.known[-1]


SHIPPED = Revisions(Path(__file__).parent / "migrations", REVISIONS)


def is_made(connection: sa.Connection) -> bool:
    """Whether our tables exist."""
    return sa.inspect(connection).has_table(RUNS.name)


def is_due(connection: sa.Connection, revisions: Revisions) -> bool:
    """Whether the tables must be created or changed. Changes nothing; may raise ``StateError`` ``journal-newer``."""
    return _revision(connection, revisions) != revisions.newest


def bring_up(
    connection: sa.Connection, revisions: Revisions, now: sa.ColumnElement[float], keep: Callable[[str], None]
) -> None:
    """Runs in an exclusive transaction. ``keep`` first copies an older journal under a name."""
    revision = _revision(connection, revisions)  # checked again: another process may have been first
    if revision == revisions.newest:
        return
    if revision:
        _check_nobody_at_work(connection, now)
        try:
            keep(f"before-{revisions.newest}")
        except OSError as exc:
            raise StateError(
                "journal-unusable",
                f"the journal has an older version's schema and cannot be copied before its upgrade: {exc}",
            ) from exc
        _upgrade(connection, revisions, revision)
    else:
        META.create_all(connection)
        VERSION.create(connection)
        connection.execute(sa.insert(VERSION).values(version_num=revisions.newest))


def _revision(connection: sa.Connection, revisions: Revisions) -> str:
    """Empty when our tables do not exist yet."""
    tables = sa.inspect(connection)
    if not tables.has_table(RUNS.name):
        return ""
    written = connection.execute(sa.select(VERSION.c.version_num)).scalar() if tables.has_table(VERSION.name) else None
    revision = str(written or revisions.first)
    if revision not in revisions.known:
        text = (
            f"a newer version of rollout upgraded the journal to revision {revision}; this one knows {revisions.newest}"
        )
        copy = (
            f"for runs of this version a copy of the file is kept: --state FOLDER/before-{revision}"
            if connection.dialect.name == "sqlite"
            else "for runs of this version restore the server's own backup of before the upgrade into another database"
        )
        raise StateError(
            "journal-newer", text, hint=f"use that version; {copy}; an emergency rollback needs no journal"
        )
    return revision


def _check_nobody_at_work(connection: sa.Connection, now: sa.ColumnElement[float]) -> None:
    rows = connection.execute(sa.select(LEASES.c.run, LEASES.c.owner, (now - LEASES.c.heartbeat).label("silent")))
    for held in rows:
        if is_alive(held.owner, held.silent):
            raise StateError(
                "journal-older",
                f"the journal has an older version's schema, and run {held.run} on {machine_of(held.owner)} is using it",
                hint="let that run end first; then any command that opens the journal upgrades it",
            )


def _upgrade(connection: sa.Connection, revisions: Revisions, revision: str) -> None:
    from alembic import command  # noqa: PLC0415 - takes 0.2 s, and is needed once a version
    from alembic.config import Config  # noqa: PLC0415

    config = Config()
    config.set_main_option("script_location", str(revisions.folder).replace("%", "%%"))
    config.attributes["connection"] = connection
    command.stamp(config, revision)
    command.upgrade(config, revisions.newest)
