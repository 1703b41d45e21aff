"""``make bench``: every figure of the project in one run; writes ``benchmarks/results.md``, ``results.json`` and ``results.svg``.

``--only NAME`` measures one part and prints its rows. Measure on a quiet machine, as root; ratios within one run are what counts.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import log
from pathlib import Path

from benchmarks import large_fleet, real_nodes
from benchmarks.check_kubelet import machine
from benchmarks.figures import Bar, Row, chart, document, table
from benchmarks.peers import PEERS
from benchmarks.real_nodes import APPLY, EMERGENCY, FLOOR, Turns

HERE = Path(__file__).parent


@dataclass(frozen=True, slots=True)
class Sizes:
    """How much is measured. ``tools``: the folder of the peers' programs."""

    nodes: int
    rounds: int
    sessions: int
    tools: Path


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--nodes", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--sessions", type=int, default=2000)
    parser.add_argument("--tools", type=Path, required=True)
    parser.add_argument("--only", choices=PARTS)
    given = parser.parse_args()
    sizes = Sizes(given.nodes, given.rounds, given.sessions, given.tools.absolute())
    if given.only:
        sys.stdout.write(table(PARTS[given.only](sizes)))
        return
    turns = fleet(sizes)
    rows = [*of_turns(turns), *(row for part in PARTS.values() if part is not real for row in part(sizes))]
    write(sizes, turns, rows)


def fleet(sizes: Sizes) -> Turns:
    with tempfile.TemporaryDirectory() as folder:
        return real_nodes.compare(Path(folder), sizes.nodes, sizes.rounds, sizes.tools)


def real(sizes: Sizes) -> Sequence[Row]:
    return of_turns(fleet(sizes))


def of_turns(turns: Turns) -> Sequence[Row]:
    """Rows of the comparison on real nodes."""
    floor, most = turns.wall(FLOOR), turns.cpu(FLOOR)
    return (
        Row("apply, wall", turns.wall(APPLY) / floor, 1.25, "× safe floor"),
        Row("emergency rollback with proof, wall", turns.wall(EMERGENCY) / floor, 1.1, "× safe floor"),
        Row("apply, controller's CPU a node", turns.cpu(APPLY), most + 8, "ms", note="the safe floor and 8 ms"),
        Row("emergency, controller's CPU a node", turns.cpu(EMERGENCY), most + 4, "ms", note="the safe floor and 4 ms"),
        Row("apply, controller's CPU", turns.cpu(APPLY) / turns.cpu("pyinfra"), 0.5, "× pyinfra"),
        Row("ansible-core, wall", turns.wall("ansible-core") / turns.wall(APPLY), 5, "× apply", at_least=True),
        Row("connections a node, apply", turns.connections[APPLY], 1, ""),
        Row("connections a node, emergency", turns.connections[EMERGENCY], 1, ""),
    )


def waiting(sizes: Sizes) -> Sequence[Row]:
    words = (sys.executable, "-m", "benchmarks.waiting_sessions", str(sizes.sessions))
    found = json.loads(subprocess.run(words, cwd=HERE.parent, stdout=subprocess.PIPE, check=True).stdout)
    what = f"{found['sessions']:,} sessions, open and idle for 30 s"
    return (
        Row(f"{what}: failures", sum(found["failed"].values()), 0, "", note=str(found["failed"] or "")),
        Row(f"{what}: memory", found["memory"], 250, "MB"),
        Row(f"{what}: CPU", 100 * found["idleCore"], 10, "% of a core"),
    )


def large(_sizes: Sizes) -> Sequence[Row]:
    """Plans and simulated applies, from start to end."""
    costs = {}
    for count in (2000, 100_000):
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            large_fleet.apart(large_fleet.lay_out, folder, count)
            words = ("plan", "--cluster", "rno", "--snapshot", "fleet.snapshot.json", "--out", "p.json")
            costs["plan", count] = large_fleet.cost(folder, *words)
            costs["simulate", count] = large_fleet.cost(folder, "simulate", "p.json")
    small, big = costs["simulate", 2000].cpu, costs["simulate", 100_000].cpu
    return (
        Row("plan of 2,000 nodes from a snapshot, CPU", costs["plan", 2000].cpu, 1.2, "s"),
        Row("plan of 100,000 nodes from a snapshot, CPU", costs["plan", 100_000].cpu, 40, "s"),
        Row("plan of 100,000 nodes, memory", costs["plan", 100_000].memory, 800, "MB"),
        Row("simulated apply of 100,000 nodes, CPU", big, 60, "s"),
        Row(
            "the same: exponent of cost over nodes", _exponent(small, big), 1.1, "", note="from 2,000 to 100,000 nodes"
        ),
    )


def _exponent(small: float, big: float) -> float:
    return log(big / small) / log(100_000 / 2000)


def start(_sizes: Sizes) -> Sequence[Row]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        shown = large_fleet.cost(folder, "--help")
        durable = large_fleet.apart(large_fleet.journal_speed, folder)
    return (
        Row("`rollout --help`, CPU", shown.cpu, 0.25, "s"),
        Row("`rollout status` with a run of 2,000 nodes, CPU", None, 0.5, "s", note="no run of that size is made here"),
        Row("journal, full sync", durable, 5000, "events/s", at_least=True, note="50 events in one write"),
    )


PARTS: dict[str, Callable[[Sizes], Sequence[Row]]] = {"real": real, "sessions": waiting, "large": large, "start": start}


def write(sizes: Sizes, turns: Turns, rows: Sequence[Row]) -> None:
    bars = [
        Bar(tool, turns.wall(tool)) for tool in (FLOOR, "pyinfra", APPLY, EMERGENCY, "parallel-ssh", "ansible-core")
    ]
    (HERE / "results.svg").write_text(chart(f"{sizes.nodes} real nodes, wall time", bars))
    tools = "".join(
        f"| {tool} | {turns.wall(tool):.1f} s | {turns.cpu(tool):.1f} ms | {turns.connections[tool]:.1f} | {_settings(tool)} |\n"
        for tool in turns.turns
    )
    (HERE / "results.md").write_text(f"""\
# Measured

Written by `make bench`: {sizes.nodes} real systemd nodes (nspawn, OpenSSH, sudo) share this machine with the controller. The same two
files, a restart with RestartSec=1, and health. Medians of {sizes.rounds} rounds, in an order that rotates. {machine()}

| tool | wall | controller's CPU a node | connections a node | settings |
| --- | ---: | ---: | ---: | --- |
{tools}
The safe floor is one hand-written script over one connection and one sudo: the same copies, syncs, receipt, boot unit, transient
units, reload, restart, wait, health and disarming, without fencing, journal and protocol. pyinfra and ansible-core have no guard and no way back.

## What must be reached

{table(rows)}
Not measured: fleets of 2,000 OpenSSH nodes against peers.
""")
    (HERE / "results.json").write_text(json.dumps(document(rows), indent=1, ensure_ascii=False) + "\n")


def _settings(tool: str) -> str:
    if tool in PEERS:
        return PEERS[tool].settings
    return {
        FLOOR: "pool of 200",
        APPLY: "one wave, unpaced, no soak, no rehearsal",
        EMERGENCY: "unpaced, all of a rack at once; reads all nodes again as a proof",
    }[tool]


if __name__ == "__main__":
    main()
