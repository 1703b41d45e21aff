"""Running the system's tools."""

from __future__ import annotations

import subprocess

PATIENCE = 600.0
"""Seconds: a safety net for what hangs, not a verdict."""


class BedError(Exception):
    """The bed could not do what was requested."""


def run(*words: str, check: bool = True, timeout: float = PATIENCE) -> str:
    """Standard output of a tool. A ``BedError`` says that it did not end in time, or with ``check`` that it failed, with its output."""
    try:
        done = subprocess.run(
            words, capture_output=True, text=True, timeout=timeout, check=False, stdin=subprocess.DEVNULL
        )
    except subprocess.TimeoutExpired as error:
        raise BedError(f"{' '.join(words)}: not done after {timeout:.0f} s") from error
    if check and done.returncode:
        raise BedError(f"{' '.join(words)}: exit {done.returncode}: {done.stdout}{done.stderr}")
    return done.stdout
