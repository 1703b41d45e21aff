"""Changes of a node's ground are refused unless the playbook accepts them by name; the refusal gives the effect."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rollout.core.model.plan import ExcludedNode, Standing
from rollout.kubelet.changes.changes import Proposal, change_for
from tests.kubelet.nodes import POLICY, kubeadm, node, settings

CHANGES = {
    "cgroupDriver": (settings(cgroupDriver="cgroupfs"), "systemd becomes cgroupfs: running pods stay in the cgroups"),
    "staticPodPath": (settings(staticPodPath="/etc/pods"), "static pods of the old folder are stopped"),
    "clusterDNS": (settings(clusterDNS=["10.0.0.10", "dns.local"]), "'dns.local' is not an address"),
    "--root-dir": (settings(__root_dir="/data/kubelet"), "the kubelet starts with an empty folder"),
    "--register-node": (settings(__register_node=False), "the kubelet no longer registers its Node"),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_change_of_the_ground_is_refused_and_may_be_accepted_by_its_name(name: str) -> None:
    wanted, says = CHANGES[name]
    left = change_for(kubeadm(), wanted, POLICY, node())
    assert isinstance(left, ExcludedNode)
    assert (left.standing, left.reference) == (Standing.REFUSED, "ground-changed")
    assert says in left.reason
    assert f"`accept: [{name}]`" in left.reason
    policy = replace(POLICY, accepted={name: ""})
    assert isinstance(change_for(kubeadm(), wanted, policy, node()), Proposal)


def test_an_equal_ground_needs_no_acceptance() -> None:
    found = change_for(
        kubeadm(), settings(cgroupDriver="systemd", clusterDNS=["10.0.0.10"], maxPods=50), POLICY, node()
    )
    assert isinstance(found, Proposal)
