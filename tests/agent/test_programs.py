"""How many programs a change starts on a node: each costs a node more than all of the shell's own work between two of them."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from benchmarks.programs import programs

pytestmark = [
    pytest.mark.process,
    pytest.mark.skipif(shutil.which("strace") is None, reason="NOT TESTED: strace is missing (apt-get install strace)"),
]

MOST = 80
"""For three files, one of them new in a new folder, a reload and a restart: a conversation with apply, confirm and cleanup."""


def test_a_change_starts_few_programs(tmp_path: Path) -> None:
    found = programs(tmp_path)
    assert found["sync"] == 6, "five of the change, and one that shows that it takes names"
    assert sum(found.values()) <= MOST, found
