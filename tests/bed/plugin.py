"""Real systemd nodes for tests, booted once for each worker. ``tests/conftest.py`` has this plugin."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache

import pytest

from tests.bed.bed import Bed, why_not
from tests.bed.image import kept
from tests.bed.node import Node

RealNodes = Callable[[int], list[Node]]


@pytest.hookimpl(tryfirst=True)  # before xdist, which reads the groups in this hook too
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Two workers have a bed: one runs the tests with four nodes that roll out together, the other all the rest."""
    for item in items:
        if "bed" in getattr(item, "fixturenames", ()):
            group = "fleet" if "fleet" in getattr(item, "fixturenames", ()) else "real"
            item.add_marker(pytest.mark.xdist_group(group))


@cache
def missing() -> list[str]:
    """The tests of this process that wanted the image of the nodes, and there was none: no test has the time to build it."""
    return []


def pytest_runtest_setup(item: pytest.Item) -> None:
    """A missing image is one failure, not one of each test."""
    if "bed" in getattr(item, "fixturenames", ()) and not why_not() and not kept().exists():
        missing().append(item.nodeid)
        if len(missing()) == 1:
            pytest.fail("the image of the test nodes is not built: `make image` builds it", pytrace=False)
        pytest.skip("NOT TESTED: the image of the test nodes is not built")


@pytest.fixture(scope="session")
def bed() -> Iterator[Bed]:
    reason = why_not()
    if reason:
        pytest.skip(reason)
    with Bed() as made:
        yield made


@pytest.fixture(scope="session")
def real_nodes(bed: Bed) -> RealNodes:
    """``real_nodes(n)``: the same n nodes at each call; more are booted if needed."""
    nodes: list[Node] = []

    def take(count: int) -> list[Node]:
        if count > len(nodes):
            nodes.extend(bed.add(count - len(nodes), after=len(nodes)))
        return nodes[:count]

    return take
