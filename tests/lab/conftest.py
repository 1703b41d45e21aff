from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from rollout.adapters.lab import launch
from tests.lab.labs import Lab, spec


@pytest.fixture(scope="session")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """Eight nodes of all kinds, up for the session; a test takes a node of its own or leaves it as it was."""
    made = Lab(tmp_path_factory.mktemp("lab") / "fleet", spec())
    launch.up(made.spec, made.directory)
    yield made
    log = (made.directory / "lab.log").read_text(encoding="utf-8")
    launch.down(made.directory)
    assert log == ""


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Lab]:
    """Two nodes for one test that breaks them."""
    made = Lab(tmp_path / "small", spec(2))
    launch.up(made.spec, made.directory)
    yield made
    if made.directory.exists():
        launch.down(made.directory)
