"""All nodes of a lab behind one loop, and what people may ask of it: status, faults, an end."""

from __future__ import annotations

import base64
import socket
import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path

from rollout.lab import children
from rollout.lab.door import Door
from rollout.lab.faults import Faults, Ward
from rollout.lab.keys import Key
from rollout.lab.loop import Loop
from rollout.lab.node import LabNode
from rollout.lab.objects import Seen
from rollout.lab.replicas import Replicas
from rollout.lab.rest import Lookup
from rollout.lab.spec import LabSpec

SHORTEST = 0.2
"""Seconds between two renewals of a lease are as many as RestartSec, which are ten each on a real node, but not fewer."""
CONNECTIONS = 4000
"""More clients than this at a time are hung up on: one thread each."""


class Fleet:
    """The nodes, their doors and their faults."""

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
        """The one key that may come in."""
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

    # ------------------------------------------------------------------------------------------------------ questions

    def status(self) -> dict[str, object]:
        """Which nodes are in which state, and which have a fault."""
        states: dict[str, list[str]] = {}
        for name, node in self.nodes.items():
            states.setdefault(node.state(), []).append(name)
        busy = Counter(connections=0, commands=0)
        for node in self.nodes.values():
            busy["connections"] += len(node.connections)
            busy["commands"] += len(node.sessions)
        return {"cluster": self.spec.cluster, "port": self.port, "states": states, **self._ailing(), **busy}

    def lookup(self) -> Lookup:
        """What the API answers from."""
        names = tuple(self.nodes)
        return Lookup(names, self._see, self.spec.api_server, Replicas(names))

    def _see(self, name: str) -> Seen:
        node = self.nodes[name]
        node.settle()
        return Seen(node.spec, node.machine, self.loop.now(), node.ahead)

    def _ailing(self) -> dict[str, object]:
        return {"faults": self.faults.by_kind(), "orders": self.faults.listed()}
