"""Similar nodes share one proposal, and no node gets the proposal of a different one."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rollout.core.model.plan import ExcludedNode, Standing
from rollout.core.model.snapshot import Receipt, ReceiptState, Snapshot, Token
from rollout.kubelet.changes.changes import Proposal, ProposalCache, change_for
from rollout.kubelet.runtimes.description import Runtime
from tests.kubelet import nodes
from tests.kubelet.nodes import (
    CONFIG,
    CONFIG_TEXT,
    DEB,
    IMAGE_PULLS,
    POLICY,
    RPM,
    flags_only,
    kubeadm,
    plain,
    regular,
    settings,
    with_command,
    with_config_dir,
    with_file,
    with_unit,
)
from tests.kubelet.runtimes import nodes as runtimes

V1 = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"
DIFFERENT: tuple[Snapshot, ...] = (
    kubeadm(),
    kubeadm(version="1.21.14"),
    kubeadm(flags=RPM, extra="KUBELET_EXTRA_ARGS=\n"),
    kubeadm(runtime="cri-dockerd"),
    kubeadm(version="1.31.4", runtime="containerd"),
    kubeadm(config=CONFIG_TEXT + "maxPods: 50\n"),
    plain(),
    flags_only(),
    with_command(kubeadm(), "/usr/bin/kubelet", "--v=9"),
    with_file(kubeadm(), regular(DEB, "KUBELET_EXTRA_ARGS='open\n")),
    with_unit(kubeadm(), NeedDaemonReload="yes"),
    with_config_dir(kubeadm(version="1.29.4", runtime="containerd"), {"10-a.conf": f"{V1}maxPods: 50\n"}),
    with_config_dir(
        kubeadm(version="1.29.4", runtime="containerd"),
        {"10-a.conf": f"{V1}maxPods: 50\n"},
        **{"config-dir-alpha": "set"},
    ),
    replace(kubeadm(version="1.35.1", runtime="containerd"), facts={"cgroup": "v1"}),
    replace(kubeadm(version="1.35.1", runtime="containerd"), facts={"cgroup": "v2"}),
    runtimes.node(Runtime.CONTAINERD, "1.7.24", regular(runtimes.CONTAINERD, runtimes.V2)),
    runtimes.node(Runtime.CONTAINERD, "2.1.0", regular(runtimes.CONTAINERD, runtimes.V3)),
    replace(kubeadm(), receipts=(Receipt("t", "r", 1, ReceiptState.ARMED),)),
)


@pytest.mark.parametrize("templates", [POLICY.templates, replace(POLICY.templates, flags_env="{{ variable }}={{ arguments | join(' ') }}{# node #} --v={{ node.name | length }}\n")])  # fmt: skip
def test_each_node_gets_the_same_change_as_alone(templates: object) -> None:
    policy = replace(POLICY, templates=templates)  # type: ignore[arg-type]
    alike = ProposalCache(policy)
    for wanted in (IMAGE_PULLS, settings(serializeImagePulls=False), settings(maxPods=40)):
        for found in (*DIFFERENT, *DIFFERENT):
            for name in ("a", "longer"):
                where = nodes.node(name)
                assert alike.change_for(found, wanted, where) == change_for(found, wanted, policy, where)


def test_identities_of_nodes_make_no_difference() -> None:
    alike = ProposalCache(POLICY)
    found = kubeadm()
    process = found.measurement.process
    assert process is not None
    other = with_unit(
        replace(
            found,
            node="tess-node-0002",
            machine_id="f" * 32,
            boot_id="c" * 32,
            token=Token(7, "r7"),
            facts={**found.facts, "room-kib": "77777", "uptime": "5"},
            measurement=replace(found.measurement, process=replace(process, pid=4)),
        ),
        MainPID="4",
        NRestarts="3",
    )
    first, second = (alike.change_for(each, IMAGE_PULLS, nodes.node(each.node)) for each in (found, other))
    assert isinstance(first, Proposal)
    assert first is second


def test_an_excluded_node_has_its_own_name() -> None:
    alike = ProposalCache(POLICY)
    broken = with_file(kubeadm(), regular(CONFIG, "kind: Other\n"))
    for name in ("a", "b"):
        got = alike.change_for(broken, IMAGE_PULLS, nodes.node(name))
        assert isinstance(got, ExcludedNode)
        assert (got.name, got.standing) == (name, Standing.REFUSED)
