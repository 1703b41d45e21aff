"""Which shape the journal's tables have, and bringing them to this version's.

A journal remembers its revision. One without is of the first: it was made before there were others. A newer one is
refused, an older one brought up to date in one transaction, but never under a controller that is at work: its version
could not go on. An older file is copied aside first, for the version that can finish what it began. Alembic does that, and is only imported for it; a new journal is made in the newest shape at once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import sqlalchemy as sa

from rollout.adapters.journal.owner import is_alive, machine_of
from rollout.adapters.journal.tables import LEASES, META, RUNS
from rollout.errors import StateError

VERSION = sa.Table(
    "alembic_version",
    sa.MetaData(),
    sa.Column("version_num", sa.String(32), nullable=False),
    sa.PrimaryKeyConstraint("version_num", name="alembic_version_pkc"),
)
"""Alembic's own table, made as it makes it."""


@dataclass(frozen=True, slots=True)
class Revisions:
    """The scripts in ``folder``, and their names, oldest first: known without reading them."""

    folder: Path
    known: tuple[str, ...]

    @property
    def first(self) -> str:
        return self.known[0]

    @property
    def newest(self) -> str:
        return self.known[-1]


SHIPPED = Revisions(Path(__file__).parent / "migrations", ("0001", "0002"))


def is_made(connection: sa.Connection) -> bool:
    """Whether there are tables of ours."""
    return sa.inspect(connection).has_table(RUNS.name)


def is_due(connection: sa.Connection, revisions: Revisions) -> bool:
    """Whether the tables must be made or changed. Changes nothing; ``StateError`` ``journal-newer``."""
    return _revision(connection, revisions) != revisions.newest


def bring_up(
    connection: sa.Connection, revisions: Revisions, now: sa.ColumnElement[float], keep: Callable[[str], None]
) -> None:
    """Within a transaction in which nobody else does the same. ``keep`` copies an older journal aside first, under a name."""
    revision = _revision(connection, revisions)  # again: another may have been first
    if revision == revisions.newest:
        return
    if revision:
        _check_nobody_at_work(connection, now)
        _keep(keep, revisions.newest)
        _upgrade(connection, revisions, revision)
    else:
        META.create_all(connection)
        VERSION.create(connection)
        connection.execute(sa.insert(VERSION).values(version_num=revisions.newest))


def _revision(connection: sa.Connection, revisions: Revisions) -> str:
    """Empty where there are no tables of ours yet."""
    tables = sa.inspect(connection)
    if not tables.has_table(RUNS.name):
        return ""
    written = connection.execute(sa.select(VERSION.c.version_num)).scalar() if tables.has_table(VERSION.name) else None
    revision = str(written or revisions.first)
    if revision not in revisions.known:
        text = f"the journal was brought to revision {revision} by a newer version of rollout; this one knows {revisions.newest}"
        raise StateError(
            "journal-newer",
            text,
            hint=f"use that version; a file is kept as it was before, for what this version began: --state FOLDER/before-{revision}; "
            "the nodes know their way back without a journal",
        )
    return revision


def _check_nobody_at_work(connection: sa.Connection, now: sa.ColumnElement[float]) -> None:
    rows = connection.execute(sa.select(LEASES, (now - LEASES.c.heartbeat).label("silent")))
    for held in rows:
        if is_alive(held.owner, held.silent):
            raise StateError(
                "journal-older",
                f"the journal is an older version's, and run {held.run} on {machine_of(held.owner)} is at work with it",
                hint="let it end first; then whatever command opens the journal brings it up to date",
            )


def _keep(keep: Callable[[str], None], newest: str) -> None:
    try:
        keep(f"before-{newest}")
    except OSError as exc:
        raise StateError(
            "journal-unusable",
            f"the journal is an older version's and cannot be copied before it is brought up to date: {exc}",
        ) from exc


def _upgrade(connection: sa.Connection, revisions: Revisions, revision: str) -> None:
    from alembic import command  # noqa: PLC0415 - 0.2 s, for what is done once a version
    from alembic.config import Config  # noqa: PLC0415

    config = Config()
    config.set_main_option("script_location", str(revisions.folder).replace("%", "%%"))
    config.attributes["connection"] = connection
    command.stamp(config, revision)
    command.upgrade(config, revisions.newest)
