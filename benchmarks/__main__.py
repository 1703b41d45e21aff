"""``make bench``: every figure of the project in one run; writes ``benchmarks/results.md``, ``results.json`` and ``results.svg``.

The files are written after each part, so a part that fails costs its own rows only. ``--parts real,beside`` measures these and keeps
the other parts' figures, with their commit and date; ``--print`` writes nothing. Measure on a quiet machine, as root; ratios
within one part are what counts.
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
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import UTC, datetime
from math import log
from pathlib import Path

from benchmarks import by_program, cheap_fleet, large_fleet, real_nodes, results, round_trips, small_commands, verbs
from benchmarks.check_kubelet import machine
from benchmarks.far_line import far_line
from benchmarks.figures import Row, ratio
from benchmarks.measured import Turns
from benchmarks.peers import PEERS
from benchmarks.programs import FORKED, programs
from benchmarks.real_nodes import APPLY, EMERGENCY, FLOOR, VERBS
from benchmarks.results import Found, Part, comparison
from tests.bed.bed import Bed

HERE = Path(__file__).parent
README = HERE.parent / "README.md"
SETTINGS = {
    FLOOR: "pool of 200",
    VERBS: "claim, apply, confirm, cleanup; pool of 200; no waves, gates, limits or journal",
    APPLY: "one wave, unpaced, no soak, no rehearsal",
    EMERGENCY: "unpaced, all of a rack at once; reads all nodes again as a proof",
    cheap_fleet.FLOOR: "pool of 200",
    **{name: peer.settings for name, peer in PEERS.items()},
}
"""Of each tool, for the tables."""


@dataclass(frozen=True, slots=True)
class Sizes:
    """How much is measured. ``tools``: the folder of the peers' programs. ``beside``: cheap nodes beside other tools."""

    nodes: int
    rounds: int
    sessions: int
    cheap: int
    cheap_rounds: int
    beside: int
    beside_rounds: int
    far: int
    far_rounds: int
    far_milliseconds: float
    fleet: int
    tools: Path


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--nodes", type=int, default=100, help="real systemd nodes")
    parser.add_argument("--rounds", type=int, default=5, help="of the real nodes")
    parser.add_argument("--sessions", type=int, default=2000, help="sessions that wait")
    parser.add_argument("--cheap", type=int, default=2000, help="cheap nodes of the emergency rollback")
    parser.add_argument("--cheap-rounds", type=int, default=1, help="a round of 2,000 nodes takes minutes")
    parser.add_argument("--beside", type=int, default=100, help="cheap nodes beside other tools")
    parser.add_argument("--beside-rounds", type=int, default=1)
    parser.add_argument("--far", type=int, default=60, help="real nodes behind a slow line")
    parser.add_argument("--far-rounds", type=int, default=3)
    parser.add_argument("--far-milliseconds", type=float, default=100, help="a round trip on that line")
    parser.add_argument("--fleet", type=int, default=100_000, help="nodes of the large plan")
    parser.add_argument("--tools", type=Path, required=True, help="the folder of the other tools' programs")
    parser.add_argument("--parts", default="", help=f"some of {','.join(PARTS)}")
    parser.add_argument("--print", action="store_true", dest="only_print", help="print the figures, write no file")
    given = vars(parser.parse_args())
    names, only_print = given.pop("parts"), given.pop("only_print")
    sizes = Sizes(**given | {"tools": given["tools"].absolute()})
    chosen = [name for name in PARTS if not names or name in names.split(",")]
    commit = commit_now()
    if only_print:
        sys.stdout.write(results.page({name: attempted(name, sizes, commit) for name in chosen}) + "\n")
    else:
        measure(chosen, sizes, commit)


def measure(chosen: Sequence[str], sizes: Sizes, commit: str) -> None:
    """These parts, one after the other. The others stay as they were measured; all stay in the order of ``PARTS``."""
    kept = results.read(HERE / "results.json")
    for name in chosen:
        kept[name] = attempted(name, sizes, commit)
        results.write(HERE, README, {each: kept[each] for each in PARTS if each in kept})


