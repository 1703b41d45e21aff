"""``Nodes`` through the workers of regions: every verb of a node goes to one worker of its region.

What is lost is LOST: the node is unknown, and its next verb goes to another worker of the region. Without one, nothing
new begins there. Where the inventory allows it, this machine's own SSH then carries every verb except an apply.
"""

from __future__ import annotations

import secrets
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Collection
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from hashlib import sha256
from threading import Lock

from rollout.app.ports import Nodes, Target
from rollout.core.model.regions import RegionStanding, region_of_zone
from rollout.core.model.report import RemoteAnswer, RemoteCommand
from rollout.core.run.events import AWAY
from rollout.errors import RemoteError
from rollout.features.regions.client import worker as remote
from rollout.features.regions.client.exchanges import WorkerExchanges
from rollout.features.regions.client.messages import LOST, VerbCall, encode_names, lost
from rollout.features.regions.client.steady import steady
from rollout.features.regions.client.workers import CallLostError, RegionWorker, RegionWorkers, Scheduler

TRAVEL = 10.0
"""Seconds that a call may take in addition to the deadline of its verb."""

RELEASE_WIDTH = 32
SMOOTH = 10
"""A round trip counts for a tenth."""

LOOKS = ("snapshot", "status", "verify")
"""Verbs that change no file of a node: if one is lost with its worker, nothing happened there."""


