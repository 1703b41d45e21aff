"""The commands that start a scheduler and a worker, as ``docs/regions.md`` shows them, on the loopback interface."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.controllers import PATIENCE, until
from tests.places import ROOT

pytestmark = pytest.mark.process
PAGE = (ROOT / "docs/regions.md").read_text()
BLOCKS = [block.replace("\n    ", "\n").strip() for block in re.findall(r"(?:^ {4}.*\n)+", PAGE, re.MULTILINE)]
HERE = {
    "--host 192.0.2.10": "--host 127.0.0.1",
    "--interface eth0": "--interface lo",
    "--port 8786": "--port 0 --scheduler-file scheduler.json",
    "/etc/rollout/ssh_config": os.devnull,
}
"""What differs on this machine."""


@dataclass
class Dask:
    """What a reader began in ``folder``: name → the shell, with a group of its own."""

    folder: Path
    begun: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    def begin(self, name: str, *blocks: str, address: str = "") -> None:
        """Type these blocks in one shell."""
        text = "\n".join(blocks)
        for word, here in {**HERE, "tls://scheduler.example.net:8786": address}.items():
            text = text.replace(word, here)
        environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
        with (self.folder / f"{name}.log").open("wb") as log:
            self.begun[name] = subprocess.Popen(
                ["bash", "-c", text], cwd=self.folder, env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                start_new_session=True,
            )  # fmt: skip

    def until(self, holds: Callable[[], object], what: str) -> None:
        def ended() -> list[str]:
            return [name for name, each in self.begun.items() if each.poll() is not None]

        until(lambda: ended() or holds(), PATIENCE, what)
        for name in ended():
            pytest.fail(f"{name} ended: {(self.folder / f'{name}.log').read_text()[-2000:]}")

    def rollout(self, *words: str) -> str:
        command = [sys.executable, "-m", "rollout.cli", *words]
        done = subprocess.run(
            command, cwd=self.folder, capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False
        )
        return done.stdout + done.stderr


@pytest.fixture
def dask(tmp_path: Path) -> Iterator[Dask]:
    made = Dask(tmp_path)
    yield made
    for each in made.begun.values():
        with suppress(ProcessLookupError):
            os.killpg(each.pid, signal.SIGKILL)
        each.wait()


def serving(dask: Dask, *blocks: str) -> str:
    """The address of a scheduler that was begun with these blocks, with certificates for all roles."""
    assert "written: certificates/controller" in dask.rollout("regions", "certs", "certificates")
    dask.begin("scheduler", *blocks)
    file = dask.folder / "scheduler.json"
    dask.until(lambda: file.exists() and file.read_text().endswith("}"), "the scheduler serves")
    address: str = json.loads(file.read_text())["address"]
    (dask.folder / "rollout.toml").write_text(
        f'engine = "dask"\nscheduler = "{address}"\ncertificates = "certificates/controller"\n'
    )
    return address


def test_the_scheduler_and_the_worker_of_the_page_are_used_with_the_settings_of_the_project(dask: Dask) -> None:
    profiler, scheduler, worker = BLOCKS
    address = serving(dask, profiler, scheduler)
    assert address.startswith("tls://127.0.0.1:")
    dask.begin("worker", profiler, worker, address=address)
    ready = re.compile(r"^rno-1  region rno  tls://\S+  ready$", re.MULTILINE)
    dask.until(lambda: ready.search(dask.rollout("regions", "workers")), "the worker is ready")


def test_a_scheduler_without_the_settings_of_the_page_is_refused(dask: Dask) -> None:
    settings, _, command = BLOCKS[1].partition("\n")
    assert settings.startswith("export ")
    serving(dask, command)
    said = dask.rollout("regions", "workers")
    assert (
        "nothing was touched: the scheduler could repeat or move tasks: distributed.scheduler.allowed-failures is 3"
        in said
    )
    assert "[scheduler-settings]" in said
