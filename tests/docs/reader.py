"""Types the commands of a page, as a reader would."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

from tests.controllers import PATIENCE, fork_server, until
from tests.docs.reading import Step, missing


@dataclass
class Reader:
    """A reader in ``folder``, and there in ``where``. Exported variables stay set.

    ``at_work``: the command in the background, in its own interpreter.
    """

    folder: Path
    exported: dict[str, str] = field(default_factory=dict)
    where: Path = Path()
    at_work: subprocess.Popen[bytes] | None = None

    @property
    def environment(self) -> dict[str, str]:
        path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        return {**os.environ, "PATH": path, "COLUMNS": "200", **self.exported}

    def shell(self, command: str) -> subprocess.CompletedProcess[str]:
        asks = fork_server().asks.fileno()
        return subprocess.run(
            ["bash", "-c", command], cwd=self.folder / self.where, env=self._forking(asks), capture_output=True, text=True,
            timeout=PATIENCE, stdin=subprocess.DEVNULL, check=False, pass_fds=[asks],
        )  # fmt: skip

    def _forking(self, asks: int) -> dict[str, str]:
        """``rollout`` is forked by the server that ``asks`` calls."""
        ours = self.folder / ".bin"
        if not ours.exists():
            ours.mkdir()
            (ours / "rollout").symlink_to(Path(__file__).parent / "forked_rollout")
        environment = self.environment
        return {**environment, "PATH": f"{ours}:{environment['PATH']}", "ROLLOUT_FORK_SERVER": str(asks)}

    def take(self, step: Step) -> str:
        """Do one step. Returns what is wrong with it, or an empty text."""
        doing = {"run": self._run, "begin": self._begin, "until": self._until, "kill": self._kill, "ended": self._ended}
        return doing[step.what](step)

    def _run(self, step: Step) -> str:
        if step.command.startswith("export "):
            name, _, value = step.command.removeprefix("export ").partition("=")
            self.exported[name] = value.strip("'\"")
            return ""
        if alone := re.fullmatch(r"(cd|unset) (\S+)", step.command):
            self._remember(alone[1], alone[2])
            return ""
        done = self.shell(step.command)
        output = self._without_its_variables(done.stdout + done.stderr)
        if done.returncode != step.code:
            return f"exits with {done.returncode}, not with {step.code}:\n{output}"
        gone = missing(step.says, output)
        return f"does not say `{gone}`, but:\n{output}" if gone else ""

    def _without_its_variables(self, output: str) -> str:
        """A proposed command names what a variable says. A page is for readers with no such variable."""
        for name, value in self.exported.items():
            option = name.removeprefix("ROLLOUT_").lower().replace("_", "-")
            output = output.replace(f" --{option} {value}", "")
        return output

    def _remember(self, what: str, name: str) -> None:
        """What the next commands find changed, too."""
        if what == "unset":
            self.exported.pop(name, None)
        else:
            self.where = self.where.parent if name == ".." else self.where / name

    def _begin(self, step: Step) -> str:
        with (self.folder / "background.log").open("ab") as log:
            self.at_work = subprocess.Popen(
                ["bash", "-c", f"exec {step.command}"], cwd=self.folder, env=self.environment, stdout=log, stderr=log,
                stdin=subprocess.DEVNULL, start_new_session=True,
            )  # fmt: skip
        return ""

    def _until(self, step: Step) -> str:
        until(lambda: self.shell(step.command).returncode == 0, PATIENCE, f"{step.command}\n{self.background()}")
        return ""

    def _kill(self, _step: Step) -> str:
        assert self.at_work is not None
        os.killpg(self.at_work.pid, signal.SIGKILL)
        self.at_work.wait()
        return ""

    def _ended(self, step: Step) -> str:
        assert self.at_work is not None
        code = self.at_work.wait(PATIENCE)
        return "" if code == step.code else f"ended with {code}, not {step.code}:\n{self.background()}"

    def background(self) -> str:
        path = self.folder / "background.log"
        return path.read_text() if path.exists() else ""

    def leave(self) -> None:
        """End everything that still runs."""
        if self.at_work is not None and self.at_work.poll() is None:
            os.killpg(self.at_work.pid, signal.SIGKILL)
            self.at_work.wait()
        for folder in {self.where, Path()}:
            self.where = folder
            self.shell("rollout lab down")
