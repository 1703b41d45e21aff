"""A scheduler and the workers of two regions, started again like services of systemd, on an address that can be cut off."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from threading import Event, Lock, Thread

from tests.bed.shell import run
from tests.story.regions import Regions

WORKERS = ("east-1", "east-2", "west-1")
PORT = 8786
RESTART_SECONDS = 1.0
TTL = {"DASK_DISTRIBUTED__SCHEDULER__WORKER_TTL": "10s"}


class RegionEngine(Regions):
    """All of them are on one loopback address of their own. What ends is started again, unless it is in ``down``."""

    down: frozenset[str] = frozenset()

    @contextmanager
    def kept(self) -> Iterator[None]:
        """Inside the block they run, and are started again as systemd does."""
        over, self._starting = Event(), Lock()
        self.start()
        keeper = Thread(target=self._keep, args=(over,), daemon=True)
        keeper.start()
        try:
            yield
        finally:
            over.set()
            keeper.join()

    def _keep(self, over: Event) -> None:
        while not over.wait(RESTART_SECONDS):
            with suppress(AssertionError):  # a scheduler that is cut off is tried again
                self.start()

    def start(self) -> None:
        """Start what does not run and is not ``down``."""
        with self._starting:
            for name in ("scheduler", *WORKERS):
                process = self.processes.get(name)
                if name in self.down or (process is not None and process.poll() is None):
                    continue
                if name == "scheduler":
                    self.start_scheduler(PORT)
                else:
                    self.start_worker(name)

    def strike(self, name: str, *, for_long: bool) -> None:
        """Kill it. ``for_long``: it stays down until it is taken out of ``down``."""
        self.down = frozenset({name}) if for_long else frozenset()
        self.kill(name)

    def twin(self, name: str) -> None:
        """Start a second worker with this name."""
        with self._starting:
            self.start_worker(name)

    def registered(self, name: str) -> int:
        """How often the scheduler has accepted a worker of this name."""
        path = self.folder / f"{name}.log"
        return path.read_text().count("Registered to") if path.exists() else 0

    def cut(self) -> None:
        """Packets from and to their address are lost."""
        run("nft", "add", "table", "inet", self._table)
        run("nft", f"add chain inet {self._table} out {{ type filter hook output priority 0 ; }}")
        for way in ("saddr", "daddr"):
            run("nft", f"add rule inet {self._table} out ip {way} {self.host} drop")

    def heal(self) -> None:
        run("nft", "delete", "table", "inet", self._table, check=False)

    @property
    def _table(self) -> str:
        return f"bed-{self.host.replace('.', '-')}"
