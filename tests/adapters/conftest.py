from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

import pytest


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    """Resources of a test that are closed at its end."""
    with ExitStack() as opened:
        yield opened
