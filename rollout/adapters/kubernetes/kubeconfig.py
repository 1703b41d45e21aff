"""Strict parsing of kubeconfig files: each entry is either supported or refused by name, never ignored.

Understood: contexts, ``certificate-authority(-data)``, ``tls-server-name``, client certificates and keys (file or data),
``token``, ``tokenFile``, ``exec`` plugins of ``client.authentication.k8s.io``. Refused: an unverified server, proxies,
passwords, ``auth-provider`` and impersonation. Relative paths are relative to the kubeconfig, as in kubectl.
"""

from __future__ import annotations

import base64
import binascii
import errno
import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from rollout.adapters.endpoints import LOOPBACK
from rollout.adapters.files import content_of
from rollout.adapters.owners import REMEDY, check_ours, others_hold
from rollout.core.reading.validation import Mistakes, kind_of, read_document
from rollout.core.text.suggest import did_you_mean
from rollout.core.text.terminal import printable
from rollout.core.text.yaml_source import Item
from rollout.errors import InputError, Problem

MOST_BYTES = 4 * 1024 * 1024
_FOR_PLUGINS = "client.authentication.k8s.io/exec"
"""The extension of a cluster that holds what plugins must know of it."""
_NOT_OURS = {
    "insecure-skip-tls-verify": "the server would not be verified; set its certificate authority instead",
    "proxy-url": "proxies are not supported",
}
_NOT_FOR_USERS = {
    "username": "passwords are not supported; no API server since 1.19 takes them",
    "password": "passwords are not supported; no API server since 1.19 takes them",
    "auth-provider": "auth providers are not supported; no client since 1.26 supports them, use `exec`",
    "as": "impersonation is not supported",
    "as-uid": "impersonation is not supported",
    "as-groups": "impersonation is not supported",
    "as-user-extra": "impersonation is not supported",
}


@dataclass(frozen=True, slots=True, repr=False)
class Plugin:
    """An ``exec`` entry: a program that prints a credential. ``cluster``: what it is told of the cluster (``None``: nothing).
    ``place`` is for messages.
    """

    command: str
    arguments: tuple[str, ...]
    environment: Mapping[str, str]
    api_version: str
    cluster: Mapping[str, Any] | None
    hint: str
    place: str


@dataclass(frozen=True, slots=True, repr=False)
class ApiAccess:
    """An API server's address and our identity to it. Never in a ``repr``: it contains secrets."""

    server: str
    tls_name: str
    authority: bytes  # PEM; b"": the system's
    certificate: bytes  # PEM
    key: bytes  # PEM
    token: str
    token_file: Path | None
    plugin: Plugin | None
    where: str  # "FILE, context NAME"
    context: str  # its name, also if it is the current one


def load_kubeconfig(path: str, context: str = "") -> ApiAccess:
    """The connection of ``context`` (``""``: the current one), or ``InputError`` with every mistake."""
    file = Path(os.path.expanduser(path))  # noqa: PTH111 - `~` of an unknown user stays as written
    root, mistakes = read_document(_text(file, path), path)
    reading = _Reading(root, mistakes, file.absolute().parent, path)
    connection = reading.connection(context)
    mistakes.raise_any()
    return connection


def _text(file: Path, path: str) -> str:
    check_ours(file)
    try:
        return content_of(file, MOST_BYTES).decode("utf-8")
    except OSError as exc:
        if exc.errno == errno.EFBIG:
            raise InputError(
                (Problem("kubeconfig-too-large", f"{path} is larger than {MOST_BYTES >> 20} MiB"),)
            ) from None
        raise InputError((Problem("no-kubeconfig", f"{path}: {exc.strerror}"),)) from None
    except UnicodeDecodeError:
        raise InputError((Problem("no-kubeconfig", f"{path} is not text"),)) from None


