"""Somebody who types what a page says."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

from tests.docs.reading import Step, missing


@dataclass
class Reader:
    """In ``folder``. What is exported stays so; ``at_work`` is what runs in the background."""

    folder: Path
    exported: dict[str, str] = field(default_factory=dict)
    at_work: subprocess.Popen[bytes] | None = None

    @property
    def environment(self) -> dict[str, str]:
        path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        return {**os.environ, "PATH": path, "COLUMNS": "200", **self.exported}

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
        if step.command.startswith("export "):
            name, _, value = step.command.removeprefix("export ").partition("=")
            self.exported[name] = value.strip("'\"")
            return ""
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

    def leave(self) -> None:
        """Nothing of ours runs any more."""
        if self.at_work is not None and self.at_work.poll() is None:
            os.killpg(self.at_work.pid, signal.SIGKILL)
            self.at_work.wait()
        self.shell("rollout lab down")
