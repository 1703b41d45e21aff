"""Requests to one API server with the kubeconfig's identity; answers as JSON, errors with the server's message."""

from __future__ import annotations

import json
import re
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import unquote

from rollout.adapters.endpoints import TokenFile, bearer
from rollout.adapters.http import MOST_BYTES, Http, HttpAnswer, decoded, mapping, refusal
from rollout.adapters.kubernetes.credentials import Credential, PluginCredentials, ask_plugin, context_for
from rollout.adapters.kubernetes.kubeconfig import ApiAccess
from rollout.core.text.terminal import printable
from rollout.errors import AwayError, RemoteError

DONE = (200, 201)
PERSISTS = 15.0
"""Seconds for which a refusal of a granted right is retried. A restarting server answers 403 to everybody until its
RBAC cache is filled, and 401 until it has loaded its tokens.
"""
_REFUSALS = (401, 403)
_REFERENCES = {401: "unauthorized", 403: "forbidden", 409: "conflict"}
_OBJECT = re.compile(r"/(?P<kind>[a-z]+)/(?P<name>[^/?]+)(?:/eviction|/proxy/[^?]*)?(?:\?|$)")
"""The object at the end of a path, or the one of which the rest of the path is a part."""


class ApiClient:
    """Thread-safe. The constructor reads certificates and may raise ``InputError``."""

    def __init__(self, connection: ApiAccess, now: Callable[[], float] = time.monotonic) -> None:
        self._connection = connection
        self._now = now
        self._files = TokenFile(connection.token_file) if connection.token_file else None
        self._lock = threading.Lock()
        plugin = connection.plugin
        self._plugin = PluginCredentials(lambda: ask_plugin(plugin)) if plugin else None
        self._borne: Credential | None = None  # the credential with the certificate that ``_http`` uses
        self._may = False  # whether the server confirmed the needed rights
        self._refused: dict[str, float] = {}  # start of the current series of refusals
        self._http = self._door(connection.certificate, connection.key)

    def get(self, path: str, timeout: float) -> Any:
        """The JSON at ``path``, or ``RemoteError``; a dead kept connection is retried once."""
        return self._asked("GET", path, b"", timeout)

    def page(self, path: str, timeout: float, most: int) -> str:
        """The text at ``path``, at most ``most`` bytes; ``RemoteError`` if it is larger."""
        answer = self._answer("GET", path, b"", timeout, accepts="text/plain", most=most)
        if answer.status not in DONE:
            raise self.error_of(answer, "GET", path)
        if not answer.whole:
            raise RemoteError("too-large", f"the answer is larger than {most >> 20} MiB")
        return answer.body.decode("utf-8", "replace")

    def post(self, path: str, document: Any, timeout: float) -> Any:
        return self._asked("POST", path, json.dumps(document).encode(), timeout)

    def patch(self, path: str, document: Any, timeout: float) -> Any:
        """A JSON merge patch (RFC 7386): ``None`` removes a key. With a resourceVersion it may raise ``conflict``."""
        return self._asked("PATCH", path, json.dumps(document).encode(), timeout)

    def tell(self, path: str, document: Any, timeout: float) -> HttpAnswer:
        """The server's answer to a POST, errors too; ``error_of`` says which errors are final."""
        return self._answer("POST", path, json.dumps(document).encode(), timeout)

    def close(self) -> None:
        self._http.close()

    def rights_were_checked(self) -> None:
        """From now on a refusal is retried before it counts as final."""
        self._may = True

    def error_of(self, answer: HttpAnswer, method: str, path: str) -> RemoteError:
        """The error to raise. When rights were checked, a refusal is final only when it persists."""
        error = said(answer, path)
        if answer.status not in _REFUSALS or not self._may:
            return error
        since = self._refused.setdefault(_what(method, path), self._now())
        if self._now() - since >= PERSISTS:
            return error
        return AwayError(error.reference, error.message)

    def _asked(self, method: str, path: str, body: bytes, timeout: float) -> Any:
        answer = self._answer(method, path, body, timeout)
        if answer.status not in DONE:
            raise self.error_of(answer, method, path)
        return mapping(decoded(answer), "the answer")

    def _answer(
        self, method: str, path: str, body: bytes, timeout: float,
        accepts: str = "application/json", most: int = MOST_BYTES,
    ) -> HttpAnswer:  # fmt: skip
        until = time.monotonic() + timeout
        answer, token = self._once(method, path, body, until, accepts, most)
        if answer.status == 401 and self._forget(token):
            answer, _ = self._once(method, path, body, until, accepts, most)
        if answer.status in DONE:
            self._refused.pop(_what(method, path), None)
        return answer

    def _forget(self, token: str) -> bool:
        """Whether a new token may exist: tokens are rotated or revoked early."""
        if self._plugin is not None:
            self._plugin.forget(token)
        elif self._files is not None:
            self._files.forget()
        return self._plugin is not None or self._files is not None

    def _once(
        self, method: str, path: str, body: bytes, until: float, accepts: str, most: int
    ) -> tuple[HttpAnswer, str]:
        """The answer and the token that was sent; a plugin's time counts against the same deadline."""
        headers = {"Accept": accepts}
        if body:
            headers["Content-Type"] = "application/merge-patch+json" if method == "PATCH" else "application/json"
        token, http = self._identity(_left(until))
        if token:
            headers["Authorization"] = f"Bearer {token}"
        url = self._connection.server + path
        return http.ask(method, url, timeout=_left(until), headers=headers, body=body, most=most), token

    def _identity(self, timeout: float) -> tuple[str, Http]:
        connection = self._connection
        if self._plugin is not None:
            credentials = self._plugin.get(timeout)
            return credentials.token, self._bearing(credentials)
        if self._files is not None:
            return self._files.read(), self._http
        return (bearer(connection.token, connection.where) if connection.token else ""), self._http

    def _bearing(self, credential: Credential) -> Http:
        with self._lock:
            if credential.certificate and credential is not self._borne:
                self._http, self._borne = self._door(credential.certificate, credential.key), credential
            return self._http

    def _door(self, certificate: bytes, key: bytes) -> Http:
        return Http(context_for(self._connection, certificate, key), self._connection.tls_name)


def _left(until: float) -> float:
    return max(until - time.monotonic(), 0.1)


def _what(method: str, path: str) -> str:
    return f"{method} {path.partition('?')[0]}"


def said(answer: HttpAnswer, path: str) -> RemoteError:
    """The message of the server's Status, if any.

    ``not-found`` only for an answer that says that this object does not exist. Every other 404 says nothing about it:
    it may come from an ingress without a back end, or from a server under another path.
    """
    error = refusal(answer)
    try:
        document = mapping(decoded(answer), "the answer")
    except RemoteError:
        document = {}
    message = document.get("message")
    shown = printable(message, 300) if isinstance(message, str) else error.message
    if answer.status != 404:
        return type(error)(_REFERENCES.get(answer.status, error.reference), shown)
    if _is_about(document, path):
        return RemoteError("not-found", shown)
    return AwayError(error.reference, shown)


def _is_about(status: Mapping[str, Any], path: str) -> bool:
    """Whether a Status says that the object at the path does not exist."""
    asked, details = _OBJECT.search(path), status.get("details")
    if asked is None or not isinstance(details, dict):
        return False
    said = (status.get("kind"), status.get("reason"), details.get("kind"), details.get("name"))
    return said == ("Status", "NotFound", asked["kind"], unquote(asked["name"]))
