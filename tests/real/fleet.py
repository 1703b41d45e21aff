"""Four real nodes in two racks, and the command line, run as a user runs it."""

from __future__ import annotations

import hashlib
import json
import os
import re
import stat
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ClusterShell.NodeSet import NodeSet

from rollout.app.status import status_document, status_of
from rollout.composition.wiring import Session
from tests.bed.bed import Bed
from tests.bed.node import Node
from tests.controllers import Done, Process, at_work, finished
from tests.documents import as_printed
from tests.places import ROOT
from tests.story.conftest import reaches_nodes

PLAYBOOK = """\
name: pulls
settings: {imagePullProgressDeadline: 5m, serializeImagePulls: false}
waves: [canary, rest]
rehearsal: false
limits: {perRack: 100%, pace: 20}
budgets: {wave: 4, rack: 4, fleet: 4}
soak: 600ms
passes: 2
guard: 120s
onFailure: {revert: node}
"""

PATIENCE = 600.0
"""Seconds: a safety net for what hangs, not a verdict."""

VOLATILE = ("run", "tmp", "var/cache", "var/lib/docker", "var/lib/rollout", "var/lib/systemd", "var/log", "var/tmp")
"""Files that every running node writes."""

STATE = {"lock", "holder", "token", "touched", "tx"}
"""All that may be in /var/lib/rollout after a run. ``voided`` stays: a claim with the same token makes the ended run live again."""


@dataclass(frozen=True)
class Fleet:
    """A folder to run ``rollout`` in. Nodes are checked from outside: through their disks and their systemd."""

    folder: Path
    bed: Bed
    nodes: tuple[Node, ...]

    def command(self, *words: str) -> list[str]:
        way = ["--ssh-config", str(self.bed.ssh_config)] if reaches_nodes(*words) else []
        return [sys.executable, "-m", "rollout.cli", *words, *way]

    def rollout(self, *words: str, patience: float = PATIENCE) -> Done:
        return finished(self.command(*words), self.folder, patience)

    def begun(self, *words: str) -> AbstractContextManager[Process]:
        """A controller in the background."""
        (self.folder / "out").unlink(missing_ok=True)
        return at_work(self.command(*words), self.folder, self.folder / "out")

    def said(self) -> str:
        """What the controller in the background has printed so far."""
        return (self.folder / "out").read_text()

    def playbook(self, old: str, new: str) -> None:
        """Change it."""
        path = self.folder / "playbooks/pulls.yaml"
        text = path.read_text()
        assert old in text
        path.write_text(text.replace(old, new))

    def one_rack(self) -> None:
        """One rack, so that its budget is that of all four nodes."""
        path = self.folder / "inventories/real.yaml"
        path.write_text(path.read_text().replace("\n  b: ", ","))

    def plan(self) -> None:
        """Into p.json."""
        done = self.rollout("plan", "--cluster", "real", "--out", "p.json", "--exit-code")
        assert done.code == 10, done.all

    def status(self) -> Any:
        """The newest run, by its journal: what ``rollout status -o json`` prints, without a process."""
        journal = Session(self.folder / ".rollout", None, accept_new=False, output="json").past()
        newest, *_ = journal.runs()
        return as_printed(status_document(status_of(journal, newest.run, time.time())))

    def fires(self, node: Node) -> None:
        """The timer of its guard elapses now: systemd starts the guard."""
        newest = self.receipts(node)[-1]["tx"]
        node.exec("systemctl", "start", "--no-block", f"rollout-guard-{newest}.service")

    def is_overdue(self, node: Node) -> None:
        """Its deadline has passed, by its own records."""
        newest = node.root / "var/lib/rollout/tx" / self.receipts(node)[-1]["tx"]
        for path in (newest / "receipt", *(newest / "next").iterdir()):
            text = re.sub(r"^deadline=\d+$", "deadline=1", path.read_text(), flags=re.MULTILINE)
            fresh = path.with_name(f".{path.name}")
            fresh.write_text(text)
            fresh.rename(path)

    def standing(self, node: Node) -> str:
        """What the journal contains of one node: its trouble's state and reference, or nothing."""
        found = [t for t in self.status()["troubles"] if node.name in NodeSet(t["nodes"])]
        return " ".join(f"{t['state']} {t['reference']}" for t in found)

    # ------------------------------------------------------------------------------------------- out of band

    def planned(self, node: Node) -> Mapping[str, tuple[str, str]]:
        """Path → digests before and after, by the plan in p.json (``absent`` for no file)."""
        plan = json.loads((self.folder / "p.json").read_text())
        group = plan["nodes"][node.name]["group"]
        change = next(entry["change"] for entry in plan["groups"] if entry["name"] == group)
        return {entry["path"]: (entry["before"] or "absent", entry["after"]) for entry in change["files"]}

    def versions(self, node: Node) -> str:
        """``old`` or ``new`` for each file of the plan, in its order; ``?`` for bytes that are neither."""
        found = []
        for path, (before, after) in self.planned(node).items():
            file = node.root / path.lstrip("/")
            now = hashlib.sha256(file.read_bytes()).hexdigest() if file.exists() else "absent"
            found.append({before: "old", after: "new"}.get(now, "?"))
        return " ".join(found)

    def is_new(self, node: Node) -> bool:
        """Exactly the new files; exactly the old ones is ``False``; anything else is a third state and fails."""
        versions = set(self.versions(node).split())
        assert versions in ({"old"}, {"new"}), f"{node.name} has a mix of files: {versions}"
        return versions == {"new"}

    def runs_new(self, node: Node) -> bool:
        """Whether the kubelet's process has the new flag; it must be running."""
        pid = node.exec("systemctl", "show", "-p", "MainPID", "--value", "kubelet").strip()
        assert node.exec("systemctl", "is-active", "kubelet", check=False).strip() == "active", node.name
        return "--image-pull-progress-deadline=5m" in node.exec("cat", f"/proc/{pid}/cmdline")

    def receipts(self, node: Node) -> list[dict[str, str]]:
        """The node's own records, oldest first."""
        texts = []
        for path in (node.root / "var/lib/rollout/tx").glob("*/receipt"):
            with suppress(FileNotFoundError):  # the node forgets its oldest ones while the test looks
                texts.append(path.read_text())
        found = [dict(line.split("=", 1) for line in text.splitlines() if "=" in line) for text in texts]
        return sorted(found, key=lambda receipt: int(receipt["seq"]))

    def receipt(self, node: Node) -> str:
        """State and cause of the newest transaction; empty without one."""
        found = self.receipts(node)
        return f"{found[-1]['state']} {found[-1]['cause']}" if found else ""

    def finished(self, node: Node) -> bool:
        """The newest transaction has new files, a healthy kubelet, and waits to be confirmed."""
        found = self.receipts(node)
        return bool(found) and found[-1]["state"] == "armed" and found[-1]["finished"] == "1"

    def everything(self) -> dict[str, str]:
        """Path → mode, owner and content of all files that these nodes have written, except rollout's state and their logs."""
        return {path: what for node in self.nodes for path, what in written(node)}

    def nothing_left(self) -> None:
        """Law 8: no guard, timer, unit or claim; of rollout only /var/lib/rollout remains, closed to others."""
        for node in self.nodes:
            units = "systemctl list-units --all --plain --no-legend '*rollout*'; systemctl list-timers --all --no-legend '*rollout*'"
            assert node.exec("sh", "-c", units) == "", node.name
            ours = "find / -xdev -path /var/lib/rollout -prune -o -name '*rollout*' ! -name 90-rollout.conf -print"
            assert node.exec("sh", "-c", ours) == "", "except the drop-in, which is a change"
            state = node.root / "var/lib/rollout"
            if state.exists():
                assert stat.S_IMODE(state.stat().st_mode) == 0o700
                assert {path.name for path in state.iterdir()} - STATE == set(), node.name
                assert (state / "token").read_text().split()[2:3] in ([], ["ended"]), node.name


