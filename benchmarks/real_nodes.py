"""The same change on the same real systemd nodes, by rollout, by the safe floor and by other tools, in turns.

Each round takes every tool once, in an order that rotates. Before each turn the nodes get their old files back, from outside.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path

from benchmarks.measured import FailedError, Measured, Turns, measured
from benchmarks.peers import FLAGS, FLAGS_TEXT, PEERS, Fleet, Target
from tests.bed.bed import INSTANCES, Bed
from tests.bed.node import CONFIG, PLAIN_CONFIG, Layout, Node

LIMIT = Path("/proc/sys/fs/inotify/max_user_instances")
ROOT = Path(__file__).parent.parent
FLOOR, VERBS, APPLY, EMERGENCY = "safe floor", "agent's verbs alone", "rollout apply", "rollout rollback --emergency"
PLAYBOOK = """\
name: pulls
settings: {imagePullProgressDeadline: 5m, serializeImagePulls: false}
waves: [rest]
rehearsal: false
limits: {inFlight: 1000, perRack: 100%, pace: 1000}
budgets: {wave: 1000, rack: 1000, fleet: 1000}
soak: 0s
passes: 1
guard: 180s
"""
TOGETHER = 8

Line = Callable[[Bed], AbstractContextManager[Sequence[str]]]
"""Where the controller is: the words before its commands."""


def no_line(_bed: Bed) -> AbstractContextManager[Sequence[str]]:
    """The controller is on this machine, beside its nodes."""
    return nullcontext(())


def compare(folder: Path, nodes: int, rounds: int, tools: Path, line: Line = no_line) -> Turns:
    with many_instances(nodes), Bed() as bed:
        add_programs(bed.folder / "image")
        found = bed.add(nodes)
        lay_out(folder, found)
        with line(bed) as there:
            return _in_turns(folder, bed, rounds, tools, there)


def _in_turns(folder: Path, bed: Bed, rounds: int, tools: Path, there: Sequence[str]) -> Turns:
    """Each tool once a round; ``there``: the words before its commands."""
    found = bed.nodes
    turns: dict[str, list[Measured]] = defaultdict(list)
    connections: dict[str, float] = {}
    failures: dict[str, str] = {}
    names = [FLOOR, VERBS, APPLY, *PEERS]
    for number in range(rounds):
        for name in names[number % len(names) :] + names[: number % len(names)]:
            reset(found)
            at = name
            try:
                for tool, words in steps(name, folder, bed, tools, there):
                    at, last = tool, number + 1 == rounds
                    before = _accepted(found) if last else 0
                    turns[tool].append(
                        measured(
                            (*there, *words),
                            folder,
                            {"ANSIBLE_CONFIG": str(folder / "ansible.cfg"), "PYTHONPATH": str(ROOT)},
                        )
                    )
                    if last:
                        connections[tool] = (_accepted(found) - before) / len(found)
                    sys.stderr.write(f"round {number + 1}: {tool}: {turns[tool][-1]}\n")
            except FailedError as error:  # the figures of the others count
                failures[at] = f"round {number + 1}: {error}"
                sys.stderr.write(f"{failures[at]}\n")
    return Turns(len(found), turns, connections, failures)


def steps(name: str, folder: Path, bed: Bed, tools: Path, there: Sequence[str]) -> Iterator[tuple[str, Sequence[str]]]:
    """What is measured for this tool, one after the other."""
    if name == FLOOR:
        names = [node.name for node in bed.nodes]
        yield FLOOR, (sys.executable, str(ROOT / "benchmarks/floor.py"), str(bed.ssh_config), "false", *names)
    elif name == VERBS:
        (folder / "orders.json").write_text(json.dumps({node.name: _order(node) for node in bed.nodes}))
        yield VERBS, (sys.executable, "-m", "benchmarks.bare_verbs", str(bed.ssh_config), "orders.json")
    elif name == APPLY:
        way = ("--ssh-config", str(bed.ssh_config))
        measured((*there, *rollout_words("plan", "--cluster", "real", "--out", "p.json", *way)), folder)
        yield APPLY, rollout_words("apply", "p.json", "--yes", *way)
        yield (
            EMERGENCY,
            rollout_words(
                "rollback", "--cluster", "real", "--emergency", "--yes", "--pace", "1000", "--per-rack", "100%", *way
            ),
        )
    else:
        script = "VALUE=false\n" + (ROOT / "benchmarks/floor.sh").read_text()
        targets = tuple(_target(node) for node in bed.nodes)
        PEERS[name].files(folder, Fleet(targets, "ops", bed.user_key, 22, script, cheap=False))
        yield name, PEERS[name].words(tools)


def rollout_words(*words: str) -> Sequence[str]:
    return (sys.executable, "-m", "rollout.cli", *words)


def _target(node: Node) -> Target:
    return Target(node.name, node.address, {path: new for path, (_, new) in _files(node).items()})


def _order(node: Node) -> dict[str, object]:
    """As ``bare_verbs`` reads it."""
    return {"machineId": (node.root / "etc/machine-id").read_text().strip(), "files": _files(node)}


def _files(node: Node) -> dict[str, tuple[str | None, str]]:
    """Path → the old text, if there is one, and the new one."""
    return {_config(node): (CONFIG, CONFIG.replace("Pulls: true", "Pulls: false")), FLAGS: (None, FLAGS_TEXT)}


def _config(node: Node) -> str:
    return PLAIN_CONFIG if node.layout is Layout.PLAIN else "/var/lib/kubelet/config.yaml"


def reset(nodes: Sequence[Node]) -> None:
    """The old files in force on every node, nothing of a tool left."""
    away = (
        f"{FLAGS} /var/lib/floor /var/lib/rollout /etc/systemd/system/kubelet.service.d/90-rollout.conf"
        " /etc/systemd/system/floor-guard.service /etc/systemd/system/multi-user.target.wants/floor-guard.service"
    )

    def one(node: Node) -> None:
        (node.root / _config(node).lstrip("/")).write_text(CONFIG)
        line = f"systemctl stop floor-timer.timer floor-watch.service 2>/dev/null; rm -rf {away}; systemctl daemon-reload; systemctl restart kubelet; pkill -u ops sshd; :"
        node.exec("sh", "-c", line)

    with ThreadPoolExecutor(TOGETHER) as pool:
        list(pool.map(one, nodes))


def _accepted(nodes: Sequence[Node]) -> int:
    """Connections that the nodes' sshd has accepted in this boot."""

    def one(node: Node) -> int:
        said = node.exec("journalctl", "-b", "-t", "sshd", "-o", "cat", "--no-pager")
        return len(re.findall(r"^Accepted publickey", said, re.MULTILINE))

    with ThreadPoolExecutor(TOGETHER) as pool:
        return sum(pool.map(one, nodes))


