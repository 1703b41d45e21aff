"""The whole path on a real systemd node over OpenSSH: results of the lab must hold there too."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from tests.bed.bed import Bed
from tests.bed.node import Node
from tests.bed.plugin import RealNodes
from tests.controllers import at_work, until
from tests.places import ROOT
from tests.real.fleet import PATIENCE

pytestmark = [pytest.mark.root, pytest.mark.drawn(2)]

PLAYBOOK = """\
name: pulls
settings: {imagePullProgressDeadline: 5m, serializeImagePulls: false}
waves: [canary, rest]
rehearsal: false
limits: {perRack: 100%, pace: 20}
soak: 600ms
passes: 2
guard: 120s
onFailure: {revert: wave}
"""


@dataclass(frozen=True)
class Site:
    """A folder to run ``rollout`` in, for one real node."""

    folder: Path
    bed: Bed
    node: Node

    def command(self, *words: str) -> list[str]:
        return [sys.executable, "-m", "rollout.cli", *words, "--ssh-config", str(self.bed.ssh_config)]

    def rollout(self, *words: str) -> subprocess.CompletedProcess[str]:
        command = self.command(*words)
        return subprocess.run(command, cwd=self.folder, capture_output=True, text=True, timeout=PATIENCE, check=False)

    def elsewhere(self) -> Site:
        """The same configuration in another folder, with a journal of its own."""
        folder = self.folder / "elsewhere"
        folder.mkdir()
        for name in ("inventories", "playbooks", "templates"):
            (folder / name).symlink_to(self.folder / name)
        return replace(self, folder=folder)

    def files(self) -> str:
        """Digest, mode and owner of every file that rollout could touch, and every unit of rollout, read out of band."""
        listing = "find /etc /var/lib/kubelet /usr/lib/systemd -type f -exec sha256sum {} + -exec stat -c '%n %a %u:%g' {} + | sort"
        folders = "find / -xdev -path /var/lib/rollout -prune -o -name '*rollout*' -print"
        units = "systemctl list-units --all --no-legend 'rollout*' ; systemctl list-timers --all --no-legend 'rollout*'"
        return self.node.exec("sh", "-c", f"{listing}; {folders}; {units}")

    def flags(self) -> str:
        return self.node.exec("sh", "-c", "cat /etc/default/kubelet 2>/dev/null || :")


@pytest.fixture
def site(tmp_path: Path, bed: Bed, real_nodes: RealNodes) -> Site:
    (node,) = real_nodes(1)
    inventory = f"cluster: real\napiServer: v1.20.15\nnodes:\n  {node.name}: {{}}\n"
    for name, text in (("inventories/real.yaml", inventory), ("playbooks/pulls.yaml", PLAYBOOK)):
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_text(text)
    (tmp_path / "templates").symlink_to(ROOT / "templates")
    return Site(tmp_path, bed, node)


def test_plan_apply_plan_again_and_emergency_rollback(site: Site) -> None:
    before = site.files()
    planned = site.rollout("plan", "--cluster", "real", "--out", "p.json", "--exit-code")
    assert planned.returncode == 10, planned.stderr
    assert site.files() == before
    applied = site.rollout("apply", "p.json", "--yes")
    assert applied.returncode == 0, applied.stdout + applied.stderr
    assert "=5m" in site.flags()
    again = site.rollout("plan", "--cluster", "real", "--out", "p.json", "--exit-code")
    assert again.returncode == 0, again.stdout
    back = site.rollout("rollback", "--cluster", "real", "--emergency", "--yes")
    assert back.returncode == 0, back.stdout + back.stderr
    assert site.files() == before


def test_an_unhealthy_kubelet_halts_the_run_and_the_node_has_its_old_files(site: Site) -> None:
    before = site.files()
    kubelet = "/usr/bin/kubelet"
    wrapper = f'#!/bin/sh\ncase "$*" in *deadline=9m*) exit 1;; esac\nexec {kubelet}.real "$@"\n'
    site.node.exec(
        "sh", "-c", f"mv {kubelet} {kubelet}.real && printf '%s' '{wrapper}' > {kubelet} && chmod 755 {kubelet}"
    )
    try:
        halted = site.rollout("apply", "--cluster", "real", "--set", "imagePullProgressDeadline=9m", "--yes")
        assert halted.returncode == 3, halted.stdout + halted.stderr
        assert "reverted (1)" in halted.stdout
    finally:
        site.node.exec("mv", f"{kubelet}.real", kubelet)
    assert site.files() == before


def test_a_frozen_node_refuses_every_controller_until_it_is_unfrozen(site: Site) -> None:
    """Another journal knows nothing of the freeze: the node itself refuses. An emergency rollback passes."""
    applied = site.rollout("apply", "--cluster", "real", "--yes")
    assert applied.returncode == 0, applied.stdout + applied.stderr
    changed = site.files()
    frozen = site.rollout("cluster", "freeze", "--cluster", "real", "--reason", "incident 4711")
    assert frozen.returncode == 0, frozen.stdout + frozen.stderr
    another, other = site.elsewhere(), ("apply", "--cluster", "real", "--set", "imagePullProgressDeadline=9m", "--yes")
    refused = another.rollout(*other)
    assert refused.returncode == 5, refused.stdout + refused.stderr
    assert "incident 4711" in refused.stdout + refused.stderr
    assert site.files() == changed
    back = site.rollout("rollback", "--cluster", "real", "--emergency", "--yes")
    assert back.returncode == 0, back.stdout + back.stderr
    lifted = site.rollout("cluster", "unfreeze", "--cluster", "real", "--yes", "--reason", "incident 4711 is over")
    assert lifted.returncode == 0, lifted.stdout + lifted.stderr
    applied = another.rollout(*other)
    assert applied.returncode == 0, applied.stdout + applied.stderr
    assert "=9m" in site.flags()
    assert another.rollout("rollback", "--cluster", "real", "--emergency", "--yes").returncode == 0


def test_the_controller_dies_the_guard_reverts_and_resume_continues(site: Site) -> None:
    before = site.files()
    playbook = site.folder / "playbooks/pulls.yaml"
    playbook.write_text(playbook.read_text().replace("guard: 120s", "guard: 15s"))
    site.node.hold("*/next/finished *")
    with at_work(site.command("apply", "--cluster", "real", "--yes"), site.folder, site.folder / "said") as process:
        until(site.node.holds, PATIENCE, "it is changed and cannot be confirmed yet")
        process.kill()
        process.wait()
    assert "=5m" in site.flags()
    site.node.let_go()
    until(lambda: site.files() == before, PATIENCE, "the guard restores the files")
    resumed = site.rollout("resume", "--yes")
    assert resumed.returncode == 0, resumed.stdout + resumed.stderr
    assert "=5m" in site.flags()
    back = site.rollout("rollback", "--cluster", "real", "--emergency", "--yes")
    assert back.returncode == 0, back.stdout + back.stderr
    assert site.files() == before
