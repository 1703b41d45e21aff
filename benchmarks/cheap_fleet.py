"""Very many cheap nodes: an emergency rollback beside its floor, and a change by rollout and by ansible-core."""

from __future__ import annotations

import json
import shutil
import sys
from collections import defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path

from benchmarks.cheap_nodes import NEW, OLD, RUN, TX, CheapNodes, change, cheap_nodes, prototype
from benchmarks.measured import FailedError, Measured, Turns, measured
from benchmarks.peers import ANSIBLE_CFG
from tests.agent.node import CONFIG

FLOOR, EMERGENCY, APPLY, ANSIBLE = "agent's floor", "rollout rollback --emergency", "rollout apply", "ansible-core"
HERE = Path(__file__).parent.parent
PLAYBOOK = """\
name: pulls
settings: {serializeImagePulls: false}
waves: [rest]
rehearsal: false
limits: {inFlight: 1000, perRack: 100%, pace: 1000}
budgets: {wave: 1000, rack: 1000, fleet: 1000}
soak: 0s
pullsInFlight: override
passes: 1
guard: 180s
"""
PLAY = """\
- hosts: all
  gather_facts: false
  strategy: free
  tasks:
    - copy: {content: "{{ text }}", dest: "{{ config }}"}
    - command: systemctl restart kubelet.service
    - command: curl -fsS -m 5 http://127.0.0.1:10248/healthz
"""


def emergencies(folder: Path, count: int, rounds: int) -> Turns:
    """The floor and rollout in turns, each on nodes with a confirmed change."""
    with cheap_nodes(folder, count) as nodes:
        node = prototype(folder / "prototype", folder / "tools")
        change(node)
        _project(nodes)
        steps = {
            FLOOR: lambda: (sys.executable, "-m", "benchmarks.agent_floor", str(folder), TX, f"{RUN}-floor", "5", *nodes.addresses),
            EMERGENCY: lambda: _rollout(
                nodes, "rollback", "--cluster", "cheap", "--emergency", "--yes", "--pace", "1000", "--per-rack", "100"
            ),
        }  # fmt: skip
        return _in_turns(nodes, node.root, steps, rounds, OLD)


def changes(folder: Path, count: int, rounds: int, tools: Path) -> Turns:
    """The same file and a restart by rollout and by ansible-core."""
    with cheap_nodes(folder, count) as nodes:
        node = prototype(folder / "prototype", folder / "tools")
        _project(nodes)

        def planned() -> Sequence[str]:
            measured(_rollout(nodes, "plan", "--cluster", "cheap", "--out", "p.json"), folder)
            return _rollout(nodes, "apply", "p.json", "--yes")

        playbook = (str(tools / "ansible-playbook"), "-i", "hosts.json", "play.yml")
        return _in_turns(nodes, node.root, {APPLY: planned, ANSIBLE: lambda: playbook}, rounds, NEW)


def _in_turns(
    nodes: CheapNodes, root: Path, steps: dict[str, Callable[[], Sequence[str]]], rounds: int, wanted: bytes
) -> Turns:
    turns: dict[str, list[Measured]] = defaultdict(list)
    failures: dict[str, str] = {}
    environment = {"PYTHONPATH": str(HERE), "ANSIBLE_CONFIG": str(nodes.folder / "ansible.cfg")}
    for number in range(rounds):
        for name in list(steps) if number % 2 == 0 else [*reversed(steps)]:
            nodes.lay_out(root)
            try:
                turn = measured(steps[name](), nodes.folder, environment)
                _check(nodes, wanted)
                turns[name].append(turn)
                sys.stderr.write(f"{len(nodes.names)} cheap nodes, round {number + 1}: {name}: {turn}\n")
            except FailedError as error:  # the figures of the others count
                failures[name] = f"round {number + 1}: {error}"
                sys.stderr.write(f"{name}: {failures[name]}\n")
    return Turns(len(nodes.names), turns, failures=failures)


def _project(nodes: CheapNodes) -> None:
    """What rollout and ansible-core read."""
    folder = nodes.folder
    hosts = {
        name: {
            "ansible_host": place, "ansible_port": nodes.port, "config": str(nodes.root(at) / CONFIG[1:]), "text": NEW.decode(),
        }
        for at, (name, place) in enumerate(zip(nodes.names, nodes.addresses, strict=True))
    }  # fmt: skip
    common = {"ansible_user": "root", "ansible_ssh_private_key_file": str(folder / "user"), "ansible_python_interpreter": shutil.which("python3")}  # fmt: skip
    for path, text in (
        ("inventories/cheap.yaml", nodes.inventory("cheap")),
        ("playbooks/pulls.yaml", PLAYBOOK),
        ("hosts.json", json.dumps({"all": {"hosts": hosts, "vars": common}})),
        ("play.yml", PLAY),
        ("ansible.cfg", ANSIBLE_CFG),
    ):
        (folder / path).parent.mkdir(exist_ok=True)
        (folder / path).write_text(text)
    (folder / "templates").symlink_to(HERE / "templates")


def _rollout(nodes: CheapNodes, *words: str) -> Sequence[str]:
    return (sys.executable, "-m", "rollout.cli", *words, "--ssh-config", str(nodes.ssh_config))


def _check(nodes: CheapNodes, wanted: bytes) -> None:
    """A tool that left a node as it was did not do the work."""
    wrong = [name for at, name in enumerate(nodes.names) if (nodes.root(at) / CONFIG[1:]).read_bytes() != wanted]
    if wrong:
        raise FailedError(f"{len(wrong)} cheap nodes have not the file that they should have, as {wrong[0]}")
