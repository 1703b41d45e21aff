"""Who may ask anything of the page: requests with the token or its cookie, for this host, from this page.

The token is in the address that ``rollout serve`` prints. The first request with it gets a cookie; the address bar then
shows no token. A page of another site cannot send the cookie (``SameSite=Strict``), and a name that somebody points to
this machine is no host of ours.
"""

from __future__ import annotations

import re
import secrets
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from http import HTTPStatus
from http.cookies import CookieError, SimpleCookie
from urllib.parse import parse_qs, urlencode

HOSTS = frozenset({"127.0.0.1", "[::1]", "localhost"})
"""Hosts of ours; any port, because a tunnel may have another one."""

_HOST = re.compile(r"(?P<host>\[[0-9a-f:]+\]|[a-z0-9.-]+)(?::\d{1,5})?")
SAFE = frozenset({"GET", "HEAD"})

MOST_FAILURES = 10
WITHIN = 60.0
"""So many wrong tokens in so many seconds, then none is compared."""

TOKEN = "token"  # noqa: S105 - the name of the parameter


@dataclass(frozen=True, slots=True)
class WebRequest:
    """What of a request decides whether it is answered. Header values are ``""`` where they are missing."""

    method: str
    path: str
    query: str
    host: str
    origin: str
    site: str  # Sec-Fetch-Site
    cookie: str
    authorization: str
    more_than_once: bool = False  # a header of these is there twice


@dataclass(frozen=True, slots=True)
class Refusal:
    status: HTTPStatus
    text: str


@dataclass(frozen=True, slots=True)
class Welcome:
    """The token was in the address: a redirect to ``path`` that sets ``cookie``."""

    path: str
    cookie: str


@dataclass
class Gatekeeper:
    """``clock``: seconds that only grow. ``name``: of the cookie; cookies of one host are shared by its ports."""

    clock: Callable[[], float]
    name: str = "rollout"
    token: str = field(default_factory=lambda: secrets.token_urlsafe(32))
    session: str = field(default_factory=lambda: secrets.token_urlsafe(32))
    failures: deque[float] = field(default_factory=deque)

    def decide(self, asked: WebRequest) -> Refusal | Welcome | None:
        """``None``: it may be answered."""
        if foreign := _foreign(asked):
            return foreign
        given = self._given(asked)
        if _same(self._cookie(asked), self.session):
            return self._welcome(asked) if given and not asked.authorization else None
        if not given:
            return Refusal(HTTPStatus.UNAUTHORIZED, "Open the address that `rollout serve` printed: it has the token.")
        if self._too_often():
            return Refusal(HTTPStatus.TOO_MANY_REQUESTS, "Too many wrong tokens: wait a minute.")
        if not _same(given, self.token):
            self.failures.append(self.clock())
            return Refusal(
                HTTPStatus.UNAUTHORIZED, "This token is wrong: `rollout serve` makes a new one at each start."
            )
        return None if asked.authorization else self._welcome(asked)

    def _welcome(self, asked: WebRequest) -> Welcome:
        cookie = f"{self.name}={self.session}; Path=/; HttpOnly; SameSite=Strict"
        return Welcome(_without_token(asked), cookie)

    def _cookie(self, asked: WebRequest) -> str:
        try:
            found = SimpleCookie(asked.cookie).get(self.name)
        except CookieError:
            return ""
        return found.value if found else ""

    @staticmethod
    def _given(asked: WebRequest) -> str:
        """The token of the header ``Authorization: Bearer``, or of the address of a GET."""
        scheme, _, word = asked.authorization.partition(" ")
        if asked.authorization:
            return word.strip() if scheme.lower() == "bearer" else ""
        return parse_qs(asked.query).get(TOKEN, [""])[0] if asked.method in SAFE else ""

    def _too_often(self) -> bool:
        while self.failures and self.clock() - self.failures[0] > WITHIN:
            self.failures.popleft()
        return len(self.failures) >= MOST_FAILURES


def _foreign(asked: WebRequest) -> Refusal | None:
    """A request that another site made, or that came by a name that is not ours."""
    named = _HOST.fullmatch(asked.host.lower())
    if asked.more_than_once or named is None or named["host"] not in HOSTS:
        return Refusal(HTTPStatus.MISDIRECTED_REQUEST, "This host name is not that of the page.")
    elsewhere = asked.origin and asked.origin.lower() != f"http://{asked.host.lower()}"
    if elsewhere or (asked.method not in SAFE and not asked.origin):
        return Refusal(HTTPStatus.FORBIDDEN, "The request comes from another site.")
    if asked.site and asked.site not in ("same-origin", "none") and asked.method not in SAFE:
        return Refusal(HTTPStatus.FORBIDDEN, "The request comes from another site.")
    return None


def _same(given: str, known: str) -> bool:
    """In a time that does not depend on where they differ."""
    return secrets.compare_digest(given.encode(), known.encode())


def _without_token(asked: WebRequest) -> str:
    """Never ``//host``, which a browser would take for another host."""
    rest = {name: values for name, values in parse_qs(asked.query).items() if name != TOKEN}
    path = f"/{asked.path.lstrip('/')}"
    return f"{path}?{urlencode(rest, doseq=True)}" if rest else path
