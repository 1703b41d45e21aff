"""The server as a process: strangers, slow clients, clients that leave, its end. Over a journal of real runs."""

from __future__ import annotations

import json
import re
import signal
import socket
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, suppress
from itertools import pairwise
from pathlib import Path
from urllib.parse import urljoin

import pytest

from rollout.core.presentation.pages.story import Past, tell
from rollout.core.run.journal_codec import encode_event
from rollout.core.run.state import NodeRecord
from rollout.features.serve.client.server import MOST_STRANGERS
from rollout.features.serve.words.shell import POLICY
from tests.controllers import PATIENCE, until
from tests.core.presentation import journals
from tests.core.presentation.journals import Told
from tests.features.notices.test_delivery import serving as answering
from tests.features.serve.serving import Serving, keep, serving
from tests.features.serve.test_lost_controllers import die

pytestmark = pytest.mark.process
RUN = "r20261120-160000-ab12"
STREAM = f"/runs/{RUN}/stream"


@pytest.fixture
def halted(tmp_path: Path) -> Iterator[Serving]:
    keep(tmp_path, RUN, *journals.halted()).close()
    with serving(tmp_path) as found:
        yield found


def told_until(play: Told, events: int) -> Mapping[str, NodeRecord]:
    """The nodes after the first events of a run."""
    return tell(Past(play.order, 1, play.began, "", ""), play.journal[:events]).state.nodes


def message(connection: socket.socket) -> tuple[str, dict[str, object]]:
    """The identity and the content of the next snapshot."""
    text = ""
    while not (found := re.search(r"id: (\S+)\r?\ndata: (.*)\r?\n", text)):
        more = connection.recv(65536)
        assert more, text
        text += more.decode()
    content: dict[str, object] = json.loads(found[2])
    return found[1], content


def test_every_address_needs_the_token_a_host_of_ours_and_this_site(halted: Serving) -> None:
    for path in (
        "/",
        f"/runs/{RUN}",
        f"/runs/{RUN}/plan",
        STREAM,
        f"/runs/{RUN}/nodes/tess-node-0001",
        "/static/page.js",
        "/nowhere",
    ):
        assert halted.ask_stranger(path).status == 401
        assert halted.ask_stranger(f"/{'x' * 43}{path}").status == 401
        assert halted.ask_stranger(path, Cookie=f"rollout-{halted.port}={halted.page[1:]}").status == 401
        assert halted.ask(path, Host="evil.example").status == 421
        assert halted.ask(path, Origin="http://evil.example").status == 403
    assert halted.ask("/", "POST", Origin=f"http://127.0.0.1:{halted.port}").status == 405
    assert halted.ask("/", "POST").status == 403
    for secret in (halted.token, halted.page[1:]):
        assert secret not in halted.ask("/").text + halted.ask(f"/runs/{RUN}").text
    assert halted.ask_stranger("/", Authorization=halted.bearer).status == 200
    assert halted.ask_stranger("/", Authorization=f"Bearer {halted.token}").status == 401


def test_each_response_has_the_headers_that_bind_a_browser(halted: Serving) -> None:
    for reply in (halted.ask("/"), halted.ask("/static/page.css"), halted.ask("/nowhere"), halted.ask_stranger("/")):
        assert reply.headers["content-security-policy"] == POLICY
        assert reply.headers["x-content-type-options"] == "nosniff"
        assert reply.headers["cache-control"] == "no-store"
        assert reply.headers["referrer-policy"] == "no-referrer"
        assert "set-cookie" not in reply.headers
        assert "server" not in reply.headers
    assert "unsafe" not in POLICY


def test_an_address_works_once_and_wrong_ones_never_refuse_the_right_one(halted: Serving) -> None:
    """A web site can have any number of images with wrong tokens loaded."""
    first = halted.token
    assert {halted.ask_stranger(f"/?token=guess{at}").status for at in range(50)} == {401}
    opened = halted.ask_stranger(f"/?token={first}")
    assert (opened.status, opened.headers["location"]) == (303, f"{halted.page}/")
    assert "set-cookie" not in opened.headers
    assert halted.ask_stranger(f"/?token={first}").status == 401
    until(lambda: halted.token != first, PATIENCE, "a new address is printed")
    assert halted.ask_stranger(f"/?token={halted.token}").status == 303


