"""A node in a folder, under the shells that nodes have: at night all of them, else a sample drawn with the seed of this tree."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.agent.lives import Stories
from tests.agent.node import SHELLS, Node
from tests.sampling import sample


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers", "telling: the most important tests of the agent: always under dash, and under one more shell"
    )


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "node" in metafunc.fixturenames:
        metafunc.parametrize("node", _shells(metafunc.definition), indirect=True)


def _shells(test: pytest.Item) -> list[str]:
    first, *others = SHELLS
    if test.get_closest_marker("telling"):
        return [first, *sample(test.nodeid, others, 1)]
    return sample(test.nodeid, SHELLS, 1)


@pytest.fixture(scope="session")
def stories(tmp_path_factory: pytest.TempPathFactory) -> Stories:
    return Stories(tmp_path_factory)


@pytest.fixture
def node(request: pytest.FixtureRequest, tmp_path: Path) -> Node:
    """A fresh node under one shell."""
    return Node.make(tmp_path, str(request.param))
