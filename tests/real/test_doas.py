"""The whole path through Debian's doas at night: a node without sudo is planned, changed, read again and reverted."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.bed.bed import Bed
from tests.bed.node import Node
from tests.bed.plugin import RealNodes
from tests.places import ROOT
from tests.real.test_whole_path import PLAYBOOK, Site

pytestmark = [pytest.mark.root, pytest.mark.night]

INVENTORY = "cluster: real\napiServer: v1.20.15\nssh: {{become: doas}}\nnodes:\n  {name}: {{}}\n"
RULE = "permit nopass ops as root\\n"


def allow(node: Node, rule: str) -> None:
    node.exec("sh", "-c", f"printf '{rule}' > /etc/doas.conf && chmod 600 /etc/doas.conf")


@pytest.fixture
def opendoas(tmp_path: Path) -> Path:
    """The files of Debian's package."""
    folder = tmp_path / "package"
    folder.mkdir()
    got = subprocess.run(
        ["apt-get", "-q", "download", "opendoas"], cwd=folder, capture_output=True, text=True, timeout=300, check=False
    )
    packages = [*folder.glob("opendoas_*.deb")]
    if got.returncode or not packages:
        pytest.skip(f"NOT TESTED with real doas: apt-get download: {got.stderr.strip()[-200:]}")
    subprocess.run(["dpkg-deb", "-x", str(packages[0]), str(folder / "files")], timeout=60, check=True)
    return folder / "files"


@pytest.fixture
def site(tmp_path: Path, bed: Bed, real_nodes: RealNodes, opendoas: Path) -> Iterator[Site]:
    """One node that has doas in the place of sudo, until the test ends."""
    (node,) = real_nodes(1)
    for name in ("usr/bin/doas", "etc/pam.d/doas"):
        shutil.copy2(opendoas / name, node.root / name)
    node.exec("chown", "root:root", "/usr/bin/doas", "/etc/pam.d/doas")
    node.exec("chmod", "4755", "/usr/bin/doas")
    node.exec("mv", "/usr/bin/sudo", "/usr/bin/sudo.away")
    allow(node, RULE)
    for name, text in (("inventories/real.yaml", INVENTORY.format(name=node.name)), ("playbooks/pulls.yaml", PLAYBOOK)):
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_text(text)
    (tmp_path / "templates").symlink_to(ROOT / "templates")
    try:
        yield Site(tmp_path, bed, node)
    finally:
        node.exec("sh", "-c", "mv /usr/bin/sudo.away /usr/bin/sudo; rm -f /usr/bin/doas /etc/doas.conf /etc/pam.d/doas")


def test_plan_apply_verify_rollback_and_emergency_go_through_doas(site: Site) -> None:
    before = site.files()
    checked = site.rollout("doctor", "--cluster", "real")
    assert "becomes root through doas" in checked.stdout, checked.stdout + checked.stderr
    for back in (("rollback", "--cluster", "real", "--emergency"), ("rollback",)):
        planned = site.rollout("plan", "--cluster", "real", "--out", "p.json", "--exit-code")
        assert planned.returncode == 10, planned.stdout + planned.stderr
        applied = site.rollout("apply", "p.json", "--yes")
        assert applied.returncode == 0, applied.stdout + applied.stderr
        assert "=5m" in site.flags()
        verified = site.rollout("verify", "--cluster", "real")
        assert verified.returncode == 0, verified.stdout + verified.stderr
        words = back if back[1:] else (*back, re.findall(r"\br\d{8}-\d{6}-[0-9a-f]{6}\b", applied.stdout)[0])
        reverted = site.rollout(*words, "--yes")
        assert reverted.returncode == 0, reverted.stdout + reverted.stderr
        assert site.files() == before


@pytest.mark.parametrize(
    ("rule", "reference"),
    [("permit ops as root\\n", "doas-needs-password"), ("deny ops\\n", "doas-not-allowed")],
)
def test_a_rule_that_does_not_suffice_leaves_the_node_as_it_is(site: Site, rule: str, reference: str) -> None:
    before = site.files()
    allow(site.node, rule)
    try:
        planned = site.rollout("plan", "--cluster", "real", "--out", "p.json")
        assert planned.returncode == 4, planned.stdout + planned.stderr
        assert f"[{reference}]" in planned.stdout
    finally:
        allow(site.node, RULE)
    assert site.files() == before
