"""``make bench``: every figure of the project in one run; writes ``benchmarks/results.md``, ``results.json`` and ``results.svg``.

The files are written after each part, so a part that fails costs its own rows only. ``--only NAME`` measures one part and prints
its rows. Measure on a quiet machine, as root; ratios within one run are what counts.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import log
from pathlib import Path

from benchmarks import cheap_fleet, large_fleet, real_nodes
from benchmarks.check_kubelet import machine
from benchmarks.figures import Bar, Row, chart, document, ratio, table
from benchmarks.measured import Turns
from benchmarks.peers import PEERS
from benchmarks.programs import programs
from benchmarks.real_nodes import APPLY, EMERGENCY, FLOOR

HERE = Path(__file__).parent
README = HERE.parent / "README.md"


@dataclass(frozen=True, slots=True)
class Sizes:
    """How much is measured. ``tools``: the folder of the peers' programs. ``beside``: cheap nodes beside ansible-core."""

    nodes: int
    rounds: int
    sessions: int
    cheap: int
    cheap_rounds: int
    beside: int
    fleet: int
    tools: Path


@dataclass(frozen=True, slots=True)
class Part:
    """What a part of the bench has found. ``turns``: the tools that were compared, by the title of their table."""

    rows: Sequence[Row]
    turns: Mapping[str, Turns] = field(default_factory=dict)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--nodes", type=int, default=100, help="real systemd nodes")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--sessions", type=int, default=2000, help="sessions that wait")
    parser.add_argument("--cheap", type=int, default=2000, help="cheap nodes of the emergency rollback")
    parser.add_argument("--cheap-rounds", type=int, default=1, help="a round of 2,000 nodes takes minutes")
    parser.add_argument("--beside", type=int, default=200, help="cheap nodes beside ansible-core, in one round")
    parser.add_argument("--fleet", type=int, default=100_000, help="nodes of the large plan")
    parser.add_argument("--tools", type=Path, required=True)
    parser.add_argument("--only", choices=PARTS)
    given = parser.parse_args()
    sizes = Sizes(
        given.nodes, given.rounds, given.sessions, given.cheap, given.cheap_rounds, given.beside, given.fleet,
        given.tools.absolute(),
    )  # fmt: skip
    if given.only:
        found = PARTS[given.only](sizes)
        sys.stdout.write("".join(map(_tools, found.turns.values())) + table(found.rows))
        return
    measure_all(sizes)


def measure_all(sizes: Sizes) -> None:
    """Every part, one after the other."""
    began = machine()
    parts: list[Part] = []
    for name in PARTS:
        parts.append(attempted(name, sizes))
        write(sizes, began, parts)


def attempted(name: str, sizes: Sizes) -> Part:
    """The part; if it fails, a row with the reason."""
    began = time.monotonic()
    try:
        return PARTS[name](sizes)
    except (Exception, SystemExit) as error:  # noqa: BLE001 - whatever it is, the figures of the other parts count
        traceback.print_exc()
        return Part((Row(f"the part `{name}`", None, 0, "", note=f"failed: {str(error).splitlines()[0][:200]}"),))
    finally:
        sys.stderr.write(f"the part {name} took {time.monotonic() - began:.0f} s\n")


def real(sizes: Sizes) -> Part:
    with tempfile.TemporaryDirectory() as folder:
        turns = real_nodes.compare(Path(folder), sizes.nodes, sizes.rounds, sizes.tools)
    return Part(of_turns(turns), {f"{sizes.nodes} real nodes": turns})


def of_turns(turns: Turns) -> Sequence[Row]:
    """Rows of the comparison on real nodes. A tool that failed leaves its rows without a figure."""
    floor, most, why = turns.wall(FLOOR), turns.cpu(FLOOR) or 0.0, turns.why
    return (
        Row("apply, wall", ratio(turns.wall(APPLY), floor), 1.25, "× safe floor", note=why(APPLY, FLOOR)),
        Row("emergency rollback with proof, wall", ratio(turns.wall(EMERGENCY), floor), 1.1, "× safe floor", note=why(EMERGENCY, FLOOR)),
        Row("apply, controller's CPU a node", turns.cpu(APPLY), most + 8, "ms", note="the safe floor and 8 ms"),
        Row("emergency, controller's CPU a node", turns.cpu(EMERGENCY), most + 4, "ms", note="the safe floor and 4 ms"),
        Row("apply, controller's CPU", ratio(turns.cpu(APPLY), turns.cpu("pyinfra")), 0.5, "× pyinfra", note=why("pyinfra")),
        Row("ansible-core, wall", ratio(turns.wall("ansible-core"), turns.wall(APPLY)), 5, "× apply", at_least=True, note=why("ansible-core")),
        Row("connections a node, apply", turns.connections.get(APPLY), 1, ""),
        Row("connections a node, emergency", turns.connections.get(EMERGENCY), 1, ""),
    )  # fmt: skip


