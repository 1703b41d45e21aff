"""Every command of the documentation is run, on a small fleet under the names the pages use, and says what they say."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.docs.reading import Step, missing, steps

ROOT = Path(__file__).parents[2]
PAGES = sorted(page for page in (ROOT / "docs").glob("*.md") if steps(page))

INVENTORY = """\
cluster: rno
apiServer: v1.36.1
playbook: parallel-pulls
racks:
  rack01: tess-node-[0001-0006]
  rack02: tess-node-[0007-0012]
zones: {rno-a: "rack[01-02]"}
nodes:
  tess-node-[0001-0012]:
    labels: {kubeletVersion: v1.35.1, containerRuntime: containerd}
"""
HURRIED = {
    "soak: 60s": "soak: 600ms\npasses: 2\nguard: 15s",
    "perRack: 10%": "perRack: 34%",
    "perZone: 5%": "perZone: 34%",
    "wave: 5%": "wave: 2",
    "fleet: 2%": "fleet: 2",
}


@dataclass
class Reader:
    """Somebody who types what a page says, in an empty folder with the shipped playbook and a small inventory."""

    folder: Path
    at_work: subprocess.Popen[bytes] | None = None

    @property
    def environment(self) -> dict[str, str]:
        path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        return {**os.environ, "PATH": path, "ROLLOUT_SSH_CONFIG": ".rollout/lab/ssh_config", "COLUMNS": "200"}

    def shell(self, command: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["bash", "-c", command], cwd=self.folder, env=self.environment, capture_output=True, text=True, timeout=180,
            stdin=subprocess.DEVNULL, check=False,
        )  # fmt: skip

    def take(self, step: Step) -> str:
        """Do one step; what is wrong with it, or nothing."""
        doing = {"run": self._run, "begin": self._begin, "until": self._until, "kill": self._kill, "ended": self._ended}
        return doing[step.what](step)

    def _run(self, step: Step) -> str:
        done = self.shell(step.command)
        output = done.stdout + done.stderr
        if done.returncode != step.code:
            return f"exits with {done.returncode}, not with {step.code}:\n{output}"
        gone = missing(step.says, output)
        return f"does not say `{gone}`, but:\n{output}" if gone else ""

    def _begin(self, step: Step) -> str:
        with (self.folder / "background.log").open("ab") as log:
            self.at_work = subprocess.Popen(
                ["bash", "-c", f"exec {step.command}"], cwd=self.folder, env=self.environment, stdout=log, stderr=log,
                stdin=subprocess.DEVNULL, start_new_session=True,
            )  # fmt: skip
        return ""

    def _until(self, step: Step) -> str:
        deadline = time.monotonic() + 90
        while (done := self.shell(step.command)).returncode:
            if time.monotonic() > deadline:
                return f"never came true:\n{done.stdout}{done.stderr}\n{self.background()}"
            time.sleep(0.1)
        return ""

    def _kill(self, _step: Step) -> str:
        assert self.at_work is not None
        os.killpg(self.at_work.pid, signal.SIGKILL)
        self.at_work.wait()
        return ""

    def _ended(self, step: Step) -> str:
        assert self.at_work is not None
        code = self.at_work.wait(120)
        return "" if code == step.code else f"ended with {code}, not {step.code}:\n{self.background()}"

    def background(self) -> str:
        path = self.folder / "background.log"
        return path.read_text() if path.exists() else ""


@pytest.fixture
def reader(tmp_path: Path) -> Iterator[Reader]:
    (tmp_path / "inventories").mkdir()
    (tmp_path / "inventories/rno.yaml").write_text(INVENTORY)
    (tmp_path / "playbooks").mkdir()
    text = (ROOT / "playbooks/parallel-pulls.yaml").read_text()
    for old, new in HURRIED.items():
        assert old in text, old
        text = text.replace(old, new)
    (tmp_path / "playbooks/parallel-pulls.yaml").write_text(text)
    (tmp_path / "templates").symlink_to(ROOT / "templates")
    found = Reader(tmp_path)
    up = found.shell("rollout lab up --cluster rno --restart-sec 0.3")
    assert up.returncode == 0, up.stderr
    try:
        yield found
    finally:
        if found.at_work is not None and found.at_work.poll() is None:
            os.killpg(found.at_work.pid, signal.SIGKILL)
            found.at_work.wait()
        found.shell("rollout lab down")


@pytest.mark.timeout(600)  # a page is a long story
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_command_of_the_page_does_what_the_page_says(page: Path, reader: Reader) -> None:
    for step in steps(page):
        began = time.monotonic()
        wrong = reader.take(step)
        print(f"{time.monotonic() - began:6.1f} s  {page.name}:{step.line}: {step.command or step.what}")  # noqa: T201 - shown when it fails
        assert not wrong, f"{page.name}:{step.line}: `{step.command or step.what}` {wrong}"


def test_a_page_is_read_as_it_is_meant(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "# Page\n<!-- & sleep 5 -->\n```console\n$ rollout status  # exits with 3\nrun … halted\n\n$ true\n```\n<!-- kill -->\n"
    )
    assert [(s.what, s.command, s.code, s.says, s.line) for s in steps(page)] == [
        ("begin", "sleep 5", 0, (), 2),
        ("run", "rollout status", 3, ("run … halted",), 4),
        ("run", "true", 0, (), 7),
        ("kill", "", 0, (), 9),
    ]
    assert missing(("run … halted",), "x\n  run r1 on rno: halted, exit code 3\n") == ""
    assert missing(("b", "a"), "a\nb\n") == "a"
