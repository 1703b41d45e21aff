"""The files on a node's disk, by layout: kubeadm from deb or rpm packages, kubeadm with drop-ins, or plain unit and flags.

The drop-ins are those of the kubelet's configuration (from 1.30 on; before, the layout is as from deb packages).
A node's kubelet has the flags and the fields that its version has, and its runtime the files that its version reads.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from rollout.kubelet.node import packaged
from rollout.lab import configs, embedded, runtimes
from rollout.lab.spec import NodeSpec

RKE2 = "rke2"
_CGROUP_2 = 25
"""Nodes from this minor on have a distribution with cgroups v2 (1.35 needs it by default)."""
_NEW_PACKAGES = 28
"""From this minor on the packages of pkgs.k8s.io have their drop-in at the path of the rpms."""


def files(node: NodeSpec, restart_sec: float) -> Mapping[str, str]:
    """Path → text for a node of this kind; equal kinds share one result."""
    return _files(node.layout, node.runtime, node.runtime_version, node.minor, restart_sec)


def folders(node: NodeSpec) -> tuple[str, ...]:
    """Other folders than those of its files."""
    hierarchy = control_groups(node.minor)
    groups = ("init.scope", "kubepods.slice", "system.slice", "user.slice")
    return (*(f"{hierarchy}/{group}" for group in groups), *runtimes.folders(node.runtime))


def control_groups(minor: int) -> str:
    """The folder of systemd's control groups; of v1 it is the only hierarchy here."""
    return "/sys/fs/cgroup" if minor >= _CGROUP_2 else "/sys/fs/cgroup/systemd"


def sockets(node: NodeSpec) -> tuple[str, ...]:
    """The paths at which its runtime listens."""
    if node.layout == RKE2:
        return (embedded.ENDPOINT.removeprefix("unix://"),)
    endpoint = runtimes.socket(node.runtime)
    return (endpoint.removeprefix("unix://"),) if endpoint else ("/run/docker.sock",)


def programs(node: NodeSpec) -> Mapping[str, str]:
    """The programs in the node's /usr/bin and the version that each prints."""
    if node.layout == RKE2:
        return {"rke2": f"rke2 version v{node.version} (0123abcd)"}
    return {"kubelet": f"Kubernetes v{node.version}", **runtimes.programs(node.runtime, node.runtime_version)}


_KERNEL: Mapping[str, str] = {
    "/proc/swaps": "Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n",
    **{
        f"/proc/sys/{name}": f"{value}\n"
        for name, value in (
            ("vm/overcommit_memory", 1), ("vm/panic_on_oom", 0), ("kernel/panic", 10), ("kernel/panic_on_oops", 1),
            ("kernel/keys/root_maxkeys", 1_000_000), ("kernel/keys/root_maxbytes", 25_000_000),
        )
    },
}  # fmt: skip
"""No swap; what a kubelet sets at its start, unless its configuration forbids that."""


@cache
def _files(layout: str, runtime: str, runtime_version: str, minor: int, restart_sec: float) -> Mapping[str, str]:
    found = {
        "/etc/kubernetes/kubelet.conf": "# client certificate: not in the lab\n",
        "/etc/kubernetes/pki/ca.crt": "# certificate of the cluster: not in the lab\n",
    }
    restart = f"{restart_sec:g}"
    if layout == RKE2:
        if minor >= _CGROUP_2:
            found["/sys/fs/cgroup/cgroup.controllers"] = "cpuset cpu io memory hugetlb pids rdma misc\n"
        return {**found, **_KERNEL, **embedded.files(minor, restart)}
    for service in runtimes.services(runtime):
        found[f"/usr/lib/systemd/system/{service}"] = runtimes.text(service, restart_sec)
    if minor >= _CGROUP_2:
        found["/sys/fs/cgroup/cgroup.controllers"] = "cpuset cpu io memory hugetlb pids rdma misc\n"
    found |= _KERNEL
    found |= runtimes.files(runtime, runtime_version)
    config = configs.config(minor, runtimes.socket(runtime))
    flags = runtimes.flags(runtime, minor)
    if layout == "plain":
        words = [
            "/usr/bin/kubelet",
            "--config=/etc/kubernetes/kubelet-config.yaml",
            "--kubeconfig=/etc/kubernetes/kubelet.conf",
        ]
        command = " \\\n  ".join([*words, *flags, *runtimes.described(runtime).stand_in.extra_arguments, "--v=2"])
        found["/etc/systemd/system/kubelet.service"] = packaged.kubelet_unit(command, restart)
        found["/etc/kubernetes/kubelet-config.yaml"] = config
        return found
    environment = "/etc/sysconfig/kubelet" if layout == "kubeadm-rpm" else "/etc/default/kubelet"
    new_path = layout == "kubeadm-rpm" or minor >= _NEW_PACKAGES
    folder = "/usr/lib/systemd/system" if new_path else "/etc/systemd/system"
    found["/usr/lib/systemd/system/kubelet.service"] = packaged.kubelet_unit(restart=restart)
    drop_ins = layout == "kubeadm-dropin" and minor >= packaged.CONFIG_DIR_SINCE
    if drop_ins:
        found[f"{packaged.CONFIG_DIR}/10-site.conf"] = configs.SITE
    config_flags = packaged.config_flags(drop_ins=drop_ins)
    found[f"{folder}/kubelet.service.d/10-kubeadm.conf"] = packaged.kubeadm_drop_in(environment, config_flags)
    found["/var/lib/kubelet/kubeadm-flags.env"] = f'KUBELET_KUBEADM_ARGS="{" ".join(flags)}"\n'
    found[packaged.CONFIG] = config
    found[environment] = f"KUBELET_EXTRA_ARGS={' '.join(runtimes.described(runtime).stand_in.extra_arguments)}\n"
    return found