def attempted(name: str, sizes: Sizes, commit: str) -> Part:
    """The part; if it fails, a row with the reason."""
    date, where = f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC", machine()
    began = time.monotonic()
    try:
        found = PARTS[name](sizes)
    except (Exception, SystemExit) as error:  # noqa: BLE001 - whatever it is, the figures of the other parts count
        traceback.print_exc()
        found = Found((Row(f"the part `{name}`", None, 0, "", note=f"failed: {str(error).splitlines()[0][:200]}"),))
    seconds = time.monotonic() - began
    sys.stderr.write(f"the part {name} took {seconds:.0f} s\n")
    return Part(found, rounds(name, sizes), where, commit, date, seconds)


def commit_now() -> str:
    """The commit of the measured program, with a note if files were changed since."""
    said = subprocess.run(
        ("git", "describe", "--always", "--abbrev=8", "--dirty= and changes", "--exclude=*"),
        cwd=HERE, capture_output=True, text=True, check=False,
    )  # fmt: skip
    return said.stdout.strip() or "unknown"


def real(sizes: Sizes) -> Found:
    with tempfile.TemporaryDirectory() as folder:
        turns = real_nodes.compare(Path(folder), sizes.nodes, sizes.rounds, sizes.tools)
    return Found(of_turns(turns), (comparison(f"{sizes.nodes} real nodes", turns, SETTINGS),))


def far(sizes: Sizes) -> Found:
    def line(bed: Bed) -> AbstractContextManager[Sequence[str]]:
        return far_line([node.netns for node in bed.nodes], bed.gateway, sizes.far_milliseconds / 2000)

    with tempfile.TemporaryDirectory() as folder:
        turns = real_nodes.compare(Path(folder), sizes.far, sizes.far_rounds, sizes.tools, line)
    what = f"{sizes.far} real nodes behind a round trip of {sizes.far_milliseconds:g} ms"
    row = Row(f"apply on {what}, wall", ratio(turns.wall(APPLY), turns.wall("pyinfra")), 1.2, "× pyinfra", note=turns.why(APPLY, "pyinfra"))  # fmt: skip
    return Found((row,), (comparison(what, turns, SETTINGS),))


def of_turns(turns: Turns) -> Sequence[Row]:
    """Rows of the comparison on real nodes. A tool that failed leaves its rows without a figure."""
    floor, most, why = turns.wall(FLOOR), turns.cpu(FLOOR) or 0.0, turns.why
    return (
        Row("apply, wall", ratio(turns.wall(APPLY), floor), 1.2, "× safe floor", note=why(APPLY, FLOOR)),
        Row("emergency rollback with proof, wall", ratio(turns.wall(EMERGENCY), floor), 1.05, "× safe floor", note=why(EMERGENCY, FLOOR)),
        Row("apply, controller's CPU a node", turns.cpu(APPLY), most + 8, "ms", note="the safe floor and 8 ms"),
        Row("emergency, controller's CPU a node", turns.cpu(EMERGENCY), most + 4, "ms", note="the safe floor and 4 ms"),
        Row("apply, controller's CPU", ratio(turns.cpu(APPLY), turns.cpu("pyinfra")), 0.5, "× pyinfra", note=why("pyinfra")),
        Row("ansible-core, wall", ratio(turns.wall("ansible-core"), turns.wall(APPLY)), 5, "× apply", at_least=True, note=why("ansible-core")),
        Row("connections a node, apply", turns.connections.get(APPLY), 1, ""),
        Row("connections a node, emergency", turns.connections.get(EMERGENCY), 1, ""),
    )  # fmt: skip


def cheap(sizes: Sizes) -> Found:
    with tempfile.TemporaryDirectory() as folder:
        turns = cheap_fleet.emergencies(Path(folder), sizes.cheap, sizes.cheap_rounds)
    floor, ours = cheap_fleet.FLOOR, cheap_fleet.EMERGENCY
    what, why = f"emergency rollback of {sizes.cheap:,} cheap nodes, wall", turns.why(floor, ours)
    row = Row(what, ratio(turns.wall(ours), turns.wall(floor)), 1.25, "× its floor", note=why)
    return Found((row,), (comparison(f"{sizes.cheap:,} cheap nodes, emergency rollback", turns, SETTINGS),))


