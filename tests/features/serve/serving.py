"""``rollout serve`` as a process, and requests to it as a browser or a stranger would send them."""

from __future__ import annotations

import re
import socket
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPConnection
from pathlib import Path

from rollout.adapters.journal import SqlJournal
from rollout.app.ports import RunHeader
from rollout.core.model.plan import Plan
from rollout.core.plans import plan_codec
from rollout.core.presentation.summary import run_summary
from rollout.core.run.journal_codec import encode_event, encode_order
from rollout.core.run.state import Phase
from tests.controllers import PATIENCE, Process, at_work, until
from tests.plays import Drive

_ADDRESS = re.compile(r"http://127\.0\.0\.1:(?P<port>\d+)/\?token=(?P<token>\S+)")
_BEARER = re.compile(r"Authorization: (Bearer \S+)")


@dataclass(frozen=True)
class Reply:
    status: int
    headers: Mapping[str, str]
    text: str


@dataclass
class Serving:
    """A server at work. ``page``: the path with the secret, of a browser that has opened the printed address."""

    process: Process
    said: Path
    port: int
    page: str = ""

    @property
    def token(self) -> str:
        """Of the newest printed address."""
        return str(_ADDRESS.findall(self.said.read_text())[-1][1])

    @property
    def bearer(self) -> str:
        """The value of the header for scripts."""
        found = _BEARER.search(self.said.read_text())
        assert found
        return found[1]

    def ask(self, path: str, method: str = "GET", body: str = "", **headers: str) -> Reply:
        """A request for an address of the page; ``_`` in a header's name is ``-``."""
        return self.ask_stranger(self.page + path, method, body, **headers)

    def ask_stranger(self, path: str, method: str = "GET", body: str = "", **headers: str) -> Reply:
        """The same without the secret."""
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        connection = HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        try:
            connection.request(method, path, body or None, named)
            found = connection.getresponse()
            answered = {name.lower(): value for name, value in found.getheaders()}
            return Reply(found.status, answered, found.read().decode())
        finally:
            connection.close()

    def log_in(self) -> None:
        self.page = self.ask_stranger(f"/?token={self.token}").headers["location"].rstrip("/")

    def open_stream(self, run: str, receive: int = 0, last: str = "") -> socket.socket:
        """A connection that has asked for the stream of a run. ``receive``: bytes that it takes unread."""
        made = socket.socket()
        if receive:
            made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive)
        made.settimeout(PATIENCE)
        made.connect(("127.0.0.1", self.port))
        again = f"Last-Event-ID: {last}\r\n" if last else ""
        head = f"GET {self.page}/runs/{run}/stream HTTP/1.1\r\nHost: 127.0.0.1:{self.port}\r\n{again}\r\n"
        made.sendall(head.encode())
        return made


@contextmanager
def serving(folder: Path, *words: str, state: str = "state") -> Iterator[Serving]:
    """``rollout serve`` over the journal in ``folder/state``, on a free port."""
    said = folder / "said.txt"
    said.unlink(missing_ok=True)
    command = [sys.executable, "-m", "rollout.cli", "serve", "--port", "0", "--state", str(folder / state), *words]
    with at_work(command, folder, said) as process:
        until(lambda: _ADDRESS.search(said.read_text()) or process.poll() is not None, PATIENCE, "an address")
        found = _ADDRESS.search(said.read_text())
        assert found, said.read_text()
        made = Serving(process, said, int(found["port"]))
        made.log_in()
        yield made


def keep(folder: Path, name: str, plan: Plan, play: Drive, events: int | None = None) -> SqlJournal:
    """Write the first ``events`` (``None``: all) of a run into the journal of ``folder``."""
    journal = SqlJournal(folder / "state")
    order = encode_order(play.order).replace(play.order.run, name)
    journal.acquire(plan.cluster, name)
    content = plan_codec.encode(plan)
    journal.begin(RunHeader(name, plan.cluster, "apply", order, 1, content, play.began, "ann@ops", "pulls time out"))
    ended = run_summary(play.state) if events is None and play.state.phase is Phase.ENDED else None
    if events != 0:
        journal.append(name, [encode_event(event) for event in play.journal[:events]], ended)
    if ended is not None:
        journal.release(plan.cluster, name)
    return journal
