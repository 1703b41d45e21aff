"""A GPU node with a plan that needs a daemon-reload: refused, accepted with a wave of its own, and never asked where no reload is needed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.controllers import Done
from tests.story.conftest import Site, in_memory, lab_up, make_site

pytestmark = [pytest.mark.process, pytest.mark.drawn(2)]

INVENTORY = """\
cluster: small
apiServer: v1.30.4
racks:
  a: small-[001-004]
nodes:
  small-[001-003]:
    labels: {kubeletVersion: v1.30.4, containerRuntime: containerd, layout: plain}
  small-004:
    labels: {kubeletVersion: v1.30.4, containerRuntime: containerd, layout: kubeadm-deb}
"""
PLAYBOOK = """\
name: pulls
settings:
  --pod-infra-container-image: registry.example/pause:3.9
waves: [canary, rest]
limits: {perRack: 50%, pace: 20}
budgets: {wave: 2, rack: 2, fleet: 2}
soak: 600ms
passes: 2
rehearsal: false
guard: 60s
"""
DROP_IN = "etc/systemd/system/kubelet.service.d/90-rollout.conf"
GPU, PLAIN, BY_FILE = "small-001", "small-002", "small-004"


@pytest.fixture
def gpus(tmp_path: Path) -> Iterator[Site]:
    """``small-001`` and ``small-004`` have a GPU; the unit of ``small-004`` alone reads an environment file."""
    with in_memory(tmp_path) as room:
        site = replace(make_site(tmp_path), lab=room / "lab")
        (site.folder / "inventories/small.yaml").write_text(INVENTORY)
        (site.folder / "playbooks/pulls.yaml").write_text(PLAYBOOK)
        with lab_up(site, "--cluster", "small"):
            for name in (GPU, BY_FILE):
                (site.node(name) / "dev/nvidia0").touch()
            yield site


def plan(site: Site, *words: str) -> Done:
    done = site.rollout("plan", "--cluster", "small", "--out", "p.json", *words)
    assert done.code == 0, done.all
    return done


def waves(site: Site) -> dict[str, Any]:
    return {wave["name"]: wave["nodes"] for wave in json.loads(plan(site, "-o", "json").out)["waves"]}


def test_a_gpu_node_that_needs_a_reload(gpus: Site) -> None:
    told = plan(gpus)
    assert (
        "refused: 1 node  small-001\n     a daemon-reload can take GPUs from running containers until they are recreated"
        in told.out
    )
    assert "[gpu-lost-at-reload]" in told.out
    assert waves(gpus) == {"canary": "small-[002,004]", "rest": "small-003"}, "its environment file needs no reload"
    done = gpus.rollout("apply", "p.json", "--yes")
    assert done.code == 4, done.all
    assert not (gpus.node(GPU) / DROP_IN).exists()
    assert (gpus.node(PLAIN) / DROP_IN).exists()
    assert "pause:3.9" in gpus.flags(BY_FILE)
    assert not (gpus.node(BY_FILE) / DROP_IN).exists()

    playbook = gpus.folder / "playbooks/pulls.yaml"
    playbook.write_text(f"{PLAYBOOK}accept: [gpu-lost-at-reload]\n")
    accepted = plan(gpus)
    assert "Left alone\n  refused" not in accepted.out
    assert waves(gpus) == {"devices at risk, canary": GPU}
    assert (
        "a daemon-reload can take GPUs from running containers until they are recreated (nvidia-container-toolkit#48): the node has /dev/nvidia*"
        in accepted.out
    )
    assert "systemctl daemon-reload: systemd reads all unit files again" in accepted.out
    done = gpus.rollout("apply", "p.json", "--yes")
    assert done.code == 0, done.all
    assert "pause:3.9" in (gpus.node(GPU) / DROP_IN).read_text()


def test_a_misspelt_name_of_it_is_a_mistake(gpus: Site) -> None:
    (gpus.folder / "playbooks/pulls.yaml").write_text(f"{PLAYBOOK}accept: [gpu-lost-at-reloads]\n")
    done = gpus.rollout("check")
    assert done.code == 2, done.all
    assert "gpu-lost-at-reload" in done.all
