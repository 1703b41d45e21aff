"""How much of each test is done. Some tests have more cases than an hour holds: every line of the agent, under three shells.

``ROLLOUT_TESTS`` is ``quick``, ``test`` (the default) or ``night``. At night every case is tried; otherwise a sample is drawn.
The seed of the sample is made from the tree's own text, so every change draws anew and every machine draws the same.
``ROLLOUT_SAMPLE_SEED`` gives a seed back that a run has printed.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator, Sequence
from enum import Enum
from pathlib import Path
from random import Random
from typing import TypeVar

from tests.places import ROOT

T = TypeVar("T")

_SEED = "ROLLOUT_SAMPLE_SEED"
_FOLDERS = ("rollout", "tests", "inventories", "playbooks", "templates")
_NAMES = (".py", ".sh", ".json", ".jsonl", ".yaml", ".j2", ".sql")


class Depth(Enum):
    """How much is tried. The value is the number of examples of each property test."""

    QUICK = 10
    TEST = 100
    NIGHT = 1000


DEPTH = Depth[os.environ.get("ROLLOUT_TESTS", "test").upper()]


def examples(most: int) -> int:
    """How many examples a property test draws that needs ``most`` of them in `make test`: fewer for `quick`, more at night."""
    return max(1, most * DEPTH.value // Depth.TEST.value)


def tree_seed() -> int:
    """A number made from the text of the checkout, whether it is committed or not."""
    digest = hashlib.sha256()
    for path in _texts(ROOT):
        digest.update(str(path.relative_to(ROOT)).encode() + b"\0" + hashlib.sha256(path.read_bytes()).digest())
    return int.from_bytes(digest.digest()[:4], "big")


def seed() -> int:
    """The seed of this run. All its processes share it: the first one writes it into the environment."""
    if _SEED not in os.environ:
        os.environ[_SEED] = str(tree_seed())
    return int(os.environ[_SEED])


def dice(name: str) -> Random:
    """Random numbers of their own for the test ``name``, the same in every process of this run."""
    return Random(f"{seed()}/{name}")  # noqa: S311 - reproducible on purpose


def sample(name: str, cases: Sequence[T], most: int) -> list[T]:
    """``most`` of the cases, in their order; all of them at night."""
    if DEPTH is Depth.NIGHT or len(cases) <= most:
        return list(cases)
    chosen = sorted(dice(name).sample(range(len(cases)), most))
    return [cases[index] for index in chosen]


def every_kind(name: str, cases: Sequence[T], kind: Callable[[T], object]) -> list[T]:
    """One case of each kind, in their order; all of them at night."""
    if DEPTH is Depth.NIGHT:
        return list(cases)
    kinds: dict[object, list[int]] = {}
    for index, case in enumerate(cases):
        kinds.setdefault(kind(case), []).append(index)
    random = dice(name)
    return [cases[index] for index in sorted(random.choice(of_a_kind) for of_a_kind in kinds.values())]


def _texts(top: Path) -> Iterator[Path]:
    for folder in _FOLDERS:
        for path in sorted((top / folder).rglob("*")):
            if path.suffix in _NAMES and path.is_file() and "__pycache__" not in path.parts:
                yield path
