"""The fleet behind the bastion: 300 nodes of a lab, as 300 sshd of OpenSSH show them, and the Ansible inventory of them.

``python -m tests.first_hour.fleet FOLDER`` starts the lab in ``FOLDER/lab``, and writes the rest beside it.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

from rollout.lab import launch
from rollout.lab.spec import LabSpec, NodeSpec, addresses

VERSION = "v1.34.2"
RACKS, OF_A_RACK = 11, 27  # workers; three nodes of the control plane are in racks 1 to 3
BASTION = "10.90.0.2"
_LABELS = {"kubeletVersion": VERSION, "containerRuntime": "containerd", "layout": "kubeadm-deb"}

GROUPS = """\

[bastion]
gate ansible_host={bastion} ansible_user=jump

[kube_control_plane]
prod-cp-[1:3]

[etcd:children]
kube_control_plane

[kube_node]
prod-w-[001:{workers}]

[calico_rr]

[k8s_cluster:children]
kube_control_plane
kube_node
calico_rr

[monitoring]
prod-w-001
prod-w-002
"""
"""As kubespray's inventory.ini."""
ALL = """\
---
site_user: ops
ansible_user: "{{ site_user }}"
ansible_become: true
ansible_ssh_private_key_file: ~/.ssh/id_ed25519
ansible_python_interpreter: /usr/bin/python3
rack: "r{{ '%02d' % (rack_number | int) }}"
etcd_data_dir: /var/lib/etcd
"""
CLUSTER = f"""\
---
kube_version: {VERSION.removeprefix("v")}
container_manager: containerd
kubelet_max_pods: 110
kube_network_plugin: calico
"""


def main(folder: Path) -> None:
    """The lab knows each node by the address that its sshd has."""
    nodes = [*_nodes()]
    specs = (
        NodeSpec(name, known_as, address, _LABELS)
        for (name, known_as, _), address in zip(nodes, addresses(len(nodes)), strict=True)
    )
    launch.up(LabSpec("prod", tuple(specs), 1.0, {}, VERSION), folder / "lab")
    (folder / "addresses").write_text("".join(f"{address}\n" for _, address, _ in nodes), encoding="ascii")
    inventory = folder / "inventory"
    (inventory / "group_vars" / "all").mkdir(parents=True)
    (inventory / "group_vars" / "k8s_cluster").mkdir()
    hosts = "".join(f"{name} ansible_host={address} rack_number={rack}\n" for name, address, rack in nodes)
    groups = GROUPS.format(bastion=BASTION, workers=RACKS * OF_A_RACK)
    (inventory / "inventory.ini").write_text(f"[all]\n{hosts}{groups}", encoding="ascii")
    (inventory / "group_vars" / "all" / "all.yml").write_text(ALL, encoding="ascii")
    (inventory / "group_vars" / "k8s_cluster" / "k8s-cluster.yml").write_text(CLUSTER, encoding="ascii")


def _nodes() -> Iterator[tuple[str, str, int]]:
    for number in range(1, 4):
        yield f"prod-cp-{number}", f"10.91.0.{number}", number
    for number in range(RACKS * OF_A_RACK):
        rack = number // OF_A_RACK + 1
        yield f"prod-w-{number + 1:03}", f"10.91.{rack}.{number % OF_A_RACK + 1}", rack


if __name__ == "__main__":
    main(Path(sys.argv[1]))
