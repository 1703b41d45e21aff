"""A command for a node and how it ended, as values."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RemoteCommand:
    """One exec on a node: a POSIX shell command line, what goes to its standard input, and its deadline in seconds.

    ``line`` is whole and asks nobody anything. ``bare`` is the simple command in it that sudo runs (``""``: no sudo):
    whoever holds a password may put another sudo in front of that one.
    """

    line: str
    stdin: bytes
    deadline: float
    bare: str = ""


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
