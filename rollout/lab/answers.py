"""A stand-in's output and exit status."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ToolOutput:
    """``out`` and ``err`` are lines; ``bare`` is output without a line end. ``delay``: seconds before the output.
    ``first``: a command that really runs, and ends, before the output; ``invocation``: of the start that it belongs to.
    """

    out: tuple[str, ...] = ()
    err: tuple[str, ...] = ()
    status: int = 0
    bare: str = ""
    delay: float = 0.0
    after_boot: bool = False
    first: tuple[str, ...] = ()
    invocation: str = ""


def failed(status: int, *lines: str) -> ToolOutput:
    """Only an error message."""
    return ToolOutput(err=lines, status=status)
