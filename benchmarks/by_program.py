"""Where the CPU of a change goes on many real nodes at once: by program, those that ended and those that live on, and the controller's."""

from __future__ import annotations

import tempfile
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.exits import Exits, exits
from benchmarks.measured import measured
from benchmarks.real_nodes import (
    APPLY,
    EMERGENCY,
    FLOOR,
    ROOT,
    VERBS,
    add_programs,
    lay_out,
    many_instances,
    reset,
    steps,
)
from benchmarks.results import Reasons
from benchmarks.verbs import alive, used
from tests.bed.bed import Bed
from tests.bed.node import Node

TOOLS = (FLOOR, VERBS, APPLY, EMERGENCY)
SHOWN = 24
"""Programs of the table."""
ENDED, LIVES = "ended", "lives on"
Process = tuple[int, str]
"""A pid and the name of its program."""


@dataclass(frozen=True, slots=True)
class Split:
    """Milliseconds of CPU a node: by program, and how often it ended; of the nodes by their control groups; of the controller."""

    programs: Mapping[str, float]
    times: Mapping[str, float]
    nodes: float
    controller: float


def on_real_nodes(count: int) -> Reasons:
    """One turn of each (root)."""
    with tempfile.TemporaryDirectory() as name, many_instances(count), Bed() as bed:
        folder = Path(name)
        add_programs(bed.folder / "image")
        lay_out(folder, bed.add(count))
        found = {tool: split for first in (FLOOR, VERBS, APPLY) for tool, split in _turns(first, folder, bed)}
    names = sorted({*found[FLOOR].programs, *found[APPLY].programs}, key=lambda name: -_most(found, name))
    rows = [("program", *TOOLS), *((name, *(_cell(found[tool], name) for tool in TOOLS)) for name in names[:SHOWN])]
    for what, whole in (
        ("all programs of the nodes", [sum(found[tool].programs.values()) for tool in TOOLS]),
        ("the nodes, by their control groups", [found[tool].nodes for tool in TOOLS]),
        ("the controller", [found[tool].controller for tool in TOOLS]),
    ):
        rows.append((what, *(f"{each:.0f} ms" for each in whole)))
    return Reasons(
        f"{count} real nodes at once, CPU a node by program",
        rows,
        "One turn of each. Of the processes that ended: their CPU and how many there were, as the kernel counted them; `sh` has its forks. Of those that"
        " live on: what the kernel's scheduler counts for all their threads. An apply reloads systemd on the half of these nodes where a setting is a flag"
        " of a unit, the safe floor on all, and the verbs alone on none.",
    )


def _turns(first: str, folder: Path, bed: Bed) -> Sequence[tuple[str, Split]]:
    reset(bed.nodes)
    return [(tool, _split(words, folder, bed.nodes)) for tool, words in steps(first, folder, bed, Path(), ())]


def _split(words: Sequence[str], folder: Path, nodes: Sequence[Node]) -> Split:
    before, groups = _living(nodes), sum(map(used, nodes))
    with exits() as ended:
        turn = measured(words, folder, {"PYTHONPATH": str(ROOT)})
        after, groups = _living(nodes), sum(map(used, nodes)) - groups
    counted = Exits()
    counted.add(ended, {pid for pid, _ in (*before, *after)})
    programs: dict[str, float] = defaultdict(float)
    for name, nanoseconds in counted.nanoseconds.items():
        programs[f"{name}, {ENDED}"] = nanoseconds
    pids = {each.pid for each in ended}
    for process, nanoseconds in before.items():
        pid, name = process
        if process in after:
            programs[f"{name}, {LIVES}"] -= nanoseconds
        elif pid in pids:  # the kernel counts its whole life
            programs[f"{name}, {ENDED}"] -= nanoseconds
    for (_, name), nanoseconds in after.items():
        programs[f"{name}, {LIVES}"] += nanoseconds
    return Split(
        {name: nanoseconds / 1e6 / len(nodes) for name, nanoseconds in programs.items()},
        {f"{name}, {ENDED}": times / len(nodes) for name, times in counted.times.items()},
        groups / len(nodes),
        1000 * turn.cpu / len(nodes),
    )


def _living(nodes: Sequence[Node]) -> Mapping[Process, int]:
    """Nanoseconds of CPU of each process of the nodes, with all its threads that live."""
    found: dict[Process, int] = {}
    for node in nodes:
        for pid in alive(node):
            folder = Path(f"/proc/{pid}")
            try:
                name = (folder / "comm").read_text().strip()
                found[pid, name] = sum(int(each.read_text().split()[0]) for each in folder.glob("task/*/schedstat"))
            except OSError:  # it has ended
                continue
    return found


def _most(found: Mapping[str, Split], name: str) -> float:
    return max(split.programs.get(name, 0.0) for split in found.values())


def _cell(split: Split, name: str) -> str:
    milliseconds = f"{split.programs.get(name, 0.0):.1f} ms"
    return f"{milliseconds}, {split.times.get(name, 0.0):.3g} ×" if name.endswith(ENDED) else milliseconds
