from __future__ import annotations

from pathlib import Path

import pytest

from tests.agent.node import SHELLS, Node


@pytest.fixture(params=SHELLS)
def node(request: pytest.FixtureRequest, tmp_path: Path) -> Node:
    """A fresh node, once under each shell."""
    return Node.make(tmp_path, str(request.param))
