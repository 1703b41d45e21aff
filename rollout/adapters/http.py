"""HTTP for gates: one request, one answer, one deadline for the whole exchange and a limit on its size.

Built on httpcore, httpx's engine. httpx has timeouts for single reads only, so it never cuts off a server that sends a
byte a second. Here every read and write gets the remaining time. Redirects are not followed, proxies of the
environment are not used, answers are not decompressed.
"""

from __future__ import annotations

import socket
import ssl
import threading
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from typing import Any

import httpcore

from rollout.core.text import json_text
from rollout.core.text.terminal import printable
from rollout.errors import AwayError, RemoteError

MOST_BYTES = 64 * 1024 * 1024
CONNECTIONS = 160
_AWAY = frozenset({408, 425, 429, *range(500, 600)}) - {501, 505}
"""Statuses after which a retry may succeed; proxies have some of their own, such as 520 to 530."""
_CLOSED = (ssl.SSLEOFError, ssl.SSLZeroReturnError)
"""What a load balancer without a back end does, or a server that restarts. It shows nothing about a certificate."""


@dataclass(frozen=True, slots=True)
class HttpAnswer:
    """``whole`` is false when the body exceeded the limit and was cut off."""

    status: int
    headers: Mapping[str, str]  # names in lower case
    body: bytes
    whole: bool = True


class Http:
    """HTTP client. Thread-safe; connections are kept. ``name``: the name that the server's certificate must have."""

    def __init__(self, context: ssl.SSLContext | None = None, name: str = "") -> None:
        self._pool = httpcore.ConnectionPool(
            ssl_context=context or ssl.create_default_context(),
            max_connections=CONNECTIONS,
            keepalive_expiry=30.0,
            network_backend=_Backend(),
        )
        self._extensions = {"sni_hostname": name} if name else {}

    def ask(
        self,
        method: str,
        url: str,
        *,
        timeout: float,
        headers: Mapping[str, str] | None = None,
        body: bytes = b"",
        most: int = MOST_BYTES,
    ) -> HttpAnswer:
        """``RemoteError`` when there is no answer in ``timeout`` seconds: ``AwayError`` where a retry may help."""
        _DEADLINE.at = time.monotonic() + timeout
        sent: dict[bytes | str, bytes | str] = {"Accept-Encoding": "identity", "User-Agent": "rollout"}
        sent.update((headers or {}).items())
        extensions = {**self._extensions, "timeout": {"pool": timeout}}
        try:
            with self._pool.stream(method, url, headers=sent, content=body or None, extensions=extensions) as response:
                headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in response.headers}
                if headers.get("content-encoding", "identity") != "identity":
                    raise RemoteError("bad-answer", "the answer is compressed, which was not asked for")
                content = bytearray()
                for chunk in response.iter_stream():
                    content += chunk
                    if len(content) > most:
                        return HttpAnswer(response.status, headers, bytes(content[:most]), whole=False)
                return HttpAnswer(response.status, headers, bytes(content))
        except Exception as exc:  # noqa: BLE001 - exceptions that HTTP does not cause are raised again
            raise _translated(exc, timeout) from None

    def close(self) -> None:
        self._pool.close()


def refusal(answer: HttpAnswer) -> RemoteError:
    """The message for an error answer; the body's first line is evidence."""
    message = printable(answer.body[:2000].decode("utf-8", "replace"), 200)
    kind = AwayError if answer.status in _AWAY else RemoteError
    return kind(f"http-{answer.status}", f"answered {answer.status}" + (f": {message}" if message else ""))


def _translated(exc: Exception, timeout: float) -> RemoteError:
    if isinstance(exc, RemoteError):
        return exc
    if isinstance(exc, httpcore.TimeoutException):
        return AwayError("deadline", f"no answer in {timeout:.3g} s")
    if isinstance(exc, (httpcore.NetworkError, OSError, ssl.SSLError)):
        reason = _root(exc)
        if isinstance(reason, _CLOSED):
            return AwayError("not-reached", "the connection was closed before TLS had begun")
        if isinstance(reason, ssl.SSLError):
            return RemoteError("tls", printable(getattr(reason, "verify_message", "") or str(reason), 200))
        return AwayError(
            "not-reached", printable(getattr(reason, "strerror", "") or str(reason) or "no connection", 200)
        )
    if isinstance(exc, httpcore.RemoteProtocolError):
        return AwayError("bad-answer", f"not a whole HTTP answer: {printable(str(exc), 200)}")
    if isinstance(exc, (httpcore.LocalProtocolError, httpcore.UnsupportedProtocol, ValueError)):
        return RemoteError("bad-request", printable(str(exc), 200))
    raise exc


