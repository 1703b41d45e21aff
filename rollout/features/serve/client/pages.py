"""The addresses of the page and what each answers."""

from __future__ import annotations

import sys
import traceback
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from http import HTTPStatus
from pathlib import Path
from time import time
from weakref import WeakKeyDictionary

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route

from rollout.app.live_run import LiveRun, LiveRuns
from rollout.app.metrics import measured_runs
from rollout.app.owned import owned_in
from rollout.app.past_runs import past_run
from rollout.app.ports import Journal
from rollout.app.run_list import listed_runs
from rollout.core.plans import plan_codec
from rollout.core.presentation.headline import WhatChanged
from rollout.core.presentation.metrics import metrics_text
from rollout.core.presentation.pages.markup import lines, tag, with_texts
from rollout.core.presentation.pages.page import STYLE
from rollout.core.presentation.past_run import past_run_lines
from rollout.core.presentation.waiting_plans import WaitingPlan
from rollout.core.run.state import RunState
from rollout.core.text.terminal import printable
from rollout.errors import StateError
from rollout.features.serve.client.control import RunControl
from rollout.features.serve.client.snapshots import MOST_STREAMS, Browser, RenderedParts, snapshots, title_of
from rollout.features.serve.words.index_page import ChosenRuns, index_body, index_head
from rollout.features.serve.words.live_page import live_body, live_head
from rollout.features.serve.words.node_page import node_body, node_head
from rollout.features.serve.words.plan_page import plan_body, plan_head
from rollout.features.serve.words.shell import END, whole_page

_FOLDER = Path(__file__).parent / "static"
_KINDS = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
MOST_TEXT = 200
"""Characters of a filter in the address of the list."""
_MISSING = frozenset({"no-such-run"})


def no_plans(_journal: Journal) -> Sequence[WaitingPlan]:
    return ()


def static_files() -> Mapping[str, str]:
    """Name → text of everything that a page loads. The style is the report's, with what only these pages have."""
    files = {path.name: path.read_text(encoding="utf-8") for path in _FOLDER.iterdir() if path.suffix in _KINDS}
    return {**files, "page.css": f"{STYLE}{files['page.css']}"}