def beside(sizes: Sizes) -> Found:
    with tempfile.TemporaryDirectory() as folder:
        turns = cheap_fleet.changes(Path(folder), sizes.beside, sizes.beside_rounds, sizes.tools)
    what = f"apply on {sizes.beside:,} cheap nodes, wall"
    over_ansible = ratio(turns.wall("ansible-core"), turns.wall(FLOOR))
    note = turns.why(APPLY, FLOOR) or f"ansible-core: {over_ansible or 0:.1f} × the safe floor"
    row = Row(what, ratio(turns.wall(APPLY), turns.wall(FLOOR)), 1 / 0.9, "× safe floor", note=note)
    settings = SETTINGS | {"parallel-ssh": "a script with a copy, syncs, a rename, the restart and health; pool of 200"}
    return Found((row,), (comparison(f"{sizes.beside:,} cheap nodes, one file and a restart", turns, settings),))


def reasons(sizes: Sizes) -> Found:
    """Where the time goes, on a node and in the controller."""
    with tempfile.TemporaryDirectory() as folder:
        controller = cheap_fleet.controller(Path(folder), sizes.nodes)
    return Found(reasons=(*verbs.on_a_node(), by_program.on_real_nodes(sizes.far), *controller))


def waiting(sizes: Sizes) -> Found:
    words = (sys.executable, "-m", "benchmarks.waiting_sessions", str(sizes.sessions))
    found = json.loads(subprocess.run(words, cwd=HERE.parent, stdout=subprocess.PIPE, check=True).stdout)
    what = f"{found['sessions']:,} sessions, open and idle for 30 s"
    return Found(
        (
            Row(f"{what}: failures", sum(found["failed"].values()), 0, "", note=str(found["failed"] or "")),
            Row(f"{what}: memory", found["memory"], 250, "MB"),
            Row(f"{what}: CPU", 100 * found["idleCore"], 10, "% of a core"),
        )
    )


def large(sizes: Sizes) -> Found:
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
                status = min(large_fleet.cost(folder, "status").cpu for _ in range(small_commands.TIMES))
    small, big = costs["simulate", 2000].cpu, costs["simulate", sizes.fleet].cpu
    exponent = log(big / small) / log(sizes.fleet / 2000)
    return Found(
        (
            Row("plan of 2,000 nodes from a snapshot, CPU", costs["plan", 2000].cpu, 1.2, "s"),
            Row(f"plan of {sizes.fleet:,} nodes from a snapshot, CPU", costs["plan", sizes.fleet].cpu, 40, "s"),
            Row(f"plan of {sizes.fleet:,} nodes, memory", costs["plan", sizes.fleet].memory, 800, "MB"),
            Row(f"simulated apply of {sizes.fleet:,} nodes, CPU", big, 60, "s"),
            Row("the same: exponent of cost over nodes", exponent, 1.1, "", note=f"from 2,000 to {sizes.fleet:,} nodes"),
            Row("`rollout status` with a run of 2,000 nodes, CPU", status, 0.35, "s"),
        )
    )  # fmt: skip


def agent(_sizes: Sizes) -> Found:
    with tempfile.TemporaryDirectory() as name:
        found = dict(programs(Path(name)))
    forks = found.pop(FORKED)
    most = sorted(found.items(), key=lambda each: -each[1])
    note = ", ".join(f"{times} {what}" for what, times in most[:8])
    return Found(
        (
            Row("programs of apply, confirm and cleanup", sum(found.values()), 45, "", note=note),
            Row("processes that their shells fork", forks, 40, "", note="for these programs and for subshells"),
        )
    )


def trips(_sizes: Sizes) -> Found:
    return Found(tuple(round_trips.rows()))


def start(_sizes: Sizes) -> Found:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        shown = large_fleet.cost(folder, "--help")
        durable = large_fleet.apart(large_fleet.journal_speed, folder)
    return Found(
        (
            Row("`rollout --help`, CPU", shown.cpu, 0.25, "s"),
            *small_commands.rows(),
            Row("journal, full sync", durable, 5000, "events/s", at_least=True, note="50 events in one write"),
        )
    )


PARTS: Mapping[str, Callable[[Sizes], Found]] = {
    "start": start, "agent": agent, "trips": trips, "large": large, "sessions": waiting, "real": real, "far": far, "cheap": cheap, "beside": beside, "reasons": reasons,
}  # fmt: skip


def rounds(name: str, sizes: Sizes) -> str:
    """How often a part measures."""
    of_part = {
        "real": sizes.rounds,
        "far": sizes.far_rounds,
        "cheap": sizes.cheap_rounds,
        "beside": sizes.beside_rounds,
    }
    number = of_part.get(name, 1)
    return "one round" if number == 1 else f"medians of {number} rounds in an order that rotates"


if __name__ == "__main__":
    main()