def test_half_requests_of_strangers_keep_nobody_out(halted: Serving) -> None:
    """More than the server keeps, begun before and after a browser is let in; those that were let in stay."""
    with ExitStack() as kept:

        def strangers(many: int) -> None:
            for _ in range(many):
                made = kept.enter_context(socket.create_connection(("127.0.0.1", halted.port), timeout=PATIENCE))
                made.sendall(b"GET / HTTP/1.1\r\nHost: 127")

        strangers(MOST_STRANGERS + 20)
        assert halted.ask("/").status == 200
        assert halted.ask_stranger(f"/?token={halted.token}").status == 303
        with halted.open_stream(RUN) as stream:
            assert message(stream)[1]["standing"] == "ended: halted"
            strangers(MOST_STRANGERS + 20)
            until(lambda: connections(halted.port) <= MOST_STRANGERS + 2, PATIENCE, "the oldest are ended")
            assert halted.ask("/").status == 200
            stream.settimeout(0)
            with suppress(BlockingIOError):
                assert stream.recv(65536), "the stream was not ended for them"


def test_only_loopback_listens_on_ipv4_and_ipv6(halted: Serving) -> None:
    addresses = re.findall(r"http://(\S+):\d+/", halted.said.read_text())
    assert addresses[0] == "127.0.0.1"
    if "[::1]" in addresses:
        with socket.create_connection(("::1", halted.port), timeout=PATIENCE):
            pass
    tables = [Path(f"/proc/net/{name}") for name in ("tcp", "tcp6")]
    lines = [line.split() for table in tables if table.exists() for line in table.read_text().splitlines()[1:]]
    port = f"{halted.port:04X}"
    listening = {fields[1].partition(":")[0] for fields in lines if fields[3] == "0A" and fields[1].endswith(port)}
    assert listening <= {"0100007F", "00000000000000000000000001000000"}
    assert listening


def test_the_pages_tell_of_the_run_and_of_a_node(halted: Serving) -> None:
    index = halted.ask("/").text
    assert f'<a href="runs/{RUN}" class="run">{RUN}</a>' in index
    assert "■ halted (exit code 3)" in index
    page = halted.ask(f"/runs/{RUN}").text
    assert "2 of 60 nodes of rack04 failed" in page
    titles = re.findall(r"<h2>(.*?)</h2>", page)
    assert [title.partition(",")[0] for title in titles] == [
        "What you can do now", "Distance to halt", "What changes", "Failed nodes", "Waves", "Nodes", "Racks and zones",
        "Failed and reverted nodes", "What the gates measured", "Waves over time", "Predicted and actual times",
        "Facts of the run",
    ]  # fmt: skip
    node = halted.ask(f"/runs/{RUN}/nodes/tess-node-0185").text
    assert "exit code 1, &lt;failed to parse kubelet flag&gt; &amp; gone" in node
    assert "serializeImagePulls: false" in node
    assert page.endswith("</html>\n")
    assert node.endswith("</html>\n")


def test_every_link_of_every_page_is_relative_and_leads_to_a_page_or_a_file(halted: Serving) -> None:
    """The pages of all depths, refusals included: none names an address without the secret."""
    seen, waiting = set[str](), ["/", "/runs/r0", f"/runs/{RUN}/nodes/tess-node-0185", f"/runs/{RUN}/plan"]
    while waiting:
        page = waiting.pop()
        if page in seen:
            continue
        seen.add(page)
        for link in re.findall(r'(?:href|src|action)="([^"#]+)"', halted.ask(page).text):
            assert not link.startswith(("/", "http")), f"{page}: {link}"
            found = urljoin(page, link)
            assert halted.ask(found).status == 200, f"{page}: {link}"
            waiting.append(found)
    assert {"/", f"/runs/{RUN}", f"/runs/{RUN}/plan", "/static/page.js", "/static/page.css"} <= seen


def test_what_is_not_there_is_said(halted: Serving) -> None:
    assert halted.ask("/runs/r0").status == 404
    assert "no-such-run" in halted.ask("/runs/r0").text
    assert halted.ask(f"/runs/{RUN}/nodes/nobody").status == 404
    assert halted.ask("/static/../pages.py").status == 404
    assert halted.ask("/static/%2e%2e%2fpages.py").status == 404


def test_an_empty_journal_shows_how_to_begin_and_the_first_run_appears(tmp_path: Path) -> None:
    with serving(tmp_path) as found:
        assert f"rollout plan --state {tmp_path}/state --cluster CLUSTER" in found.ask("/").text
        assert not (tmp_path / "state").exists(), "reading makes no journal"
        keep(tmp_path, RUN, *journals.done(60)).close()
        assert RUN in found.ask("/").text


