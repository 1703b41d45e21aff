"""Layouts other than kubeadm's on real systemd: Amazon Linux 2 of EKS, and RKE2, which has the kubelet in its own unit."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.bed.bed import Bed
from tests.bed.node import Layout, Node
from tests.bed.plugin import RealNodes
from tests.controllers import until
from tests.places import ROOT
from tests.real.test_whole_path import PLAYBOOK, Site

pytestmark = [pytest.mark.root, pytest.mark.drawn(1)]

RKE2_PLAYBOOK = PLAYBOOK.replace("imagePullProgressDeadline: 5m, ", "maxParallelImagePulls: 5, --registry-qps: 9, ")
DROP_IN = "/var/lib/rancher/rke2/agent/etc/kubelet.conf.d/99-rollout.conf"
ARGUMENTS = "/etc/rancher/rke2/config.yaml.d/99-rollout.yaml"


@pytest.fixture
def anew(bed: Bed, real_nodes: RealNodes) -> Iterator[Node]:
    """A node that the test may make anew in another layout; afterwards it is as before."""
    (node,) = real_nodes(1)
    usual = node.layout
    yield node
    node.layout = usual
    bed.renew(node)


def site(folder: Path, bed: Bed, node: Node, layout: Layout, playbook: str, server: str) -> Site:
    node.layout = layout
    bed.renew(node)
    # It accepts logins before its kubelet runs, and k3s and RKE2 write the kubelet's files at their own start.
    until(lambda: node.is_up() and node.exec("pgrep", "-x", "kubelet", check=False), 120, f"the kubelet of {node.name}")
    inventory = f"cluster: real\napiServer: v{server}\nnodes:\n  {node.name}: {{}}\n"
    for name, text in (("inventories/real.yaml", inventory), ("playbooks/pulls.yaml", playbook)):
        (folder / name).parent.mkdir()
        (folder / name).write_text(text)
    (folder / "templates").symlink_to(ROOT / "templates")
    return Site(folder, bed, node)


def kubelet(node: Node) -> str:
    """The command line of the kubelet that runs, and nothing else of that name."""
    return node.exec("sh", "-c", "cat /proc/$(pgrep -x kubelet)/cmdline | tr '\\0' ' '")


def files(node: Node) -> str:
    """Digest, mode and owner of the files that a rollout could touch."""
    places = "/etc /var/lib/kubelet /var/lib/rancher /usr/lib/systemd /usr/local/lib/systemd"
    return node.exec(
        "sh",
        "-c",
        f"find {places} -type f ! -name '*.log' -exec sha256sum {{}} + -exec stat -c '%n %a %u:%g' {{}} + 2>/dev/null | sort",
    )


def there_and_back(here: Site) -> tuple[str, str]:
    """Plan, apply, plan again with nothing to do, and roll back; what the plan printed, and the kubelet that ran in between."""
    before, first = files(here.node), kubelet(here.node)
    planned = here.rollout("plan", "--cluster", "real", "--out", "p.json", "--exit-code")
    assert planned.returncode == 10, planned.stdout + planned.stderr
    assert files(here.node) == before
    applied = here.rollout("apply", "p.json", "--yes")
    assert applied.returncode == 0, applied.stdout + applied.stderr
    between = kubelet(here.node)
    again = here.rollout("plan", "--cluster", "real", "--out", "p.json", "--exit-code")
    assert again.returncode == 0, again.stdout + again.stderr
    verified = here.rollout("verify", "--cluster", "real")
    assert verified.returncode == 0, verified.stdout + verified.stderr
    back = here.rollout("rollback", "--cluster", "real", "--emergency", "--yes")
    assert back.returncode == 0, back.stdout + back.stderr
    assert (files(here.node), kubelet(here.node)) == (before, first)
    return planned.stdout, between


def test_amazon_linux_2_of_eks(tmp_path: Path, bed: Bed, anew: Node) -> None:
    """Its variables are in drop-ins of others, which keep their bytes; its configuration is JSON."""
    _, between = there_and_back(site(tmp_path, bed, anew, Layout.EKS, PLAYBOOK, "1.20.15"))
    assert "--image-pull-progress-deadline=5m" in between
    assert "--node-labels=a=b,c=d" in between


def test_rke2(tmp_path: Path, bed: Bed, anew: Node) -> None:
    """Fields are in a drop-in, flags in a file of RKE2's configuration; its unit restarts, and its child is looked at."""
    planned, between = there_and_back(site(tmp_path, bed, anew, Layout.RKE2, RKE2_PLAYBOOK, "1.33.4"))
    assert "rke2-agent.service" in planned
    assert "--registry-qps=9" in between
    assert "--max-pods=150" in between


def test_k3s(tmp_path: Path, bed: Bed, anew: Node) -> None:
    """The same where the kubelet is a part of the main process: its arguments are those that it logged."""
    planned, between = there_and_back(site(tmp_path, bed, anew, Layout.K3S, RKE2_PLAYBOOK, "1.33.4"))
    assert "k3s-agent.service" in planned
    assert "--registry-qps=9" in between
    assert "--max-pods=150" in between


def test_a_kubelet_of_rke2_that_ends_again_and_again_is_reverted_though_its_unit_stays_active(
    tmp_path: Path, bed: Bed, anew: Node
) -> None:
    here = site(tmp_path, bed, anew, Layout.RKE2, RKE2_PLAYBOOK, "1.33.4")
    before = files(anew)
    real = "/var/lib/rancher/rke2/data/v1/bin/kubelet"
    wrapper = '#!/bin/sh\\ncase "$*" in *registry-qps=9*) exit 1;; esac\\nexec /opt/kubelet "$@"\\n'
    anew.exec("sh", "-c", f"mv {real} /opt/kubelet && printf '{wrapper}' >{real} && chmod 755 {real}")
    halted = here.rollout("apply", "--cluster", "real", "--yes")
    assert halted.returncode == 3, halted.stdout + halted.stderr
    assert "reverted (1)" in halted.stdout
    anew.exec("mv", "/opt/kubelet", real)
    assert files(anew) == before
