"""The lab's process: ``python -m rollout.lab.serve DIRECTORY``, started by ``lab up`` in the background."""

from __future__ import annotations

import base64
import json
import os
import random
import resource
import signal
import socket
import sys
import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from rollout.lab import children, keys, kubelet, resources, sshd, tools, trees
from rollout.lab import spec as lab_spec
from rollout.lab.api import KINDS as KINDS_OF_API
from rollout.lab.api import Api
from rollout.lab.config_maps import of_kubeadm
from rollout.lab.control import Control
from rollout.lab.faults import KINDS, NOW, Faults, LabFault, Ward
from rollout.lab.keys import Key
from rollout.lab.listener import Door
from rollout.lab.loop import Loop
from rollout.lab.node import LabNode
from rollout.lab.objects import NodeMoment
from rollout.lab.replicas import Replicas
from rollout.lab.rest import Lookup
from rollout.lab.spec import LabSpec

# All nodes of a lab in one loop, and its commands: status, faults, end.


SHORTEST = 0.2
"""Least seconds between two renewals of a lease. The period is RestartSec (both are ten on a real node), or this."""
CONNECTIONS = 4000
"""Further concurrent clients are disconnected: each needs a thread."""


class LabFleet:
    """The nodes, their listeners and their faults."""

    def __init__(self, loop: Loop, spec: LabSpec, directory: Path) -> None:
        self.loop, self.spec, self.directory = loop, spec, directory
        self.port = 0
        self.keys = {node.name: Key.generate() for node in spec.nodes}
        self.mark = uuid.uuid4().hex
        ahead = time.time() - loop.now()
        self.nodes = {node.name: LabNode(loop, node, directory, self.mark, ahead) for node in spec.nodes}
        for node in self.nodes.values():
            node.machine.pods.lease.period = max(spec.restart_sec, SHORTEST)
        self.doors: dict[str, Door] = {}
        self.faults = Faults(loop, lambda name: Ward(loop, self.nodes[name], self.doors[name]))
        self._authorized = b""

    def admit(self, public: str) -> None:
        """The only accepted key."""
        self._authorized = base64.b64decode(public.split()[1])

    def open(self, ports: Iterable[int]) -> None:
        """Listen on the first of ``ports`` that is free on every node's address."""
        for port in ports:
            doors = {
                name: Door(self.loop, node.spec.address, port, self._welcome(node)) for name, node in self.nodes.items()
            }
            try:
                for door in doors.values():
                    door.open()
            except OSError:
                for door in doors.values():
                    door.shut()
                continue
            self.doors, self.port = doors, port
            return
        raise OSError("no free port on the lab's loopback addresses")

    def power_on(self) -> None:
        for node in self.nodes.values():
            node.power_on()

    def close(self) -> None:
        """End every process of the lab's nodes."""
        for door in self.doors.values():
            door.shut()
        children.kill_marked("ROLLOUT_LAB", f"{self.mark}/")

    def _welcome(self, node: LabNode) -> Callable[[socket.socket], None]:
        def welcome(client: socket.socket) -> None:
            if threading.active_count() > CONNECTIONS:
                client.close()
                return
            node.welcome(client, self._authorized, self.keys[node.spec.name])

        return welcome

    def status(self) -> dict[str, object]:
        """Which nodes are in which state, and which have a fault."""
        states: dict[str, list[str]] = {}
        for name, node in self.nodes.items():
            states.setdefault(node.state(), []).append(name)
        busy = Counter(connections=0, commands=0)
        for node in self.nodes.values():
            busy["connections"] += len(node.connections)
            busy["commands"] += len(node.sessions)
        return {
            "cluster": self.spec.cluster,
            "port": self.port,
            "states": states,
            "faults": self.faults.by_kind(),
            "orders": self.faults.listed(),
            **busy,
        }

    def lookup(self) -> Lookup:
        """The data for answers of the API."""
        names = tuple(self.nodes)
        return Lookup(names, self._see, self.spec.api_server, Replicas(names), of_kubeadm(self.spec.api_server))

    def _see(self, name: str) -> NodeMoment:
        node = self.nodes[name]
        node.settle()
        return NodeMoment(node.spec, node.machine, self.loop.now(), node.ahead)


