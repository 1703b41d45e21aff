"""What very large fleets cost, as processes from start to end: plan from a snapshot, a simulated apply, ``--help``; and the journal.

``python -m benchmarks.large_fleet 2000 100000`` measures fleets of these sizes and prints a table. Figures are CPU seconds and the
most memory of one process. ``loop`` is the time of a fixed loop right before: figures of two machines, or of two hours of one that
others use too, compare as multiples of it.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

from benchmarks.check_kubelet import machine
from rollout import __version__
from rollout.adapters.journal import SqlJournal
from rollout.app.following import replay
from rollout.app.ports import RunHeader
from rollout.core.plans import plan_codec, snapshot_codec
from rollout.core.presentation.summary import run_summary
from rollout.core.reading.inventory_file import load_inventory
from rollout.core.run.events import Answered, Trigger
from rollout.core.run.journal_codec import encode_event
from rollout.core.run.state import Verb
from rollout.simulator.rehearsal import PlanRehearsal
from tests.kubelet.nodes import mixed

TEMPLATES = Path(__file__).parent.parent / "templates"
Result = TypeVar("Result")
SIZES = (500, 2000)
PER_RACK = 60
EVENTS = 20_000
TOGETHER = 50
"""Events that are written durably at once."""
PLAYBOOK = "name: image-pulls\nsettings:\n  imagePullProgressDeadline: 5m\n  serializeImagePulls: false\n"


@dataclass(frozen=True, slots=True)
class Cost:
    """Of one process: seconds of CPU, MB at most."""

    cpu: float
    memory: float

    def __str__(self) -> str:
        return f"{self.cpu:.2f} s, {self.memory:.0f} MB"


def cost(folder: Path, *words: str) -> Cost:
    """Of one command of rollout."""
    process = subprocess.Popen([sys.executable, "-m", "rollout.cli", *words], cwd=folder, stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)  # waited for
    if process.returncode not in (0, 4):  # 4: some nodes are left alone
        raise SystemExit(f"rollout {' '.join(words)} ended with {process.returncode}")
    return Cost(used.ru_utime + used.ru_stime, used.ru_maxrss / 1024)


def apart(call: Callable[..., Result], *arguments: object) -> Result:
    """In a process of its own: the memory of this one counts in the commands that it starts."""
    with ProcessPoolExecutor(1) as pool:
        return pool.submit(call, *arguments).result()


def loop() -> float:
    """CPU seconds of a fixed loop."""
    before, total = time.process_time(), 0
    for number in range(5_000_000):
        total += number
    return time.process_time() - before


def lay_out(folder: Path, count: int) -> None:
    """An inventory of this many nodes in racks of ``PER_RACK``, a playbook, and a snapshot of the nodes."""
    racks = "".join(
        f"  rack{at // PER_RACK + 1:05d}: tess-node-[{at + 1:06d}-{min(count, at + PER_RACK):06d}]\n"
        for at in range(0, count, PER_RACK)
    )
    text = f"cluster: rno\napiServer: v1.23.17\nnodes:\n  tess-node-[000001-{count:06d}]:\nracks:\n{racks}"
    for name, content in (("inventories/rno.yaml", text), ("playbooks/image-pulls.yaml", PLAYBOOK)):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(content)
    shutil.copytree(TEMPLATES, folder / "templates")
    fleet = mixed(load_inventory(text, "inventories/rno.yaml"))
    (folder / "fleet.snapshot.json").write_bytes(snapshot_codec.encode(fleet))


def past_run(folder: Path) -> None:
    """The plan ``p.json`` of this folder as a run in its journal: the events of a rehearsal, as a real run has them."""
    content = (folder / "p.json").read_bytes()
    played = PlanRehearsal(plan_codec.decode(content, "p.json"), ())
    played.run()
    (run, lines), (header,) = *played.journal.lines.items(), played.journal.headers.values()
    journal = SqlJournal(folder / ".rollout")
    journal.begin(replace(header, plan=content, version=__version__))
    journal.acquire(header.cluster, run)
    ended = played.current.end if played.current is not None else None
    if ended is None:
        raise SystemExit("the rehearsal has not ended")
    last = len(lines) - 1
    for at in range(0, last, TOGETHER):
        journal.append(run, lines[at : min(last, at + TOGETHER)])
    journal.append(run, lines[last:], run_summary(ended))  # as a real run does
    journal.keep_end(replay(journal, run))
    journal.release(header.cluster, run)


def journal_speed(folder: Path) -> float:
    """Events that the journal makes durable in a second, ``TOGETHER`` at once."""
    journal = SqlJournal(folder)
    journal.begin(RunHeader("r1", "rno", "apply", "{}", 1, b"", 1.0, "benchmark", ""))
    journal.acquire("rno", "r1")
    lines = [encode_event(Answered(1.0, f"n{at}", at, Verb.READ, Trigger.UNTOUCHED)) for at in range(EVENTS)]
    began = time.perf_counter()
    for at in range(0, EVENTS, TOGETHER):
        journal.append("r1", lines[at : at + TOGETHER])
    return EVENTS / (time.perf_counter() - began)


def rows(sizes: tuple[int, ...]) -> Iterator[str]:
    for count in sizes:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            apart(lay_out, folder, count)
            for words in (
                ("plan", "--cluster", "rno", "--snapshot", "fleet.snapshot.json", "--out", "p.json"),
                ("simulate", "p.json"),
            ):
                yield f"| `{words[0]}`, {count:,} nodes | {cost(folder, *words)} | {loop():.2f} s |"
    with tempfile.TemporaryDirectory() as name:
        yield f"| `--help` | {cost(Path(name), '--help')} | {loop():.2f} s |"
        yield f"| journal, {TOGETHER} events at once | {apart(journal_speed, Path(name)):,.0f} events/s | {loop():.2f} s |"


def main() -> None:
    sizes = tuple(map(int, sys.argv[1:])) or SIZES
    sys.stdout.write(f"{machine()}\n\n| what | cost | loop |\n| --- | --- | --- |\n")
    for row in rows(sizes):
        sys.stdout.write(f"{row}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
