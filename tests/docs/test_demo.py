"""The README's first command, on the smallest possible fleet. Its duration is measured elsewhere, not by a test."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.places import ROOT

UNLIMITED = "1000000"


@pytest.mark.process
@pytest.mark.timeout(1800)
def test_the_demo_does_the_whole_job_and_leaves_every_file_as_it_was(tmp_path: Path) -> None:
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith("ROLLOUT_")},
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "WORK": str(tmp_path / "demo"),
        "NODES": "190",
        "LIMIT_SECONDS": UNLIMITED,
    }
    done = subprocess.run(
        [ROOT / "docs/demo.sh"], env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, (done.stdout + done.stderr)[-6000:]
    assert done.stdout.endswith("demo passed\n")
