"""What is raised for one node stays that node's: it becomes what is said of that node, and the others go on.

Three kinds of error are not a node's and pass: those that people are told of what they wrote (``RolloutError``: a playbook, a
template), those of this machine (``OSError``, ``MemoryError``), and whatever ends a program.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable
from pathlib import PurePath
from typing import TypeVar

from rollout.errors import RolloutError

T = TypeVar("T")
Keep = Callable[[str, str], str]
"""Keeps a node's trace and says where, in one sentence."""


def keep_nothing(_node: str, _trace: str) -> str:
    """For callers that have no place for a trace."""
    return ""


def attempt(node: str, work: Callable[[], T], on_failure: Callable[[str], T], keep: Keep = keep_nothing) -> T:
    """What ``work`` makes of one node, or what ``on_failure`` makes of the place where it failed."""
    try:
        return work()
    except (RolloutError, OSError, MemoryError):
        raise
    except Exception as error:  # noqa: BLE001 - whatever one node holds, the others are not kept by it
        return on_failure(_told(node, error, keep))


def _told(node: str, error: Exception, keep: Keep) -> str:
    """Where it failed is told, but not the error's own words: they may hold what a file of the node holds."""
    frame = traceback.extract_tb(error.__traceback__)[-1]
    place = f"{type(error).__name__} in {PurePath(frame.filename).name}:{frame.lineno}"
    kept = keep(node, "".join(traceback.format_exception(error)))
    return f"rollout itself failed on what this node holds ({place}); please report it{kept and f'. {kept}'}"
