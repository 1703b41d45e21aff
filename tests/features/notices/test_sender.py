"""A run is never held up by its notices: what is not delivered is noted in the journal."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from threading import Event

import pytest

from rollout.adapters.journal import SqlJournal
from rollout.app.runs import start_apply
from rollout.cli.main import cli
from rollout.cli.proposals import Proposals
from rollout.core.run.events import Ticked
from rollout.core.run.state import Phase, altered
from rollout.errors import RemoteError
from rollout.features.notices.asking import MOST_WAITING, NoticeSender
from tests.app.site import ACCESS, SMALL, Site


def noted(site: Site) -> list[str]:
    return [note.text for note in site.journal.notes(SMALL.cluster)]


def test_a_notice_proposes_its_command_with_the_options_of_the_call(tmp_path: Path) -> None:
    heard: list[str] = []

    class Listening:
        def send(self, title: str, body: str) -> None:
            heard.append(body)

    site = Site(SqlJournal(tmp_path))
    proposals = Proposals(cli, ["apply", "p.json", "--state", "elsewhere"])
    sender = NoticeSender(Listening(), site.journal, "me@here", carried=proposals.carried)
    start_apply(SMALL, ACCESS, replace(site.tools(), observers=(sender,)))
    sender.close()
    assert heard[-1] == "3 confirmed; exit code 0\nrollout report --state elsewhere r1"


def test_more_notices_than_the_queue_holds_are_counted(tmp_path: Path) -> None:
    site, waits = Site(SqlJournal(tmp_path)), Event()

    class Stuck:
        def send(self, title: str, body: str) -> None:
            waits.wait()

    sender = NoticeSender(Stuck(), site.journal, "me@here", farewell=0.1)
    end = start_apply(SMALL, ACCESS, site.tools())
    for _ in range(MOST_WAITING + 5):
        sender.on_event(Ticked(end.now), altered(end, {"phase": Phase.CLOSING}), end)
    sender.on_end(end)
    sender.close()
    waits.set()
    assert sum("too many notices wait" in note for note in noted(site)) >= 4


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (RemoteError("no-answer", "it did not accept it"), "it did not accept it"),
        (OSError("https://x/secret"), "OSError"),
    ],
)
def test_each_failure_is_noted_without_the_words_of_a_library(tmp_path: Path, error: Exception, words: str) -> None:
    class Failing:
        def send(self, title: str, body: str) -> None:
            raise error

    site = Site(SqlJournal(tmp_path))
    sender = NoticeSender(Failing(), site.journal, "me@here")
    start_apply(SMALL, ACCESS, replace(site.tools(), observers=(sender,)))
    sender.close()
    assert [note.rpartition(": ")[2] for note in noted(site)] == [words] * 3
    assert "secret" not in "".join(noted(site))


def test_a_controller_that_stops_before_the_end_says_so(tmp_path: Path) -> None:
    heard: list[str] = []

    class Listening:
        def send(self, title: str, body: str) -> None:
            heard.append(title)

    site = Site(SqlJournal(tmp_path))
    sender = NoticeSender(Listening(), site.journal, "me@here")
    end = start_apply(SMALL, ACCESS, site.tools())
    sender.on_end(altered(end, {"phase": Phase.CLOSING}))
    sender.close("the journal cannot be written")
    assert heard == [f"{SMALL.cluster}: run r1 has no controller"]
