"""A new journal of each kind for each test: a SQLite file, and a database of a real PostgreSQL."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from rollout.adapters.journal import PostgresUrl, SqlJournal
from tests.adapters.journal.server import Server, served

Place = Path | PostgresUrl


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    """One PostgreSQL for all tests of this process."""
    try:
        with served() as running:
            yield running
    except LookupError as exc:
        pytest.skip(f"NOT TESTED ON POSTGRESQL: {exc}")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests with the server need processes, and run in one worker: the server is started once."""
    for item in items:
        served_one = "server" in getattr(item, "fixturenames", ()) or "[postgres" in item.name
        if served_one and Path(__file__).parent in item.path.parents:  # a path is slow, and these are all tests
            item.add_marker(pytest.mark.process)
            item.add_marker(pytest.mark.xdist_group("postgres"))


@pytest.fixture(params=["sqlite", "postgres"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    """The places of a journal."""
    if request.param == "sqlite":
        return tmp_path / "state"
    server: Server = request.getfixturevalue("server")
    return server.database()


@pytest.fixture
def journal(place: Place) -> Iterator[SqlJournal]:
    made = SqlJournal(place)
    yield made
    made.close()


@pytest.fixture
def other(place: Place) -> Iterator[SqlJournal]:
    """The same journal, opened once more: another terminal's."""
    made = SqlJournal(place)
    yield made
    made.close()


Change = Callable[[str], None]


@pytest.fixture
def change(place: Place, request: pytest.FixtureRequest) -> Change:
    """SQL that bypasses the journal. ``NOW`` stands for the database's time."""

    def run(text: str) -> None:
        if isinstance(place, Path):
            with closing(sqlite3.connect(place / "journal.db", isolation_level=None)) as connection:
                connection.execute(text.replace("NOW", "CAST(strftime('%s','now') AS REAL)"))
            return
        server: Server = request.getfixturevalue("server")
        server.query(text.replace("NOW", "extract(epoch from now())"), name_of(place))

    return run


def name_of(url: PostgresUrl) -> str:
    """The database in a URL."""
    return str(url).rpartition("/")[2]
