"""Real systemd nodes for tests, booted once for each worker. ``tests/conftest.py`` has this plugin."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from tests.bed.bed import Bed, why_not
from tests.bed.node import Node

RealNodes = Callable[[int], list[Node]]


@pytest.hookimpl(tryfirst=True)  # before xdist, which reads the groups in this hook too
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Two workers have a bed: one runs the tests with four nodes that roll out together, the other all the rest."""
    for item in items:
        if "bed" in getattr(item, "fixturenames", ()):
            group = "fleet" if "fleet" in getattr(item, "fixturenames", ()) else "real"
            item.add_marker(pytest.mark.xdist_group(group))


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
