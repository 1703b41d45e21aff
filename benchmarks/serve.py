"""``rollout serve`` over a journal of 100 runs of 2,000 nodes, and its page in Chromium while a run goes on.

``make bench-serve`` writes what it measured to ``serve.md`` beside this file. The goals: the first byte of a page within
200 ms, and no task of Chromium's main thread of more than 50 ms at 2,000 nodes.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from http import HTTPStatus
from http.client import HTTPConnection
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

from benchmarks.check_kubelet import machine
from rollout.adapters.journal import SqlJournal
from rollout.core.run.journal_codec import encode_event
from tests.controllers import PATIENCE, until
from tests.core.presentation import journals
from tests.features.serve.serving import Serving, keep, serving

TABLE = Path(__file__).with_name("serve.md")
LIVE = "r20261121-090000-live"
AT_ONCE = 500
"""Events that are journaled in one transaction while the page follows."""


@dataclass(frozen=True, slots=True)
class Answer:
    """Seconds until the first byte of a page and until its last, and its size in bytes."""

    what: str
    first: float
    last: float
    size: int


@dataclass(frozen=True, slots=True)
class Followed:
    """A run of ``nodes`` in Chromium. ``blocked``: tasks of more than 50 ms, in ms; ``seconds``: for ``events`` events."""

    nodes: int
    events: int
    seconds: float
    complete: float
    blocked: tuple[float, ...]


def asked(served: Serving, what: str, path: str) -> Answer:
    connection = HTTPConnection("127.0.0.1", served.port, timeout=PATIENCE)
    try:
        began = time.perf_counter()
        connection.request("GET", served.page + path)
        answer = connection.getresponse()
        text = answer.read(1)
        first = time.perf_counter() - began
        text += answer.read()
        if answer.status != HTTPStatus.OK:
            raise SystemExit(f"{path}: status {answer.status}")
        return Answer(what, first, time.perf_counter() - began, len(text))
    finally:
        connection.close()


def history(folder: Path, runs: int, nodes: int) -> Iterator[Answer]:
    """The pages over a journal of so many runs."""
    plan, play = journals.halted(nodes)
    names = [f"r20261120-{number:06}-past" for number in range(runs)]
    for name in names:
        keep(folder, name, plan, play).close()
    node = next(iter(plan.nodes))
    with serving(folder) as served:
        yield asked(served, "the list of runs", "/")
        yield asked(served, "the list of runs, again", "/")
        yield asked(served, "a run, opened first", f"/runs/{names[-1]}")
        yield asked(served, "a run, again", f"/runs/{names[-1]}")
        yield asked(served, "its plan", f"/runs/{names[-1]}/plan")
        yield asked(served, "a node", f"/runs/{names[-1]}/nodes/{node}")


def followed(folder: Path, nodes: int) -> Followed:
    """The second half of a run's events, as fast as they can be journaled, while Chromium shows it."""
    plan, play = journals.halted(nodes)
    half = len(play.journal) // 2
    journal = keep(folder, LIVE, plan, play, half)
    chromium = shutil.which("chromium")
    if chromium is None:
        raise SystemExit("Chromium is not installed")
    with serving(folder) as served, sync_playwright() as player:
        browser = player.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1280, "height": 900})
        page.set_default_timeout(PATIENCE * 1000)
        began = time.perf_counter()
        page.goto(f"http://127.0.0.1:{served.port}{served.page}/runs/{LIVE}")
        until(lambda: page.evaluate("document.querySelectorAll('#rows a').length > 5"), PATIENCE, "the table")
        complete = time.perf_counter() - began
        page.evaluate(
            "window.long = []; new PerformanceObserver(l => window.long.push(...l.getEntries().map(e => e.duration)))"
            ".observe({type: 'longtask'})"
        )
        seconds = _journaled(journal, page, [encode_event(event) for event in play.journal[half:]])
        blocked = tuple(page.evaluate("window.long"))
        browser.close()
    journal.close()
    return Followed(nodes, len(play.journal) - half, seconds, complete, blocked)


def _journaled(journal: SqlJournal, page: Page, events: list[str]) -> float:
    """Seconds until the page shows the end of the run."""
    began = time.perf_counter()
    for begin in range(0, len(events), AT_ONCE):
        journal.append(LIVE, events[begin : begin + AT_ONCE])
    ended = "document.getElementById('standing').textContent.startsWith('ended')"
    until(lambda: page.evaluate(ended), PATIENCE, "the end of the run")
    return time.perf_counter() - began


def written(answers: list[Answer], runs: int, nodes: int, seen: list[Followed]) -> str:
    rows = [
        f"| {each.what} | {each.first * 1000:.0f} ms | {each.last * 1000:,.0f} ms | {each.size / 1000:,.0f} kB |"
        for each in answers
    ]
    page = [
        f"| {each.nodes:,} | {each.events:,} | {each.seconds:.1f} s | {each.complete:.1f} s | {len(each.blocked)} | {max(each.blocked, default=0):.0f} ms |"
        for each in seen
    ]
    return "\n".join(
        (
            "# `rollout serve`: large journals and fleets",
            "",
            f"{machine()}. Written by `make bench-serve`.",
            "",
            f"A journal of {runs:,} runs of {nodes:,} nodes:",
            "",
            "| page | first byte | last byte | size |",
            "| --- | --- | --- | --- |",
            *rows,
            "",
            "The page of a run in Chromium, while the second half of the run is journaled as fast as possible. The page is complete when the table of nodes shows rows. *Blocked* are tasks of the main thread of more than 50 ms.",
            "",
            "| nodes | events | until it shows the end | complete after | blocked | longest |",
            "| --- | --- | --- | --- | --- | --- |",
            *page,
            "",
        )
    )


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--nodes", type=int, default=2000)
    parser.add_argument("--large", type=int, default=20_000, help="nodes of the second run in Chromium")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        answers = list(history(Path(folder), chosen.runs, chosen.nodes))
    seen = []
    for count in (chosen.nodes, chosen.large):
        with tempfile.TemporaryDirectory() as folder:
            seen.append(followed(Path(folder), count))
    TABLE.write_text(written(answers, chosen.runs, chosen.nodes, seen))


if __name__ == "__main__":
    main()
