"""Other owners of a node's configuration are a refusal; managers and pending reboots are remarks."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rollout.core.model.plan import Change, FileChange
from rollout.core.model.snapshot import Snapshot
from rollout.kubelet.node import fitness, managers
from tests.kubelet.deciding import proposed
from tests.kubelet.nodes import kubeadm, settings, with_unit

GUARD = 120.0


def node(**facts: str) -> Snapshot:
    plain = kubeadm()
    return replace(plain, facts={**plain.facts, **{key.replace("_", "-"): text for key, text in facts.items()}})


def test_a_node_without_another_owner_is_fit_and_has_no_remark() -> None:
    assert fitness.refusal(node(os="debian"), GUARD) is None
    assert managers.remarks(node(os="debian")) == ()


@pytest.mark.parametrize(
    ("facts", "reference", "instead"),
    [
        ({"manager_mco": "/etc/machine-config-daemon/currentconfig"}, "managed-by-mco", "KubeletConfig"),
        ({"os": "talos"}, "managed-by-talos", "machine config"),
        ({"os": "bottlerocket"}, "managed-by-bottlerocket", "apiclient"),
    ],
)
def test_a_node_with_another_owner_of_the_kubelets_configuration_is_refused(
    facts: dict[str, str], reference: str, instead: str
) -> None:
    refused = fitness.refusal(node(**facts), GUARD)
    assert refused is not None
    assert refused[0] == reference
    assert instead in refused[1]
    assert "found: /etc/" in refused[1]


def test_an_owner_is_reported_before_its_consequences() -> None:
    """Talos has no systemd; that is not the reason why the node is left alone."""
    plain = node(os="talos")
    refused = fitness.refusal(replace(plain, machine_id="", measurement=replace(plain.measurement, unit=None)), GUARD)
    assert refused is not None
    assert refused[0] == "managed-by-talos"


@pytest.mark.parametrize("name", ["puppet", "chef", "ansible-pull", "salt", "cfengine"])
def test_a_manager_is_reported_with_its_marks_and_the_node_is_not_refused(name: str) -> None:
    found = node(**{f"manager_{name}": "x.service:enabled:active"})
    assert fitness.refusal(found, GUARD) is None
    ((reference, text),) = managers.remarks(found)
    assert reference == f"may-be-undone-by-{name}"
    assert "x.service:enabled:active" in text


def test_a_disabled_puppet_is_reported_as_disabled() -> None:
    ((_, text),) = managers.remarks(node(manager_puppet="puppet.service /x/agent_disabled.lock"))
    assert "disabled" in text


def test_several_and_a_pending_reboot() -> None:
    found = node(manager_puppet="cron", manager_salt="/etc/salt/minion", reboot_pending="/run/reboot-required")
    references = [reference for reference, _ in managers.remarks(found)]
    assert references == ["may-be-undone-by-puppet", "may-be-undone-by-salt", "reboot-pending"]


def changing(found: Snapshot, *paths: str) -> Change:
    files = tuple(FileChange(path, b"b", b"a", ()) for path in paths)
    change, _ = proposed(found, settings(serializeImagePulls=False))
    return replace(change, files=files)


@pytest.mark.parametrize(
    ("facts", "path", "name", "when"),
    [
        ({"manager_nodeadm": "nodeadm-run.service:enabled"}, "/etc/kubernetes/kubelet/config.json", "nodeadm", "next boot"),
        ({"manager_kops": "kops-configuration.service"}, "/etc/sysconfig/kubelet", "kops", "next boot"),
        ({"manager_kubespray": "/etc/kubernetes/kubelet.env"}, "/etc/kubernetes/kubelet-config.yaml", "kubespray", "next run of kubespray"),
        ({"os": "cos"}, "/home/kubernetes/kubelet-config.yaml", "cos", "every boot"),
        ({"os": "cos"}, "/etc/containerd/config.toml", "cos", "node pool's configuration"),
        ({"manager_nodeadm": "nodeadm-run.service"}, "/etc/containerd/config.toml", "nodeadm", "spec.containerd.config"),
        ({"manager_nodeadm": "nodeadm-run.service"}, "/etc/containerd/config.d/00-nodeadm.toml", "nodeadm", "next boot"),
        ({"manager_kops": "kops-configuration.service"}, "/etc/containerd/config-kops.toml", "kops", "spec.containerd"),
        ({"manager_kubespray": "/etc/kubernetes/kubelet.env"}, "/etc/containerd/certs.d/docker.io/hosts.toml", "kubespray", "containerd_*"),
        ({"manager_kubespray": "/etc/kubernetes/kubelet.env"}, "/etc/crio/crio.conf", "kubespray", "next run of kubespray"),
        ({"manager_rke2": "rke2-agent.service:enabled:active"}, "/var/lib/rancher/rke2/agent/etc/containerd/config.toml", "rke2", "every start of its unit"),
        ({"manager_rke2": "rke2-agent.service"}, "/var/lib/rancher/rke2/agent/etc/kubelet.conf.d/00-rke2-defaults.conf", "rke2", "kubelet-arg"),
        ({"manager_rke2": "rke2-agent.service"}, "/var/lib/rancher/rke2/agent/etc/kubelet.conf.d/10-cli-config.conf", "rke2", "every start of its unit"),
        ({"manager_k3s": "k3s.service"}, "/var/lib/rancher/k3s/agent/etc/kubelet.conf.d/20-cli-config-dir/50-a.conf", "k3s", "every start of its unit"),
        ({"manager_k3s": "k3s.service:active"}, "/var/lib/rancher/k3s/agent/etc/containerd/config.toml", "k3s", "registries.yaml"),
        ({"manager_rancher": "x.service"}, "/etc/rancher/rke2/config.yaml.d/50-rancher.yaml", "rancher", "next change of the cluster"),
    ],
)  # fmt: skip
def test_a_file_that_others_render_is_named_with_the_time_when_it_is_undone(
    facts: dict[str, str], path: str, name: str, when: str
) -> None:
    found = node(**facts)
    ((reference, text),) = managers.undone(found, changing(found, path))
    assert reference == f"rendered-by-{name}"
    assert text.startswith(f"{path}: ")
    assert when in text


def test_files_with_settings_for_two_places_are_two_lines_and_a_file_of_our_own_is_none() -> None:
    found = node(manager_kubespray="/etc/kubernetes/kubelet.env")
    paths = (
        "/etc/kubernetes/kubelet-config.yaml",
        "/etc/containerd/config.toml",
        "/etc/crio/crio.conf.d/99-rollout.conf",
    )
    texts = [text for _, text in managers.undone(found, changing(found, *paths))]
    assert [text.partition(":")[0] for text in texts] == list(paths[:2])
    assert "kubelet_custom_flags there (found" in texts[0]
    assert managers.renderer(found, paths[0]) == "kubespray"
    assert managers.renderer(found, paths[2]) == managers.renderer(node(), paths[0]) == ""


def test_a_drop_in_of_our_own_stays_over_a_start_of_rke2() -> None:
    found = node(manager_rke2="rke2-agent.service")
    ours = "/var/lib/rancher/rke2/agent/etc/kubelet.conf.d/99-rollout.conf"
    assert managers.undone(found, changing(found, ours)) == ()


def test_a_file_that_nobody_renders_is_not_undone() -> None:
    found = node(manager_nodeadm="nodeadm-run.service:enabled", manager_kubespray="/etc/kubernetes/kubelet.env")
    assert managers.undone(found, changing(found, "/etc/systemd/system/kubelet.service.d/90-rollout.conf")) == ()
    assert managers.undone(node(), changing(node(), "/etc/kubernetes/kubelet-config.yaml")) == ()


@pytest.mark.parametrize(("name", "unit"), [("rke2", "rke2-agent.service"), ("k3s", "k3s.service")])
@pytest.mark.parametrize("version", ["", "1.34.4"])
def test_where_not_one_unit_of_k3s_or_rke2_runs_it_is_said_so(name: str, unit: str, version: str) -> None:
    found = with_unit(node(**{f"manager_{name}": f"{unit}:active"}), LoadState="not-found")
    refused = fitness.refusal(replace(found, kubelet_version=version), GUARD)
    assert refused is not None
    assert refused[0] == "no-kubelet-unit"
    assert f"(found: {unit}:active)" in refused[1]
    assert f"/etc/rancher/{name}/config.yaml" in refused[1]


def test_other_names_of_a_file_are_a_remark() -> None:
    ((reference, text),) = managers.remarks(node(hard_links="/var/lib/kubelet/config.yaml"))
    assert reference == "hard-linked"
    assert text.startswith("/var/lib/kubelet/config.yaml: ")
