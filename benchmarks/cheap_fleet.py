"""Cheap nodes: an emergency rollback of very many beside its floor, and a change by rollout and by other tools."""

from __future__ import annotations

import json
import sys
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

from benchmarks.cheap_nodes import NEW, OLD, RUN, TX, CheapNodes, change, cheap_nodes, prototype
from benchmarks.controller_cpu import IMPORTS, imports_by_package
from benchmarks.loopback import port
from benchmarks.measured import FailedError, Measured, Turns, measured
from benchmarks.peers import PEERS, Fleet, Target
from benchmarks.results import Reasons
from tests.agent.node import CONFIG

FLOOR, SAFE_FLOOR, EMERGENCY, APPLY = "agent's floor", "safe floor", "rollout rollback --emergency", "rollout apply"
HERE = Path(__file__).parent.parent
SOCKETS = 10
"""An emergency rollback reads 256 nodes at once."""
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
SCRIPT = f"""\
set -e
config=$ROLLOUT_ROOT{CONFIG}
cp -p $config $config.old
cat > $config.new <<'NEW'
{NEW.decode()}NEW
sync $config.old $config.new
mv $config.new $config
sync ${{config%/*}}
systemctl restart kubelet.service
sleep 0.2
curl -fsS -m 5 http://127.0.0.1:10248/healthz
"""
"""The change without guard and receipt: a copy, syncs, a rename, the restart, a wait for longer than systemd's pause, and health."""


def emergencies(folder: Path, count: int, rounds: int) -> Turns:
    """The floor and rollout in turns, each on nodes with a confirmed change."""
    with cheap_nodes(folder, count, SOCKETS) as nodes:
        node = prototype(folder / "prototype", folder / "tools")
        change(node)
        _project(nodes)
        places = [f"{address}:{port(address, SOCKETS)}" for address in nodes.addresses]
        steps = {
            FLOOR: lambda: (sys.executable, "-m", "benchmarks.agent_floor", str(folder), TX, f"{RUN}-floor", "5", *places),
            EMERGENCY: lambda: _rollout(
                nodes, "rollback", "--cluster", "cheap", "--emergency", "--yes", "--pace", "1000", "--per-rack", "100%"
            ),
        }  # fmt: skip
        return _in_turns(nodes, node.root, steps, rounds, OLD)


def changes(folder: Path, count: int, rounds: int, tools: Path) -> Turns:
    """The same file and a restart by rollout and by other tools."""
    with cheap_nodes(folder, count) as nodes:
        node = prototype(folder / "prototype", folder / "tools")
        _project(nodes)

        def planned() -> Sequence[str]:
            measured(_rollout(nodes, "plan", "--cluster", "cheap", "--out", "p.json"), folder)
            return _rollout(nodes, "apply", "p.json", "--yes")

        fleet = _fleet(nodes)
        for peer in PEERS.values():
            peer.files(folder, fleet)
        floor = (sys.executable, str(HERE / "benchmarks/floor.py"), str(nodes.ssh_config), "false", *nodes.addresses)
        steps: dict[str, Callable[[], Sequence[str]]] = {SAFE_FLOOR: lambda: floor, APPLY: planned}
        steps |= {name: partial(peer.words, tools) for name, peer in PEERS.items()}
        return _in_turns(nodes, node.root, steps, rounds, NEW)


