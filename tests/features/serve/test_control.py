"""``rollout serve --control``: only its own forms are taken, and what they request is in the journal with its author."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from threading import Thread
from urllib.parse import urlencode

import pytest

from rollout.adapters.journal import SqlJournal
from rollout.core.run.events import ContinueAsked, PauseAsked, Request
from rollout.core.run.journal_codec import encode_event
from tests.controllers import PATIENCE, until
from tests.core.presentation import journals
from tests.features.serve.serving import Reply, Serving, keep, serving

pytestmark = pytest.mark.process
RUN = "r20261120-160000-ab12"


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[SqlJournal]:
    """A run that this process holds, as its controller would."""
    plan, play = journals.stopped(lambda state: state.wave == 2)
    made = keep(tmp_path, RUN, plan, play, len(play.journal))
    yield made
    made.close()


def proof(served: Serving) -> str:
    found = re.search(r'name="proof" value="([\w-]+)"', served.ask(f"/runs/{RUN}").text)
    assert found
    return found[1]


def send(served: Serving, word: str, **fields: str) -> Reply:
    origin = f"http://127.0.0.1:{served.port}"
    return served.ask(
        f"/runs/{RUN}/{word}", "POST", urlencode({"reason": "", **fields}), Origin=origin,
        Content_Type="application/x-www-form-urlencoded",
    )  # fmt: skip


def test_without_the_option_nothing_can_be_requested(tmp_path: Path, journal: SqlJournal) -> None:
    with serving(tmp_path) as served:
        assert "<form" not in served.ask(f"/runs/{RUN}").text
        assert send(served, "pause", proof="x").status in (404, 405)
    assert journal.requests(RUN, 0) == ()


def test_only_the_pages_own_form_with_the_clusters_name_is_taken(tmp_path: Path, journal: SqlJournal) -> None:
    with serving(tmp_path, "--control") as served:
        good = proof(served)
        assert send(served, "pause").status == 403
        assert send(served, "pause", proof="guessed").status == 403
        assert send(served, "pause", proof=good, reason="x" * 20_000).status == 403
        assert send(served, "abort", proof=good).status == 400
        another = send(served, "abort", proof=good, cluster="prod")
        assert (another.status, "is not &#x27;rno&#x27;; nothing was done." in another.text) == (400, True)
        scope = send(served, "abort", proof=good, cluster="rno", revert="everything")
        assert (scope.status, "There is no such scope to revert; nothing was done." in scope.text) == (400, True)
        assert send(served, "emergency", proof=good).status == 404
        assert served.ask(f"/runs/{RUN}/pause", "POST", urlencode({"proof": good})).status == 403, "no origin"
        elsewhere = served.ask(f"/runs/{RUN}/pause", "POST", urlencode({"proof": good}), Origin="http://evil.example")
        assert elsewhere.status == 403
        assert served.ask(f"/runs/{RUN}/pause").status == 405
        text = served.ask(f"/runs/{RUN}").text
        assert f"rollout rollback --state {tmp_path}/state --cluster rno --emergency" in text
    assert journal.requests(RUN, 0) == ()


def test_a_request_is_in_the_journal_with_its_author_and_is_answered_when_it_was_handled(
    tmp_path: Path, journal: SqlJournal
) -> None:
    with serving(tmp_path, "--control") as served:
        replies: list[Reply] = []
        good = proof(served)
        asking = Thread(target=lambda: replies.append(send(served, "pause", proof=good, reason="lunch <b>")))
        asking.start()
        until(lambda: journal.requests(RUN, 0), PATIENCE, "the request is recorded")
        (request,) = journal.requests(RUN, 0)
        assert request == Request(request.number, "pause", request.who, "lunch <b>", "")
        assert re.fullmatch(r"\S+@\S+", request.who)
        paused = PauseAsked(journals.BEGAN + 3600, request.who, request.reason, request.number)
        journal.append(RUN, [encode_event(paused)])
        asking.join(PATIENCE)
        assert [reply.status for reply in replies] == [200]
        until(lambda: "Continue the run" in served.ask(f"/runs/{RUN}").text, PATIENCE, "the other form")
        assert "lunch &lt;b&gt;" in served.ask(f"/runs/{RUN}").text
        again = send(served, "pause", proof=good)
        assert (again.status, "paused-already" in again.text) == (409, True)
        journal.append(RUN, [encode_event(ContinueAsked(journals.BEGAN + 3601, "ann@ops", "", request.number + 1))])


def test_a_run_without_a_controller_takes_no_request(tmp_path: Path, journal: SqlJournal) -> None:
    journal.release("rno", RUN)
    with serving(tmp_path, "--control") as served:
        text = served.ask(f"/runs/{RUN}").text
        assert "<form" not in text
        assert "No controller can handle a request." in text


def test_a_form_of_an_earlier_pause_continues_nothing(tmp_path: Path, journal: SqlJournal) -> None:
    """The browser's button to load the answer again sends the form again; meanwhile the next wave may hold."""
    first = PauseAsked(journals.BEGAN + 3600, "ann@ops", "", 1)
    over = ContinueAsked(journals.BEGAN + 3601, "ann@ops", "", 2)
    again = PauseAsked(journals.BEGAN + 3602, "bob@ops", "look first", 3)
    with serving(tmp_path, "--control") as served:
        good = proof(served)
        journal.append(RUN, [encode_event(first)])
        until(lambda: 'name="pause"' in served.ask(f"/runs/{RUN}").text, PATIENCE, "the form")
        shown = re.search(r'name="pause" value="([\d.]+)"', served.ask(f"/runs/{RUN}").text)
        assert shown
        journal.append(RUN, [encode_event(over), encode_event(again)])
        until(lambda: "look first" in served.ask(f"/runs/{RUN}").text, PATIENCE, "the other pause")
        found = send(served, "continue", proof=good, pause=shown[1])
        assert (found.status, "This form is of an earlier pause; nothing was done." in found.text) == (409, True)
    assert journal.requests(RUN, 0) == ()
