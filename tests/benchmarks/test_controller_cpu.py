"""The table of imports counts each module once, by what Python itself prints."""

from __future__ import annotations

import subprocess
import sys

import pytest

from benchmarks.controller_cpu import LIBRARY, imports_by_package


@pytest.mark.process
def test_imports_are_shared_out_by_package() -> None:
    words = (sys.executable, "-X", "importtime", "-c", "import click, rollout.core.model.spans")
    said = subprocess.run(words, capture_output=True, text=True, check=True).stderr
    found = imports_by_package(f"a line of the program\n{said}")
    assert set(found) == {"rollout", "click, rich, ClusterShell", LIBRARY}
    own = [line.partition("|")[0].rpartition(":")[2] for line in said.splitlines()[1:]]  # the first one is a head
    assert sum(found.values()) == pytest.approx(sum(map(int, own)) / 1e6)
