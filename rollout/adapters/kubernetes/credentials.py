"""Our identity to the API server: a token, a client certificate, or the output of an ``exec`` plugin."""

from __future__ import annotations

import json
import os
import signal
import ssl
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rollout.adapters.endpoints import bearer
from rollout.adapters.kubernetes.kubeconfig import ApiAccess, Plugin
from rollout.core.text import json_text
from rollout.core.text.terminal import printable
from rollout.errors import AwayError, InputError, Problem, RemoteError

# The credential of an ``exec`` plugin, for many callers: the plugin runs once for all of them, on its own thread.
#
# A hanging plugin delays no caller beyond the caller's own deadline. A failure is shared for some seconds, so that
# hundreds of nodes do not run the plugin one after the other. A valid credential is used while a new one is requested.


EARLY = 30.0
"""Seconds before its end at which a credential is replaced."""

SHARED = 5.0
"""Seconds for which all callers share a failure."""


class PluginCredentials:
    """Thread-safe. ``ask`` runs the plugin with a time limit and raises ``RemoteError`` when it fails."""

    def __init__(self, ask: Callable[[], Credential]) -> None:
        self._ask = ask
        self._lock = threading.Lock()
        self._credential: Credential | None = None
        self._flight: Future[Credential] | None = None
        self._failed_at = 0.0

    def get(self, timeout: float) -> Credential:
        """A valid credential, in at most ``timeout`` seconds."""
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
        """The server refused the credential: it may have been revoked early."""
        with self._lock:
            if self._credential is not None and self._credential.token == token:
                self._credential = None

    def _under_way(self) -> Future[Credential]:
        """The run of the plugin to wait for: the current one, one that failed just now, or a new one."""
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
            credentials = self._ask()
        except Exception as error:  # noqa: BLE001 - raised again in every waiting caller
            with self._lock:
                self._failed_at = time.monotonic()
                flight.set_exception(error)
            return
        with self._lock:
            self._credential = credentials
            flight.set_result(credentials)


PLUGIN_SECONDS = 30.0
MOST_BYTES = 1024 * 1024


@dataclass(frozen=True, slots=True, repr=False)
class Credential:
    """A plugin's output. ``until``: when to ask again, seconds since 1970 (``None``: when it is refused)."""

    token: str
    certificate: bytes
    key: bytes
    until: float | None


def context_for(connection: ApiAccess, certificate: bytes, key: bytes) -> ssl.SSLContext:
    """Verifies the server by the kubeconfig's authority; presents the client certificate, if any."""
    try:
        authority = connection.authority.decode("ascii", "backslashreplace") if connection.authority else None
        context = ssl.create_default_context(cadata=authority)  # text beside certificates is in any language
    except (ssl.SSLError, ValueError):
        raise _unusable(connection, "the certificate authority is not a PEM certificate") from None
    if certificate or key:
        _bear(connection, context, certificate, key)
    return context


def _bear(connection: ApiAccess, context: ssl.SSLContext, certificate: bytes, key: bytes) -> None:
    """OpenSSL reads only files: the pair is written to a temporary private file (0600)."""
    with tempfile.TemporaryDirectory(prefix="rollout-") as folder:
        file = Path(folder) / "pair.pem"
        file.touch(mode=0o600)
        file.write_bytes(certificate + b"\n" + key)
        try:
            context.load_cert_chain(file, password=lambda: b"")
        except (ssl.SSLError, OSError, ValueError):
            raise _unusable(connection, "the client certificate and key are not a matching PEM pair") from None


def _unusable(connection: ApiAccess, message: str) -> InputError:
    return InputError((Problem("bad-certificate", f"{connection.where}: {message}"),))


def ask_plugin(plugin: Plugin) -> Credential:
    """Run the plugin with limits and parse its output strictly. No message contains the output."""
    spec: dict[str, Any] = {"interactive": False}
    if plugin.cluster is not None:
        spec["cluster"] = plugin.cluster
    environment = {
        **os.environ,
        **plugin.environment,
        "KUBERNETES_EXEC_INFO": json.dumps({"apiVersion": plugin.api_version, "kind": "ExecCredential", "spec": spec}),
    }
    try:
        process = subprocess.Popen(
            [plugin.command, *plugin.arguments],
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
    except (OSError, ValueError) as exc:  # `ValueError`: a name in its environment that cannot be one
        raise _failed(plugin, f"could not be run: {getattr(exc, 'strerror', exc)}") from None
    try:
        output, errors = process.communicate(timeout=PLUGIN_SECONDS)
    except subprocess.TimeoutExpired:
        _kill(process)
        raise _failed(plugin, f"did not end in {PLUGIN_SECONDS:g} s", AwayError) from None
    if process.returncode != 0:
        message = printable(errors[-2000:].decode("utf-8", "replace"), 200)
        raise _failed(plugin, f"ended with {process.returncode}" + (f": {message}" if message else ""), AwayError)
    return _credential(plugin, output)


def _kill(process: subprocess.Popen[bytes]) -> None:
    """Kills the plugin's whole session. A process outside it may hold the pipes open; those are not waited for."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    for pipe in (process.stdout, process.stderr):
        if pipe is not None:
            pipe.close()


def _credential(plugin: Plugin, output: bytes) -> Credential:
    try:
        if len(output) > MOST_BYTES:
            raise ValueError("too much")
        document = json_text.parse(output)
        if (document["kind"], document["apiVersion"]) != ("ExecCredential", plugin.api_version):
            raise ValueError("another kind")
        status = document["status"]
        token, certificate, key, until = (
            status.get(name) or ""
            for name in ("token", "clientCertificateData", "clientKeyData", "expirationTimestamp")
        )
        if not (token or (certificate and key)):
            raise ValueError("no credential")
        moment = datetime.fromisoformat(until).astimezone(UTC).timestamp() if until else None
        checked = bearer(token, "its output") if token else ""
        return Credential(checked, certificate.encode("ascii"), key.encode("ascii"), moment)
    except (ValueError, KeyError, TypeError, AttributeError):
        raise _failed(plugin, f"printed no {plugin.api_version} ExecCredential") from None


def _failed(plugin: Plugin, what: str, kind: type[RemoteError] = RemoteError) -> RemoteError:
    """``kind``: ``AwayError`` where the next run may give one: a plugin asks servers of its own."""
    name = printable(plugin.command.rpartition("/")[2], 60)
    return kind("exec-plugin", f"{plugin.place}: the plugin {name} {what}", hint=plugin.hint)
