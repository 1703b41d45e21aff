"""The README's first command, on the smallest possible fleet, with each engine. Its duration is measured elsewhere, not by a test."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from tests.controllers import PATIENCE, until
from tests.places import ROOT

UNLIMITED = "1000000"


@pytest.mark.process
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("engine", ["embedded", pytest.param("dask", marks=pytest.mark.night)])
def test_the_demo_does_the_whole_job_and_leaves_every_file_as_it_was(tmp_path: Path, engine: str) -> None:
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith("ROLLOUT_")},
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "WORK": str(tmp_path / "demo"),
        "NODES": "48",
        "ONLY": "tess-node-[0001-0012,0061-0072,0121-0132,0181-0192]",  # of four racks, with the one that fails
        "ENGINE": engine,
        "LIMIT_SECONDS": UNLIMITED,
    }
    done = subprocess.run(
        [ROOT / "docs/demo.sh"], env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, (done.stdout + done.stderr)[-6000:]
    assert done.stdout.endswith("demo passed\n")
    assert done.stderr == ""
    until(lambda: not _processes_in(tmp_path), PATIENCE, "nothing that the demo started is left")


def _processes_in(folder: Path) -> list[int]:
    """The processes with a working directory in this folder."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it ended
            if (entry / "cwd").readlink().is_relative_to(folder):
                found.append(int(entry.name))
    return found
