from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from rollout.lab import launch
from tests.lab.labs import Lab, spec


@pytest.hookimpl(tryfirst=True)  # before xdist, which reads the groups in this hook too
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests with the shared lab run in one worker: it is started once."""
    for item in items:
        if "lab" in getattr(item, "fixturenames", ()) and Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.xdist_group("lab"))


@pytest.fixture(scope="session")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """Eight nodes of all kinds, up for the session; a test takes a node of its own or leaves it as it was."""
    made = Lab(tmp_path_factory.mktemp("lab") / "fleet", spec())
    made.up()
    yield made
    log = (made.directory / "lab.log").read_text(encoding="utf-8")
    launch.down(made.directory)
    assert log == ""


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Lab]:
    """Two nodes for one test that breaks them."""
    with _own(Lab(tmp_path / "small", spec(2))) as made:
        yield made


@pytest.fixture
def slow(tmp_path: Path) -> Iterator[Lab]:
    """The same with a RestartSec of four seconds: no apply ends before that."""
    with _own(Lab(tmp_path / "slow", spec(2, 4.0))) as made:
        yield made


@contextmanager
def _own(made: Lab) -> Iterator[Lab]:
    made.up()
    yield made
    if made.directory.exists():
        launch.down(made.directory)