class RegionNodes:
    """Implements the port ``Nodes``. ``own``: this machine's SSH. ``notice`` gets each zone that goes away, once."""

    def __init__(
        self, scheduler: Scheduler, own: Nodes, notice: Callable[[str], None], clock: Callable[[], float] = steady
    ) -> None:
        self._clock = clock
        self._scheduler = scheduler
        self._own = own
        self._notice = notice
        self._workers = RegionWorkers(scheduler, clock)
        self._lock = Lock()
        self._of_node: dict[str, str] = {}  # node → address of the worker that holds its connection
        self._failed: dict[str, set[str]] = defaultdict(set)  # node → addresses that lost its last call
        self._released: dict[str, set[str]] = defaultdict(set)  # address → nodes
        self._zones: dict[str, str] = {}  # node → its zone, of all nodes with a call
        self._away: set[str] = set()
        self._regions: set[str] = set()  # that had a worker: its zones stay with it if the worker goes
        self._exchanges: dict[str, WorkerExchanges] = {}  # by worker process
        self._calls: dict[str, int] = {}  # region → calls without an answer
        self._trips: dict[str, float] = {}  # region → seconds that a call travels, smoothed

    def run(self, target: Target, command: RemoteCommand) -> RemoteAnswer:
        if command.request is None:
            return self._own.run(target, command)
        worker = self._worker_of(target)
        if worker is None:
            return self._without_region(target, command)
        with self._lock:
            self._zones[target.name] = target.zone
        call = VerbCall(
            nonce=secrets.token_hex(16),
            expires=self._clock() + command.deadline + TRAVEL,
            target=target,
            words=command.request.words,
            payload=command.request.payload,
            sudo=bool(command.bare),
            deadline=command.deadline,
            released=self._to_release(worker.address),
        )
        began = time.monotonic()
        self._count(worker.region, +1)
        try:
            answered = self._exchanges_with(worker).answer(call)
            answer = answered.answer
            self._travelled(worker.region, time.monotonic() - began - answered.took)
        except RemoteError:  # it was not submitted
            return self._without_region(target, command)
        except CallLostError as error:
            answer = lost(f"worker {worker.name} did not answer: {error}")
            if _verb_of(command) in LOOKS and self._clock() < call.expires:  # else the node may be what did not answer
                answer = replace(answer, started=False, reference=AWAY)
        finally:
            self._count(worker.region, -1)
        self._remember(target, worker, answer)
        return answer

    def regions(self) -> tuple[RegionStanding, ...]:
        """As known now, without a question to anybody: regions that had a call, and those with a worker."""
        workers = [worker for worker in self._workers.known() if not worker.trouble]
        with self._lock:
            held = Counter(self._of_node.values())
            calls, trips = dict(self._calls), dict(self._trips)
        names = sorted({*calls, *(worker.region for worker in workers)})
        of = {name: [worker for worker in workers if worker.region == name] for name in names}
        return tuple(
            RegionStanding(
                name,
                tuple(sorted(worker.name for worker in of[name])),
                calls.get(name, 0),
                sum(held[worker.address] for worker in of[name]),
                trips.get(name),
            )
            for name in names
        )

    def release(self, target: Target) -> None:
        with self._lock:
            address = self._of_node.pop(target.name, "")
            self._failed.pop(target.name, None)
            if address:
                self._released[address].add(target.name)
        self._own.release(target)

    def close(self) -> None:
        """Ends the connections to all nodes with a call, here and on the workers. That to the scheduler is its owner's.

        Also on workers that held a node for a controller that died, or before its call was lost.
        """
        self._own.close()
        with self._lock:
            zones, self._zones = self._zones, {}
        if not zones:
            return
        workers = [worker for worker in self._workers.connected() if not worker.trouble]
        of_region: dict[str, set[str]] = defaultdict(set)
        for name, zone in zones.items():
            of_region[region_of_zone(zone, self._regions)].add(name)
        with ThreadPoolExecutor(RELEASE_WIDTH) as pool:
            for worker in workers:
                pool.submit(self._release_on, worker, of_region[worker.region])

    def _release_on(self, worker: RegionWorker, names: Collection[str]) -> None:
        """A worker without an answer ends the connections when they are idle."""
        with suppress(RemoteError, CallLostError):
            self._scheduler.call(remote.release, worker.address, (encode_names(names),), TRAVEL)

    def _worker_of(self, target: Target) -> RegionWorker | None:
        """The worker that holds the node's connection; else the same one for the same node, of those that remain."""
        workers = self._workers.connected()
        with self._lock:
            failed = self._failed[target.name]
            self._regions |= {worker.region for worker in workers}
            region = region_of_zone(target.zone, self._regions)
            able = [worker for worker in workers if worker.region == region and not worker.trouble]
            if not able:
                return None
            held = next((worker for worker in able if worker.address == self._of_node.get(target.name)), None)
            if held is not None and held.address not in failed:
                return held
            first = min(able, key=lambda worker: (worker.address in failed, rank(target.name, worker.name)))
            if first.address in failed and failed >= {worker.address for worker in able}:
                failed.clear()  # each of them is tried again
                return None if target.controller_ssh else first
            return first

    def _without_region(self, target: Target, command: RemoteCommand) -> RemoteAnswer:
        with self._lock:
            new = target.zone not in self._away
            self._away.add(target.zone)
        away = f"zone {target.zone} has no worker that answers"
        way = "are read over this machine's SSH" if target.controller_ssh else "cannot be reached; their guards revert"
        if new:
            self._notice(f"{away}: its nodes {way}")
        applies = _verb_of(command) == "apply"
        if target.controller_ssh and not applies:
            return self._own.run(target, command)
        rest = "nothing is applied there" if applies else "`controllerSsh` of the inventory has no region of this zone"
        return RemoteAnswer(None, b"", b"", started=False, reference=AWAY, message=f"{away}; {rest}")

    def _exchanges_with(self, worker: RegionWorker) -> WorkerExchanges:
        with self._lock:
            if worker.process not in self._exchanges:
                self._exchanges[worker.process] = WorkerExchanges(
                    self._scheduler, worker, self._in_progress, self._clock
                )
            return self._exchanges[worker.process]

    def _count(self, region: str, change: int) -> None:
        with self._lock:
            self._calls[region] = self._calls.get(region, 0) + change

    def _in_progress(self) -> int:
        with self._lock:
            return sum(self._calls.values())

    def _travelled(self, region: str, seconds: float) -> None:
        with self._lock:
            before = self._trips.get(region, seconds)
            self._trips[region] = before + (seconds - before) / SMOOTH

    def _to_release(self, address: str) -> tuple[str, ...]:
        with self._lock:
            return tuple(self._released.pop(address, ()))

    def _remember(self, target: Target, worker: RegionWorker, answer: RemoteAnswer) -> None:
        is_lost = answer.status is None and answer.reference in (LOST, AWAY)
        with self._lock:
            if is_lost:
                self._failed[target.name].add(worker.address)
                self._of_node.pop(target.name, None)
                self._workers.look_again()
            else:
                self._away.discard(target.zone)
                self._failed.pop(target.name, None)
                self._of_node[target.name] = worker.address


def _verb_of(command: RemoteCommand) -> str:
    return command.request.words.split(" ", 1)[0] if command.request is not None else ""


def rank(node: str, worker: str) -> bytes:
    """Rendezvous hashing: most nodes keep their worker when another one comes or goes."""
    return sha256(f"{worker} {node}".encode()).digest()
