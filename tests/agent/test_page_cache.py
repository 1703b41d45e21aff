"""The model of the disk: what a power cut may leave of a file."""

from __future__ import annotations

import random

import pytest

from tests.agent.page_cache import Disk
from tests.agent.traces import Step

FILE = "/token"


def left(*steps: Step) -> set[bytes | None]:
    """What a cut after these steps may leave of the token, which the disk had before."""
    disk = Disk()
    for step in (Step("make", FILE), Step("write", FILE, content=b"1 run-1 live\n"), Step("sync", "/"), *steps):
        disk.do(step)
    return {{path: content for path, _, _, content in cut.tree}.get(FILE) for cut in disk.cuts(random.Random(0))}  # noqa: S311


WRITE = Step("write", FILE, content=b"1 run-1 ended\n")


@pytest.mark.parametrize(
    ("steps", "found"),
    [
        ((), {b"1 run-1 live\n"}),
        ((Step("make", FILE), WRITE), {b"1 run-1 live\n", b"1 run-1 ended\n"}),
        ((Step("make", FILE), Step("cut", FILE), WRITE), {b"1 run-1 live\n", b"1 run-1 ended\n", b""}),
        ((Step("cut", FILE), WRITE, Step("sync", FILE)), {b"1 run-1 ended\n"}),
    ],
    ids=["as it was", "written in place", "cut and written", "synced"],
)
def test_only_a_file_that_was_cut_may_be_empty(steps: tuple[Step, ...], found: set[bytes]) -> None:
    assert left(*steps) == found
