"""What all tests share."""

from __future__ import annotations

import pytest
from hypothesis import settings

settings.register_profile("shared", deadline=None, print_blob=True)  # these machines are shared: time proves nothing
settings.load_profile("shared")

WAITING = ("tests/story/", "tests/docs/test_docs.py", "tests/journal/test_two_laptops.py")
"""Where tests mostly wait: for guards, soaks and nodes that settle."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Those that wait are spread evenly among those that compute, so that no core stands still for long."""
    waiting = [item for item in items if item.nodeid.startswith(WAITING)]
    others = [item for item in items if not item.nodeid.startswith(WAITING)]
    places = [(number + 0.5) / len(some) for some in (waiting, others) for number in range(len(some))]
    spread = sorted(zip(places, [*waiting, *others], strict=True), key=lambda each: each[0])
    items[:] = [item for _, item in spread]