@dataclass
class Site:
    """``journal`` opens the journal, or returns the one that is open; ``place`` names it; ``stopping``: the server ends.

    ``who``: the operator whose requests the pages may record; ``""``: they only show. ``carried`` completes the
    commands that the pages propose.
    """

    journal: Callable[[], Journal]
    place: str
    stopping: Callable[[], bool]
    who: str = ""
    plans: Callable[[Journal], Sequence[WaitingPlan]] = no_plans
    carried: Callable[[str], str] = str
    files: Mapping[str, str] = field(default_factory=static_files)
    streams: int = 0

    def __post_init__(self) -> None:
        self.runs = LiveRuns(self.journal, time)
        self.control = RunControl(self.runs, self.journal, self.who, self.carried) if self.who else None
        self.secret = self.control.secret if self.control else ""
        self.changes: dict[str, WhatChanged] = {}
        self.rendered: WeakKeyDictionary[LiveRun, RenderedParts] = WeakKeyDictionary()

    def application(self) -> Starlette:
        routes = [
            Route("/", self.index),
            Route("/runs/{run}", self.run),
            Route("/runs/{run}/stream", self.stream),
            Route("/runs/{run}/plan", self.plan),
            Route("/runs/{run}/nodes/{node}", self.node),
            Route("/static/{name}", self.file),
            Route("/metrics", self.metrics),
        ]
        if self.control:
            routes.append(Route("/runs/{run}/{word}", self.control.answer, methods=["POST"]))
        application = Starlette(routes=routes, exception_handlers={StateError: self.said, Exception: _broken})
        application.router.redirect_slashes = False  # such a redirect would name an address without the secret
        return application

    def file(self, request: Request) -> Response:
        name = request.path_params["name"]
        if name not in self.files:
            return PlainTextResponse("no such file\n", HTTPStatus.NOT_FOUND)
        return Response(self.files[name], media_type=_KINDS[Path(name).suffix])

    def metrics(self, _request: Request) -> Response:
        text = metrics_text(tuple(measured_runs(self.runs)))
        return Response(text, media_type="text/plain; version=0.0.4")

    async def index(self, request: Request) -> Response:
        given = {name: request.query_params.get(name, "")[:MOST_TEXT] for name in ("cluster", "state", "who", "text")}
        return self.streamed(index_head(self.place), lambda: self._index(ChosenRuns(**given)))

    def _index(self, chosen: ChosenRuns) -> str:
        journal = self.journal()
        runs = tuple(listed_runs(journal, "", self._state_of, self.changes))
        clusters = dict.fromkeys(run.cluster for run in runs)
        notes = {name: [(note.at, note.who, note.text) for note in journal.notes(name)] for name in clusters}
        owned = {name: owned_in(journal, name) for name in clusters}
        return self.completed(index_body(runs, self.place, notes, self.plans(journal), chosen, time(), owned))

    def _state_of(self, run: str) -> RunState | None:
        """``None``: it cannot be read."""
        try:
            return self.runs.get(run).look().story.state
        except StateError:
            return None

    async def run(self, request: Request) -> Response:
        run = request.path_params["run"]
        try:
            live = await run_in_threadpool(self.runs.get, run)
        except StateError as error:
            if error.reference != "another-version":
                raise
            return HTMLResponse(await run_in_threadpool(self._past, run))

        def body() -> str:
            look = live.look()
            return live_body(self.parts_of(live).of(look))

        order = live.past.order
        recent = live.recent
        return self.streamed(live_head(run, order.cluster, order.goal, title_of(recent) if recent else ""), body)

    def parts_of(self, live: LiveRun) -> RenderedParts:
        """The parts that all readers of a run share, for as long as it is kept."""
        return self.rendered.setdefault(live, RenderedParts(self.secret, self.carried))

    def _past(self, run: str) -> str:
        past = past_run(self.journal(), run)
        text = lines(printable(line, 1000) for line in past_run_lines(past)) if past else ""
        page = whole_page(f"run {run}", tag("h1", f"run {run}"), tag("pre", text), up="../")
        return self.completed(page)

    async def stream(self, request: Request) -> Response:
        run = request.path_params["run"]
        if self.streams >= MOST_STREAMS:
            return PlainTextResponse("too many open pages\n", HTTPStatus.SERVICE_UNAVAILABLE)
        live = await run_in_threadpool(self.runs.get, run)
        reader = Browser(last=request.headers.get("last-event-id", "")[:100])
        events = self._counted(snapshots(live, self.parts_of(live), reader, self.stopping))
        return StreamingResponse(events, media_type="text/event-stream")

    async def _counted(self, events: AsyncIterator[str]) -> AsyncIterator[str]:
        self.streams += 1
        try:
            async for event in events:
                yield event
        finally:
            self.streams -= 1

    async def plan(self, request: Request) -> Response:
        past = (await run_in_threadpool(self.runs.get, request.path_params["run"])).past
        return self.streamed(
            plan_head(past.order),
            lambda: self.completed(plan_body(past.plan, plan_codec.digest(past.plan) if past.plan else "")),
        )

    async def node(self, request: Request) -> Response:
        name = request.path_params["node"]
        live = await run_in_threadpool(self.runs.get, request.path_params["run"])
        if name not in live.past.order.nodes:
            return PlainTextResponse("no such node in this run\n", HTTPStatus.NOT_FOUND)
        return self.streamed(
            node_head(live.past.order, name),
            lambda: self.completed(node_body(live.look().story, name, live.answers(name))),
        )

    def streamed(self, head: str, body: Callable[[], str]) -> Response:
        """A page with a head that is sent before the journal is read for its body."""
        return StreamingResponse(self._page(head, body), media_type="text/html")

    async def _page(self, head: str, body: Callable[[], str]) -> AsyncIterator[str]:
        yield head
        try:
            yield await run_in_threadpool(body)
        except StateError as error:
            yield self.completed(f"{tag('p', str(error), class_='banner bad')}{END}")

    def completed(self, markup: str) -> str:
        """With the options of this command line in the commands that it proposes."""
        return with_texts(markup, self.carried)

    def said(self, request: Request, error: Exception) -> Response:
        """An error of the journal, in its own words."""
        missing = isinstance(error, StateError) and error.reference in _MISSING
        status = HTTPStatus.NOT_FOUND if missing else HTTPStatus.SERVICE_UNAVAILABLE
        title = "Not there" if missing else "The journal cannot be read"
        up = "../" * (request.scope["path"].count("/") - 1)
        page = whole_page(title, tag("h1", title), tag("p", str(error)), up=up)
        return HTMLResponse(self.completed(page), status)


def _broken(_request: Request, error: Exception) -> Response:
    """A defect of ours: the trace goes to the terminal, not to the browser."""
    traceback.print_exception(error, file=sys.stderr)
    return PlainTextResponse("internal error: see the terminal of `rollout serve`\n", HTTPStatus.INTERNAL_SERVER_ERROR)
