"""Nodes behind the workers of two regions, and the faults of these workers, of their scheduler and of the link between them."""

from __future__ import annotations

import signal
import subprocess
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from rollout.features.regions.client.nodes import rank
from tests.chaos.draws import Kind
from tests.chaos.fault import Fault
from tests.chaos.region_engine import TTL, WORKERS, RegionEngine
from tests.chaos.repeats import FOLDER, ORDER, RESULTS
from tests.chaos.site import PATIENCE, Site
from tests.controllers import until

ZONES = "zones: {east: a, west: b}\n"


@contextmanager
def behind_regions(site: Site) -> Iterator[None]:
    """The nodes of rack a are behind two workers of the region east, those of rack b behind one of west."""
    inventory = next((site.folder / "inventories").glob("*.yaml"))
    inventory.write_text(inventory.read_text() + ZONES)
    folder = site.folder / "engine"
    folder.mkdir()
    engine = RegionEngine(
        folder, site.bed.ssh_config, host=f"127.77.{site.bed.number}.1", preload="tests.chaos.repeats"
    )
    engine.settings |= {**TTL, FOLDER: str(folder)}
    site.engine = engine
    try:
        engine.heal()
        with engine.kept():
            (site.folder / "rollout.toml").write_text(f'engine = "dask"\nscheduler = "{engine.address}"\n')
            ready(site)
            yield
    finally:
        engine.heal()
        engine.end()


def ready(site: Site) -> None:
    """Wait until every worker is connected."""

    def all_are() -> bool:
        return site.rollout("regions", "workers").out.count("ready") == len(WORKERS)

    until(all_are, PATIENCE, "every worker is connected")


class StruckEngine(Fault):
    """Afterwards, whatever has ended is started again."""

    @property
    def engine(self) -> RegionEngine:
        if self.site.engine is None:
            raise LookupError("this site has no engine")
        return self.site.engine

    @property
    def worker(self) -> str:
        """The worker that holds the connection of the first affected node."""
        node = self.nodes[0].name
        region = "west-" if self.draw.struck[0] % 2 else "east-"
        return min((name for name in WORKERS if name.startswith(region)), key=lambda name: rank(node, name))

    def heal(self) -> None:
        self.engine.down = frozenset()
        ready(self.site)


class KillWorker(StruckEngine):
    def strike(self) -> None:
        self.engine.strike(self.worker, for_long=self.draw.variant == "seconds later")


class StopWorker(StruckEngine):
    def strike(self) -> None:
        self.engine.kill(self.worker, signal.SIGSTOP)

    def heal(self) -> None:
        self.engine.kill(self.worker, signal.SIGCONT)
        super().heal()


class KillScheduler(StruckEngine):
    def strike(self) -> None:
        self.engine.strike("scheduler", for_long=self.draw.variant == "seconds later")


class CutEngine(StruckEngine):
    def strike(self) -> None:
        self.engine.cut()

    def heal(self) -> None:
        self.engine.heal()
        super().heal()


class TwinWorkers(StruckEngine):
    """A second worker with the name of the first starts. The scheduler accepts it when it has given up the first."""

    _first: subprocess.Popen[bytes] | None = None

    def strike(self) -> None:
        self._first = self.engine.processes[self.worker]
        self._registered = self.engine.registered(self.worker)
        if self.draw.variant == "the first is stopped":
            self._first.send_signal(signal.SIGSTOP)
        else:
            self.engine.down = frozenset({self.worker})
        self.engine.twin(self.worker)

    def heal(self) -> None:
        """One of the two remains."""
        first = self._first
        if first is None:
            return
        if self.draw.variant == "the first is stopped":
            until(self._is_replaced, PATIENCE, "the second worker is accepted")
            self.engine.down = frozenset({self.worker})
            first.send_signal(signal.SIGCONT)
        until(lambda: (first.poll(), self._second.poll()) != (None, None), PATIENCE, "one of the two ends")
        if self._second.poll() is not None:
            self.engine.processes[self.worker] = first
        super().heal()

    @property
    def _second(self) -> subprocess.Popen[bytes]:
        return self.engine.processes[self.worker]

    def _is_replaced(self) -> bool:
        return self.engine.registered(self.worker) > self._registered


class RepeatCalls(StruckEngine):
    """Every call arrives twice at its worker. One of the two is carried out."""

    throughout = True

    def prepare(self) -> None:
        (self._folder / RESULTS).write_text("")
        seconds = 0.0 if self.draw.variant == "at the same time" else self.draw.seconds
        (self._folder / ORDER).write_text(str(seconds))

    def heal(self) -> None:
        (self._folder / ORDER).unlink()
        super().heal()

    def left(self) -> Sequence[str]:
        arrived = Counter(tuple(line.split()) for line in (self._folder / RESULTS).read_text().splitlines())
        if not any(word == "refused" for _, word in arrived):
            return ("no call was repeated",)
        twice = [nonce for (nonce, word), count in arrived.items() if word == "carried-out" and count > 1]
        return tuple(f"call {nonce} was carried out {arrived[nonce, 'carried-out']} times" for nonce in twice)

    @property
    def _folder(self) -> Path:
        return self.engine.folder


FAULTS_OF_ENGINE = {
    Kind.WORKER: KillWorker,
    Kind.WORKER_STOPPED: StopWorker,
    Kind.SCHEDULER: KillScheduler,
    Kind.ENGINE_CUT: CutEngine,
    Kind.TWINS: TwinWorkers,
    Kind.REPEAT: RepeatCalls,
}
