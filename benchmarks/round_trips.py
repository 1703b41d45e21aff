"""How many round trips a command waits for on one node, SSH's own handshake included.

A relay between the command and a node's sshd passes each piece on after a delay, longer than either side needs to say all that it can
say without an answer. The count does not depend on the delay: each side has a logical clock, in one-way trips, that a delivered piece
sets to one more than its sender's had been. So what is sent without waiting costs nothing, and what waits for an answer costs two.
"""

from __future__ import annotations

import select
import socket
import sys
import tempfile
import threading
import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path

from benchmarks.cheap_fleet import HERE, PLAYBOOK
from benchmarks.cheap_nodes import NEW, CheapNodes, cheap_nodes, prototype
from benchmarks.figures import Row
from benchmarks.loopback import PORT
from benchmarks.measured import measured
from tests.agent.node import CONFIG

RELAYED = PORT + 1
ONE_WAY = 0.2
"""Seconds. A busy machine needs less between two messages that are sent without waiting."""
PLAN, APPLY, EMERGENCY = "plan", "apply", "emergency rollback"
MOST = {PLAN: 7, APPLY: 9, EMERGENCY: 9}
LARGEST = 65536


CLIENT, SERVER = "client", "server"
OTHER = {CLIENT: SERVER, SERVER: CLIENT}


class Trips:
    """Of one connection: the logical clock of each side, which begins when TCP has connected them, and the ``pieces`` sent.

    A piece is its side, the side's clock and the number of bytes.
    """

    def __init__(self) -> None:
        self._clocks = {CLIENT: 2, SERVER: 3}
        self.pieces: list[tuple[str, int, int]] = []

    def sent(self, side: str, size: int) -> int:
        """The clock that this piece brings to the other side."""
        self.pieces.append((side, self._clocks[side], size))
        return self._clocks[side] + 1

    def delivered(self, to: str, clock: int) -> None:
        self._clocks[to] = max(self._clocks[to], clock)

    @property
    def whole(self) -> int:
        """Round trips from TCP's first packet to the last piece that the client got."""
        return self._clocks[CLIENT] // 2

    @property
    def asked(self) -> int:
        """Round trips since the client first said something: without TCP's, and without the server's banner if the client waits for it."""
        first = next((clock for side, clock, _ in self.pieces if side == CLIENT), self._clocks[CLIENT])
        return (self._clocks[CLIENT] - first) // 2

    def bytes_from(self, side: str) -> int:
        return sum(size for sender, _, size in self.pieces if sender == side)


class Relay:
    """From a ``port`` of ``address`` to another. ``connections``: the trips of each, in order."""

    def __init__(self, address: str, port: int, to_port: int, one_way: float = ONE_WAY) -> None:
        self.connections: list[Trips] = []
        self._to = (address, to_port)
        self._one_way = one_way
        self._listener = socket.create_server((address, port))
        self.port = self._listener.getsockname()[1]
        self._threads = [threading.Thread(target=self._accept, daemon=True)]
        self._threads[0].start()

    def close(self) -> None:
        """When the last connection has ended."""
        self._listener.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join()
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                client = self._listener.accept()[0]
            except OSError:
                return
            self.connections.append(Trips())
            self._threads.append(threading.Thread(target=self._carry, args=(client, self.connections[-1]), daemon=True))
            self._threads[-1].start()

    def _carry(self, client: socket.socket, trips: Trips) -> None:
        with client, socket.create_connection(self._to) as server:
            ends, sides = {CLIENT: client, SERVER: server}, {client: CLIENT, server: SERVER}
            for end in sides:
                end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            under_way: deque[tuple[float, str, bytes, int]] = deque()
            talking = set(sides)
            while talking or under_way:
                wait = max(0.0, under_way[0][0] - time.monotonic()) if under_way else None
                for end in select.select(list(talking), [], [], wait)[0]:
                    side, data = sides[end], _received(end)
                    if not data:
                        talking.discard(end)
                    clock = trips.sent(side, len(data)) if data else 0
                    under_way.append((time.monotonic() + self._one_way, OTHER[side], data, clock))
                while under_way and under_way[0][0] <= time.monotonic():
                    _, to, data, clock = under_way.popleft()
                    trips.delivered(to, clock)
                    _pass_on(ends[to], data)


def _received(end: socket.socket) -> bytes:
    """Nothing: it has ended."""
    try:
        return end.recv(LARGEST)
    except OSError:
        return b""


def _pass_on(to: socket.socket, data: bytes) -> None:
    """Nothing: the other side has ended."""
    try:
        if data:
            to.sendall(data)
        else:
            to.shutdown(socket.SHUT_WR)
    except OSError:
        return


def rows() -> Iterator[Row]:
    with tempfile.TemporaryDirectory() as name:
        for command, connections in round_trips(Path(name)).items():
            whole = sum(each.whole for each in connections)
            sizes = [sum(each.bytes_from(side) for each in connections) for side in (CLIENT, SERVER)]
            yield Row(
                f"round trips of one node, {command}",
                sum(each.asked for each in connections),
                MOST[command],
                "",
                note=f"since the client's first word; {whole} with TCP's; {sizes[0]:,} bytes sent, {sizes[1]:,} received",
            )


def round_trips(folder: Path) -> Mapping[str, Sequence[Trips]]:
    """Of each command the connections that it opened to the node."""
    found: dict[str, Sequence[Trips]] = {}
    with cheap_nodes(folder, 1) as nodes:
        nodes.lay_out(prototype(folder / "prototype", folder / "tools").root)
        _project(nodes)
        for name, words in (
            (PLAN, ("plan", "--cluster", "cheap", "--out", "p.json")),
            (APPLY, ("apply", "p.json", "--yes")),
            (EMERGENCY, ("rollback", "--cluster", "cheap", "--emergency", "--yes")),
        ):
            with closing(Relay(nodes.addresses[0], RELAYED, PORT)) as line:
                command = (sys.executable, "-m", "rollout.cli", *words, "--ssh-config", str(nodes.ssh_config))
                measured(command, nodes.folder, {"PYTHONPATH": str(HERE)})
            found[name] = line.connections
            if name == APPLY and (nodes.root(0) / CONFIG[1:]).read_bytes() != NEW:
                raise SystemExit("the apply did not change the node")
    return found


def _project(nodes: CheapNodes) -> None:
    """What rollout reads; the node is reached through the relay."""
    config, known = nodes.ssh_config, nodes.folder / "known"
    config.write_text(config.read_text().replace(str(PORT), str(RELAYED)))
    known.write_text(known.read_text().replace(str(PORT), str(RELAYED)))
    for path, text in (("inventories/cheap.yaml", nodes.inventory("cheap")), ("playbooks/pulls.yaml", PLAYBOOK)):
        (nodes.folder / path).parent.mkdir(exist_ok=True)
        (nodes.folder / path).write_text(text)
    (nodes.folder / "templates").symlink_to(HERE / "templates")