def controller(folder: Path, count: int) -> tuple[Reasons, Reasons]:
    """The controller's CPU of an apply: by kind of work, and its imports by package.

    Three runs: as it is, with a profiler for the shares, and with Python's own times of imports.
    """
    with cheap_nodes(folder, count) as nodes:
        node = prototype(folder / "prototype", folder / "tools")
        _project(nodes)

        def apply(*words: str) -> Measured:
            nodes.lay_out(node.root)
            environment = {"PYTHONPATH": str(HERE)}
            measured(_rollout(nodes, "plan", "--cluster", "cheap", "--out", "p.json"), folder, environment)
            way = ("apply", "p.json", "--yes", "--ssh-config", str(nodes.ssh_config))
            return measured((sys.executable, *words, *way), folder, environment)

        plain = 1000 * apply("-m", "rollout.cli").cpu / count
        apply("-m", "benchmarks.controller_cpu", "kinds")
        packages = imports_by_package(apply("-X", "importtime", "-m", "rollout.cli").said)
    found: dict[str, float] = json.loads((folder / "kinds").read_text())
    found.pop(IMPORTS)  # the hook that counts them costs more than most of them
    imports = 1000 * sum(packages.values()) / count
    works = {kind: (plain - imports) * seconds / sum(found.values()) for kind, seconds in found.items()}
    return (
        _shared_out(
            f"The controller's CPU of an apply, {count} cheap nodes",
            "kind of work",
            works | {IMPORTS: imports},
            "Imports are those of `python -X importtime`, and happen once, whatever the number of nodes. The rest of the CPU of a run without a profiler"
            " is shared out as in a run with cProfile in every thread, by the CPU time of each thread.",
        ),
        _shared_out(
            f"Imports of this apply, {count} cheap nodes",
            "package",
            {package: 1000 * seconds / count for package, seconds in packages.items()},
            "A module counts without what it imports.",
        ),
    )


def _shared_out(title: str, what: str, milliseconds: Mapping[str, float], note: str) -> Reasons:
    """A table of shares, the largest first."""
    whole = sum(milliseconds.values())
    ordered = sorted(milliseconds.items(), key=lambda each: -each[1])
    rows = [(name, f"{each / whole:.0%}", f"{each:.1f}") for name, each in ordered]
    return Reasons(title, [(what, "share", "ms a node"), *rows, ("all", "100%", f"{whole:.1f}")], note)


def _fleet(nodes: CheapNodes) -> Fleet:
    targets = tuple(
        Target(name, place, {str(nodes.root(at) / CONFIG[1:]): NEW.decode()})
        for at, (name, place) in enumerate(zip(nodes.names, nodes.addresses, strict=True))
    )
    return Fleet(targets, "root", nodes.folder / "user", nodes.port, SCRIPT, cheap=True)


def _in_turns(
    nodes: CheapNodes, root: Path, steps: dict[str, Callable[[], Sequence[str]]], rounds: int, wanted: bytes
) -> Turns:
    turns: dict[str, list[Measured]] = defaultdict(list)
    failures: dict[str, str] = {}
    environment = {"PYTHONPATH": str(HERE), "ANSIBLE_CONFIG": str(nodes.folder / "ansible.cfg")}
    for number in range(rounds):
        for name in list(steps) if number % 2 == 0 else [*reversed(steps)]:
            nodes.lay_out(root)
            masters = {
                "ANSIBLE_SSH_CONTROL_PATH_DIR": str(nodes.folder / f"masters-{number}")
            }  # each round connects anew
            try:
                turn = measured(steps[name](), nodes.folder, environment | masters)
                _check(nodes, wanted)
                turns[name].append(turn)
                sys.stderr.write(f"{len(nodes.names)} cheap nodes, round {number + 1}: {name}: {turn}\n")
            except FailedError as error:  # the figures of the others count
                failures[name] = f"round {number + 1}: {error}"
                sys.stderr.write(f"{name}: {failures[name]}\n")
    return Turns(len(nodes.names), turns, failures=failures)


def _project(nodes: CheapNodes) -> None:
    """What rollout reads."""
    for path, text in (("inventories/cheap.yaml", nodes.inventory("cheap")), ("playbooks/pulls.yaml", PLAYBOOK)):
        (nodes.folder / path).parent.mkdir(exist_ok=True)
        (nodes.folder / path).write_text(text)
    (nodes.folder / "templates").symlink_to(HERE / "templates")


def _rollout(nodes: CheapNodes, *words: str) -> Sequence[str]:
    return (sys.executable, "-m", "rollout.cli", *words, "--ssh-config", str(nodes.ssh_config))


def _check(nodes: CheapNodes, wanted: bytes) -> None:
    """A tool that left a node as it was did not do the work."""
    wrong = [name for at, name in enumerate(nodes.names) if (nodes.root(at) / CONFIG[1:]).read_bytes() != wanted]
    if wrong:
        raise FailedError(f"{len(wrong)} cheap nodes have not the file that they should have, as {wrong[0]}")
