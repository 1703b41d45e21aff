"""One playbook over a mixed rack: each node's whole change, kubelet and runtime together, or its refusal."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rollout.core.model.plan import ExcludedNode
from rollout.core.model.playbook import Disruption
from rollout.core.model.snapshot import Snapshot
from rollout.kubelet.changes.changes import Proposal, change_for
from rollout.kubelet.runtimes.description import Runtime
from tests.kubelet.nodes import CONFIG, DEB, POLICY, regular
from tests.kubelet.nodes import node as inventory_node
from tests.kubelet.runtimes.nodes import CERTS, CONTAINERD, CRIO_DIR, DAEMON, V2, V3, node, wanted

PLAYBOOK = wanted(imagePullProgressDeadline="3m", serializeImagePulls=False)
CRI_DROP_IN = "/etc/systemd/system/cri-docker.service.d/90-rollout.conf"


def planned(found: Snapshot) -> Proposal | ExcludedNode:
    return change_for(found, PLAYBOOK, POLICY, inventory_node())


@pytest.mark.parametrize(
    ("found", "files", "units"),
    [
        (node(Runtime.DOCKERSHIM, "19.3.15", kubelet="1.20.15"), {CONFIG, DEB}, ["kubelet.service"]),
        (
            node(Runtime.CRI_DOCKERD, "0.3.15", kubelet="1.23.17"),
            {CRI_DROP_IN, CONFIG},
            ["cri-docker.service", "kubelet.service"],
        ),
        (
            node(Runtime.CONTAINERD, "1.7.24", regular(CONTAINERD, V2), kubelet="1.23.17"),
            {CONTAINERD, CONFIG},
            ["containerd.service", "kubelet.service"],
        ),
        (
            node(Runtime.CONTAINERD, "2.1.0", regular(CONTAINERD, V3), kubelet="1.26.15"),
            {CONTAINERD, CONFIG},
            ["containerd.service", "kubelet.service"],
        ),
        (
            node(Runtime.CRIO, "1.34.0", kubelet="1.26.15"),
            {f"{CRIO_DIR}/99-rollout.conf", CONFIG},
            ["crio.service", "kubelet.service"],
        ),
    ],
    ids=["dockershim", "cri-dockerd", "containerd-v2", "containerd-v3", "CRI-O"],
)
def test_files_and_units_on_each_node(found: Snapshot, files: set[str], units: list[str]) -> None:
    proposal = planned(found)
    assert isinstance(proposal, Proposal), proposal
    assert {file.path for file in proposal.change.files} == files
    assert list(proposal.change.units) == units
    assert proposal.change.disruption is Disruption.RESTART_KUBELET


def test_a_node_with_a_runtime_without_a_home_is_refused_before_any_change() -> None:
    left = planned(node(Runtime.CONTAINERD, "1.6.39", regular(CONTAINERD, V2), kubelet="1.23.17"))
    assert isinstance(left, ExcludedNode)
    assert left.reference == "setting-unsupported"
    assert "exists from containerd 1.7.0" in left.reason


def test_mirrors_alone_restart_nothing() -> None:
    text = V2 + f'\n[plugins."io.containerd.grpc.v1.cri".registry]\n  config_path = "{CERTS}"\n'
    found = node(Runtime.CONTAINERD, "1.7.24", regular(CONTAINERD, text), kubelet="1.23.17")
    only = wanted(registryMirrors={"docker.io": ["https://a.example"]})
    proposal = change_for(found, only, POLICY, inventory_node())
    assert isinstance(proposal, Proposal), proposal
    change = proposal.change
    assert [file.path for file in change.files] == [f"{CERTS}/docker.io/hosts.toml"]
    assert (change.units, change.hangups, change.settle, change.disruption) == ((), (), 0.0, Disruption.NONE)


def test_downloads_alone_only_send_a_signal_to_dockerd() -> None:
    found = node(Runtime.DOCKERSHIM, "20.10.24", kubelet="1.23.17")
    proposal = change_for(found, wanted(maxConcurrentDownloads=6), POLICY, inventory_node())
    assert isinstance(proposal, Proposal), proposal
    assert [file.path for file in proposal.change.files] == [DAEMON]
    assert (proposal.change.units, proposal.change.hangups) == ((), ("docker.service",))


def test_a_node_above_the_playbooks_class_is_refused() -> None:
    found = node(Runtime.CONTAINERD, "1.7.24", regular(CONTAINERD, V2), kubelet="1.23.17")
    capped = replace(POLICY, disruption=Disruption.RELOAD)
    left = change_for(found, wanted(imagePullProgressDeadline="3m"), capped, inventory_node())
    assert isinstance(left, ExcludedNode)
    assert left.reference == "disruption-capped"
