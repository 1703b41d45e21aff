"""Requests to a run from its page: checked, written into the journal, and answered as the command line answers them."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from http import HTTPStatus
from urllib.parse import parse_qs

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from rollout.app.control import ask
from rollout.app.live_run import LiveRuns
from rollout.app.ports import Journal
from rollout.core.model.playbook import RevertScope
from rollout.core.presentation.pages.markup import tag, with_texts
from rollout.core.run.events import RequestWord
from rollout.core.text.terminal import printable
from rollout.errors import StateError
from rollout.features.serve.words.controls import pause_shown
from rollout.features.serve.words.shell import whole_page

LONGEST_BODY = 8 * 1024
LONGEST_REASON = 300


@dataclass
class RunControl:
    """``who`` is written into the journal with each request. ``carried`` completes proposed commands.

    ``secret``: in every form of this server's pages.
    """

    runs: LiveRuns
    journal: Callable[[], Journal]
    who: str
    carried: Callable[[str], str] = str
    secret: str = field(default_factory=lambda: secrets.token_urlsafe(32))

    async def answer(self, request: Request) -> Response:
        """Record a request and wait until the controller has handled it."""
        run, named = request.path_params["run"], request.path_params["word"]
        if named not in set(RequestWord):
            return self._page(run, HTTPStatus.NOT_FOUND, "There is no such request.")
        given = await _fields(request)
        if given is None or not secrets.compare_digest(given.get("proof", "").encode(), self.secret.encode()):
            return self._page(run, HTTPStatus.FORBIDDEN, "This form is not of this page: open the run again.")
        live = await run_in_threadpool(self.runs.get, run)
        cluster = live.past.order.cluster
        word = RequestWord(named)
        revert = given.get("revert", "")
        if word is RequestWord.ABORT and given.get("cluster", "").strip() != cluster:
            typed = printable(given.get("cluster", ""), 60)
            return self._page(run, HTTPStatus.BAD_REQUEST, f"{typed!r} is not {cluster!r}; nothing was done.")
        if revert and (word is not RequestWord.ABORT or revert not in set(RevertScope)):
            return self._page(run, HTTPStatus.BAD_REQUEST, "There is no such scope to revert; nothing was done.")
        if word is RequestWord.CONTINUE:
            paused = pause_shown((await run_in_threadpool(live.look)).story.state)
            if paused and given.get("pause", "") != paused:
                return self._page(run, HTTPStatus.CONFLICT, "This form is of an earlier pause; nothing was done.")
        return await run_in_threadpool(self._ask, run, word, given.get("reason", "")[:LONGEST_REASON], revert)

    def _ask(self, run: str, word: RequestWord, reason: str, revert: str) -> Response:
        try:
            asked = ask(self.journal(), run, word, self.who, reason, revert, time.sleep)
        except StateError as error:
            return self._page(run, HTTPStatus.CONFLICT, str(error))
        if not asked.heard:
            return self._page(run, HTTPStatus.ACCEPTED, "Request recorded, but the controller has not handled it yet.")
        since = " Since then the run has changed again." if asked.undone else ""
        return self._page(run, HTTPStatus.OK, f"The controller has handled the request: {word.value}.{since}")

    def _page(self, run: str, status: HTTPStatus, text: str) -> Response:
        title = f"run {run}"
        back = tag("p", tag("a", "Back to the run", href=f"../../runs/{run}"))
        page = whole_page(title, tag("h1", title), tag("p", text), back, up="../../")
        return HTMLResponse(with_texts(page, self.carried), status)


async def _fields(request: Request) -> dict[str, str] | None:
    """The fields of a form, each once; ``None``: it is too long, or no form."""
    body = b""
    async for part in request.stream():
        body += part
        if len(body) > LONGEST_BODY:
            return None
    try:
        found = parse_qs(body.decode("ascii"), strict_parsing=True, max_num_fields=10, keep_blank_values=True)
    except ValueError:
        return None
    return {name: values[0] for name, values in found.items() if len(values) == 1}
