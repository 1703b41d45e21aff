"""What a command does at an interrupt, if it runs on many nodes without a run: ``exec``, ``prepull``."""

from __future__ import annotations

from collections.abc import Callable

from rollout.cli.proposals import say

INTERRUPTED = 130
"""The exit code."""


def told_once(asked: Callable[[], bool]) -> Callable[[], bool]:
    """``asked``, with a message when it becomes true."""
    told = False

    def stopping() -> bool:
        nonlocal told
        if asked() and not told:
            told = True
            say("stopping: finishing nodes in flight first; interrupt again to stop at once", err=True)
        return told

    return stopping
