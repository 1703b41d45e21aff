"""All nodes of a lab behind one loop, and what people may ask of it: status, faults, an end."""

from __future__ import annotations

import base64
import socket
import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path

from rollout.adapters.lab import ailments, children
from rollout.adapters.lab.door import Door
from rollout.adapters.lab.keys import Key
from rollout.adapters.lab.loop import Loop
from rollout.adapters.lab.node import LabNode
from rollout.adapters.lab.spec import LabSpec

REFUSE, HANG, DROP, REBOOT = "refuse", "hang-before-banner", "drop-mid-apply", "reboot"
KINDS = (REFUSE, HANG, DROP, *ailments.KINDS, REBOOT)
DEFAULT_AFTER: Mapping[str, float] = {DROP: 0.3, ailments.SICK_IN_SOAK: 2.0, ailments.DEAF_IN_SOAK: 2.0, REBOOT: 0.3}
CONNECTIONS = 4000
"""More clients than this at a time are hung up on: one thread each."""


class Fleet:
    """The nodes, their doors and their faults."""

    def __init__(self, loop: Loop, spec: LabSpec, directory: Path) -> None:
        self.loop, self.spec, self.directory = loop, spec, directory
        self.port = 0
        self.keys = {node.name: Key.generate() for node in spec.nodes}
        self.mark = uuid.uuid4().hex
        self.nodes = {node.name: LabNode(loop, node, directory, self.mark, time.time) for node in spec.nodes}
        self.doors: dict[str, Door] = {}
        self.faults: dict[str, str] = {}
        self._cuts: Counter[str] = Counter()
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
        faults: dict[str, list[str]] = {}
        for name, node in self.nodes.items():
            states.setdefault(node.state(), []).append(name)
            if name in self.faults:
                faults.setdefault(self.faults[name], []).append(name)
        busy = Counter(connections=0, commands=0)
        for node in self.nodes.values():
            busy["connections"] += len(node.connections)
            busy["commands"] += len(node.sessions)
        return {"cluster": self.spec.cluster, "port": self.port, "states": states, "faults": faults, **busy}

    def fault(self, names: Iterable[str], kind: str, after: float | None) -> None:
        """Break nodes; a node has at most one fault, a new one takes the place of the old."""
        moment = DEFAULT_AFTER.get(kind, 0.0) if after is None else after
        for name in names:
            self.clear([name])
            _FAULTS[kind](self, self.nodes[name], self.doors[name], moment)
            if kind != REBOOT:
                self.faults[name] = kind

    def clear(self, names: Iterable[str]) -> None:
        """Mend nodes: the network is back; a kubelet that exited comes back with its next start."""
        for name in names:
            self.faults.pop(name, None)
            node, door = self.nodes[name], self.doors[name]
            node.cut_after = None
            node.machine.ailments.clear()
            door.speak()
            door.open()

    def refuse(self, node: LabNode, door: Door, after: float) -> None:
        self.loop.at(self.loop.now() + after, partial(self._if_still, node.spec.name, REFUSE, door.shut))

    def hang(self, _node: LabNode, door: Door, _after: float) -> None:
        door.dumb = True

    def drop(self, node: LabNode, _door: Door, after: float) -> None:
        node.cut_after = after

    def reboot(self, node: LabNode, door: Door, after: float) -> None:
        """A power cut; the node comes back ``after`` seconds later."""
        door.shut()
        node.power_cut()

        self._cuts[node.spec.name] += 1
        cut = self._cuts[node.spec.name]

        def back() -> None:
            if self._cuts[node.spec.name] != cut:  # cut again meanwhile; that one brings it back
                return
            door.open()
            node.power_on()

        self.loop.at(self.loop.now() + after, back)

    def _if_still(self, name: str, kind: str, act: Callable[[], None]) -> None:
        if self.faults.get(name) == kind:
            act()


def _ail(kind: str) -> Callable[[Fleet, LabNode, Door, float], None]:
    def ail(_fleet: Fleet, node: LabNode, _door: Door, after: float) -> None:
        for service in node.machine.kubelets():
            node.machine.ailments.set(kind, service.start.fingerprint, after)

    return ail


_FAULTS: Mapping[str, Callable[[Fleet, LabNode, Door, float], None]] = {
    REFUSE: Fleet.refuse,
    HANG: Fleet.hang,
    DROP: Fleet.drop,
    REBOOT: Fleet.reboot,
    **{kind: _ail(kind) for kind in ailments.KINDS},
}