def lay_out(folder: Path, nodes: Sequence[Node], zone: str = "") -> None:
    """What rollout reads. ``zone``: of all nodes, if they have one."""
    names = [node.name for node in nodes]
    racks = "".join(f"  rack{at // 20}: {','.join(names[at : at + 20])}\n" for at in range(0, len(names), 20))
    inventory = f"cluster: real\napiServer: v1.20.15\nracks:\n{racks}nodes:\n" + "".join(
        f"  {name}: {{}}\n" for name in names
    )
    if zone:
        inventory += f"zones: {{{zone}: [{', '.join(f'rack{at // 20}' for at in range(0, len(names), 20))}]}}\n"
    for name, text in (("inventories/real.yaml", inventory), ("playbooks/pulls.yaml", PLAYBOOK)):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)
    (folder / "templates").symlink_to(ROOT / "templates")


def add_programs(image: Path) -> None:
    """python3 (ansible-core needs it on nodes) and curl, with their libraries, from this machine: the same Debian."""
    programs = [Path("/usr/bin/python3.11"), Path("/usr/bin/curl")]
    programs += list(programs[0].parent.parent.glob("lib/python3.11/lib-dynload/*.so"))
    libraries = {
        Path(path)
        for each in programs
        for path in re.findall(r"(/\S+) \(0x", subprocess.check_output(["ldd", str(each)], text=True))
    }
    shutil.copytree(
        "/usr/lib/python3.11",
        image / "usr/lib/python3.11",
        dirs_exist_ok=True,
        ignore=shutil.ignore_patterns("test", "__pycache__"),
    )
    for each in (*programs[:2], *libraries):
        there = image / str(each).lstrip("/")
        if not there.exists():
            there.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(each, there)
    (image / "usr/bin/python3").symlink_to("python3.11")


@contextmanager
def many_instances(nodes: int) -> Iterator[None]:
    """inotify instances for all nodes; the machine's own limit again afterwards."""
    before = LIMIT.read_text()
    LIMIT.write_text(str(max(int(before), INSTANCES * (nodes + 20))))
    try:
        yield
    finally:
        LIMIT.write_text(before)