class _Reading:
    def __init__(self, root: Item, mistakes: Mistakes, folder: Path, path: str) -> None:
        self._root = root
        self._mistakes = mistakes
        self._folder = folder
        self._path = path

    def connection(self, wanted: str) -> ApiAccess:
        name = wanted or self._word(self._root, "current-context")
        if not name:
            self._wrong(self._root, "no-context", "the kubeconfig has no current context", "name one: `context`")
        context = self._named("context", name)
        cluster = self._named("cluster", self._word(context, "cluster"))
        user = self._named("user", self._word(context, "user"))
        self._refuse(cluster, _NOT_OURS)
        self._refuse(user, _NOT_FOR_USERS)
        server = self._server(cluster)
        token_file = self._word(user, "tokenFile")
        authority = self._content(cluster, "certificate-authority")
        return ApiAccess(
            server=server,
            tls_name=self._word(cluster, "tls-server-name"),
            authority=authority,
            certificate=self._content(user, "client-certificate"),
            key=self._content(user, "client-key"),
            token=self._word(user, "token"),
            token_file=self._folder / token_file if token_file else None,
            plugin=self._plugin(user, self._for_plugins(cluster, server, authority)),
            where=f"{self._path}, context {printable(name, 80)}",
            context=name,
        )

    def _named(self, kind: str, name: str) -> Item:
        """The entry called ``name`` in the list of ``clusters``, ``contexts`` or ``users``."""
        known: dict[str, Item] = {}
        entry = self._root.entries().get(f"{kind}s")
        for item in entry.item.value if entry is not None and isinstance(entry.item.value, list) else []:
            body = item.entries().get(kind)
            called = self._word(item, "name")
            if called in known:
                message = f"two {kind}s have the name `{printable(called, 80)}`, and kubectl reads no such file"
                self._mistakes.add(item, "kubeconfig-unsupported", message)
            known.setdefault(called, body.item if body else item)
        if name not in known:
            message = f"there is no {kind} `{printable(name, 80)}`"
            self._wrong(entry.item if entry else self._root, f"no-{kind}", message, did_you_mean(name, known))
        return known[name]

    def _refuse(self, item: Item, words: Mapping[str, str]) -> None:
        for key, why in words.items():
            entry = item.entries().get(key)
            if entry is not None and entry.item.plain():
                self._mistakes.add(entry, "kubeconfig-unsupported", f"`{key}`: {why}")

    def _server(self, cluster: Item) -> str:
        server = self._word(cluster, "server")
        try:
            parts = urlsplit(server)
            known = bool(parts.hostname) and parts.port is not False and parts.username is None and not parts.query
        except ValueError:
            known = False
        if not known or parts.scheme not in ("https", "http"):
            shown = (
                "is not an address, or contains a user"
                if "@" in server
                else f"is not an address: `{printable(server, 80)}`"
            )
            self._wrong(cluster, "bad-server", f"`server` {shown}")
        if parts.scheme == "http" and parts.hostname not in LOOPBACK:
            self._wrong(cluster, "bad-server", "`server` is not https: credentials would be sent unencrypted")
        return server.rstrip("/")

    def _content(self, item: Item, key: str) -> bytes:
        """The content of ``KEY-data``, else of the file that ``KEY`` names. As for kubectl, base64 may have several lines."""
        data, name = self._word(item, f"{key}-data"), self._word(item, key)
        if data:
            try:
                return base64.b64decode(data.replace("\r", "").replace("\n", ""), validate=True)
            except (binascii.Error, ValueError):
                self._wrong(item.entries()[f"{key}-data"].item, "bad-base64", f"`{key}-data` is not base64")
        if not name:
            return b""
        self._ours(item.entries()[key].item, self._folder / name)
        try:
            content = content_of(self._folder / name, MOST_BYTES)
        except OSError as exc:
            self._mistakes.add(item.entries()[key].item, "file-missing", f"`{key}`: {name}: {exc.strerror}")
            return b""
        if not content:  # without this the system's authorities would count, or no certificate would be shown
            self._mistakes.add(item.entries()[key].item, "bad-certificate", f"`{key}`: {name} is empty")
        return content

    def _ours(self, item: Item, path: Path) -> None:
        """Refuse a file that another user decides about: it has a credential, or is a program that prints one."""
        with suppress(OSError):
            if why := others_hold(path):
                self._mistakes.add(item, "file-not-yours", why, REMEDY)

    def _for_plugins(self, cluster: Item, server: str, authority: bytes) -> Mapping[str, Any]:
        """What a plugin with ``provideClusterInfo`` is told (``Cluster`` of client.authentication.k8s.io/v1)."""
        told: dict[str, Any] = {"server": server}
        for key in ("tls-server-name", "disable-compression"):
            if value := self._plain(cluster, key):
                told[key] = value
        if authority:
            told["certificate-authority-data"] = base64.b64encode(authority).decode()
        extensions = self._plain(cluster, "extensions")
        for each in extensions if isinstance(extensions, list) else []:
            if isinstance(each, dict) and each.get("name") == _FOR_PLUGINS:
                told["config"] = each.get("extension")
        return told

    def _plugin(self, user: Item, cluster: Mapping[str, Any]) -> Plugin | None:
        entry = user.entries().get("exec")
        if entry is None or entry.item.value is None:
            return None
        item = entry.item
        version = self._word(item, "apiVersion")
        if version not in ("client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1"):
            self._mistakes.add(item, "kubeconfig-unsupported", f"`exec` with apiVersion `{printable(version, 60)}`")
        if self._word(item, "interactiveMode") == "Always":
            self._mistakes.add(item, "kubeconfig-unsupported", "`exec` that needs a terminal (interactiveMode: Always)")
        command = self._word(item, "command")
        if not command:
            self._mistakes.add(item, "missing-key", "`exec` has no `command`")
        if "/" in command:
            self._ours(item, self._folder / command)
        entry = item.entries().get("env")
        pairs = entry.item.value if entry is not None and isinstance(entry.item.value, list) else []
        return Plugin(
            command=str(self._folder / command) if "/" in command else command,
            arguments=tuple(self._words(item, "args")),
            environment={self._word(pair, "name"): self._word(pair, "value") for pair in pairs},
            api_version=version,
            cluster=cluster if self._plain(item, "provideClusterInfo") else None,
            hint=printable(self._word(item, "installHint"), 200),
            place=str(self._mistakes.place(item)),
        )

    def _words(self, item: Item, key: str) -> list[str]:
        words = self._plain(item, key) or []
        if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
            self._wrong(item.entries()[key].item, "wrong-type", f"`{key}` must be a list of texts")
        return [str(word) for word in words]

    def _plain(self, item: Item, key: str) -> Any:
        entry = item.entries().get(key)
        return entry.item.plain() if entry else None

    def _word(self, item: Item, key: str) -> str:
        value = self._plain(item, key)
        if value is None:
            return ""
        if not isinstance(value, str):
            self._wrong(item.entries()[key].item, "wrong-type", f"`{key}` must be text, not {kind_of(value)}")
        return str(value)

    def _wrong(self, where: Item, reference: str, message: str, hint: str = "") -> None:
        """Parsing cannot continue: raise this with all earlier findings."""
        self._mistakes.add(where, reference, message, hint)
        self._mistakes.raise_any()
