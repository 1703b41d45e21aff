"""Which hosts of an Ansible inventory are nodes, by the names that installers of Kubernetes give to groups.

Those of kubespray (of now and before 2.17), k3s-ansible, rke2-ansible, lablabs' RKE2 role, kubeadm's playbooks, kubeasz,
OpenShift 3, k0s-ansible and the MicroK8s role.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import dataclass
from enum import StrEnum

from rollout.core.reading.ansible_inventory import OF_ANSIBLE, SSH, AnsibleHosts
from rollout.core.text.terminal import counted, printable
from rollout.features.init.rules.guesses import some


class GroupRole(StrEnum):
    """What the hosts of a group are."""

    CONTROL_PLANE = "control plane"
    WORKER = "worker"
    ETCD = "etcd"
    CLUSTER = "cluster"
    BASTION = "bastion"
    REFLECTOR = "route reflector"


LABELS: Mapping[GroupRole, str] = {
    GroupRole.CONTROL_PLANE: "node-role.kubernetes.io/control-plane",
    GroupRole.ETCD: "node-role.kubernetes.io/etcd",
}
_WORDS: Mapping[GroupRole, str] = {
    GroupRole.CONTROL_PLANE: "control-plane controlplane control master controller manager",
    GroupRole.WORKER: "node worker agent minion compute",
    GroupRole.ETCD: "etcd",
    GroupRole.CLUSTER: "cluster",
    GroupRole.BASTION: "bastion jump jumphost jump-host jumpbox jump-box",
    GroupRole.REFLECTOR: "calico-rr",
}
_ROLES = {word: role for role, words in _WORDS.items() for word in words.split()}
_INSTALLER = re.compile(r"(?:kubernetes|kubeadm|kube|microk8s|k8s|k3s|k0s|rke2|rke)")
_BEHIND = re.compile(rf"(?:^|.*-){_INSTALLER.pattern}-?(?=[a-z])")
"""What stands before it may be an environment or the prefix of a cloud's inventory: ``tag_role_k8s_master``."""
_NOT = re.compile(r"(?:^|-)(?:non?|not|without)-")
_MORE = re.compile(r"^(?:initial|init|first|additional|secondary|new)-")
_ENDS = re.compile(r"(?:-(?:nodes?|hosts?|members?|servers?))$")


def role_of_group(name: str) -> GroupRole | None:
    """``server`` alone may be any server: ``chosen`` decides it by the other groups."""
    word = name.lower().replace("_", "-")
    if _INSTALLER.fullmatch(word):
        return GroupRole.CLUSTER
    if _NOT.search(word):
        return None
    prefix = _BEHIND.match(word)
    bare = _MORE.sub("", word[prefix.end() :] if prefix else word)
    if prefix and (bare in _SERVERS or (bare == "ha" and prefix[0].endswith("microk8s-"))):
        return GroupRole.CONTROL_PLANE
    for each in (bare, bare.removesuffix("s"), _ENDS.sub("", bare), _ENDS.sub("", bare).removesuffix("s")):
        if each in _ROLES:
            return _ROLES[each]
    return None


_SERVERS = frozenset({"server", "servers"})


@dataclass(frozen=True, slots=True)
class Chosen:
    """The hosts that are nodes, the hosts of groups of bastions, the groups with a role, and what was left out."""

    nodes: tuple[str, ...]
    bastions: tuple[str, ...]
    roles: Mapping[str, GroupRole]
    told: tuple[str, ...]


def chosen(hosts: AnsibleHosts) -> Chosen:
    """If no group has a name of Kubernetes, every host that SSH reaches is a node, except bastions."""
    below = hosts.groups.below
    names = [name for name in hosts.groups.order if name not in OF_ANSIBLE and below[name]]
    roles = {name: role for name in names if (role := role_of_group(name)) is not None}
    if {GroupRole.WORKER, GroupRole.CLUSTER} & set(roles.values()):
        roles |= {name: GroupRole.CONTROL_PLANE for name in names if name.lower() in _SERVERS}
    of = {role: {host for name, its in roles.items() if its is role for host in below[name]} for role in GroupRole}
    every = tuple(dict.fromkeys(host for members in below.values() for host in members))
    workers = of[GroupRole.CONTROL_PLANE] | of[GroupRole.WORKER]
    others = (of[GroupRole.BASTION] | of[GroupRole.REFLECTOR]) - workers
    inside = (workers | of[GroupRole.CLUSTER] if workers or of[GroupRole.CLUSTER] else {*every}) - others
    by_other_means = {host for host in inside if _connection(hosts, host) not in SSH}
    windows = {host for host in inside - by_other_means if hosts.value(host, "ansible_shell_type") in _WINDOWS}
    nodes = tuple(host for host in every if host in inside - by_other_means - windows)
    bastions = tuple(host for host in every if host in of[GroupRole.BASTION] and _connection(hosts, host) in SSH)
    left = [*_left_out(hosts, of, {*every} - {*nodes}, by_other_means, windows)]
    if nodes and not (workers or of[GroupRole.CLUSTER]):
        left.append("no group has a name that installers of Kubernetes use: hosts that SSH reaches are nodes")
    return Chosen(nodes, bastions, roles, tuple(left))


_WINDOWS = ("powershell", "cmd", "ansible.builtin.powershell", "ansible.builtin.cmd")
"""Values of ``ansible_shell_type``. The agent is a program for a POSIX shell."""


def _connection(hosts: AnsibleHosts, host: str) -> str:
    return str(hosts.value(host, "ansible_connection") or "ssh")


def _left_out(
    hosts: AnsibleHosts,
    of: Mapping[GroupRole, Set[str]],
    out: Set[str],
    by_other_means: Set[str],
    windows: Set[str],
) -> Iterator[str]:
    rest = set(out)
    reasons: tuple[tuple[str, Iterable[str]], ...] = (
        ("not reached by SSH", by_other_means),
        ("Windows", windows),
        ("bastion", of[GroupRole.BASTION]),
        ("calico_rr, a route reflector", of[GroupRole.REFLECTOR]),
        ("etcd without a kubelet", of[GroupRole.ETCD]),
    )
    for why, members in reasons:
        here = sorted(rest.intersection(members))
        rest -= {*here}
        if here:
            yield f"left out {counted(len(here), 'host')}, {why}: {some(here)}"
    if rest:
        groups = sorted({group for host in rest for group in hosts.groups_of.get(host, ()) if group not in OF_ANSIBLE})
        where = f" (groups: {printable(', '.join(groups), 120)})" if groups else ""
        yield f"left out {counted(len(rest), 'host')}, in no group of nodes: {some(sorted(rest))}{where}"
