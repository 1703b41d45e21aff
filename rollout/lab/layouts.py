"""The files on a node's disk, by layout: kubeadm from deb or rpm packages, kubeadm with drop-ins, or plain unit and flags.

The drop-ins are those of the kubelet's configuration (from 1.30 on; before, the layout is as from deb packages).
A node's kubelet has the flags and the fields that its version has, and its runtime the files that its version reads.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from rollout.lab import configs, runtimes
from rollout.lab.spec import NodeSpec

_UNIT = """\
[Unit]
Description=kubelet: The Kubernetes Node Agent
Documentation=https://kubernetes.io/docs/home/
Wants=network-online.target
After=network-online.target

[Service]
ExecStart={exec}
Restart=always
StartLimitInterval=0
RestartSec={restart}

[Install]
WantedBy=multi-user.target
"""

_DROP_IN = """\
# Note: This dropin only works with kubeadm and kubelet v1.11+
[Service]
Environment="KUBELET_KUBECONFIG_ARGS=--bootstrap-kubeconfig=/etc/kubernetes/bootstrap-kubelet.conf --kubeconfig=/etc/kubernetes/kubelet.conf"
Environment="KUBELET_CONFIG_ARGS=--config=/var/lib/kubelet/config.yaml{more}"
# This is a file that "kubeadm init" and "kubeadm join" generates at runtime, populating the KUBELET_KUBEADM_ARGS variable dynamically
EnvironmentFile=-/var/lib/kubelet/kubeadm-flags.env
# This is a file that the user can use for overrides of the kubelet args as a last resort. Preferably, the user should use
# the .NodeRegistration.KubeletExtraArgs object in the configuration files instead. KUBELET_EXTRA_ARGS should be sourced from this file.
EnvironmentFile=-{environment}
ExecStart=
ExecStart=/usr/bin/kubelet $KUBELET_KUBECONFIG_ARGS $KUBELET_CONFIG_ARGS $KUBELET_KUBEADM_ARGS $KUBELET_EXTRA_ARGS
"""

CONFIG_DIR = "/etc/kubernetes/kubelet.conf.d"
_CGROUP_2 = 25
"""Nodes from this minor on have a distribution with cgroups v2 (1.35 needs it by default)."""
_DROP_INS = 30
"""``--config-dir`` without a variable in the environment (KEP-3983)."""
_NEW_PACKAGES = 28
"""From this minor on the packages of pkgs.k8s.io have their drop-in at the path of the rpms."""


def files(node: NodeSpec, restart_sec: float) -> Mapping[str, str]:
    """Path → text for a node of this kind; equal kinds share one result."""
    return _files(node.layout, node.runtime, node.runtime_version, node.minor, restart_sec)


def folders(node: NodeSpec) -> tuple[str, ...]:
    """Other folders than those of its files."""
    return ("/sys/fs/cgroup", *runtimes.folders(node.runtime))


def programs(node: NodeSpec) -> Mapping[str, str]:
    """The programs in the node's /usr/bin and the version that each prints."""
    return {"kubelet": f"Kubernetes v{node.version}", **runtimes.programs(node.runtime, node.runtime_version)}


@cache
def _files(layout: str, runtime: str, runtime_version: str, minor: int, restart_sec: float) -> Mapping[str, str]:
    found = {"/etc/kubernetes/kubelet.conf": "# client certificate: not in the lab\n"}
    restart = f"{restart_sec:g}"
    for service in runtimes.services(runtime):
        found[f"/usr/lib/systemd/system/{service}"] = runtimes.text(service, restart_sec)
    if minor >= _CGROUP_2:
        found["/sys/fs/cgroup/cgroup.controllers"] = "cpuset cpu io memory hugetlb pids rdma misc\n"
    found |= runtimes.files(runtime, runtime_version)
    config = configs.config(minor, runtimes.socket(runtime))
    flags = runtimes.flags(runtime, minor)
    if layout == "plain":
        words = [
            "/usr/bin/kubelet",
            "--config=/etc/kubernetes/kubelet-config.yaml",
            "--kubeconfig=/etc/kubernetes/kubelet.conf",
        ]
        command = " \\\n  ".join([*words, *flags, *_deadline(runtime), "--v=2"])
        found["/etc/systemd/system/kubelet.service"] = _UNIT.format(exec=command, restart=restart)
        found["/etc/kubernetes/kubelet-config.yaml"] = config
        return found
    environment = "/etc/sysconfig/kubelet" if layout == "kubeadm-rpm" else "/etc/default/kubelet"
    packaged = layout == "kubeadm-rpm" or minor >= _NEW_PACKAGES
    folder = "/usr/lib/systemd/system" if packaged else "/etc/systemd/system"
    found["/usr/lib/systemd/system/kubelet.service"] = _UNIT.format(exec="/usr/bin/kubelet", restart=restart)
    more = ""
    if layout == "kubeadm-dropin" and minor >= _DROP_INS:
        more = f" --config-dir={CONFIG_DIR}"
        found[f"{CONFIG_DIR}/10-site.conf"] = configs.SITE
    found[f"{folder}/kubelet.service.d/10-kubeadm.conf"] = _DROP_IN.format(environment=environment, more=more)
    found["/var/lib/kubelet/kubeadm-flags.env"] = f'KUBELET_KUBEADM_ARGS="{" ".join(flags)}"\n'
    found["/var/lib/kubelet/config.yaml"] = config
    found[environment] = f"KUBELET_EXTRA_ARGS={' '.join(_deadline(runtime))}\n"
    return found


def _deadline(runtime: str) -> tuple[str, ...]:
    """The bad setting of the incidents, where the kubelet has the flag."""
    return ("--image-pull-progress-deadline=1m0s",) if runtime == "dockershim" else ()
