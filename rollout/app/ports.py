"""The doors to the outside: small protocols that adapters implement and tests fake."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from rollout.core.remote import RemoteAnswer, RemoteCommand


@dataclass(frozen=True, slots=True)
class Target:
    """Where a node is: what SSH is given. ``ssh_config`` may map the address further."""

    name: str
    address: str
    user: str | None = None
    port: int | None = None


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
