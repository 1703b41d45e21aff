"""Credentials of back ends: those of the inventory get them, other addresses do not."""

from __future__ import annotations

import base64
import ssl
import threading
import time
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from rollout.adapters.files import content_of, opened
from rollout.adapters.http import MOST_BYTES, Http, HttpAnswer
from rollout.adapters.owners import REMEDY, check_ours, others_hold
from rollout.core.model.inventory import Endpoints
from rollout.errors import AwayError, InputError, Problem, RemoteError

# Bearer tokens in files that others rotate: read again every minute, never shown.


MOST_TOKEN_BYTES = 64 * 1024
EVERY = 60.0


class TokenFile:
    """The token in a file, at most one minute old; the last one while the file is written anew. Thread-safe."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._token = ""
        self._read_at = 0.0

    def read(self) -> str:
        with self._lock:
            if not self._token or time.monotonic() - self._read_at > EVERY:
                try:
                    self._token, self._read_at = self._in_file(), time.monotonic()
                except RemoteError as error:
                    if not self._read_at:
                        raise
                    if not self._token:  # it was refused, and what rotates it may write the file at this moment
                        raise AwayError(error.reference, error.message, hint=error.hint) from None
            return self._token

    def _in_file(self) -> str:
        try:
            if why := others_hold(self._path):
                raise RemoteError("no-token", why, hint=REMEDY)
            written = content_of(self._path, MOST_TOKEN_BYTES)
        except OSError as exc:
            raise RemoteError("no-token", f"{self._path}: {exc.strerror}") from None
        return bearer(written.decode("ascii", "replace").strip(), str(self._path))

    def forget(self) -> None:
        """The server refused the token: the next call reads the file again."""
        with self._lock:
            self._token = ""


def bearer(token: str, where: str) -> str:
    """``token`` if it can be one: printable, without blanks. Errors never show the token."""
    if not token or not token.isprintable() or any(character.isspace() for character in token) or not token.isascii():
        raise RemoteError("no-token", f"{where} holds no bearer token")
    return token


LOOPBACK = ("localhost", "127.0.0.1", "::1")


@dataclass(frozen=True, slots=True)
class ClientCertificate:
    """PEM files. ``key_file`` ``""``: the key is in ``cert_file``. Both ``""``: there is no certificate."""

    cert_file: str = ""
    key_file: str = ""


class HttpEndpoint:
    """Asks below ``home`` with the token (or ``user:password``) of ``token_file``, the client certificate and ``tenant``, the value
    of ``X-Scope-OrgID``. No other URL gets one of them.
    """

    def __init__(
        self,
        home: str,
        token_file: str = "",
        ca_file: str = "",
        tenant: str = "",
        certificate: ClientCertificate = ClientCertificate(),
    ) -> None:
        self._home = home
        self._token = TokenFile(Path(token_file)) if token_file else None
        if self._token and home and urlsplit(home).scheme != "https" and urlsplit(home).hostname not in LOOPBACK:
            message = f"the token of {token_file} would be sent to {home} unencrypted"
            raise InputError((Problem("token-in-the-clear", message, hint="use https"),))
        self._tenant = tenant
        self._elsewhere = Http(authorities(ca_file))
        self._http = Http(authorities(ca_file, certificate))

    def ask(
        self,
        method: str,
        url: str,
        path: str,
        *,
        timeout: float,
        headers: Mapping[str, str] | None = None,
        body: bytes = b"",
        most: int = MOST_BYTES,
    ) -> HttpAnswer:
        """``url`` ``""``: home."""
        base = url or self._home
        if not base:
            raise RemoteError("no-endpoint", "no address is configured")
        at_home = _origin(base) == _origin(self._home)
        http, token = (self._http, self._token) if at_home else (self._elsewhere, None)
        tenant = {"X-Scope-OrgID": self._tenant} if at_home and self._tenant else {}
        until = time.monotonic() + timeout

        def once(seconds: float) -> HttpAnswer:
            sent = {**(headers or {}), **tenant, **({"Authorization": _credentials(token.read())} if token else {})}
            return http.ask(method, base.rstrip("/") + path, timeout=seconds, headers=sent, body=body, most=most)

        answer = once(timeout)
        if answer.status == 401 and token:
            token.forget()  # the token may have been rotated
            answer = once(max(until - time.monotonic(), 0.1))
        return answer

    def close(self) -> None:
        self._http.close()
        self._elsewhere.close()


@dataclass(frozen=True, slots=True)
class HttpBackEnds:
    """Makes what gates ask over HTTP, by the inventory's ``endpoints``. All of it is closed with ``stack``."""

    endpoints: Endpoints
    stack: ExitStack

    def at(self, home: str) -> HttpEndpoint:
        """A back end of the inventory at ``home``, with its credentials; ``""``: it names none."""
        known = self.endpoints
        certificate = ClientCertificate(known.cert_file, known.key_file)
        endpoint = HttpEndpoint(home, known.token_file, known.ca_file, known.tenant, certificate)
        self.stack.callback(endpoint.close)
        return endpoint

    def anywhere(self) -> Http:
        """Any server, without credentials."""
        http = Http(authorities(""))
        self.stack.callback(http.close)
        return http


def authorities(ca_file: str, certificate: ClientCertificate = ClientCertificate()) -> ssl.SSLContext:
    """The system's certificate authorities, or those of ``ca_file`` alone; with our certificate, if there is one."""
    if ca_file:
        check_ours(Path(ca_file))
    try:
        _check_files(ca_file)
        context = ssl.create_default_context(cafile=ca_file or None)
    except (OSError, ssl.SSLError) as exc:
        reason = exc.strerror or "no certificate in it"
        raise InputError((Problem("bad-ca-file", f"{ca_file}: {reason}"),)) from None
    if certificate != ClientCertificate():
        try:  # an encrypted key must not ask on the terminal
            _check_files(certificate.cert_file, certificate.key_file)
            context.load_cert_chain(certificate.cert_file, certificate.key_file or None, password=lambda: "")
        except (OSError, ssl.SSLError) as exc:
            named = " and ".join(name for name in (certificate.cert_file, certificate.key_file) if name)
            reason = exc.strerror or "no certificate with its unencrypted key"
            raise InputError((Problem("bad-client-certificate", f"{named}: {reason}"),)) from None
    return context


def _check_files(*paths: str) -> None:
    """OpenSSL would wait for a pipe, and read a device without an end."""
    for path in filter(None, paths):
        with opened(Path(path)):
            pass


def _credentials(message: str) -> str:
    """A bearer token has no colon (RFC 6750, section 2.1); ``user:password`` has one (RFC 7617)."""
    return f"Basic {base64.b64encode(message.encode()).decode()}" if ":" in message else f"Bearer {message}"


def _origin(url: str) -> tuple[str, str | None, int | None]:
    parts = urlsplit(url)
    return parts.scheme, parts.hostname, parts.port
