from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

import pytest


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    """What a test opens and need not close itself."""
    with ExitStack() as opened:
        yield opened
