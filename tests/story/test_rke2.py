"""RKE2 nodes on the lab, of versions with and without drop-ins, beside a node of kubeadm: one playbook for all of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.story.conftest import Site, in_memory, lab_up, make_site

pytestmark = pytest.mark.process

INVENTORY = """\
cluster: mixed
apiServer: v1.33.4
nodes:
  new-[1-2]: {labels: {kubeletVersion: v1.33.4+rke2r1, containerRuntime: containerd, layout: rke2}}
  old-1: {labels: {kubeletVersion: v1.30.9+rke2r1, containerRuntime: containerd, layout: rke2}}
  other-1: {labels: {kubeletVersion: v1.33.4, containerRuntime: containerd}}
"""
PLAYBOOK = """\
name: pulls
settings: {serializeImagePulls: true, registryPullQPS: 9, --max-pods: 180}
waves: [canary, rest]
limits: {perRack: 100%, pace: 20}
soak: 600ms
passes: 2
rehearsal: false
guard: 60s
"""
RKE2 = ("new-1", "new-2", "old-1")
DROP_IN = "var/lib/rancher/rke2/agent/etc/kubelet.conf.d/99-rollout.conf"
ARGUMENTS = "etc/rancher/rke2/config.yaml.d/99-rollout.yaml"


@pytest.fixture
def mixed(tmp_path: Path) -> Iterator[Site]:
    with in_memory(tmp_path) as room:
        site = replace(make_site(tmp_path), lab=room / "lab")
        (site.folder / "inventories/mixed.yaml").write_text(INVENTORY)
        (site.folder / "playbooks/pulls.yaml").write_text(PLAYBOOK)
        with lab_up(site, "--cluster", "mixed"):
            yield site


def files(site: Site) -> dict[str, str]:
    """Without what kubelets log."""
    return {path: what for path, what in site.everything(*RKE2).items() if not path.endswith(".log")}


def test_plan_apply_plan_again_verify_and_roll_back(mixed: Site) -> None:
    before = files(mixed)
    planned = mixed.rollout("plan", "--cluster", "mixed", "--out", "p.json", "--exit-code")
    assert planned.code == 10, planned.out + planned.err
    assert "refused" not in planned.out.replace("0 refused", ""), planned.out
    assert files(mixed) == before

    applied = mixed.rollout("apply", "p.json", "--yes")
    assert applied.code == 0, applied.out + applied.err
    for name in RKE2:
        arguments = (mixed.node(name) / ARGUMENTS).read_text()
        assert "max-pods=180" in arguments
        drop_in = mixed.node(name) / DROP_IN
        by_flag = name == "old-1"
        assert drop_in.exists() is not by_flag
        assert ("registry-qps=9" in arguments) is by_flag
    again = mixed.rollout("plan", "--cluster", "mixed", "--exit-code")
    assert again.code == 0, again.out
    assert mixed.rollout("verify", "--cluster", "mixed").code == 0

    back = mixed.rollout("rollback", "--cluster", "mixed", "--emergency", "--yes")
    assert back.code == 0, back.out + back.err
    assert files(mixed) == before


def test_a_kubelet_that_does_not_start_is_reverted_though_its_unit_is_active(mixed: Site) -> None:
    before = files(mixed)
    mixed.fault("new-1", "never-healthy")
    applied = mixed.rollout("apply", "--cluster", "mixed", "--limit", "new-1", "--yes")
    assert applied.code in (3, 4), applied.out + applied.err
    assert files(mixed) == before
