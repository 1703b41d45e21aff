"""A real scheduler and real workers of regions on loopback, each a process of its own, as Dask's commands start them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tests.controllers import until

SETTINGS = {
    "DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES": "0",
    "DASK_DISTRIBUTED__SCHEDULER__WORK_STEALING": "False",
    "DASK_DISTRIBUTED__SCHEDULER__WORKER_TTL": "30s",
    "DASK_DISTRIBUTED__WORKER__PROFILE__ENABLED": "False",
    "DASK_DISTRIBUTED__ADMIN__TICK__INTERVAL": "1s",
    "DASK_DISTRIBUTED__ADMIN__SYSTEM_MONITOR__INTERVAL": "10s",
}
PYTHON = (sys.executable, "-W", "ignore", "-m")


@dataclass
class Regions:
    """``certificates``: folder of ``rollout regions certs``; ``None``: plain TCP. ``preload``: a module that each worker imports.

    ``far``: the words before the scheduler's command, and the address at which workers reach it: it stands elsewhere, beside its controller.
    """

    folder: Path
    ssh_config: Path
    certificates: Path | None = None
    host: str = "127.0.0.1"
    preload: str = ""
    far: tuple[Sequence[str], str] = ((), "")
    settings: dict[str, str] = field(default_factory=lambda: dict(SETTINGS))
    processes: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    @property
    def address(self) -> str:
        found: str = json.loads((self.folder / "scheduler.json").read_text())["address"]
        return f"tcp://127.0.0.1:{found.rpartition(':')[2]}" if self.far[1] else found

    def options(self) -> tuple[str, ...]:
        """What a command of rollout takes."""
        own = ("--certificates", str(self.certificates / "controller")) if self.certificates else ()
        return ("--engine", "dask", "--scheduler", self.address, *own)

    def start_scheduler(self, port: int = 0) -> None:
        file = self.folder / "scheduler.json"
        file.unlink(missing_ok=True)
        there, host = self.far
        self._start(
            "scheduler", *there, *PYTHON, "distributed.cli.dask_scheduler", "--host", "0.0.0.0" if host else self.host, "--port", str(port), "--no-dashboard",  # noqa: S104 - it is in a network namespace of its own
            "--no-show", "--scheduler-file", str(file), *self._tls("scheduler"),
        )  # fmt: skip
        until(lambda: file.exists() and file.read_text().endswith("}"), 60.0, "the scheduler serves")

    def start_worker(self, name: str) -> None:
        scheme, _, place = self.address.rpartition("/")
        near = f"{scheme}/{self.far[1] or place.rpartition(':')[0]}:{place.rpartition(':')[2]}"
        self._start(
            name, *PYTHON, "distributed.cli.dask_worker", near, "--name", name, "--no-nanny", "--no-dashboard",
            "--nworkers", "1", "--host", self.host, "--memory-limit", "0", "--death-timeout", "5",
            "--local-directory", str(self.folder), *self._tls("worker"), *(("--preload", self.preload) if self.preload else ()),
        )  # fmt: skip

    def kill(self, name: str, number: signal.Signals = signal.SIGKILL) -> None:
        self.processes[name].send_signal(number)

    def end(self) -> None:
        for process in self.processes.values():
            process.kill()
            process.wait()

    def _start(self, name: str, *words: str) -> None:
        environment = {**os.environ, **self.settings, "ROLLOUT_SSH_CONFIG": str(self.ssh_config)}
        with (self.folder / f"{name}.log").open("ab") as log:
            self.processes[name] = subprocess.Popen(
                words, env=environment, stdout=log, stderr=log, stdin=subprocess.DEVNULL
            )

    def _tls(self, role: str) -> tuple[str, ...]:
        if self.certificates is None:
            return ()
        own = self.certificates / role
        files = (("--tls-ca-file", "ca.pem"), ("--tls-cert", "cert.pem"), ("--tls-key", "key.pem"))
        return ("--protocol", "tls", *(word for option, name in files for word in (option, str(own / name))))


@contextmanager
def regions_up(
    folder: Path,
    ssh_config: Path,
    *names: str,
    certificates: Path | None = None,
    host: str = "127.0.0.1",
    far: tuple[Sequence[str], str] = ((), ""),
) -> Iterator[Regions]:
    folder.mkdir()
    made = Regions(folder, ssh_config, certificates, host, far=far)
    try:
        made.start_scheduler()
        for name in names:
            made.start_worker(name)
        yield made
    finally:
        made.end()
