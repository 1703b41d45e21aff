"""The gatekeeper in front of the application, and the headers of every response."""

from __future__ import annotations

from http import HTTPStatus
from urllib.parse import quote

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse, RedirectResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from rollout.core.presentation.pages.shell import POLICY
from rollout.web.gatekeeper import Gatekeeper, Refusal, WebRequest, Welcome

HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",  # the path is a secret
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}


class Guarded:
    """An application that answers only what the gatekeeper lets in. The secret in the path never reaches it."""

    def __init__(self, app: ASGIApp, gatekeeper: Gatekeeper) -> None:
        self._app, self._gatekeeper = app, gatekeeper

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(raw=message["headers"])
                for name, value in HEADERS.items():
                    headers[name] = value
            await send(message)

        found = self._gatekeeper.decide(_asked(scope))
        answer: ASGIApp
        if isinstance(found, Refusal):
            answer = PlainTextResponse(f"{found.text}\n", found.status)
        elif not scope["state"]["let_in"]():
            answer = PlainTextResponse("too many open connections\n", HTTPStatus.SERVICE_UNAVAILABLE)
        elif isinstance(found, Welcome):
            answer = RedirectResponse(found.path, HTTPStatus.SEE_OTHER)
        else:
            scope = {**scope, "path": found.path, "raw_path": quote(found.path).encode()}
            answer = self._app
        await answer(scope, receive, with_headers)


def _asked(scope: Scope) -> WebRequest:
    headers = Headers(scope=scope)
    decisive = ("host", "origin", "authorization")
    return WebRequest(
        method=scope["method"],
        path=scope["path"],
        query=scope["query_string"].decode("ascii", "replace"),
        host=headers.get("host", ""),
        origin=headers.get("origin", ""),
        site=headers.get("sec-fetch-site", ""),
        authorization=headers.get("authorization", ""),
        more_than_once=any(len(headers.getlist(name)) > 1 for name in decisive),
    )
