"""Requests to one API server as whoever the kubeconfig says; answers as JSON, errors in the server's own words."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from typing import Any

from rollout.adapters.http import Answer, Http, refusal
from rollout.adapters.json_answers import decoded, mapping
from rollout.adapters.kubernetes.credentials import Credential, ask_plugin, context_for
from rollout.adapters.kubernetes.kubeconfig import Connection
from rollout.adapters.tokens import TokenFile, bearer
from rollout.core.text.terminal import printable
from rollout.errors import AwayError, RemoteError

DONE = (200, 201)
EARLY = 30.0
"""Seconds before its end at which a plugin's credential is replaced."""
PERSISTS = 15.0
"""Seconds for which a server may refuse what it said that we may, and be asked again: one that restarts answers 403 to
everybody until it knows its roles (its RBAC cache is cold), and 401 until it knows its tokens.
"""
_REFUSALS = (401, 403)
_REFERENCES = {401: "unauthorized", 403: "forbidden", 404: "not-found", 409: "conflict"}


class ApiClient:
    """Thread-safe. Certificates are read when it is made: ``InputError``."""

    def __init__(self, connection: Connection, now: Callable[[], float] = time.monotonic) -> None:
        self._connection = connection
        self._now = now
        self._files = TokenFile(connection.token_file) if connection.token_file else None
        self._lock = threading.Lock()
        self._credential: Credential | None = None
        self._may = False  # whether the server said that we have the rights that are needed
        self._refused: dict[str, float] = {}  # since when what was asked is refused
        self._http = self._door(connection.certificate, connection.key)

    def get(self, path: str, timeout: float) -> Any:
        """The JSON at ``path``, or ``RemoteError``; a connection that had died while it was kept is tried once more."""
        return self._asked("GET", path, b"", timeout)

    def post(self, path: str, document: Any, timeout: float) -> Any:
        return self._asked("POST", path, json.dumps(document).encode(), timeout)

    def patch(self, path: str, document: Any, timeout: float) -> Any:
        """A JSON merge patch (RFC 7386): ``None`` takes a key away. With a resourceVersion in it, it may be a ``conflict``."""
        return self._asked("PATCH", path, json.dumps(document).encode(), timeout)

    def tell(self, path: str, document: Any, timeout: float) -> Answer:
        """What the server answers to a POST, errors too; ``meant`` says which of them are final."""
        return self._answer("POST", path, json.dumps(document).encode(), timeout)

    def close(self) -> None:
        self._http.close()

    def rights_were_checked(self) -> None:
        """From now on a refusal is no last word."""
        self._may = True

    def meant(self, answer: Answer, method: str, path: str) -> RemoteError:
        """What to say of an error. Where rights were checked, a refusal is final only when it persists."""
        error = said(answer)
        if answer.status not in _REFUSALS or not self._may:
            return error
        since = self._refused.setdefault(_what(method, path), self._now())
        if self._now() - since >= PERSISTS:
            return error
        return AwayError(error.reference, error.message)

    def _asked(self, method: str, path: str, body: bytes, timeout: float) -> Any:
        answer = self._answer(method, path, body, timeout)
        if answer.status not in DONE:
            raise self.meant(answer, method, path)
        return mapping(decoded(answer), "the answer")

    def _answer(self, method: str, path: str, body: bytes, timeout: float) -> Answer:
        until = time.monotonic() + timeout
        answer = self._once(method, path, body, timeout)
        if answer.status == 401 and self._forget_identity():
            answer = self._once(method, path, body, max(until - time.monotonic(), 0.1))
        if answer.status in DONE:
            self._refused.pop(_what(method, path), None)
        return answer

    def _forget_identity(self) -> bool:
        """A token may have been rotated or withdrawn before its time: whether there may be another."""
        if self._connection.plugin is not None:
            self._credential = None
        elif self._files is not None:
            self._files.forget()
        return self._connection.plugin is not None or self._files is not None

    def _once(self, method: str, path: str, body: bytes, timeout: float) -> Answer:
        headers = {"Accept": "application/json"}
        if body:
            headers["Content-Type"] = "application/merge-patch+json" if method == "PATCH" else "application/json"
        token, http = self._identity()
        if token:
            headers["Authorization"] = f"Bearer {token}"
        return http.ask(method, self._connection.server + path, timeout=timeout, headers=headers, body=body)

    def _identity(self) -> tuple[str, Http]:
        connection = self._connection
        if connection.plugin is not None:
            return self._from_plugin()
        if self._files is not None:
            return self._files.read(), self._http
        return (bearer(connection.token, connection.where) if connection.token else ""), self._http

    def _from_plugin(self) -> tuple[str, Http]:
        with self._lock:
            known = self._credential
            if known is None or (known.until is not None and time.time() > known.until - EARLY):
                assert self._connection.plugin is not None  # noqa: S101 - the caller looked
                known = ask_plugin(self._connection.plugin, self._connection)
                if known.certificate:
                    self._http = self._door(known.certificate, known.key)
                self._credential = known
            return known.token, self._http

    def _door(self, certificate: bytes, key: bytes) -> Http:
        return Http(context_for(self._connection, certificate, key), self._connection.tls_name)


def _what(method: str, path: str) -> str:
    return f"{method} {path.partition('?')[0]}"


def said(answer: Answer) -> RemoteError:
    """The message of the server's Status, where it sent one."""
    error = refusal(answer)
    try:
        message = mapping(decoded(answer), "the answer").get("message")
    except RemoteError:
        message = None
    shown = printable(message, 300) if isinstance(message, str) else error.message
    return type(error)(_REFERENCES.get(answer.status, error.reference), shown)