SPEC, READY = "spec.json", "lab.json"
WATCH = 1.0
"""Seconds between two checks that our directory still exists."""


def main(directory: Path) -> None:
    """Make the trees, serve the nodes, and end on request or when the directory is gone."""
    os.umask(0o022)
    os.chdir("/")
    children.reserve()
    sshd.prepare()
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    spec = lab_spec.read(directory / SPEC)
    tools.install(directory)
    trees.build(spec, directory)
    loop = Loop()
    signal.signal(signal.SIGTERM, lambda *_: loop.stop())
    signal.signal(signal.SIGINT, lambda *_: loop.stop())
    fleet = LabFleet(loop, spec, directory)
    numbers = random.sample(range(20000, 30000), 200)
    fleet.open(numbers)
    user = keys.write_client_files(directory, spec.nodes, fleet.keys, fleet.port)
    fleet.admit(user.public)
    fleet.power_on()
    lookup = fleet.lookup()
    api = Api(loop, directory, spec.cluster, partial(resources.answer, lookup))
    Control(loop, directory, lambda request: _answer(fleet, api, request))

    def ready() -> None:
        _announce(directory, spec, fleet.port)
        _watch(loop, directory, (directory / READY).stat().st_ino)

    loop.at(loop.now() + kubelet.START_UP, ready)  # so that an immediate plan finds every kubelet healthy
    loop.run()
    fleet.close()
    os._exit(0)  # SSH threads may still be blocked in reads


def _answer(fleet: LabFleet, api: Api, request: dict[str, object]) -> dict[str, object]:
    names = request.get("nodes")
    if request["op"] == "status":
        return {**fleet.status(), "api": api.kind or "ok"}
    if request["op"] == "api":
        kind, seconds = request.get("kind"), request.get("after")
        if kind is None:
            api.mend()
        elif kind in KINDS_OF_API:
            api.break_down(str(kind), float(seconds) if isinstance(seconds, int | float) else 5.0)
        else:
            raise ValueError(f"no fault of the API: {kind}")
        return {}
    if request["op"] == "stop":
        fleet.loop.at(fleet.loop.now() + 0.05, fleet.loop.stop)
        return {}
    if not isinstance(names, list):
        raise ValueError("nodes")
    unknown = [name for name in names if name not in fleet.nodes]
    if unknown:
        raise ValueError(f"not in the lab: {', '.join(unknown[:5])}")
    if request["op"] == "clear":
        fleet.faults.clear(names)
        return {}
    order = fleet.faults.add if request.get("add") else fleet.faults.set
    # ``kind``, and if wanted ``after``, ``lasting`` (seconds) and ``at`` (a moment).
    kind, after, lasting = str(request["kind"]), request.get("after"), request.get("lasting")
    order(
        names,
        LabFault(
            kind,
            float(after) if isinstance(after, int | float) else KINDS[kind].after,
            float(lasting) if isinstance(lasting, int | float) else None,
            str(request.get("at") or NOW),
        ),
    )
    return {}


def _announce(directory: Path, spec: LabSpec, port: int) -> None:
    ready = {
        "version": 1,
        "pid": os.getpid(),
        "cluster": spec.cluster,
        "nodes": len(spec.nodes),
        "port": port,
        "control": "control.sock",
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
    }
    draft = directory / f".{READY}"
    draft.write_text(json.dumps(ready, indent=2) + "\n", encoding="utf-8")
    draft.rename(directory / READY)


def _watch(loop: Loop, directory: Path, inode: int) -> None:
    """Stop when the directory was removed (or replaced by another lab)."""

    def look() -> None:
        try:
            same = (directory / READY).stat().st_ino == inode
        except OSError:
            same = False
        if not same:
            loop.stop()
        loop.at(loop.now() + WATCH, look)

    look()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
