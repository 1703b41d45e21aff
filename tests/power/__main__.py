"""Power cuts of an emulated machine at seeded instants of a node's life: old files or new ones, as it reported before."""

from __future__ import annotations

import argparse
import hashlib
import random
import re
import shutil
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path

from rollout.core.model.report import RemoteCommand
from rollout.kubelet.agent import agent_call
from tests.agent.node import NEW, OLD, PROGRAM, STANDINS, TIME, Node, order
from tests.power.machine import Machine, kernel_of, make_disk, make_memory

LIVES = 40
PATIENCE = 180.0


@dataclass(frozen=True)
class Bench:
    """The start of every cut."""

    kernel: Path
    memory: Path
    tree: Path


def main() -> None:
    parser = argparse.ArgumentParser(prog="make power", description=__doc__)
    parser.add_argument("--cuts", type=int, default=10)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--kernel", type=Path, default=Path("/boot"))
    words = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="rollout-power-"))
    try:
        bench = _bench(folder, words.kernel)
        whole = _life(bench, folder)
        wrong = [_cut(bench, folder, words.seed + number, whole) for number in range(words.cuts)]
    finally:
        shutil.rmtree(folder)
    lost = [what for what in wrong if what]
    print(f"{words.cuts} power cuts, {len(lost)} wrong")  # noqa: T201 - a program's own words
    raise SystemExit("\n".join(lost) or 0)


def _bench(folder: Path, kernels: Path) -> Bench:
    node = Node.make(folder / "node", "busybox")
    memory = folder / "memory"
    for name in ("proc", "run"):
        shutil.copytree(node.root / name, memory / "seed" / name, symlinks=True)
        shutil.rmtree(node.root / name)
        (node.root / name).mkdir()
    shutil.copytree(STANDINS, memory / "standins")
    shutil.copytree(TIME, memory / "standins", dirs_exist_ok=True)
    (memory / "targets").write_text("".join(f"{path}\n" for path in OLD))
    _write_verbs(memory)
    kernel = kernel_of(kernels)
    make_memory(folder / "memory.cpio", memory, kernels.parent / "lib/modules" / kernel.name.removeprefix("vmlinuz-"))
    return Bench(kernel, folder / "memory.cpio", node.root)


def _write_verbs(memory: Path) -> None:
    """Every verb of forty changes: each is applied, and either left to its guard or confirmed and reverted."""
    (memory / "verbs").mkdir()
    lives = []
    token = {"run": "run-1", "counter": 1, "sudo": False, "deadline": 60.0}
    for number in range(1, LIVES + 1):
        tx = f"t{number}"
        lives.append(f"{tx} {'guard' if number % 2 == 0 else 'confirm'}\n")
        commands = {
            "apply": agent_call.apply(PROGRAM, order(tx), sudo=False, deadline=60),
            "confirm": agent_call.confirm(PROGRAM, tx=tx, keep=3, **token),  # type: ignore[arg-type]  # words of a verb
            "revert": agent_call.revert(PROGRAM, tx=tx, **token),  # type: ignore[arg-type]
        }
        for name, command in commands.items():
            _write(memory / "verbs" / f"{name}-{tx}", command)
    _write(memory / "verbs" / "cleanup", agent_call.cleanup(PROGRAM, **token))  # type: ignore[arg-type]
    (memory / "lives").write_text("".join(lives))


def _write(path: Path, command: RemoteCommand) -> None:
    path.with_name(f"{path.name}.line").write_text(command.line)
    path.with_name(f"{path.name}.stdin").write_bytes(command.stdin)


def _life(bench: Bench, folder: Path) -> float:
    """How long two changes take without a power cut; cuts are drawn from this time. Both changes must have their result."""
    make_disk(folder / "disk", bench.tree)
    machine = Machine(bench.kernel, bench.memory, folder / "disk", "power=live")
    began, said = 0.0, []
    watch = threading.Timer(PATIENCE, machine.off)
    watch.start()
    for line in machine.lines():
        said.append(line)
        began = time.monotonic() if line.endswith("ready") else began
        if line == "begin apply-t3":
            break
    watch.cancel()
    machine.off()
    told = [line for line in said if line.startswith("told")]
    assert sum("state=confirmed" in line for line in told) == 1, said
    took = time.monotonic() - began
    print(f"two changes take {took:.1f} s", flush=True)  # noqa: T201
    return took


def _cut(bench: Bench, folder: Path, seed: int, whole: float) -> str:
    """What is wrong after a cut at a seeded instant; empty if nothing is wrong."""
    instant = random.Random(seed).uniform(0, whole)  # noqa: S311 - the same every time
    disk = folder / "disk"
    make_disk(disk, bench.tree)
    machine = Machine(bench.kernel, bench.memory, disk, "power=live")
    watch = threading.Timer(PATIENCE, machine.off)
    watch.start()
    before: list[str] = []
    for line in machine.lines():
        before.append(line)
        if line.endswith("ready"):
            watch.cancel()
            watch = threading.Timer(instant, machine.off)
            watch.start()
    machine.off()
    again = Machine(bench.kernel, bench.memory, disk, "power=boot")
    watch = threading.Timer(PATIENCE, again.off)
    watch.start()
    after: list[str] = []
    for line in again.lines():
        after.append(line)
        if line == "told all":
            break
    watch.cancel()
    again.off()
    what = _judge(before, after)
    last = next((line for line in reversed(before) if line.startswith(("begin", "told"))), "nothing")
    print(f"seed {seed}, after {instant:.2f} s, in {last[:60]!r}: {what or 'well'}", flush=True)  # noqa: T201
    return what and f"seed {seed}: {what}: {before[-3:]} {after}"


def _judge(before: list[str], after: list[str]) -> str:
    if "told all" not in after:
        return "it did not boot"
    digests = {line.split("  /mnt")[1]: line.split()[0] for line in after if "  /mnt" in line}
    files = {
        name: {path: hashlib.sha256(text).hexdigest() if text is not None else "absent" for path, text in which.items()}
        for name, which in (("old", OLD), ("new", NEW))
    }
    found = next((name for name, wanted in files.items() if digests == wanted), "a mix")
    receipts = [dict(word.split("=", 1) for word in line.split()) for line in after if line.startswith("tx=")]
    newest = max(receipts, key=lambda receipt: int(receipt["seq"]), default={"state": "none"})["state"]
    if found != ("new" if newest == "confirmed" else "old") or newest in ("armed", "reverting"):
        return f"{found} files, but the newest receipt is {newest}"
    strays = [line for line in after if line.startswith("/mnt/")]
    if strays:
        return f"left: {strays}"
    said = [line for line in before if line.startswith(("begin", "told"))]
    told = re.search(r" state=(\w+)", said[-1]) if said and said[-1].startswith("told") else None
    return f"it had reported {told[1]}, and is {newest}" if told and told[1] not in ("armed", newest) else ""


if __name__ == "__main__":
    main()