def test_a_run_without_its_controller_is_said_with_the_command_that_continues_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan, play = journals.stopped(lambda state: state.wave == 2)
    keep(tmp_path, RUN, plan, play, len(play.journal)).close()
    die(tmp_path)
    with answering() as people:
        monkeypatch.setenv("ROLLOUT_NOTICES", f"json://127.0.0.1:{people.port}/team")
        with serving(tmp_path) as found:
            until(lambda: people.heard, PATIENCE, "a notice")
            assert people.heard[0]["title"] == f"rno: run {RUN} has no controller"
            assert f"rollout resume --state {tmp_path}/state {RUN}" in people.heard[0]["message"]
    with serving(tmp_path) as found:
        page = found.ask(f"/runs/{RUN}").text
        assert "no controller is at work on this run" in page
        assert f'<code class="command">rollout resume --state {tmp_path}/state {RUN}</code>' in page
        with found.open_stream(RUN) as stream:
            assert message(stream)[1]["standing"] == "no controller"


def test_a_stream_sends_what_changed_and_continues_where_it_was(tmp_path: Path) -> None:
    plan, play = journals.halted(120)
    told = [told_until(play, at) for at in range(len(play.journal) - 60, len(play.journal))]
    moved = [{name for name in old if old[name] != new[name]} for old, new in pairwise(told)]
    at = next(at for at, names in enumerate(moved) if len(names) == 1)
    half = len(play.journal) - 60 + at
    journal = keep(tmp_path, RUN, plan, play, half)
    with serving(tmp_path) as found, found.open_stream(RUN) as stream:
        last, first = message(stream)
        assert isinstance(first["nodes"], list)
        assert len(first["nodes"]) == len(play.order.nodes)
        assert first["standing"] != "no controller"
        journal.append(RUN, [encode_event(event) for event in play.journal[half : half + 1]])
        _, second = message(stream)
        assert isinstance(second["nodes"], list)
        assert {row[0] for row in second["nodes"]} == moved[at], "and nothing of the other nodes"
        assert "layout" not in second
        with found.open_stream(RUN, last=last) as again:
            assert message(again)[1]["nodes"] == second["nodes"], "what was missed, and no more"
        with found.open_stream(RUN, last="elsewhere/1") as anew:
            assert "layout" in message(anew)[1]
    journal.close()


def test_a_client_that_leaves_or_never_finishes_its_request_disturbs_nobody(halted: Serving) -> None:
    for _ in range(50):
        halted.open_stream(RUN).close()
    begun = [socket.create_connection(("127.0.0.1", halted.port), timeout=PATIENCE) for _ in range(20)]
    for each in begun:
        each.sendall(b"GET / HTTP/1.1\r\nHost: 127")
    until(lambda: halted.ask("/").status == 200, PATIENCE, "room for a request")
    with halted.open_stream(RUN) as stream:
        assert message(stream)[1]["standing"] == "ended: halted"
    halted.process.send_signal(signal.SIGTERM)
    assert halted.process.wait(PATIENCE) == 0, "they do not delay its end"
    for each in begun:
        each.close()
    assert "Traceback" not in halted.said.read_text()


@pytest.mark.parametrize("sign", [signal.SIGINT, signal.SIGTERM])
def test_open_streams_do_not_delay_the_end(halted: Serving, sign: signal.Signals) -> None:
    streams = [halted.open_stream(RUN) for _ in range(5)]
    for stream in streams:
        message(stream)
    halted.process.send_signal(sign)
    assert halted.process.wait(PATIENCE) == 0
    for stream in streams:
        while stream.recv(65536):
            pass
        stream.close()
    assert "Traceback" not in halted.said.read_text()


def test_a_port_that_is_taken_is_one_line(halted: Serving, tmp_path: Path) -> None:
    from rollout.cli.main import run

    assert run(["serve", "--port", str(halted.port), "--state", str(tmp_path / "state")]) == 5


def connections(port: int) -> int:
    """How many connections the server has open."""
    lines = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    return sum(fields[1].endswith(f":{port:04X}") and fields[3] == "01" for fields in lines)


def test_a_client_that_does_not_read_is_dropped_and_others_go_on(tmp_path: Path) -> None:
    keep(tmp_path, RUN, *journals.halted(2000)).close()
    with serving(tmp_path) as found, found.open_stream(RUN, receive=4096) as stalled:
        with found.open_stream(RUN) as other:
            assert message(other)[1]["standing"] == "ended: halted"
            until(lambda: connections(found.port) <= 1, PATIENCE, "the stalled client is dropped")
            assert connections(found.port) == 1, "the other one is not"
        assert found.ask("/").status == 200
        assert stalled.recv(1), "it had something to read"
    assert "Traceback" not in found.said.read_text()
