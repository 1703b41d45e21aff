"""A kubelet's start as a function: version, arguments and files in; journal lines and outcome out.

``kubelet.configuration``, which is compared with real kubelets, decides whether it starts and with which values. Here are
the node's files, and what a kubelet prints.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from rollout.core.model.settings import Value
from rollout.kubelet import fields, versions
from rollout.kubelet.configuration.drop_ins import in_order
from rollout.kubelet.configuration.flags import FlagError, parse
from rollout.kubelet.configuration.go_values import quoted
from rollout.kubelet.configuration.outcome import File, KubeletOutcome, MessageLevel, Sources
from rollout.kubelet.configuration.startup import outcome
from rollout.kubelet.values import value_at
from rollout.kubelet.versions import Version
from rollout.lab.units import Tree

START_UP = 0.3
"""Seconds from start until /healthz answers."""


@dataclass(frozen=True, slots=True)
class ProgramStart:
    """The outcome of one start of a program. ``status`` is ``None`` if it stays up, else its exit status after ``life``
    seconds; until then its unit is ``active``. ``values`` are a kubelet's configuration, as ``/configz`` shows it.
    """

    journal: tuple[str, ...] = ()
    status: int | None = None
    healthz_port: int = 0
    fingerprint: str = ""
    life: float = 0.05
    values: Mapping[str, object] = field(default_factory=dict)


def start(
    version: str, arguments: tuple[str, ...], tree: Tree, variables: Mapping[str, str] | None = None
) -> ProgramStart:
    """Start the kubelet ``version`` with a command line (the program's own name first) on a node's files, with an environment."""
    known = _as_known(version)
    minor, words = known.minor, arguments[1:]
    fingerprint = hashlib.sha256("\0".join(arguments).encode())
    try:
        sources = _sources(words, minor, tree, variables or {})
    except FileNotFoundError as error:
        return ProgramStart((_final_line(minor, str(error)),), _status(minor), 0, fingerprint.hexdigest())
    for file in (sources.config, *(sources.drop_ins or ())):
        fingerprint.update(file.content if file else b"")
    begun = outcome(known, sources)
    if not begun.starts:
        messages = tuple(_final_line(minor, text) for text in _texts(begun, MessageLevel.FATAL))
        return ProgramStart(messages, _status(minor), 0, fingerprint.hexdigest())
    lacking = _absent(begun.effective, parse(words, minor).text("--kubeconfig"), tree)
    if lacking:
        return ProgramStart((_final_line(minor, lacking),), _status(minor), 0, fingerprint.hexdigest())
    journal = (*_lenient(minor, _texts(begun, MessageLevel.WARNING)), *_greeting(version, minor))
    port = int(str(begun.effective.get("healthzPort", 0)))
    return ProgramStart(journal, None, port, fingerprint.hexdigest(), values=begun.effective)


def minor_of(version: str) -> int:
    """``v1.20.15`` or ``1.20.15`` → 20."""
    return int(version.lstrip("v").split(".")[1])


def _as_known(version: str) -> Version:
    """A kubelet newer than the tables behaves like the newest known one."""
    newest = fields.known_minors().stop - 1
    return versions.known(version if minor_of(version) <= newest else f"1.{newest}.0")


def _sources(words: tuple[str, ...], minor: int, tree: Tree, variables: Mapping[str, str]) -> Sources:
    """What the command line names. ``FileNotFoundError`` has the kubelet's own message."""
    sources = Sources(flags=words, environment=variables)
    try:
        flags = parse(words, minor)
    except FlagError:
        return sources  # it stops before it reads a file
    if path := flags.text("--config"):
        sources = replace(sources, config=File(path, _config(tree, path)))
    if folder := flags.text("--config-dir"):
        if not tree.is_folder(folder):
            raise FileNotFoundError(f"failed to merge kubelet configs: lstat {folder}: no such file or directory")
        contents = {path: tree.read(f"{folder}/{path}") or b"" for path in in_order(_below(tree, folder))}
        sources = replace(sources, drop_ins=tuple(File(f"{folder}/{path}", text) for path, text in contents.items()))
    return sources


def _config(tree: Tree, path: str) -> bytes:
    content = tree.read(path)
    if content is None:
        raise FileNotFoundError(
            f"failed to load Kubelet config file {path}, error failed to read kubelet config file"
            f' "{path}", error: open {path}: no such file or directory'
        )
    return content


def _below(tree: Tree, folder: str, inside: str = "") -> Iterator[str]:
    for name in tree.names(folder):
        if tree.is_folder(f"{folder}/{name}"):
            yield from _below(tree, f"{folder}/{name}", f"{inside}{name}/")
        else:
            yield f"{inside}{name}"


def _absent(values: Mapping[str, Value], kubeconfig: str, tree: Tree) -> str:
    """The kubelet's last words about a file that it needs and that is absent; ``""``: none is."""
    named = {
        "unable to load client CA file": value_at(values, "authentication.x509.clientCAFile"),
        "failed to initialize TLS": values.get("tlsCertFile"),
        "failed to initialize TLS key": values.get("tlsPrivateKeyFile"),
        "invalid kubeconfig": kubeconfig,
    }
    for text, path in named.items():
        own = path in ("/var/lib/kubelet/pki/kubelet.crt", "/var/lib/kubelet/pki/kubelet.key")  # it makes these
        if isinstance(path, str) and path and not own and tree.read(path) is None:
            return f"failed to run Kubelet: {text}: open {path}: no such file or directory"
    return ""


def _texts(begun: KubeletOutcome, level: MessageLevel) -> tuple[str, ...]:
    return tuple(message.text for message in begun.messages if message.level is level)


def _status(minor: int) -> int:
    return 255 if minor < 23 else 1


def _final_line(minor: int, message: str) -> str:
    if minor < 23:
        return f"F1120 09:00:00.000000    4242 server.go:156] {message}"
    if minor < 26:
        return f"Error: {message}"
    return f'E1120 09:00:00.000000    4242 run.go:72] "command failed" err="{message}"'


def _lenient(minor: int, warnings: tuple[str, ...]) -> tuple[str, ...]:
    if not warnings:
        return ()
    head, _, first = warnings[0].partition(": ")
    error = ", ".join((first, *(warning.rpartition("error: ")[2] for warning in warnings[1:])))
    if minor < 21:
        return (f"W1120 09:00:00.000000    4242 codec.go:118] {head}: {error}",)
    return (f"I1120 09:00:00.000000    4242 codec.go:102] {quoted(head)} err={quoted(error)}",)


def _greeting(version: str, minor: int) -> tuple[str, ...]:
    bare = version.lstrip("v")
    if minor < 21:
        return (f"I1120 09:00:00.000000    4242 server.go:416] Version: v{bare}",)
    return (f'I1120 09:00:00.000000    4242 server.go:440] "Kubelet version" kubeletVersion="v{bare}"',)
