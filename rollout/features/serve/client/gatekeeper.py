"""Who may ask anything of the page: requests for this host, from this page, with a secret that no other port ever gets.

A cookie would reach every server on every port of this host. So the page's secret is in its path. ``rollout serve``
prints an address with a token that works once: the answer leads to the path. Pages link relatively and send no referrer.
All secrets have 256 bits: a wrong one costs its sender a request, and never delays the right one.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable
from dataclasses import dataclass, field
from http import HTTPStatus
from urllib.parse import parse_qs

HOSTS = frozenset({"127.0.0.1", "[::1]", "localhost"})
"""Hosts of ours; any port, because a tunnel may have another one."""

_HOST = re.compile(r"(?P<host>\[[0-9a-f:]+\]|[a-z0-9.-]+)(?::\d{1,5})?")
SAFE = frozenset({"GET", "HEAD"})
TOKEN = "token"  # noqa: S105 - the name of the parameter


def new_secret() -> str:
    """256 random bits, as a word of a path."""
    return secrets.token_urlsafe(32)


@dataclass(frozen=True, slots=True)
class WebRequest:
    """What of a request decides whether it is answered. Header values are ``""`` where they are missing."""

    method: str
    path: str
    query: str
    host: str
    origin: str
    site: str  # Sec-Fetch-Site
    authorization: str
    more_than_once: bool = False  # a header of these is there twice


@dataclass(frozen=True, slots=True)
class Refusal:
    status: HTTPStatus
    text: str


@dataclass(frozen=True, slots=True)
class Welcome:
    """The token was right: a redirect to ``path``."""

    path: str


@dataclass(frozen=True, slots=True)
class PageRequest:
    """It may be answered, as a request for ``path`` of the application."""

    path: str


@dataclass
class Gatekeeper:
    """``again``: gets each new token, because an address works once. ``reader``: the secret of scripts, which only read."""

    again: Callable[[str], None]
    token: str = field(default_factory=new_secret)
    page: str = field(default_factory=new_secret)
    reader: str = field(default_factory=new_secret)

    def decide(self, asked: WebRequest) -> Refusal | Welcome | PageRequest:
        if foreign := _foreign(asked):
            return foreign
        if asked.authorization:
            scheme, _, word = asked.authorization.partition(" ")
            if scheme.lower() != "bearer" or not _same(word.strip(), self.reader) or asked.method not in SAFE:
                return Refusal(
                    HTTPStatus.UNAUTHORIZED, "This is not the header that `rollout serve` printed at its start."
                )
            return PageRequest(asked.path)
        first, _, rest = asked.path.removeprefix("/").partition("/")
        if _same(first, self.page):
            return PageRequest(f"/{rest}")
        given = parse_qs(asked.query).get(TOKEN, [""])[0] if asked.path == "/" and asked.method == "GET" else ""
        if not given:
            return Refusal(HTTPStatus.UNAUTHORIZED, "Open the newest address that `rollout serve` printed.")
        if not _same(given, self.token):
            return Refusal(
                HTTPStatus.UNAUTHORIZED,
                "This address is wrong or was used: open the newest that `rollout serve` printed.",
            )
        self.token = new_secret()
        self.again(self.token)
        return Welcome(f"/{self.page}/")


def _foreign(asked: WebRequest) -> Refusal | None:
    """A request that another site made, or that came by a name that is not ours.

    What acts shows that it is of this page. From a page that sends no referrer a form has the origin ``null``: then it
    is the browser's own ``Sec-Fetch-Site`` that shows it, which no page can set.
    """
    named = _HOST.fullmatch(asked.host.lower())
    if asked.more_than_once or named is None or named["host"] not in HOSTS:
        return Refusal(HTTPStatus.MISDIRECTED_REQUEST, "This host name is not that of the page.")
    ours = asked.origin.lower() == f"http://{asked.host.lower()}" and asked.site in ("", "same-origin")
    form = asked.origin == "null" and asked.site == "same-origin"
    harmless = asked.method in SAFE and not asked.origin
    if not (ours or form or harmless):
        return Refusal(HTTPStatus.FORBIDDEN, "The request comes from another site.")
    return None


def _same(given: str, known: str) -> bool:
    """In a time that does not depend on where they differ."""
    return secrets.compare_digest(given.encode("utf-8", "replace"), known.encode())
