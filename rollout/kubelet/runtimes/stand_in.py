"""The form in which each runtime's package describes its stand-in in the lab: data, and functions of a node's files.

A stand-in exits with the same errors as the real program. These are a file that cannot be parsed, a value of a wrong
type, and an unknown flag or directive.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping
from dataclasses import field
from functools import lru_cache
from typing import Protocol

from rollout.core.model.frozen import dataclass
from rollout.kubelet.configuration.go_values import GoValueError, duration

IMAGE = "registry.example/team/large:1"
"""The image of a pull in flight."""
LOGRUS = 'time="2026-11-20T09:00:00.000000000Z" level='
"""The beginning of a line as logrus writes it."""


class FileTree(Protocol):
    """A node's files under the node's own paths."""

    def read(self, path: str) -> bytes | None:
        """The bytes of a regular file, or ``None``."""

    def names(self, path: str) -> tuple[str, ...]:
        """The sorted names in a directory; empty when the directory does not exist."""


class RuntimeExitError(Exception):
    """The runtime logs this and exits."""


@dataclass(frozen=True, slots=True)
class PullLines:
    """A daemon's journal lines about the pull of ``IMAGE``, and the place of its layer. ``cancelled``: the kubelet ended."""

    begins: str = ""
    ends: str = ""
    cancelled: str = ""
    layer: str = ""


@dataclass(frozen=True, slots=True)
class DaemonStandIn:
    """A daemon. ``unit_file``: the file of its package; ``{pause}`` in it is ``restart_sec``, or less in a fast lab.

    ``read`` reads its files at a start, for a version (``""``: any) and a command line, or raises ``RuntimeExitError``.
    ``reload`` is its log line after a SIGHUP, or raises the error that it logs then; ``None``: it does not handle the
    signal and dies. ``over``: units below it, which do not pull for the kubelet then.
    """

    unit_file: str
    restart_sec: float
    read: Callable[[str, tuple[str, ...], FileTree], None]
    pull: PullLines
    reload: Callable[[tuple[str, ...], FileTree], str] | None = None
    over: tuple[str, ...] = ()

    @property
    def program(self) -> str:
        """The path of the program that the unit runs."""
        return self.unit_file.partition("\nExecStart=")[2].split()[0]


def _none(_version: str) -> Mapping[str, str]:
    return {}


@dataclass(frozen=True, slots=True)
class RuntimeStandIn:
    """A runtime on a node. ``programs``: each with the version that it prints, for a version of the runtime.

    ``version``: of a node without a version label, ``""`` if its versions are fixed. ``later``: minor of the kubelet →
    the version from that minor on. ``files``: its own configuration
    as on most nodes. ``folders``: for layers of a running pull. ``scheme``: its name in container ids. ``reports``:
    the Node shows the version of this program. ``kubelet_flags``: those that kubeadm writes for it, and
    ``extra_arguments`` those of the site. ``endpoint``: the kubelet's, if it is not the description's.
    """

    programs: Callable[[str], Mapping[str, str]] = _none
    files: Callable[[str], Mapping[str, str]] = _none
    scheme: str = ""
    reports: str = ""
    version: str = ""
    folders: tuple[str, ...] = ()
    endpoint: str = ""
    kubelet_flags: tuple[str, ...] = ()
    extra_arguments: tuple[str, ...] = ()
    later: Mapping[int, str] = field(default_factory=dict)

    def version_beside(self, minor: int) -> str:
        """That of a node without a version label and with a kubelet of this minor."""
        return next((version for since, version in self.later.items() if minor >= since), self.version)


# What the programs have in common when they read their files.


@dataclass(frozen=True, slots=True)
class ReadKeys:
    """The keys with a text and those with a number; the values of others are not checked."""

    texts: frozenset[str] = field(default_factory=frozenset)
    numbers: frozenset[str] = field(default_factory=frozenset)

    def check(self, document: Mapping[str, object], head: str = "") -> None:
        """Raises ``RuntimeExitError`` with ``head`` before it for a value of a wrong type, in any table."""
        for name, value in document.items():
            if isinstance(value, dict):
                self.check(value, head)
            elif (name in self.texts and not isinstance(value, str)) or (
                name in self.numbers and type(value) is not int
            ):
                raise RuntimeExitError(f"{head}incompatible types: {name} is a {type(value).__name__}")


def toml(tree: FileTree, path: str, keys: ReadKeys) -> dict[str, object]:
    """The file, or ``RuntimeExitError``."""
    content = tree.read(path)
    if content is None:
        raise RuntimeExitError(f"failed to load TOML: {path}: no such file or directory")
    document, problem = _parsed(content, keys)
    if problem:
        raise RuntimeExitError(f"failed to load TOML: {path}: {problem}")
    return document


@lru_cache(maxsize=128)
def _parsed(content: bytes, keys: ReadKeys) -> tuple[dict[str, object], str]:
    """The document, or its error. Cached: thousands of nodes have the same few files."""
    try:
        document = tomllib.loads(content.decode())
        keys.check(document)
    except (ValueError, RuntimeExitError) as error:
        return {}, str(error)
    return document, ""


def duration_problem(text: str) -> str:
    """The error of Go's ``time.ParseDuration``; ``""``: it is a duration."""
    try:
        duration(text)
    except GoValueError as error:
        return str(error)
    return ""


def option(arguments: tuple[str, ...], *names: str) -> str:
    """The value of the last of these options, ``""`` without one."""
    found = ""
    for word, following in zip(arguments, (*arguments[1:], ""), strict=True):
        name, equals, value = word.partition("=")
        if name in names:
            found = value if equals else following
    return found
