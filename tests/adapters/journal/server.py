"""A PostgreSQL for tests: a cluster in a temporary folder, with the default fsync, that can be killed and restarted.

It listens on a socket in its folder (trusted) and on 127.0.0.1 (with a password). It never runs as root.
"""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg

from rollout.adapters.journal import PostgresUrl
from tests.controllers import PATIENCE, until

PASSWORD = "correct-horse-7391"  # noqa: S105 - of a server that lives for a test
_SHIPPED = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: int(path.parent.name))


def programs() -> Path | None:
    """The folder of ``initdb`` and ``postgres``."""
    found = shutil.which("initdb")
    return Path(found).resolve().parent if found else _SHIPPED[-1] if _SHIPPED else None


class Server:
    """A running cluster. ``database()`` creates a database and returns its URL over the socket."""

    def __init__(self, folder: Path, bin: Path) -> None:  # noqa: A002 - its usual name
        self.folder = folder
        self._bin = bin
        self._made = 0
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port: int = free.getsockname()[1]
        self.pass_file = folder / "pgpass"
        self.pass_file.write_text(f"127.0.0.1:*:*:rollout:{PASSWORD}\n")
        self.pass_file.chmod(0o600)

    def make(self) -> None:
        word = self.folder / "word"
        word.write_text(PASSWORD)
        os.chmod(word, 0o644)  # noqa: PTH101 - read by the server's user, for a moment
        ways = ("--auth-local=trust", "--auth-host=scram-sha-256")
        self._run("initdb", "-D", self._data, "-U", "rollout", "-E", "UTF8", "--locale=C", f"--pwfile={word}", *ways)
        word.unlink()
        self.start()

    def start(self) -> None:
        """The server ends with this process, even if this process is killed."""
        who = _user()
        given = ["setpriv", "--pdeathsig", "QUIT"]
        if os.geteuid() == 0:
            given += ["--reuid", str(who.pw_uid), "--regid", str(who.pw_gid), "--clear-groups"]
        options = ["-k", str(self.folder), "-p", str(self.port), "-c", "listen_addresses=127.0.0.1"]
        with (self.folder / "said").open("a") as said:
            self._process = subprocess.Popen(
                [*given, str(self._bin / "postgres"), "-D", self._data, *options],
                cwd=self.folder, stdin=subprocess.DEVNULL, stdout=said, stderr=said, start_new_session=True,
            )  # fmt: skip
        # Recovery after a crash syncs every file of the cluster: minutes on a disk that others load.
        until(self._answers, PATIENCE, "PostgreSQL answers")

    def stop(self, how: signal.Signals = signal.SIGQUIT) -> None:
        """SIGQUIT is its ``immediate`` shutdown, like a crash. SIGINT is ``fast``."""
        self._process.send_signal(how)
        self._process.wait(PATIENCE)

    def _answers(self) -> bool:
        assert self._process.poll() is None, self._said()
        try:
            return self.query("SELECT 1") == [(1,)]
        except psycopg.OperationalError:
            return False

    def _said(self) -> str:
        return (self.folder / "said").read_text()[-2000:]

    def database(self) -> PostgresUrl:
        self._made += 1
        name = f"journal{self._made}"
        self.query(f"CREATE DATABASE {name}")
        return PostgresUrl.reading(f"postgresql://rollout@/{name}?host={self.folder}&port={self.port}")

    def over_tcp(self, database: str, port: int | None = None) -> str:
        """The same through 127.0.0.1. Clients need the password, from PGPASSFILE."""
        return f"postgresql://rollout@127.0.0.1:{port or self.port}/{database}"

    def query(self, text: str, database: str = "postgres") -> list[tuple[Any, ...]]:
        with psycopg.connect(
            host=str(self.folder), port=self.port, user="rollout", dbname=database, autocommit=True
        ) as connection:
            cursor = connection.execute(text.encode())
            return cursor.fetchall() if cursor.description else []

    @contextmanager
    def transaction(self, database: str) -> Iterator[psycopg.Cursor[tuple[Any, ...]]]:
        """A transaction that is committed at the end of the block."""
        with (
            psycopg.connect(host=str(self.folder), port=self.port, user="rollout", dbname=database) as connection,
            connection.cursor() as cursor,
        ):
            yield cursor

    @contextmanager
    def with_tls(self, certificates: Path) -> Iterator[str]:
        """Answer with TLS as the host of ``cert.pem`` and ``key.pem``, for a new database; yields its name.

        The password of PGPASSFILE is for 127.0.0.1 only, so these connections are trusted instead.
        """
        for name in ("cert.pem", "key.pem"):
            copy = self._folder / name
            copy.write_bytes((certificates / name).read_bytes())
            copy.chmod(0o600)
            if os.geteuid() == 0:
                os.chown(copy, _user().pw_uid, 0)
        rules = Path(self._data) / "pg_hba.conf"
        before = rules.read_text()
        rules.write_text(f"hostssl all all localhost trust\n{before}")
        try:
            for name, value in (("ssl_cert_file", "../cert.pem"), ("ssl_key_file", "../key.pem"), ("ssl", "on")):
                self.query(f"ALTER SYSTEM SET {name} = '{value}'")
            self.query("SELECT pg_reload_conf()")
            until(lambda: self.query("SHOW ssl") == [("on",)], PATIENCE, "TLS")
            yield str(self.database()).rpartition("/")[2]
        finally:
            rules.write_text(before)
            self.query("ALTER SYSTEM RESET ssl")
            self.query("SELECT pg_reload_conf()")

    @property
    def _folder(self) -> Path:
        return self.folder / "server"

    @property
    def _data(self) -> str:
        return str(self._folder / "data")

    def _run(self, program: str, *words: str) -> None:
        """Run as a user other than root, without our environment."""
        who = _user() if os.geteuid() == 0 else None
        with (self.folder / "said").open("a") as said:  # no pipe: the server would keep it open
            done = subprocess.run(
                [str(self._bin / program), *words],
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=subprocess.STDOUT,
                user=who.pw_uid if who else None,
                group=who.pw_gid if who else None,
                extra_groups=[] if who else None,
                timeout=PATIENCE,
                check=False,
            )
        assert done.returncode == 0, f"{program}: {self._said()}"


def _user() -> pwd.struct_passwd:
    try:
        return pwd.getpwnam("postgres")
    except KeyError:
        return pwd.getpwnam("nobody")


@contextmanager
def served() -> Iterator[Server]:
    """A server until the end of the block. ``LookupError`` where PostgreSQL is not installed."""
    found = programs()
    if found is None:
        raise LookupError("PostgreSQL is not installed (postgresql)")
    memory = Path(
        "/dev/shm"
    )  # on a disk that others load, recovery after a crash takes minutes; a socket's path is short
    folder = Path(tempfile.mkdtemp(prefix="rollout-pg-", dir=memory if memory.is_dir() else "/tmp"))
    folder.chmod(0o755)
    if os.geteuid() == 0:
        os.chown(folder, _user().pw_uid, 0)
    (folder / "server").mkdir()
    if os.geteuid() == 0:
        os.chown(folder / "server", _user().pw_uid, 0)
    server = Server(folder, found)
    server.make()
    try:
        yield server
    finally:
        server.stop()
        shutil.rmtree(folder, ignore_errors=True)
