"""A node seen from outside: its disk, its processes, its systemd. No code of rollout is used."""

from __future__ import annotations

import fcntl
import re
import stat
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

from tests.bed.node import Node
from tests.chaos.findings import Kubelet, Seen
from tests.real.fleet import written

STATE = "var/lib/rollout"
UNDER_WAY = ("armed", "reverting")

_RENAME = re.compile(r"/tx/([^/ ]+)/new\.1 ")

_ASK = """
systemctl list-units --all --plain --no-legend '*rollout*' | while read -r unit rest; do echo "left unit $unit"; done
find /run -name '*rollout*' | while read -r path; do echo "left $path"; done
systemctl show -p ActiveState -p MainPID -p NeedDaemonReload kubelet
pid=$(systemctl show -p MainPID --value kubelet)
[ "$pid" = 0 ] || tr '\\0' '\\n' </proc/"$pid"/cmdline | while read -r word; do echo "word $word"; done
"""


def look(node: Node) -> Seen:
    """Everything about the node that is checked after a run. The node must be up."""
    lines = node.exec("sh", "-c", _ASK).splitlines()
    left = [line.removeprefix("left ") for line in lines if line.startswith("left ")]
    shown = dict(line.split("=", 1) for line in lines if "=" in line and not line.startswith(("left ", "word ")))
    words = tuple(line.removeprefix("word ") for line in lines if line.startswith("word "))
    state = node.root / STATE
    return Seen(
        node=node.name,
        tree={path.partition(":")[2]: what for path, what in written(node)},
        state=dict(_folders(state)),
        receipts=receipts(node),
        mode=f"{stat.S_IMODE(state.stat().st_mode):o}" if state.exists() else "",
        token=_token(state / "token"),
        ours=(*left, *_processes(node), *_lock(state / "lock")),
        kubelet=Kubelet(shown["ActiveState"], words, shown["NeedDaemonReload"] == "yes"),
    )


def receipts(node: Node) -> tuple[Mapping[str, str], ...]:
    """The node's receipts, oldest first; can be read while they change."""
    found = []
    for path in (node.root / STATE / "tx").glob("*/receipt"):
        try:
            text = path.read_text()
        except OSError:
            continue
        found.append(dict(line.split("=", 1) for line in text.splitlines() if "=" in line))
    return tuple(sorted((each for each in found if "seq" in each), key=lambda receipt: int(receipt["seq"])))


def renames(node: Node) -> Mapping[str, int]:
    """Transaction → how often its first file was put in the place of the old one, since the node's boot."""
    told = node.exec("sh", "-c", "cat /run/bed-renames 2>/dev/null || :")
    return Counter(_RENAME.findall(told))


def is_under_way(node: Node) -> bool:
    return any(receipt["state"] in UNDER_WAY for receipt in receipts(node))


def is_confirmed(seen: Seen) -> bool:
    """Whether its newest receipt is confirmed."""
    return [receipt["state"] for receipt in seen.receipts[-1:]] == ["confirmed"]


def _folders(state: Path) -> Iterator[tuple[str, frozenset[str]]]:
    if not state.exists():
        return
    yield "", frozenset(path.name for path in state.iterdir())
    for tx in (state / "tx").glob("*"):
        yield tx.name, frozenset(str(path.relative_to(tx)) for path in tx.rglob("*"))


def _token(path: Path) -> tuple[str, ...]:
    return tuple(path.read_text().splitlines()[0].split()) if path.exists() and path.stat().st_size else ()


def _processes(node: Node) -> Iterator[str]:
    """The agent's processes: their command line names its loader, or its copy for the guard."""
    for procs in node.cgroup.rglob("cgroup.procs"):
        for pid in procs.read_text().split():
            try:
                words = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                condition = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
            except OSError:
                continue
            if "/var/lib/rollout/" in words or " rollout " in words:
                yield f"process {pid} ({condition}): {words[-200:]}"


def _lock(path: Path) -> Iterator[str]:
    if not path.exists():
        return
    with path.open("r") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except OSError:
            yield "the lock is held"
