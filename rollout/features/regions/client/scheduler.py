"""The connection to a Dask scheduler. Only this module imports Dask.

A call runs on one named worker or not at all, with ``Client.run``: it is a message, not a task of Dask. So Dask keeps
no result and never moves or repeats it. If its scheduler or worker does not answer, the call ends at its deadline.

What peers send is data: from the first connection on, Dask loads no code in this process, and prints nothing for a peer.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout
from contextlib import suppress
from functools import cache, partial
from ipaddress import ip_address
from threading import Lock, Thread
from time import monotonic
from typing import Any, TypeVar

import distributed.client
import distributed.protocol.pickle
from dask.config import get as dask_setting
from distributed import Client, Security, Worker

from rollout.core.text.terminal import printable
from rollout.errors import RemoteError, UsageError
from rollout.features.regions.client.certificates import CertificateFiles
from rollout.features.regions.client.plain_data import stand_in
from rollout.features.regions.client.workers import CallLostError

Result = TypeVar("Result")

CONNECT_SECONDS = 10.0
LOOK_TIMEOUT = 5.0
"""Seconds for the list of workers: a scheduler that hangs must not delay those that wait for the list."""

RECONNECT_SECONDS = 3.0
AGAIN_SECONDS = 15.0
"""Seconds between two attempts to reach a scheduler that is away."""

SETTINGS: Mapping[str, object] = {
    "distributed.scheduler.allowed-failures": 0,
    "distributed.scheduler.work-stealing": False,
}
"""What the scheduler must be started with."""

LINE_OF_A_CALL = "Run out-of-band function"
VARIABLES = "DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES=0 DASK_DISTRIBUTED__SCHEDULER__WORK_STEALING=False"


def read_plain_data_only() -> None:
    """From now on this process runs no pickle that a peer has sent. Not for workers: Dask sends them their functions as pickles."""
    plain = stand_in()
    for module in (distributed.protocol.pickle, distributed.client):
        vars(module)["pickle"] = plain


class _QuietClient(Client):
    """It subscribes to no events: Dask would print what a peer sends on the operator's terminal, escapes included."""

    def subscribe_topic(self, _topic: str, _handler: object) -> None:
        """Dask subscribes each client to prints and warnings."""

    def __del__(self) -> None:
        with suppress(Exception):  # a client that has refused what its scheduler sent would raise that again
            super().__del__()  # type: ignore[no-untyped-call]


class DaskScheduler:
    """``certificates``: required except on loopback. Thread-safe. The constructor raises ``UsageError``."""

    def __init__(self, address: str, certificates: CertificateFiles | None) -> None:
        _check_address(address, certificates)
        read_plain_data_only()
        logging.getLogger("distributed").setLevel(logging.CRITICAL)
        self._address = address
        self._security: Any = None
        if certificates is not None:
            certificates.check()
            self._security = Security(  # type: ignore[no-untyped-call]
                tls_ca_file=certificates.authority,
                tls_client_cert=certificates.certificate,
                tls_client_key=certificates.key,
                require_encryption=True,
            )
        self._lock = Lock()
        self._tried = monotonic()
        try:
            self._client = self._connected(CONNECT_SECONDS)
            settings = self._client.run_on_scheduler(
                scheduler_settings, tuple(SETTINGS), callback_timeout=CONNECT_SECONDS
            )
        except Exception as error:  # noqa: BLE001 - whatever Dask and its transport raise about another address
            message = (
                f"{address} did not answer as a Dask scheduler: {type(error).__name__}: {printable(str(error), 200)}"
            )
            raise UsageError("scheduler-unusable", message, hint="check --scheduler and --certificates") from None
        wrong = [
            f"{name} is {settings[name]}, not {value}" for name, value in SETTINGS.items() if settings[name] != value
        ]
        if wrong:
            self.close()
            raise UsageError(
                "scheduler-settings",
                f"nothing was touched: the scheduler could repeat or move tasks: {'; '.join(wrong)}",
                hint=f"start it with {VARIABLES}",
            )

    def workers(self) -> Mapping[str, str]:
        """Name → address of each worker. Empty while the scheduler is away."""
        client = self._alive()
        if client is None:
            return {}
        with suppress(Exception):  # Dask raises what its transport raises; a scheduler that is away has no workers
            identity = client.sync(client.scheduler.identity, n_workers=-1, callback_timeout=LOOK_TIMEOUT)["workers"]
            return {str(each["name"]): address for address, each in identity.items()}
        return {}

    def call(self, function: Callable[..., bytes], worker: str, data: tuple[bytes, ...], seconds: float) -> bytes:
        """The result of a function on the worker at this address. Nobody else carries it out.

        ``RemoteError``: it was not submitted. ``CallLostError``: it was, and its result did not arrive in time.
        """
        client = self._alive()
        if client is None:
            raise RemoteError("scheduler-away", "the scheduler does not answer")
        try:
            answers = client.run(in_a_thread, function, *data, workers=[worker], callback_timeout=seconds)
            result = answers[worker]
        except Exception as error:  # noqa: BLE001 - whatever Dask, its transport and the function raise
            raise CallLostError(f"{type(error).__name__}: {printable(str(error), 200)}") from None
        if not isinstance(result, bytes):
            raise CallLostError("the result is not bytes")
        return result

    def close(self) -> None:
        with suppress(Exception):  # a scheduler that is gone needs no goodbye
            self._client.close(timeout=1)

    def _connected(self, seconds: float) -> Any:
        """A client, or ``TimeoutError``: Dask waits for ever for a scheduler that accepts and then says nothing."""
        made = _aside(
            partial(_QuietClient, self._address, security=self._security, timeout=seconds, set_as_default=False)
        )
        try:
            return made.result(seconds)
        except FutureTimeout:
            made.add_done_callback(_close_late)
            raise TimeoutError(f"no answer in {seconds:g} s") from None

    def _alive(self) -> Any | None:
        """The client; a new one if the old one gave up. ``None``: the scheduler is away."""
        if self._client.status == "running":
            return self._client
        with self._lock:
            if self._client.status == "closed" and monotonic() - self._tried > AGAIN_SECONDS:
                self._tried = monotonic()
                with suppress(Exception):  # it is still away
                    self._client = self._connected(RECONNECT_SECONDS)
        return self._client if self._client.status == "running" else None