def cheap(sizes: Sizes) -> Part:
    with tempfile.TemporaryDirectory() as folder:
        turns = cheap_fleet.emergencies(Path(folder), sizes.cheap, sizes.cheap_rounds)
    floor, ours = cheap_fleet.FLOOR, cheap_fleet.EMERGENCY
    what, why = f"emergency rollback of {sizes.cheap:,} cheap nodes, wall", turns.why(floor, ours)
    row = Row(what, ratio(turns.wall(ours), turns.wall(floor)), 1.25, "× its floor", note=why)
    return Part((row,), {f"{sizes.cheap:,} cheap nodes, emergency rollback": turns})


def beside(sizes: Sizes) -> Part:
    with tempfile.TemporaryDirectory() as folder:
        turns = cheap_fleet.changes(Path(folder), sizes.beside, 1, sizes.tools)
    ours, theirs = cheap_fleet.APPLY, cheap_fleet.ANSIBLE
    found = ratio(turns.wall(theirs), turns.wall(ours))
    row = Row(
        f"ansible-core on {sizes.beside:,} cheap nodes, wall",
        found,
        20,
        "× apply",
        at_least=True,
        note=turns.why(ours, theirs),
    )
    return Part((row,), {f"{sizes.beside:,} cheap nodes, one file and a restart": turns})


def waiting(sizes: Sizes) -> Part:
    words = (sys.executable, "-m", "benchmarks.waiting_sessions", str(sizes.sessions))
    found = json.loads(subprocess.run(words, cwd=HERE.parent, stdout=subprocess.PIPE, check=True).stdout)
    what = f"{found['sessions']:,} sessions, open and idle for 30 s"
    return Part(
        (
            Row(f"{what}: failures", sum(found["failed"].values()), 0, "", note=str(found["failed"] or "")),
            Row(f"{what}: memory", found["memory"], 250, "MB"),
            Row(f"{what}: CPU", 100 * found["idleCore"], 10, "% of a core"),
        )
    )


def large(sizes: Sizes) -> Part:
    """Plans and simulated applies, from start to end; and the status of a run."""
    costs = {}
    for count in (2000, sizes.fleet):
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            large_fleet.apart(large_fleet.lay_out, folder, count)
            words = ("plan", "--cluster", "rno", "--snapshot", "fleet.snapshot.json", "--out", "p.json")
            costs["plan", count] = large_fleet.cost(folder, *words)
            costs["simulate", count] = large_fleet.cost(folder, "simulate", "p.json")
            if count == 2000:
                large_fleet.apart(large_fleet.past_run, folder)
                costs["status", count] = large_fleet.cost(folder, "status")
    small, big = costs["simulate", 2000].cpu, costs["simulate", sizes.fleet].cpu
    exponent = log(big / small) / log(sizes.fleet / 2000)
    return Part(
        (
            Row("plan of 2,000 nodes from a snapshot, CPU", costs["plan", 2000].cpu, 1.2, "s"),
            Row(f"plan of {sizes.fleet:,} nodes from a snapshot, CPU", costs["plan", sizes.fleet].cpu, 40, "s"),
            Row(f"plan of {sizes.fleet:,} nodes, memory", costs["plan", sizes.fleet].memory, 800, "MB"),
            Row(f"simulated apply of {sizes.fleet:,} nodes, CPU", big, 60, "s"),
            Row("the same: exponent of cost over nodes", exponent, 1.1, "", note=f"from 2,000 to {sizes.fleet:,} nodes"),
            Row("`rollout status` with a run of 2,000 nodes, CPU", costs["status", 2000].cpu, 0.5, "s"),
        )
    )  # fmt: skip


def agent(_sizes: Sizes) -> Part:
    with tempfile.TemporaryDirectory() as name:
        found = programs(Path(name))
    most = sorted(found.items(), key=lambda each: -each[1])
    note = ", ".join(f"{times} {what}" for what, times in most[:8])
    return Part((Row("programs of apply, confirm and cleanup", sum(found.values()), 80, "", note=note),))


