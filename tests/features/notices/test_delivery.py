"""Notices against a real HTTP server: delivered, refused, and one that never answers. None of it holds up a run."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Event, Thread

import pytest

from rollout.adapters.journal import SqlJournal
from rollout.app.runs import start_apply
from rollout.core.run.state import Ending, RunState
from rollout.errors import UsageError
from rollout.features.notices.asking import NoticeSender
from rollout.features.notices.client.addresses import addresses
from rollout.features.notices.client.postman import ApprisePostman
from tests.app.site import ACCESS, SMALL, Site

pytestmark = pytest.mark.process

HIDDEN = "not-to-be-shown"


@dataclass
class Server:
    port: int = 0
    status: int = 200
    heard: list[dict[str, str]] = field(default_factory=list)
    holds: Event = field(default_factory=Event)  # set: it answers


@contextmanager
def serving(status: int = 200, *, answers: bool = True) -> Iterator[Server]:
    server = Server(status=status)
    if answers:
        server.holds.set()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            server.holds.wait()
            server.heard.append(json.loads(body))
            self.send_response(server.status)
            self.end_headers()

        def log_message(self, *_words: object) -> None:
            """Nothing is printed."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as http:
        http.daemon_threads = True
        server.port = http.server_address[1]
        Thread(target=http.serve_forever, daemon=True).start()
        try:
            yield server
        finally:
            server.holds.set()
            http.shutdown()


def ran(folder: Path, port: int, farewell: float = 60.0) -> tuple[RunState, Site]:
    site = Site(SqlJournal(folder))
    postman = ApprisePostman((f"json://user:{HIDDEN}@127.0.0.1:{port}/{HIDDEN}",))
    sender = NoticeSender(postman, site.journal, "me@here", "http://127.0.0.1:8700/", farewell)
    tools = site.tools()
    end = start_apply(SMALL, ACCESS, replace(tools, observers=(sender,)))
    sender.close()
    return end, site


def noted(site: Site) -> list[str]:
    return [note.text for note in site.journal.notes(SMALL.cluster)]


def test_notices_arrive_with_their_link(tmp_path: Path) -> None:
    with serving() as server:
        end, site = ran(tmp_path, server.port)
    assert end.ending is Ending.DONE
    assert [each["title"].partition("r1 ")[2] for each in server.heard] == ["started", "canary done", "ended: done"]
    assert server.heard[-1]["message"].splitlines() == [
        "3 confirmed; exit code 0",
        "rollout report r1",
        "http://127.0.0.1:8700/",
    ]
    assert noted(site) == []


def test_a_server_that_refuses_is_noted_in_the_journal_without_its_address(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    with serving(500) as server:
        end, site = ran(tmp_path, server.port)
    assert end.ending is Ending.DONE
    assert len(noted(site)) == len(server.heard) == 3
    assert noted(site)[0].endswith("run r1 started: at least one of its addresses did not accept it")
    shown = capfd.readouterr()
    assert HIDDEN not in shown.out + shown.err + "".join(noted(site))


def test_a_server_that_never_answers_holds_up_nothing(tmp_path: Path) -> None:
    with serving(answers=False) as server:
        end, site = ran(tmp_path, server.port, farewell=0.2)
        assert end.ending is Ending.DONE
        assert any("not sent within 0.2 s" in note for note in noted(site))


def test_addresses_come_from_a_private_file_or_the_environment(tmp_path: Path) -> None:
    file = tmp_path / "notices"
    file.write_text("# the team\njson://127.0.0.1/a\n\n")
    file.chmod(0o600)
    assert addresses({"ROLLOUT_NOTICES": "json://b json://c", "ROLLOUT_NOTICES_FILE": str(file)}) == (
        "json://b",
        "json://c",
        "json://127.0.0.1/a",
    )
    assert addresses({}) == ()
    file.chmod(0o640)
    with pytest.raises(UsageError, match=r"only you can read .*\[notices-not-private\]"):
        addresses({"ROLLOUT_NOTICES_FILE": str(file)})
    with pytest.raises(UsageError, match="notices-unreadable"):
        addresses({"ROLLOUT_NOTICES_FILE": str(tmp_path / "none")})


def test_an_unknown_address_is_named_by_its_number_only() -> None:
    with pytest.raises(UsageError) as raised:
        ApprisePostman(("json://127.0.0.1", f"nonsense-{HIDDEN}"))
    assert str(raised.value) == "apprise does not know address number 2 [notice-address]"