async def in_a_thread(function: Callable[..., bytes], *data: bytes, dask_worker: Worker) -> bytes:
    """Runs on a worker: the function, in a thread beside the loop that carries its messages. Dask gives ``dask_worker``."""
    _prepare(dask_worker)
    return await asyncio.wrap_future(_aside(partial(function, *data)))


def _aside(function: Callable[[], Result]) -> Future[Result]:
    """The result of a function in a thread that keeps no process alive."""
    result: Future[Result] = Future()
    result.set_running_or_notify_cancel()

    def run() -> None:
        try:
            result.set_result(function())
        except Exception as error:  # noqa: BLE001 - it is raised where the result is read
            result.set_exception(error)

    Thread(target=run, daemon=True).start()
    return result


def _close_late(made: Future[Any]) -> None:
    """Nobody waits for this client any more."""
    with suppress(Exception):  # it could not connect, or its scheduler is gone
        made.result().close(timeout=1)


@cache
def _prepare(worker: Worker) -> None:
    """End the profiler of a worker, and the line in its log for each call.

    Dask's profiler looks at all threads each 10 ms. Python 3.11 before 3.11.9 can hang in that for ever.
    A garbage collection in the look releases the interpreter's lock, and a thread that starts then waits for the look
    (python/cpython#106883). It also costs CPU for each thread.
    """
    logging.getLogger("distributed.worker").addFilter(lambda line: not line.getMessage().startswith(LINE_OF_A_CALL))
    for name in ("profile", "profile-cycle"):
        if name in worker.periodic_callbacks:
            worker.periodic_callbacks[name].stop()


def scheduler_settings(names: tuple[str, ...]) -> dict[str, object]:
    """Runs on the scheduler: the settings that it was started with."""
    return {name: dask_setting(name) for name in names}


def _check_address(address: str, certificates: CertificateFiles | None) -> None:
    scheme, found, rest = address.partition("://")
    host = rest.rpartition(":")[0].strip("[]")
    if not found or scheme not in ("tcp", "tls") or not host:
        hint = "such as tls://scheduler.example.net:8786"
        raise UsageError("scheduler-address", f"{printable(address, 100)} is not the address of a scheduler", hint=hint)
    if scheme == "tls" and certificates is None:
        raise UsageError("engine-needs-tls", f"{address} needs certificates", hint="--certificates FOLDER")
    if scheme == "tcp" and not _is_loopback(host):
        message = f"nothing was touched: {printable(address, 100)} is not on this machine and not protected by TLS"
        raise UsageError("engine-needs-tls", message, hint="use tls:// and --certificates; `rollout regions certs`")


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
