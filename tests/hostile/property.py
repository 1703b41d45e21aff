"""The property of every reader of foreign bytes: a value or an error of rollout, soon, and nothing that controls a screen."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

from rollout.core.text.terminal import CONTROL
from rollout.errors import InputError, RolloutError

CANARY = "CANARY-7f3a9c"
"""In seeds it takes the place of a credential; no message may repeat it."""

UNITS = 2_000
"""The units of work that no input of a fuzzer's size may exceed; an endless loop exceeds any number."""

LONGEST_LINE = 4_000
_REFERENCE = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")


@dataclass(frozen=True)
class Target:
    """A reader. ``read`` returns texts that people see; ``ours`` are errors that its callers turn into references.

    ``seeds`` are its normal input; ``examples`` is how often CI changes them.
    """

    name: str
    read: Callable[[bytes], tuple[str, ...]]
    seeds: Callable[[], tuple[bytes, ...]]
    ours: tuple[type[Exception], ...] = ()
    examples: int = 100


@cache
def unit() -> float:
    """Seconds for a unit of work on this machine: a few thousandths."""
    began = time.thread_time()
    for number in range(20_000):
        CONTROL.search(f"line {number}")
    return time.thread_time() - began


def judge(target: Target, data: bytes) -> None:
    """Raises if the property is broken."""
    began = time.thread_time()
    try:
        texts = target.read(data)
    except RolloutError as error:
        texts = (str(error),)
        _has_references(error)
    except target.ours as error:
        texts = (str(error),)
    took = time.thread_time() - began
    assert took < UNITS * unit(), f"{target.name} took {took:.1f} s"
    for text in texts:
        _is_fit_for_a_screen(text)


def _has_references(error: RolloutError) -> None:
    references = [problem.reference for problem in error.problems] if isinstance(error, InputError) else []
    for reference in (error.reference, *references):
        assert _REFERENCE.fullmatch(reference), f"no reference: {reference!r}"


def _is_fit_for_a_screen(text: str) -> None:
    found = CONTROL.search(text)
    assert found is None, f"U+{ord(found.group()):04X} in {text!r}"
    assert CANARY not in text, f"a secret in {text!r}"
    longest = max((len(line) for line in text.splitlines()), default=0)
    assert longest <= LONGEST_LINE, f"a line of {longest} characters"
