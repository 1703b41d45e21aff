"""Inventories of the usual installers: which hosts are nodes, what they are, how they are reached, and what is told."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from rollout.errors import InputError
from rollout.features.init.asking import drafted, nodes_of_ansible
from rollout.features.init.rules.ansible_groups import GroupRole, role_of_group
from rollout.features.init.rules.guesses import Guessed
from rollout.features.init.words.ssh_config import ssh_config_text
from tests.app.test_load import FakeSources


def printed(groups: Mapping[str, Sequence[str]], hosts: Mapping[str, Mapping[str, object]], **children: object) -> str:
    written: dict[str, Any] = {name: {"hosts": list(members)} for name, members in groups.items()}
    written |= {name: {"children": its} for name, its in children.items()}
    return json.dumps({"_meta": {"hostvars": hosts}, **written})


def guessed(text: str, values: Mapping[str, Mapping[str, object]] | None = None) -> Guessed:
    sources = FakeSources(printed=text)
    sources.values = values or {}
    return nodes_of_ansible(sources, "hosts", "/here")


def names(found: Guessed) -> list[str]:
    return [node.name for node in found.found.nodes]


@pytest.mark.parametrize(
    ("groups", "role"),
    [
        ("kube_control_plane kube-master kube-controlplane masters RKE2_CONTROLLERS rke2_servers k3s_server control-plane-nodes additional_master initial_controller new_masters microk8s_HA tag_role_k8s_master prod-k3s-servers", GroupRole.CONTROL_PLANE),
        ("kube_node kube-node workers agent rke2_agents k8s_workers kube_nodes new_nodes microk8s_WORKERS tag_role_k8s_worker k0s-workers", GroupRole.WORKER),
        ("k8s_cluster k8s-cluster k3s_cluster rke2_cluster kubernetes", GroupRole.CLUSTER),
        ("etcd kube_etcd etcd_nodes", GroupRole.ETCD),
        ("bastion bastions jump_hosts", GroupRole.BASTION),
        ("calico_rr calico-rr", GroupRole.REFLECTOR),
        ("gpu rack_a servers lb monitoring kube_ingress db_master mysql_node proxmox_nodes other_nodes non_k8s_nodes not-kube-nodes ha kube_ha", None),
    ],
)  # fmt: skip
def test_groups_have_the_roles_of_their_names(groups: str, role: GroupRole | None) -> None:
    assert {name: role_of_group(name) for name in groups.split()} == dict.fromkeys(groups.split(), role)


def test_kubespray() -> None:
    text = printed(
        {"kube_control_plane": ["cp1", "cp2"], "etcd": ["cp1", "e1"], "kube_node": ["n1", "n2"], "calico_rr": ["rr1"],
         "bastion": ["jump"], "lb": ["lb1"]},
        {"jump": {"ansible_host": "192.0.2.9", "ansible_user": "ops", "ansible_port": 2222}},
        k8s_cluster=["kube_control_plane", "kube_node", "calico_rr"],
    )  # fmt: skip
    found = guessed(text)
    assert sorted(names(found)) == ["cp1", "cp2", "n1", "n2"]
    assert found.told == (
        "left out 1 host, bastion: jump",
        "left out 1 host, calico_rr, a route reflector: rr1",
        "left out 1 host, etcd without a kubelet: e1",
        "left out 1 host, in no group of nodes: lb1 (groups: lb)",
    )
    assert "ProxyJump: ops@192.0.2.9:2222, the only host of a group of bastions" in [note.text for note in found.notes]
    assert drafted("c", found, "v1.33.0", "").texts["inventories/c.yaml"] == (
        'cluster: "c"\napiServer: "v1.33.0"\nnodes:\n  "cp[1-2]": {}\n  "n[1-2]": {}\ngroups:\n'
        '  "etcd": {nodes: "cp1", labels: {"node-role.kubernetes.io/etcd": ""}}\n'
        '  "k8s_cluster": {nodes: "cp[1-2],n[1-2]"}\n'
        '  "kube_control_plane": {nodes: "cp[1-2]", labels: {"node-role.kubernetes.io/control-plane": ""}}\n'
        '  "kube_node": {nodes: "n[1-2]"}\n'
    )


def test_k3s_ansible_has_addresses_as_names_and_a_group_of_servers() -> None:
    found = guessed(
        printed(
            {"server": ["192.0.2.1"], "agent": ["192.0.2.2"], "db_server": ["d1"]}, {}, k3s_cluster=["server", "agent"]
        )
    )
    assert names(found) == ["192.0.2.1", "192.0.2.2"]
    assert found.labels == {"server": {"node-role.kubernetes.io/control-plane": ""}}
    assert "names: addresses, for 2 nodes; the API server may know them by host names" in [
        note.text for note in found.notes
    ]


def test_without_a_group_of_kubernetes_every_host_is_a_node_but_bastions_and_what_ssh_does_not_reach() -> None:
    hosts = {"localhost": {"ansible_connection": "local"}, "w1": {"ansible_connection": "winrm"}}
    found = guessed(printed({"servers": ["a", "localhost", "w1"], "bastion": ["jump"]}, hosts))
    assert names(found) == ["a"]
    assert found.told == (
        "left out 2 hosts, not reached by SSH: localhost,w1",
        "left out 1 host, bastion: jump",
        "no group has a name that installers of Kubernetes use: hosts that SSH reaches are nodes",
    )


def test_a_windows_host_is_left_out_also_if_ssh_reaches_it() -> None:
    hosts: dict[str, dict[str, object]] = {
        "w1": {"ansible_connection": "ssh", "ansible_shell_type": "powershell"},
        "w2": {"ansible_shell_type": {}},
    }
    found = guessed(printed({"kube_node": ["n1", "w1", "w2"]}, hosts))
    assert (names(found), found.told) == (["n1", "w2"], ("left out 1 host, Windows: w1",))


@pytest.mark.parametrize(
    ("groups", "why"),
    [
        ({"kube_node": ["n1"]}, "left out 1 host, not reached by SSH: n1"),
        ({"kube_node": ["n1"], "bastion": ["j"]}, "not reached by SSH: n1; left out 1 host, bastion: j"),
        ({}, "it has no hosts"),
    ],
)
def test_an_inventory_without_a_node_is_refused_with_what_was_left_out(
    groups: Mapping[str, Sequence[str]], why: str
) -> None:
    with pytest.raises(InputError, match=rf"hosts: no host of it is a node: .*{why} \[no-nodes\]"):
        guessed(printed(groups, {"n1": {"ansible_connection": "local"}}))


@pytest.mark.parametrize("variable", ["node_name", "k8s_nodename", "kube_override_hostname"])
def test_a_node_has_the_name_that_an_installer_gives_it(variable: str) -> None:
    hosts: dict[str, dict[str, object]] = {
        "192.0.2.7": {variable: "master-01", "ansible_ssh_common_args": "-J jump"},
        "Host_2": {variable: "worker-01", "ansible_ssh_host": "192.0.2.8", "rack": "r1"},
        "n3": {"ansible_host": "192.0.2.9", variable: ""},
    }
    found = guessed(printed({"kube_master": ["192.0.2.7"], "kube_node": ["Host_2", "n3"]}, hosts))
    addresses = {node.name: node.address for node in found.found.nodes}
    assert addresses == {"master-01": "192.0.2.7", "worker-01": "192.0.2.8", "n3": "192.0.2.9"}
    assert found.found.groups == {"kube_master": ["master-01"], "kube_node": ["worker-01", "n3"]}
    assert found.ways == {"master-01": (("ProxyJump", "jump"),)}
    assert f"name: host variable `{variable}`" in [note.text for note in found.notes]
    assert ssh_config_text(found).endswith("Host 192.0.2.7\n    ProxyJump jump\n")


@pytest.mark.parametrize("values", [("a", "a"), ("n2", ""), ("Node 1", "b"), (7, "b"), ({}, "b"), ("n1", "n2")])
def test_a_variable_that_does_not_name_each_node_is_not_taken(values: tuple[object, object]) -> None:
    hosts = {name: {"node_name": value} for name, value in zip(("n1", "n2"), values, strict=True)}
    assert names(guessed(printed({"kube_node": ["n1", "n2"]}, hosts))) == ["n1", "n2"]


def test_a_name_that_is_a_template_is_asked_of_ansible() -> None:
    hosts = {name: {"kube_override_hostname": "{{ x }}"} for name in ("n1", "n2")}
    text = printed({"kube_node": [*hosts]}, hosts)
    filled = {name: {"kube_override_hostname": f"{name}.example.net"} for name in hosts}
    assert names(guessed(text, filled)) == ["n1.example.net", "n2.example.net"]
    assert names(guessed(text, {"n1": filled["n1"]})) == ["n1", "n2"]
    assert names(guessed(text, {})) == ["n1", "n2"]


def test_a_file_of_ssh_is_told_by_its_name() -> None:
    told = of_ssh(ansible_ssh_common_args="-F ./ssh.cfg -C").told
    assert told[:2] == (
        "dropped -F ./ssh.cfg: if the nodes need that file, name it with `ssh_config` in rollout.toml",
        "dropped options of ssh: -C (host keys are always verified)",
    )


def test_a_host_that_no_node_can_be_called_is_refused_with_the_name_that_was_meant() -> None:
    with pytest.raises(
        InputError, match=r"hosts: `Node_1` cannot be the name of a Node.*its Node is probably `node-1`"
    ):
        guessed(printed({"kube_node": ["Node_1"]}, {}))


def test_three_hundred_hosts_of_one_kind_are_a_line() -> None:
    hosts = [f"node-{number:03}" for number in range(1, 301)]
    variables = {
        host: {"ansible_host": f"{host}.example.net", "ansible_user": "sre", "rack": f"r{at // 20}"}
        for at, host in enumerate(hosts)
    }
    text = drafted("c", guessed(printed({"workers": hosts}, variables)), "v1.33.0", "").texts["inventories/c.yaml"]
    assert (
        'ssh: {user: "sre"}\nnodes:\n  "node-[001-300]": {address: "{name}.example.net"}\nracks:\n  "r0": "node-[001-020]"\n'
        in text
    )
    assert len(text.splitlines()) == 5 + 1 + 15 + 2


# SSH.


def of_ssh(**variables: object) -> Guessed:
    return guessed(printed({"kube_node": ["n1"]}, {"n1": variables}))


@pytest.mark.parametrize(
    ("variables", "lines"),
    [
        ({"ansible_ssh_common_args": "-o ProxyJump=ops@192.0.2.9:2222"}, ["ProxyJump ops@192.0.2.9:2222"]),
        ({"ansible_ssh_common_args": "-J ops@192.0.2.9,two -4"}, ["AddressFamily inet", "ProxyJump ops@192.0.2.9,two"]),
        ({"ansible_ssh_common_args": '-o ProxyCommand="ssh -W %h:%p -q ops@192.0.2.9"'}, ["ProxyJump ops@192.0.2.9"]),
        ({"ansible_ssh_common_args": "-o ProxyCommand='ssh -p 2222 -qW [%h]:%p -l ops [fd00::1]'"}, ["ProxyJump ops@[fd00::1]:2222"]),
        ({"ansible_ssh_common_args": "-o 'ProxyCommand nc -x proxy:1080 %h %p'"}, []),
        ({"ansible_ssh_private_key_file": "keys/fleet"}, ["IdentityFile /here/keys/fleet"]),
        ({"ansible_ssh_private_key_file": "~/my keys/fleet", "ansible_ssh_extra_args": "-i /k2"}, ['IdentityFile "~/my keys/fleet"', "IdentityFile /k2"]),
        ({"ansible_ssh_args": "-o ControlMaster=auto -C", "ansible_ssh_common_args": "-o ConnectTimeout=5"}, ["ConnectTimeout 5"]),
        ({"ansible_ssh_private_key_file": "a\nProxyCommand touch /tmp/x"}, []),
        ({"ansible_ssh_common_args": "-o 'ProxyJump=a\nProxyCommand touch /tmp/x'"}, []),
    ],
)  # fmt: skip
def test_ansible_s_variables_are_lines_of_ssh_config(variables: Mapping[str, object], lines: list[str]) -> None:
    text = ssh_config_text(of_ssh(**variables))
    assert [line.strip() for line in text.splitlines() if line.startswith("    ")] == lines
    assert [line for line in text.splitlines() if line.startswith("Host")] == (["Host n1"] if lines else [])


@pytest.mark.parametrize(
    "variables", [{"ansible_ssh_private_key_file": "\ud800"}, {"ansible_ssh_common_args": "-o HostKeyAlias=\ud800"}]
)
def test_what_no_file_can_hold_is_no_line_of_ssh_config(variables: Mapping[str, object]) -> None:
    assert ssh_config_text(of_ssh(**variables)) == ""


def test_the_key_of_a_bastion_is_in_a_stanza_of_its_own() -> None:
    found = of_ssh(
        ansible_host="10.0.0.1", ansible_ssh_common_args="-o ProxyCommand='ssh -i /jump -W %h:%p ops@192.0.2.9'"
    )
    assert ssh_config_text(found).partition("\n\n")[2] == (
        "Host 192.0.2.9\n    IdentityFile /jump\n\nHost 10.0.0.1\n    ProxyJump ops@192.0.2.9\n"
    )


def test_every_bastion_keeps_its_key_if_it_is_a_node_too_or_has_the_lines_of_another() -> None:
    through = "-o ProxyCommand='ssh -i /jump -W %h:%p ops@{}'"
    found = guessed(
        printed(
            {"kube_node": ["n1", "n2", "n3"]},
            {
                "n1": {"ansible_host": "10.0.0.1"},
                "n2": {"ansible_ssh_common_args": through.format("10.0.0.1")},
                "n3": {"ansible_ssh_common_args": through.format("10.0.0.9")},
            },
        )
    )
    assert ssh_config_text(found).partition("\n\n")[2] == (
        "Host 10.0.0.1 10.0.0.9\n    IdentityFile /jump\n\n"
        "Host n2\n    ProxyJump ops@10.0.0.1\n\nHost n3\n    ProxyJump ops@10.0.0.9\n"
    )


def test_lines_of_hosts_are_short_enough_for_an_old_openssh() -> None:
    hosts = [f"node-{number:04}" for number in range(1000)]
    text = ssh_config_text(
        guessed(printed({"kube_node": hosts}, {host: {"ansible_ssh_private_key_file": "/k"} for host in hosts}))
    )
    assert max(map(len, text.splitlines())) < 1024
    assert sum(len(line.split()) - 1 for line in text.splitlines() if line.startswith("Host ")) == 1000


def test_user_and_port_are_ansible_s_own_before_those_of_its_arguments() -> None:
    args = "-o User=nobody -p 2200 -o StrictHostKeyChecking=no"
    node = of_ssh(ansible_user="sre", ansible_ssh_common_args=args).found.nodes[0]
    assert (node.user, node.port) == ("sre", 2200)
    old = of_ssh(ansible_ssh_host="10.0.0.1", ansible_ssh_port="2222", ansible_ssh_user="old").found.nodes[0]
    assert (old.address, old.port, old.user) == ("10.0.0.1", 2222, "old")


def test_what_is_dropped_is_told_by_name_and_never_by_value() -> None:
    variables = {
        "ansible_become": True,
        "ansible_become_password": "hunter2",
        "ansible_become_method": "su",
        "ansible_become_user": "admin",
        "ansible_ssh_common_args": "-o StrictHostKeyChecking=no -A -o UserKnownHostsFile=/dev/null",
        "token": "hunter2",
    }
    found = of_ssh(**variables)
    assert found.told == (
        "dropped ansible_become_password: SSH logs in with keys, and sudo's password is typed with --ask-sudo-password",
        "dropped ansible_become_method `su` of 1 node: rollout uses sudo or doas",
        "dropped ansible_become_user admin: rollout becomes root",
        "dropped options of ssh: -A, StrictHostKeyChecking, UserKnownHostsFile (host keys are always verified)",
        "dropped 1 variable without a use here: token",
    )
    assert "hunter2" not in repr(found)


@pytest.mark.parametrize(
    "command",
    ["sshpass -p hunter2 ssh -W %h:%p bastion", "nc --proxy-auth ops:hunter2 %h %p", "ssh -o ProxyCommand='nc -P hunter2 %h %p' -W %h:%p ops@jump"],
)  # fmt: skip
def test_a_proxy_command_that_may_have_a_password_is_told_by_its_variable_and_written_nowhere(command: str) -> None:
    arguments = shlex.quote(f"ProxyCommand={command}")
    found = guessed(
        printed(
            {"kube_node": ["n1", "n2"], "bastion": ["jump"]},
            {name: {"ansible_ssh_common_args": f"-C -o {arguments}"} for name in ("n1", "n2")},
        )
    )
    assert "hunter2" not in repr(found)
    assert ssh_config_text(found) == ""  # nor is a way guessed that the variable does not name
    assert (
        "dropped the ProxyCommand of ansible_ssh_common_args, for 2 hosts: it may contain a password; "
        "write it into the ssh_config in use"
    ) in found.told


def test_what_is_dropped_of_a_bastion_is_told_too() -> None:
    found = guessed(
        printed(
            {"kube_node": ["n1"], "bastion": ["jump"]},
            {"jump": {"ansible_ssh_common_args": "-A -o ProxyCommand='sshpass -p hunter2 ssh -W %h:%p far'"}},
        )
    )
    assert "dropped options of ssh: -A (host keys are always verified)" in found.told
    assert any(
        line.startswith("dropped the ProxyCommand of ansible_ssh_common_args, for 1 host:") for line in found.told
    )
    assert "hunter2" not in repr(found)


# Templates.


def test_a_bastion_needs_no_value_for_what_only_nodes_have() -> None:
    text = json.dumps(
        {
            "_meta": {"hostvars": {"n1": {"number": 1}}},
            "all": {
                "vars": {"rack": "r{{ number }}", "ansible_user": "{{ who }}"},
                "children": ["bastion", "kube_node"],
            },
            "bastion": {"hosts": ["gate"]},
            "kube_node": {"hosts": ["n1"]},
        }
    )
    found = guessed(text, {"n1": {"rack": "r1", "ansible_user": "ops"}, "gate": {"ansible_user": "jump"}})
    assert [node.rack for node in found.found.nodes] == ["r1"]
    assert "ProxyJump: jump@gate, the only host of a group of bastions" in [note.text for note in found.notes]
    with pytest.raises(InputError, match="`ansible_user` of `gate` is a template"):
        guessed(text, {"n1": {"rack": "r1", "ansible_user": "ops"}})


@pytest.mark.parametrize(
    ("variables", "version", "note"),
    [
        ({"kube_version": "1.34.2"}, "v1.34.2", "apiServer: v1.34.2, the variable `kube_version`"),
        ({"kube_version": "v1.33.5"}, "v1.33.5", "apiServer: v1.33.5, the variable `kube_version`"),
        ({"k3s_version": "v1.33.5+k3s1"}, "v1.33.5", "apiServer: v1.33.5, the variable `k3s_version`"),
        ({"rke2_version": "v1.33.5-rc1+rke2r1"}, "v1.33.5", "apiServer: v1.33.5, the variable `rke2_version`"),
        ({"kube_version": "{{ unknown }}"}, "", ""),
        ({"kube_version": "latest"}, "", ""),
        ({"kube_version": 1.34}, "", ""),
        ({}, "", ""),
    ],
)
def test_the_installer_s_version_is_the_api_server_s(variables: Mapping[str, object], version: str, note: str) -> None:
    found = guessed(printed({"kube_node": ["n1"]}, {"n1": variables}))
    assert found.api_server == version
    assert [each.text for each in found.notes if each.text.startswith("apiServer")] == [note][: bool(note)]


def test_templates_are_asked_of_ansible_and_never_taken_as_text() -> None:
    text = printed(
        {"kube_node": ["n1"]}, {"n1": {"ansible_host": "{{ ip }}", "rack": "{{ row }}", "other": "{{ no }}"}}
    )
    found = guessed(text, {"n1": {"ansible_host": "10.0.0.1", "rack": 7}})
    assert (found.found.nodes[0].address, found.found.nodes[0].rack) == ("10.0.0.1", "7")
    with pytest.raises(
        InputError, match="`ansible_host` of `n1` is a template, and Ansible has no value for it"
    ) as caught:
        guessed(text, {"n1": {"ansible_host": "{{ ip }}", "rack": None}})
    assert [problem.reference for problem in caught.value.problems] == ["unfilled-template"] * 2


@pytest.mark.parametrize(
    ("hosts", "told"),
    [
        ({}, "hosts: no host of it is a node: it has no hosts [no-nodes]"),
        ({"n1": {"ansible_port": "abc"}}, "hosts: n1: `port` must be a whole number, not text [wrong-type]"),
    ],
)
def test_mistakes_of_the_source_are_not_told_of_the_draft(hosts: Mapping[str, Mapping[str, object]], told: str) -> None:
    with pytest.raises(InputError) as raised:
        drafted("c", guessed(printed({"kube_node": list(hosts)}, hosts)), "v1.34.2", "")
    assert [str(problem) for problem in raised.value.problems] == [told]
