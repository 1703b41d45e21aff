"""A restart of CRI-O with containers in the control group of its unit: refused, and not where each has a scope of its own."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.story.conftest import Site, in_memory, lab_up, make_site

pytestmark = [pytest.mark.process, pytest.mark.drawn(2)]

INVENTORY = """\
cluster: small
apiServer: v1.33.4
racks:
  a: small-[001-002]
nodes:
  small-[001-002]:
    labels: {kubeletVersion: v1.33.4, containerRuntime: cri-o, containerRuntimeVersion: 1.33.0}
"""
PLAYBOOK = """\
name: pulls
settings:
  imagePullProgressDeadline: 5m
waves: [canary, rest]
limits: {perRack: 50%, pace: 20}
soak: 600ms
passes: 2
rehearsal: false
guard: 60s
"""
INSIDE, APART = "small-001", "small-002"
CONMON = 4_000_001
"""A process id that the lab does not use."""


@pytest.fixture
def crio(tmp_path: Path) -> Iterator[Site]:
    """Both units have systemd's default ``KillMode=control-group``; on ``small-001`` a conmon is in the group of the unit."""
    with in_memory(tmp_path) as room:
        site = replace(make_site(tmp_path), lab=room / "lab")
        (site.folder / "inventories/small.yaml").write_text(INVENTORY)
        (site.folder / "playbooks/pulls.yaml").write_text(PLAYBOOK)
        with lab_up(site, "--cluster", "small"):
            for name in (INSIDE, APART):
                beside = "crio.service/containers" if name == INSIDE else "crio-conmon-1.scope"
                group = site.node(name) / "sys/fs/cgroup/system.slice" / beside
                group.mkdir(parents=True)
                (group / "cgroup.procs").write_text(f"{CONMON}\n")
                process = site.node(name) / f"proc/{CONMON}"
                process.mkdir()
                (process / "comm").write_text("conmon\n")
            yield site


def test_a_restart_of_crio_that_would_kill_conmon(crio: Site) -> None:
    told = crio.rollout("plan", "--cluster", "small", "--out", "p.json")
    assert told.code == 0, told.all
    assert (
        "refused: 1 node  small-001\n     a restart of crio.service ends running containers: their conmon processes are"
        in told.out
    )
    assert "KillMode=control-group kills all of it" in told.out
    done = crio.rollout("apply", "p.json", "--yes")
    assert done.code == 4, done.all
    assert not (crio.node(INSIDE) / "etc/crio/crio.conf.d/99-rollout.conf").exists()
    assert (crio.node(APART) / "etc/crio/crio.conf.d/99-rollout.conf").exists()
