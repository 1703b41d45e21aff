"""What ``prepull`` does at an interrupt."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from rollout.app import operator_commands
from rollout.cli.proposals import say

INTERRUPTED = operator_commands.INTERRUPTED


def told_once(asked: Callable[[], bool]) -> Callable[[], bool]:
    """``asked``, with a message when it becomes true."""
    return operator_commands.told_once(asked, partial(say, err=True))
