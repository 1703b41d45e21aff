"""The doors to the outside: small protocols that adapters implement and tests fake."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Target:
    """Where a node is: what SSH is given. ``ssh_config`` may map the address further."""

    name: str
    address: str
    user: str | None = None
    port: int | None = None


@dataclass(frozen=True, slots=True)
class RemoteCommand:
    """One exec on a node: a POSIX shell command line, what goes to its standard input, and its deadline in seconds."""

    line: str
    stdin: bytes
    deadline: float


@dataclass(frozen=True, slots=True)
class RemoteAnswer:
    """How an exec ended.

    ``status`` is the exit status, or ``None`` when the end was not seen. ``started`` is false when the command certainly
    never began on the node (refused, no banner, authentication, host key): then ``reference`` and ``message`` say why.
    Output is bytes, capped; ``truncated`` says the cap was hit.
    """

    status: int | None
    stdout: bytes
    stderr: bytes
    started: bool
    truncated: bool = False
    reference: str = ""
    message: str = ""


class Nodes(Protocol):
    """Runs commands on nodes. Thread-safe; one node's trouble never raises, it is in the answer.

    A connection is kept between calls for the same node until ``release``.
    """

    def run(self, target: Target, command: RemoteCommand) -> RemoteAnswer: ...

    def release(self, target: Target) -> None: ...

    def close(self) -> None: ...


class Clock(Protocol):
    """``now`` is seconds that never go back within a process; ``wall`` is ISO 8601 UTC for display."""

    def now(self) -> float: ...

    def wall(self) -> str: ...


class Files(Protocol):
    """Text in, text out; errors are ``InputError``."""

    def read(self, path: str) -> str: ...

    def exists(self, path: str) -> bool: ...

    def list(self, folder: str, suffix: str) -> tuple[str, ...]: ...


class Local(Protocol):
    """Runs a wave's ``command`` gate where the controller runs. ``None``: it could not be run or did not end in time."""

    def run(self, command: tuple[str, ...], environment: Mapping[str, str], timeout: float) -> int | None: ...
