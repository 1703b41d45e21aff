"""The workers of regions: which are connected, and whether they can be used. No Dask is imported here."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from hashlib import sha256
from threading import Lock
from typing import Protocol

from rollout import __version__
from rollout.adapters.agent_program import agent_program
from rollout.core.model.regions import region_of_worker, region_of_zone
from rollout.core.text.terminal import printable
from rollout.errors import RemoteError
from rollout.features.regions.client import worker as remote
from rollout.features.regions.client.messages import WorkerIdentity, decode_identity
from rollout.features.regions.client.steady import steady

LOOK_SECONDS = 1.0
"""How old the list of workers may be."""

IDENTIFY_SECONDS = 30.0
IDENTIFY_WIDTH = 32
ASK_AGAIN = 30.0
"""Seconds until a worker without an answer is asked again."""


class CallLostError(Exception):
    """A call was submitted, and its result did not arrive: it may have run."""


class Scheduler(Protocol):
    """``workers``: name → address, empty while it is away. ``call`` raises ``RemoteError`` (not submitted) and ``CallLostError``."""

    def workers(self) -> Mapping[str, str]: ...

    def call(self, function: Callable[..., bytes], worker: str, data: tuple[bytes, ...], seconds: float) -> bytes: ...

    def close(self) -> None: ...


class NoScheduler:
    """Implements ``Scheduler`` when there is none: every region is away."""

    def workers(self) -> Mapping[str, str]:
        return {}

    def call(self, *_: object, **_named: object) -> bytes:
        raise RemoteError("scheduler-away", "the scheduler does not answer")

    def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class RegionWorker:
    """A worker, and its answer. ``trouble``: why it is not used; ``""``: it is.

    ``ahead``: the least seconds by which its steady clock is ahead of ours.
    """

    name: str
    address: str
    process: str
    trouble: str
    asked: float = 0.0  # on this process's clock
    ahead: float = 0.0

    @property
    def is_settled(self) -> bool:
        """Whether it need not be asked again: it answered, or was asked just now."""
        return bool(self.process) or time.monotonic() - self.asked < ASK_AGAIN

    @property
    def region(self) -> str:
        return region_of_worker(self.name)


class RegionWorkers:
    """The workers of a scheduler, each asked once what it is. Thread-safe."""

    def __init__(self, scheduler: Scheduler, clock: Callable[[], float] = steady) -> None:
        self._scheduler = scheduler
        self._clock = clock
        self._agent = sha256(agent_program().encode()).hexdigest()
        self._lock = Lock()
        self._known: dict[str, RegionWorker] = {}  # by address
        self._looked = float("-inf")

    def look_again(self) -> None:
        """The list may have changed."""
        self._looked = float("-inf")

    def known(self) -> tuple[RegionWorker, ...]:
        """The workers of the last look."""
        return tuple(self._known.values())

    def connected(self) -> tuple[RegionWorker, ...]:
        """The workers that are connected now, including those that are not used."""
        with self._lock:
            if time.monotonic() - self._looked > LOOK_SECONDS:
                found = {address: name for name, address in self._scheduler.workers().items()}
                kept = {address: each for address, each in self._known.items() if address in found and each.is_settled}
                new = [address for address in found if address not in kept]
                self._known = {**kept, **self._identified_all({address: found[address] for address in new})}
                self._looked = time.monotonic()
            return tuple(self._known.values())

    def _identified_all(self, names: Mapping[str, str]) -> Mapping[str, RegionWorker]:
        """Address → worker. All are asked together: the first question makes a worker import rollout."""
        if not names:
            return {}
        with ThreadPoolExecutor(min(IDENTIFY_WIDTH, len(names))) as pool:
            return dict(zip(names, pool.map(self._identified, names.values(), names), strict=True))

    def _identified(self, name: str, address: str) -> RegionWorker:
        """The identity of a new worker. It is not used if its rollout or its agent differs from ours."""
        try:
            identity = decode_identity(self._scheduler.call(remote.identify, address, (), IDENTIFY_SECONDS))
        except (RemoteError, CallLostError, ValueError) as error:
            trouble = f"it did not answer as a worker of rollout: {printable(str(error), 200)}"
            return RegionWorker(name, address, "", trouble, time.monotonic())
        ahead = identity.clock - self._clock()
        return RegionWorker(name, address, identity.process, self._trouble(identity), time.monotonic(), ahead)

    def _trouble(self, said: WorkerIdentity) -> str:
        if said.trouble:
            return printable(said.trouble, 300)
        if said.version != __version__:
            return f"it has rollout {printable(said.version, 40)}, not {__version__}"
        if said.agent != self._agent:
            return f"it has another agent program ({printable(said.agent[:12], 12)}, not {self._agent[:12]})"
        return ""


@dataclass(frozen=True, slots=True)
class ServedZone:
    """A zone of nodes. ``region``: of the zone, ``""``: no connected worker is of one. ``workers``: those that can be used.

    ``trouble``: why no worker can be used; ``notice``: what is easily overlooked. ``""``: nothing.
    """

    zone: str
    region: str
    workers: tuple[str, ...]
    trouble: str
    notice: str


def served_zones(workers: Collection[RegionWorker], zones: Collection[str]) -> tuple[ServedZone, ...]:
    """Which of ``workers`` serve each zone, in the order of ``zones``.

    A region keeps its zones if none of its workers can be used: those of a wider region may not reach the nodes.
    """
    regions = {worker.region for worker in workers}
    refused = {worker.region: f"{worker.name}: {worker.trouble}" for worker in workers if worker.trouble}
    found = []
    for zone in zones:
        region = region_of_zone(zone, regions)
        able = tuple(sorted(each.name for each in workers if each.region == region and not each.trouble))
        why = "" if able else refused.get(region, "no worker is connected")
        found.append(ServedZone(zone, region, able, why, _notice(zone, region, able)))
    return tuple(found)


def _notice(zone: str, region: str, workers: Collection[str]) -> str:
    """A worker ``eu-1`` looks like the one of a zone ``eu-1``, but serves the region ``eu`` with all its zones."""
    others = ", ".join(printable(each, 60) for each in workers if each != zone)
    if zone == region or zone not in workers or not others:
        return ""
    return (
        f"worker {zone} serves the whole region {region}, together with {others}; "
        f"a worker of this zone alone has a name such as {zone}-1"
    )
