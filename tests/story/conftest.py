"""A small cluster served by the lab, and the command line run on it as a user would."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from tests.controllers import Done, anew, finished
from tests.places import ROOT

REACH = (
    "diagnose",
    "doctor",
    "prepull",
    "plan",
    "apply",
    "resume",
    "rollback",
    "verify",
    "newcomers",
    "uninstall",
    "cluster",
    "watch",
)
"""Commands with the options for reaching nodes."""
KEEP = ("status", "report", "own", "pause", "continue", "abort")
"""Commands that only read the journal."""


def reaches_nodes(*words: str) -> bool:
    """Whether this command has the options for reaching nodes."""
    return words[0] in REACH and words[:2] != ("diagnose", "pod")


INVENTORY = """\
cluster: small
apiServer: v1.23.17
racks:
  a: small-[001-060]
  b: small-[061-120]
nodes:
  small-[001-120]:
    labels: {kubeletVersion: v1.20.15, containerRuntime: dockershim}
"""

ROOM = 256 << 20
"""Bytes of memory that must be free to put a lab there."""

PLAYBOOK = """\
name: pulls
settings:
  imagePullProgressDeadline: 5m
  serializeImagePulls: false
waves: [canary, rest]
limits: {perRack: 25%, pace: 20}
budgets: {wave: 2, rack: 2, fleet: 2}
soak: 600ms
passes: 2
rehearsal: false
guard: 60s
onFailure: {revert: wave}
"""


@dataclass(frozen=True)
class Site:
    """A folder with inventories, playbooks and templates. Its nodes are in the lab ``lab``."""

    folder: Path
    lab: Path
    state: str = ".rollout"

    def rollout(self, *words: str) -> Done:
        """Run ``rollout`` in a process of its own."""
        done = finished(self.command(*words), self.folder)
        return replace(done, out=self.plain(done.out), err=self.plain(done.err))

    def plain(self, text: str) -> str:
        """Without this site's options, which each proposed command repeats (``tests/cli/test_proposed_options.py``)."""
        return text.replace(f" --ssh-config {self.lab / 'ssh_config'}", "").replace(f" --state {self.state}", "")

    def command(self, *words: str) -> list[str]:
        way = ["--ssh-config", str(self.lab / "ssh_config")] if reaches_nodes(*words) else []
        kept = ["--state", self.state] if reaches_nodes(*words) or words[0] in KEEP else []
        return [sys.executable, "-m", "rollout.cli", *words, *way, *kept]

    def apart(self, state: str) -> Site:
        """The same nodes with another journal."""
        return replace(self, state=state)

    def node(self, name: str) -> Path:
        return self.lab / "nodes" / name

    def config(self, name: str) -> str:
        return (self.node(name) / "var/lib/kubelet/config.yaml").read_text()

    def flags(self, name: str) -> str:
        return (self.node(name) / "etc/default/kubelet").read_text()

    def is_new(self, name: str) -> bool:
        """``True``: exactly the new files. ``False``: exactly the old files. Any other state fails the test."""
        new = ("serializeImagePulls: false" in self.config(name), "=5m" in self.flags(name))
        assert new in ((True, True), (False, False)), f"{name} is half done: {new}"
        return all(new)

    def everything(self, *names: str) -> dict[str, str]:
        """Path → mode and content of every file on these nodes, without rollout's state and the kernel's files."""
        found: dict[str, str] = {}
        for name in names:
            top = self.node(name)
            for folder, folders, files in os.walk(top):
                here = Path(folder).relative_to(top)
                folders[:] = [f for f in folders if str(here / f) not in ("proc", "run", "sys", "var/lib/rollout")]
                found |= {str(Path(name, here, f)): "folder" for f in folders}
                for file in files:
                    path = Path(folder, file)
                    with suppress(FileNotFoundError):  # a guard removes files of its own while the test looks
                        content = (
                            path.readlink() if path.is_symlink() else b"" if path.is_socket() else path.read_bytes()
                        )
                        found[str(Path(name, here, file))] = f"{path.lstat().st_mode:o} {content!r}"
        return found

    def is_well(self, name: str) -> bool:
        """Whether its kubelet answers. A kubelet that has just started does not answer yet."""
        asked = ("ssh", "-F", str(self.lab / "ssh_config"), name, "curl -s http://127.0.0.1:10248/healthz")
        return subprocess.run(asked, capture_output=True, text=True, check=False).stdout == "ok"

    def fault(self, nodes: str, *words: str) -> None:
        done = self.rollout("lab", "fault", nodes, *words, "--dir", str(self.lab))
        assert done.code == 0, done.err


class FreshSite(Site):
    """The same, but each command starts its own interpreter, as for a user."""

    def command(self, *words: str) -> list[str]:
        return anew(super().command(*words))


def fresh(site: Site) -> FreshSite:
    return FreshSite(site.folder, site.lab, site.state)


@contextmanager
def in_memory(otherwise: Path) -> Iterator[Path]:
    """A new folder for a lab, in memory if there is room: a lab is some thousand small files for a few minutes.

    Journals stay in pytest's folders, on a disk. A node in memory reports that it is on a disk (``lab/standins/stat``).
    """
    memory = Path("/dev/shm")
    if not memory.is_dir() or shutil.disk_usage(memory).free < ROOM:
        (otherwise / "room").mkdir()
        yield otherwise / "room"
        return
    with tempfile.TemporaryDirectory(prefix="rollout-test-", dir=memory, ignore_cleanup_errors=True) as made:
        yield Path(made)


def make_site(folder: Path) -> Site:
    for name, text in (("inventories/small.yaml", INVENTORY), ("playbooks/pulls.yaml", PLAYBOOK)):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (folder / "templates").symlink_to(ROOT / "templates")
    return Site(folder, folder / "lab")


@contextmanager
def served(folder: Path, limit: str) -> Iterator[Site]:
    """A site with the nodes ``limit`` running."""
    with in_memory(folder) as room:
        site = replace(make_site(folder), lab=room / "lab")
        with lab_up(site, "--cluster", "small", "--limit", limit):
            yield site


@contextmanager
def lab_up(site: Site, *words: str) -> Iterator[None]:
    """The nodes that these arguments of ``rollout lab up`` start."""
    up = site.rollout("lab", "up", *words, "--restart-sec", "0.3", "--dir", str(site.lab))
    assert up.code == 0, up.err
    try:
        yield
    finally:
        site.rollout("lab", "down", "--dir", str(site.lab))


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    """Twenty nodes of one kind in two racks, fresh for this test."""
    with served(tmp_path, "small-[001-010,061-070]") as made:
        yield made