def _root(exc: BaseException) -> BaseException:
    while exc.__cause__ is not None or exc.__context__ is not None:
        exc = exc.__cause__ or exc.__context__ or exc
    return exc


class _Deadline(threading.local):
    """The deadline of this thread's current request."""

    at: float = 0.0

    def left(self) -> float:
        left = self.at - time.monotonic()
        if left <= 0:
            raise httpcore.ReadTimeout("no time left")
        return left


_DEADLINE = _Deadline()


class _Stream(httpcore.NetworkStream):
    """A connection on which every step gets the remaining time instead of its own timeout."""

    def __init__(self, inner: httpcore.NetworkStream) -> None:
        self._inner = inner

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:  # noqa: ARG002 - httpcore's signature
        return self._inner.read(max_bytes, _DEADLINE.left())

    def write(self, buffer: bytes, timeout: float | None = None) -> None:  # noqa: ARG002 - httpcore's signature
        wire, rest = self._inner.get_extra_info("socket"), memoryview(buffer)
        try:
            while rest:  # one deadline for all of it: a server may read a byte a second
                wire.settimeout(_DEADLINE.left())
                rest = rest[wire.send(rest) :]
        except TimeoutError as error:
            raise httpcore.WriteTimeout from error
        except OSError as error:
            raise httpcore.WriteError from error

    def close(self) -> None:
        self._inner.close()

    def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,  # noqa: ARG002
    ) -> httpcore.NetworkStream:
        return _Stream(self._inner.start_tls(ssl_context, server_hostname, _DEADLINE.left()))

    def get_extra_info(self, info: str) -> Any:
        return self._inner.get_extra_info(info)


class _Backend(httpcore.NetworkBackend):
    def __init__(self) -> None:
        self._inner = httpcore.SyncBackend()

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ARG002
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.NetworkStream:
        addresses = _addresses(host, port)
        for number, (address, at) in enumerate(addresses, 1):
            share = _DEADLINE.left() / (len(addresses) + 1 - number)
            try:
                return _Stream(self._inner.connect_tcp(address, at, share, local_address, socket_options))
            except (httpcore.ConnectError, httpcore.ConnectTimeout):
                if number == len(addresses):
                    raise
        raise httpcore.ConnectError(f"{host} has no address")


def _addresses(host: str, port: int) -> list[tuple[str, int]]:
    """Of a name. getaddrinfo has no deadline, so it runs on a thread that may be abandoned."""
    box: SimpleQueue[list[Any] | Exception] = SimpleQueue()

    def look_up() -> None:
        try:
            box.put(socket.getaddrinfo(host, port, 0, socket.SOCK_STREAM))
        except (OSError, UnicodeError) as error:
            box.put(error)

    threading.Thread(target=look_up, name="name look-up", daemon=True).start()
    try:
        looked_up = box.get(timeout=_DEADLINE.left())
    except Empty:
        raise httpcore.ConnectTimeout from None
    if isinstance(looked_up, Exception):
        raise looked_up
    return [entry[4][:2] for entry in looked_up]


# Strict decoding of JSON from back ends. The reader of the answer limits its size.


def decoded(answer: HttpAnswer) -> Any:
    """The JSON in an answer's body, or ``RemoteError``."""
    if not answer.whole:
        raise RemoteError("too-large", f"the answer is larger than {len(answer.body) >> 20} MiB")
    try:
        return json_text.parse(answer.body)
    except ValueError:
        raise RemoteError("bad-answer", "the answer is not JSON") from None


def mapping(value: object, what: str) -> Mapping[str, Any]:
    """``value`` as a map; ``None``, as Go writes an empty one, is empty."""
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise RemoteError("bad-answer", f"{what} is not a map")
    return value


def listing(value: object, what: str) -> list[Any]:
    """``value`` as a list; ``None``, as Go writes an empty one, is empty."""
    if value is None:
        return []
    if not isinstance(value, list):
        raise RemoteError("bad-answer", f"{what} is not a list")
    return value


def text(value: object, what: str) -> str:
    """``value`` as text; ``None`` is empty."""
    if value is None:
        return ""
    if not isinstance(value, str):
        raise RemoteError("bad-answer", f"{what} is not text")
    return value


def pairs(document: Mapping[str, Any], key: str) -> tuple[tuple[str, str], ...]:
    """A map of texts below ``key``, in its order."""
    return tuple((name, text(value, name)) for name, value in mapping(document.get(key), key).items())
