"""The credential of an ``exec`` plugin, for many callers: the plugin is run once for all of them, on a thread of its own.

A plugin that hangs holds up nobody longer than his own deadline. Its failure is shared for some seconds, so that hundreds of
nodes do not run it one after the other; a credential that is still valid is used while a new one is asked for.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future

from rollout.adapters.kubernetes.credentials import Credential
from rollout.errors import AwayError

EARLY = 30.0
"""Seconds before its end at which a credential is replaced."""

SHARED = 5.0
"""Seconds for which a failure is everybody's."""


class PluginCredentials:
    """Thread-safe. ``ask`` runs the plugin, bounded, and raises ``RemoteError`` where it fails."""

    def __init__(self, ask: Callable[[], Credential]) -> None:
        self._ask = ask
        self._lock = threading.Lock()
        self._credential: Credential | None = None
        self._flight: Future[Credential] | None = None
        self._failed_at = 0.0

    def get(self, timeout: float) -> Credential:
        """One that is valid, in at most ``timeout`` seconds."""
        with self._lock:
            known, now = self._credential, time.time()
            if known is not None and (known.until is None or now < known.until - EARLY):
                return known
            flight = self._under_way()
            if known is not None and known.until is not None and now < known.until:
                return known
        try:
            return flight.result(timeout)
        except TimeoutError:
            raise AwayError("exec-plugin", f"the plugin printed no credential in {timeout:.3g} s") from None

    def forget(self, token: str) -> None:
        """The server refused it: it may have been withdrawn before its time."""
        with self._lock:
            if self._credential is not None and self._credential.token == token:
                self._credential = None

    def _under_way(self) -> Future[Credential]:
        """The run of the plugin to wait for: the one that goes on, one that failed just now, or a new one."""
        flight = self._flight
        if flight is not None and not flight.done():
            return flight
        if flight is not None and flight.exception() and time.monotonic() - self._failed_at < SHARED:
            return flight
        self._flight = flight = Future()
        threading.Thread(target=self._run, args=(flight,), name="exec plugin", daemon=True).start()
        return flight

    def _run(self, flight: Future[Credential]) -> None:
        try:
            found = self._ask()
        except Exception as error:  # noqa: BLE001 - raised again by whoever waits for it
            with self._lock:
                self._failed_at = time.monotonic()
                flight.set_exception(error)
            return
        with self._lock:
            self._credential = found
            flight.set_result(found)