def start(_sizes: Sizes) -> Part:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        shown = large_fleet.cost(folder, "--help")
        durable = large_fleet.apart(large_fleet.journal_speed, folder)
    return Part(
        (
            Row("`rollout --help`, CPU", shown.cpu, 0.25, "s"),
            Row("journal, full sync", durable, 5000, "events/s", at_least=True, note="50 events in one write"),
        )
    )


PARTS: Mapping[str, Callable[[Sizes], Part]] = {
    "start": start, "agent": agent, "large": large, "sessions": waiting, "real": real, "cheap": cheap, "beside": beside,
}  # fmt: skip


def write(sizes: Sizes, began: str, parts: Sequence[Part]) -> None:
    """What the parts up to now have found. ``began``: the machine, and its load at the start."""
    rows = [row for part in parts for row in part.rows]
    compared = {title: turns for part in parts for title, turns in part.turns.items()}
    first = next(iter(compared.items()), None)
    if first is not None:
        title, turns = first
        bars = [Bar(tool, wall) for tool in turns.turns if (wall := turns.wall(tool)) is not None]
        (HERE / "results.svg").write_text(chart(f"{title}, wall time", sorted(bars, key=lambda bar: bar.seconds)))
        README.write_text(front_page(README.read_text(), title, turns))
    tools = "\n".join(f"## {title}\n\n{_tools(turns)}" for title, turns in compared.items())
    (HERE / "results.md").write_text(f"""\
# Measured

Written by `make bench`, medians of {sizes.rounds} rounds in an order that rotates; of cheap nodes {sizes.cheap_rounds}. {began}.
Real nodes are systemd in nspawn with OpenSSH and sudo; cheap nodes are a folder each, behind one OpenSSH. All of them share this machine with the controller.

## What must be reached

{table(rows)}
{tools}
The safe floor is one hand-written script over one connection and one sudo: the same copies, syncs, receipt, boot unit, transient
units, reload, restart, wait, health and disarming, without fencing, journal and protocol. The agent's floor sends the agent the verbs of an
emergency rollback over one connection, and does nothing else. pyinfra and ansible-core have no guard and no rollback.
""")
    (HERE / "results.json").write_text(json.dumps(document(rows), indent=1, ensure_ascii=False) + "\n")


def front_page(text: str, title: str, turns: Turns) -> str:
    """The README with these figures between its two marks."""
    begin, end = "<!-- bench -->\n", "<!-- /bench -->"
    before, _, rest = text.partition(begin)
    shown = [tool for tool in turns.turns if turns.wall(tool) is not None]
    rows = (
        ("", *shown),
        ("---", *("---:" for _ in shown)),
        ("wall", *(f"{turns.wall(tool):.1f} s" for tool in shown)),
        ("controller's CPU a node", *(f"{turns.cpu(tool):.1f} ms" for tool in shown)),
    )
    lines = "\n".join(f"| {' | '.join(cells)} |" for cells in rows)
    words = f"Measured on {title} by `make bench`, which has the settings and what must be reached: [results](benchmarks/results.md)."
    return f"{before}{begin}{words}\n\n{lines}\n{end}{rest.partition(end)[2]}"


def _tools(turns: Turns) -> str:
    lines = ["| tool | wall | controller's CPU a node | connections a node | settings |", "| --- | ---: | ---: | ---: | --- |"]  # fmt: skip
    for tool in dict.fromkeys((*turns.turns, *turns.failures)):
        wall, cpu, connections = turns.wall(tool), turns.cpu(tool), turns.connections.get(tool)
        cells = (
            tool,
            "-" if wall is None else f"{wall:.1f} s",
            "-" if cpu is None else f"{cpu:.1f} ms",
            "-" if connections is None else f"{connections:.1f}",
            turns.why(tool).replace("|", "/").replace("\n", " ") or _settings(tool),
        )
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join((*lines, ""))


def _settings(tool: str) -> str:
    if tool in PEERS:
        return PEERS[tool].settings
    return {
        FLOOR: "pool of 200",
        APPLY: "one wave, unpaced, no soak, no rehearsal",
        EMERGENCY: "unpaced, all of a rack at once; reads all nodes again as a proof",
        cheap_fleet.FLOOR: "pool of 200",
    }[tool]


if __name__ == "__main__":
    main()
