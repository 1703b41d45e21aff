"""What each step of a transaction costs one real node: the CPU of all its processes, by its control group, and the wall time."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from benchmarks.exits import Exits, exits
from benchmarks.real_nodes import add_programs
from benchmarks.results import Reasons
from rollout.adapters.agent_program import agent_program
from rollout.adapters.ssh import SshNodes
from rollout.kubelet.agent import agent_call
from rollout.kubelet.agent.agent_call import Measure
from tests.bed.bed import Bed
from tests.bed.node import Node
from tests.controllers import until
from tests.real.agent_calls import DROP_IN, PATIENCE, OnNode, on_disk

FLAGS = "/etc/default/kubelet"
GATES = "measurements of the gates"
MEASUREMENTS = 3
"""Of a node in a run: before its apply, after it, and in the soak."""
TIMES = 3
"""Repetitions; the least CPU of them counts."""
Step = tuple[str, Callable[[], object]]


@dataclass(frozen=True, slots=True)
class Cost:
    """Milliseconds of the node's CPU and of wall time."""

    cpu: float
    wall: float


def on_a_node() -> tuple[Reasons, Reasons]:
    """By verb, and by program. Boots one node (root)."""
    with Bed() as bed:
        add_programs(bed.folder / "image")
        (node,) = bed.add(1)
        ssh = SshNodes(ssh_config=bed.ssh_config)
        try:
            return _by_verb(_costs(node, ssh, bed)), _by_program(node, ssh, bed)
        finally:
            ssh.close()


def _by_verb(costs: dict[str, Cost]) -> Reasons:
    rows = [("step", "node's CPU", "wall")]
    whole = [costs["claim"], *[costs[GATES]] * MEASUREMENTS, costs["apply"], costs["confirm"], costs["cleanup"]]
    costs[f"an apply, whole: claim, {MEASUREMENTS} measurements, apply, confirm, cleanup"] = Cost(
        sum(cost.cpu for cost in whole), sum(cost.wall for cost in whole)
    )
    rows += [(step, f"{cost.cpu:.0f} ms", f"{cost.wall:.0f} ms") for step, cost in costs.items()]
    return Reasons(
        "One real node, by verb",
        rows,
        "The CPU of all processes of the node, its systemd, sshd and kubelet included. The kubelet is a small stand-in. An apply waits for"
        f" health for longer than systemd's pause between restarts. Of {TIMES} repetitions the one with the least CPU.",
    )


TRANSACTION = ("claim", "apply", "confirm", "cleanup")
FLOOR = "the safe floor, whole"
SHOWN = 16
"""Programs of the table."""


def _by_program(node: Node, ssh: SshNodes, bed: Bed) -> Reasons:
    """The means of ``TIMES`` transactions, and of as many safe floors."""
    ours, floor = Exits(), Exits()
    spent = {TRANSACTION: 0.0, (FLOOR,): 0.0}
    for number in range(TIMES):
        for step, act in _steps(node, ssh, bed, number + 2 + TIMES):
            inside = next((names for names in spent if step in names), None)
            if inside is None:
                act()
                continue
            before = alive(node)
            with exits() as ended:
                spent[inside] += _cost(node, act).cpu
            (ours if inside is TRANSACTION else floor).add(ended, before | alive(node))
    names = sorted({*ours.nanoseconds, *floor.nanoseconds}, key=lambda name: -ours.nanoseconds[name])
    ends = [(name, *(f"{each.of(name, TIMES)}" for each in (ours, floor))) for name in names[:SHOWN]]
    return Reasons(
        "One real node, by program",
        [
            ("program", "an apply: claim, apply, confirm, cleanup", "the safe floor"),
            *ends,
            ("the node, whole", *(f"{cost / TIMES:.0f} ms" for cost in spent.values())),
        ],
        f"CPU of the processes that ended, as the kernel counted it, and how many there were; means of {TIMES} repetitions. The row of `sh` has its forks."
        " What stays is what lives on: systemd, sshd, the journal and the kubelet.",
    )


def _costs(node: Node, ssh: SshNodes, bed: Bed) -> dict[str, Cost]:
    _cost(node, OnNode(ssh, node, "first", 1).snapshot)  # connects, and sends the program
    found: dict[str, list[Cost]] = {}
    for number in range(TIMES):
        for step, act in _steps(node, ssh, bed, number + 2):
            found.setdefault(step, []).append(_cost(node, act))
    return {step: min(costs, key=lambda cost: cost.cpu) for step, costs in found.items()}


def _steps(node: Node, ssh: SshNodes, bed: Bed, counter: int) -> Iterator[Step]:
    """A transaction, and what it is compared with."""
    here, tx = OnNode(ssh, node, f"r{counter}", counter), f"t{counter}"
    program = agent_program()
    looks = agent_call.status(
        program, measure=Measure("kubelet.service", paths=(FLAGS, DROP_IN)), sudo=True, deadline=PATIENCE
    )
    yield "claim", here.claim
    yield "snapshot", here.snapshot
    yield "status", lambda: here.status(tx)
    yield GATES, lambda: here.send(looks)
    change = {DROP_IN: f'[Service]\nEnvironment="N={counter}"\n'.encode(), FLAGS: f"A={counter}\n".encode()}
    order = here.order(tx, change)
    yield "apply", lambda: here.send(order)
    yield "confirm", lambda: here.confirm(tx)
    if on_disk(node, tx)["state"] != "confirmed":
        raise SystemExit(f"the agent did not change the node: {on_disk(node, tx)}")
    yield "cleanup", here.cleanup
    yield "bare `systemctl daemon-reload`", lambda: node.exec("systemctl", "daemon-reload")
    yield "bare `systemctl restart kubelet`, and health", lambda: _restart(node)
    floor = (sys.executable, str(Path(__file__).with_name("floor.py")), str(bed.ssh_config), "false", node.name)
    yield FLOOR, lambda: subprocess.run(floor, stdout=subprocess.DEVNULL, check=True)


def _restart(node: Node) -> None:
    node.exec("systemctl", "restart", "kubelet")
    until(lambda: "ok" in node.exec("curl", "-s", "http://127.0.0.1:10248/healthz", check=False), PATIENCE, "health")


def _cost(node: Node, act: Callable[[], object]) -> Cost:
    before, began = used(node), time.monotonic()
    act()
    return Cost(used(node) - before, 1000 * (time.monotonic() - began))


def alive(node: Node) -> set[int]:
    """Its processes, as this machine numbers them."""
    return {int(pid) for group in node.cgroup.rglob("cgroup.procs") for pid in group.read_text().split()}


def used(node: Node) -> float:
    """Milliseconds of CPU of all its processes so far."""
    found = re.search(r"^usage_usec (\d+)", (node.cgroup / "cpu.stat").read_text(), re.MULTILINE)
    return int(found[1]) / 1000 if found else 0.0
