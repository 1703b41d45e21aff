"""A scheduler and the workers of two regions, started again like services of systemd, on an address that can be cut off."""

from __future__ import annotations

from tests.bed.shell import run
from tests.story.regions import Regions

WORKERS = ("east-1", "east-2", "west-1")
PORT = 8786
TTL = {"DASK_DISTRIBUTED__SCHEDULER__WORKER_TTL": "10s"}


class RegionEngine(Regions):
    """All of them are on one loopback address of their own."""

    def start(self) -> None:
        """Start what does not run."""
        for name in ("scheduler", *WORKERS):
            process = self.processes.get(name)
            if process is not None and process.poll() is None:
                continue
            if name == "scheduler":
                self.start_scheduler(PORT)
            else:
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