def written(node: Node) -> Iterator[tuple[str, str]]:
    """Files on the node's disk, and folders that its image does not have."""
    top = node.disk.written
    for folder, folders, files in os.walk(top):
        here = Path(folder).relative_to(top)
        folders[:] = sorted(f for f in folders if str(here / f) not in VOLATILE)
        for name in (*folders, *files):
            path = Path(folder, name)
            try:
                found = path.lstat()
                content = str(path.readlink()) if path.is_symlink() else ""
                if stat.S_ISREG(found.st_mode):
                    content = hashlib.sha256(path.read_bytes()).hexdigest()
            except FileNotFoundError:  # the node goes on while the test looks
                continue
            if stat.S_ISDIR(found.st_mode) and (node.image / here / name).is_dir():
                continue
            yield f"{node.name}:/{here / name}", f"{found.st_mode:o} {found.st_uid}:{found.st_gid} {content}"


def make_fleet(folder: Path, bed: Bed, nodes: list[Node]) -> Fleet:
    """Racks ``a`` and ``b``; in each a node of each layout."""
    names = [node.name for node in nodes]
    racks = f"racks:\n  a: {names[0]},{names[1]}\n  b: {names[2]},{names[3]}\n"
    inventory = f"cluster: real\napiServer: v1.20.15\n{racks}nodes:\n" + "".join(f"  {name}: {{}}\n" for name in names)
    for name, text in (("inventories/real.yaml", inventory), ("playbooks/pulls.yaml", PLAYBOOK)):
        (folder / name).parent.mkdir()
        (folder / name).write_text(text)
    (folder / "templates").symlink_to(ROOT / "templates")
    return Fleet(folder, bed, tuple(nodes))
