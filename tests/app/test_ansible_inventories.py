"""An Ansible inventory's ``--list`` as nodes: what is taken from it, and every way it can be wrong."""

from __future__ import annotations

import json
from typing import Any

import pytest

from rollout.app.load import load_cluster
from rollout.core.model.inventory import Inventory
from rollout.errors import InputError
from tests.app.test_load import FakeFiles, FakeSources

HOSTS: dict[str, Any] = {
    "_meta": {
        "hostvars": {
            "n1": {
                "ansible_host": "10.0.0.1",
                "rack": "r1",
                "node_labels": {"pool": "batch"},
                "ansible_password": "hunter2",
            },
            "n2": {"ansible_host": "10.0.0.2", "rack": "r1", "ansible_port": "2222", "ansible_user": "root"},
            "n10": {"ansible_host": "10.0.0.10", "rack": "r2"},
            "bastion": {"ansible_connection": "local"},
        }
    },
    "all": {"children": ["ungrouped", "kube_node", "edge", "zone_a", "zone_b"], "vars": {"ansible_user": "sre"}},
    "ungrouped": {"hosts": []},
    "kube_node": {"children": ["gpu"], "hosts": ["n10", "n1"], "vars": {"ansible_port": 22}},
    "gpu": {"hosts": ["n2"], "vars": {"ansible_user": "gpu"}},
    "edge": ["bastion"],
    "zone_a": {"hosts": ["n1", "n2"]},
    "zone_b": {"hosts": ["n10"]},
}
FILE = """\
cluster: c
apiServer: v1.34.1
nodesFrom:
  ansible: {{path: hosts.py, group: kube_node, {more}}}
"""


def load(
    printed: object = HOSTS, more: str = "rack: rack, zoneGroups: zone_, labels: node_labels", rest: str = ""
) -> Inventory:
    text = printed if isinstance(printed, str) else json.dumps(printed)
    files = FakeFiles({"inventories/c.yaml": FILE.format(more=more) + rest})
    return load_cluster(files, FakeSources(printed=text), "c")


def complaint(printed: object, more: str = "rack: rack", rest: str = "") -> str:
    with pytest.raises(InputError) as caught:
        load(printed, more, rest)
    assert caught.value.exit_code == 2
    return str(caught.value)


def but(**changes: object) -> dict[str, Any]:
    """The good document with other groups, or with other variables of ``n1``."""
    variables = changes.pop("n1", None)
    made = json.loads(json.dumps({**HOSTS, **changes}))
    if variables is not None:
        made["_meta"]["hostvars"]["n1"] = variables
    return dict(made)


def test_hosts_are_nodes_in_the_order_of_their_names() -> None:
    inventory = load()
    assert list(inventory.nodes) == ["n1", "n2", "n10"]
    n1, n2 = inventory.nodes["n1"], inventory.nodes["n2"]
    assert (n1.address, n1.rack, n1.zone, n1.user, n1.port) == ("10.0.0.1", "r1", "zone_a", "sre", 22)
    assert (n2.address, n2.rack, n2.zone, n2.user, n2.port) == ("10.0.0.2", "r1", "zone_a", "root", 2222)
    assert n1.labels == {"pool": "batch"}
    assert set(n2.groups) == {"kube_node", "gpu"}
    assert inventory.nodesets["gpu"] == {"n2"}
    assert inventory.nodesets["zone_a"] == {"n1", "n2"}
    assert "hunter2" not in repr(inventory)


def test_group_variables_count_from_the_outer_to_the_inner_group_and_a_host_s_own_win() -> None:
    without = but()
    del without["_meta"]["hostvars"]["n2"]["ansible_user"]
    assert load(without).nodes["n2"].user == "gpu"
    assert load(without).nodes["n10"].user == "sre"


def test_variables_of_all_are_for_hosts_that_it_does_not_list_too() -> None:
    """A program need not list the groups of `all`: `all` is above them, as Ansible reads it."""
    printed = but(all={"vars": {"ansible_user": "sre", "ansible_port": 2200}})
    found = load(printed).nodes
    assert {name: (node.user, node.port) for name, node in found.items()} == {
        "n1": ("sre", 22),
        "n2": ("root", 2222),
        "n10": ("sre", 22),
    }


def test_variables_of_ungrouped_are_for_the_hosts_of_no_other_group() -> None:
    """Whatever the program lists for it: n3 is in `all` alone, and n1 has groups."""
    printed = but(ungrouped={"hosts": ["n1"], "vars": {"ansible_port": 2200, "rack": "r3"}})
    printed["all"]["hosts"] = ["n3"]
    printed["edge"] = []
    text = FILE.format(more="rack: rack").replace("group: kube_node, ", "")
    files = FakeFiles({"inventories/c.yaml": text})
    found = load_cluster(files, FakeSources(printed=json.dumps(printed)), "c").nodes
    assert {name: (node.port, node.rack) for name, node in found.items()} == {
        "n1": (22, "r1"),
        "n2": (2222, "r1"),
        "n10": (22, "r2"),
        "n3": (2200, "r3"),
    }


@pytest.mark.parametrize(
    ("priority", "user"), [(10, "sre"), ("10", "sre"), ("1", "gpu"), ("high", "gpu"), (None, "gpu")]
)
def test_the_priority_of_a_group_may_be_a_text_as_for_ansible(priority: object, user: str) -> None:
    printed = but(few={"hosts": ["n2"], "vars": {"ansible_user": "sre", "ansible_group_priority": priority}})
    printed["all"]["children"] = ["ungrouped", "edge", "gpu", "kube_node", "few", "zone_a", "zone_b"]
    printed["kube_node"] = {"hosts": ["n1", "n2", "n10"]}
    del printed["_meta"]["hostvars"]["n2"]["ansible_user"]
    assert load(printed).nodes["n2"].user == user


def test_a_registry_is_a_variable_that_the_file_names() -> None:
    printed = but(gpu={"hosts": ["n2"], "vars": {"pulls_from": "gpu.example.net"}})
    rest = "registry: registry.example.net\n"
    assert {node.registry for node in load(printed, rest=rest).nodes.values()} == {"registry.example.net"}
    found = load(printed, "registry: pulls_from", rest)
    assert {name: node.registry for name, node in found.nodes.items()} == {
        "n1": "registry.example.net",
        "n2": "gpu.example.net",
        "n10": "registry.example.net",
    }
    elsewhere = but(gpu={"hosts": ["n2"], "vars": {"pulls_from": "other.example.net"}})
    assert load(elsewhere, "registry: pulls_from", rest).digest != found.digest


def test_the_files_own_groups_and_settings_apply_to_the_inventorys_nodes() -> None:
    inventory = load(rest="groups: {fast: {nodes: '@gpu', labels: {disk: nvme}, settings: {maxPods: 30}}}\n")
    assert inventory.nodes["n2"].labels == {"disk": "nvme"}
    assert inventory.levels[-1].nodes == frozenset({"n2"})


def test_a_changed_label_leaves_the_digest_and_a_changed_address_or_list_does_not() -> None:
    digest = load().digest
    assert load(but(n1={"ansible_host": "10.0.0.1", "rack": "r1"})).digest == digest
    assert load(but(n1={"ansible_host": "10.0.0.9", "rack": "r1"})).digest != digest
    assert load(but(gpu={"hosts": []})).digest != digest
    assert load(rest="settings: {maxPods: 30}\n").digest != digest


def test_doas_is_taken_over_and_every_other_method_is_sudo() -> None:
    printed = but(n1={"ansible_become_method": "doas", "rack": "r1"})
    printed["all"]["vars"]["ansible_become_method"] = "su"
    found = load(printed)
    assert {name: str(node.become) for name, node in found.nodes.items()} == {"n1": "doas", "n2": "sudo", "n10": "sudo"}


def test_the_name_of_a_node_may_be_a_variable() -> None:
    printed = but(n1={"ansible_host": "10.0.0.1"})
    printed["_meta"]["hostvars"]["n2"] = {"k8s_nodename": "gpu-1"}
    inventory = load(printed, "name: k8s_nodename")
    assert [inventory.nodes[name].address for name in ("gpu-1", "n1")] == ["n2", "10.0.0.1"]
    assert inventory.nodesets["gpu"] == {"gpu-1"}


def test_a_rack_that_ansible_reads_as_a_number_is_a_name() -> None:
    assert load(but(n1={"ansible_host": "10.0.0.1", "rack": 12})).nodes["n1"].rack == "12"


@pytest.mark.parametrize(
    ("printed", "said"),
    [
        ('{"all": {"hosts": ["n1"', "inventories/hosts.py: its output is not JSON at line 1 column 24: Expecting ',' delimiter (it ends there: an incomplete document) [not-json]"),
        ("", "inventories/hosts.py: its output is not JSON at line 1 column 1: Expecting value (it ends there: an incomplete document) [not-json]"),
        ("Fetching…\n{}", "inventories/hosts.py: its output is not JSON at line 1 column 1: Expecting value [not-json]"),
        ('{"a": NaN}', "inventories/hosts.py: its output is not JSON: NaN is not JSON [not-json]"),
        ('{"a": {}, "a": {}}', "inventories/hosts.py: its output is not JSON: `a` is a duplicate key [not-json]"),
        ("[" * 100_000, "inventories/hosts.py: its JSON is nested too deeply [not-json]"),
        ("[]", "inventories/hosts.py: it prints a list, not a map of groups [bad-inventory]"),
        ({"all": {"hosts": ["n1"]}}, 'inventories/hosts.py: it prints no `_meta.hostvars`, and rollout does not run it again with --host for every node (print "_meta": {"hostvars": {}} if there are none) [no-hostvars]'),
        (but(_meta={"hostvars": []}), "inventories/hosts.py: `_meta.hostvars` must be a map, not a list [bad-inventory]"),
        (but(n1=7), "inventories/hosts.py: the variables of `n1` must be a map, not a number [bad-inventory]"),
        (but(gpu="n2"), "inventories/hosts.py: group `gpu` must be a map or a list of hosts, not text [bad-inventory]"),
        (but(gpu={"host": ["n2"]}), "inventories/hosts.py: group `gpu` has a key `host`; groups have hosts, children and vars (did you mean `hosts`?) [unknown-key]"),
        (but(gpu={"hosts": ["n2", 3]}), "inventories/hosts.py: `hosts` of group `gpu` must be a list of names [bad-inventory]"),
        (but(gpu={"vars": []}), "inventories/hosts.py: `vars` of group `gpu` must be a map, not a list [bad-inventory]"),
        (but(gpu={"children": ["kube_node"]}), "inventories/hosts.py: groups are their own children: gpu, kube_node [bad-inventory]"),
        ({"_meta": {"hostvars": {}}, "kube_node": {}}, "inventories/hosts.py: there are no nodes in it [no-nodes]"),
        ({"_meta": {"hostvars": {}}, "kube_nodes": ["n1"]}, "inventories/hosts.py: there is no group `kube_node` in it (did you mean `kube_nodes`?) [unknown-group]"),
        (but(n1={"ansible_host": 7, "rack": "r1"}), "inventories/hosts.py: n1: `address`: `7` is not a host name or address; `{name}` stands for the node's name [bad-address]"),
        (but(n1={"ansible_host": "a;reboot", "rack": "r1"}), "inventories/hosts.py: n1: `address`: `a;reboot` is not a host name or address; `{name}` stands for the node's name [bad-address]"),
        (but(n1={"ansible_port": "22; reboot", "rack": "r1"}), "inventories/hosts.py: n1: `port` must be a whole number, not text [wrong-type]"),
        (but(n1={"ansible_port": 70000, "rack": "r1"}), "inventories/hosts.py: n1: `port` must be at most 65535, not 70000 [out-of-range]"),
        (but(n1={"ansible_user": ["root"], "rack": "r1"}), "inventories/hosts.py: n1: `user`: `['root']` is not a user name [bad-user]"),
        (but(n1={"rack": ["r1"]}), "inventories/hosts.py: n1: `rack` must be a name, not a list [wrong-type]"),
        (but(n1={"ansible_host": "{{ lookup('x') }}", "rack": "r1"}), "inventories/hosts.py: `ansible_host` of `n1` is a template, and Ansible has no value for it (see why: ansible -i inventories/hosts.py n1 -m debug -a var=ansible_host) [unfilled-template]"),
        (but(gpu=["bastion"]), "inventories/hosts.py: `bastion` is reached by `local`, not by SSH (choose the nodes with `group:`) [not-ssh]"),
        (but(gpu=["n2\x1b[2J"]), "inventories/hosts.py: n2: `n2` cannot be the name of a Node: lower-case letters, digits and `-`, in parts with `.` between them [bad-node-name]"),
        (but(gpu=["Gpu_2"]), "inventories/hosts.py: Gpu_2: `Gpu_2` cannot be the name of a Node: lower-case letters, digits and `-`, in parts with `.` between them (its Node is probably `gpu-2`) [bad-node-name]"),
        (but(n1={"ansible_host": "10.0.0.2", "ansible_port": 2222, "rack": "r1"}), "inventories/c.yaml:4:3: duplicate address `10.0.0.2` of `n2`, already that of `n1` [duplicate-address]"),
        (but(n1={}), "inventories/c.yaml:4:3: `n1` in no rack [no-rack]"),
    ],
)  # fmt: skip
def test_mistakes_in_the_output_are_named(printed: object, said: str) -> None:
    assert complaint(printed) == said


@pytest.mark.parametrize(
    ("more", "rest", "said"),
    [
        ("rack: rakc", "", "inventories/hosts.py: no node has a rack: none has `rakc` [no-rack]"),
        ("zoneGroups: z-", "", "inventories/hosts.py: no node has a zone: none has `z-` [no-zone]"),
        ("rackGroups: ''", "", "inventories/c.yaml:4:59: `rackGroups` must not be empty [empty-text]"),
        ("rack: rack, rackGroups: rack_", "", "inventories/c.yaml:4:12: `ansible`: a rack (or zone) is a variable or a group, not both [two-ways]"),
        ("racks: rack", "", "inventories/c.yaml:4:47: unknown key `racks` (did you mean `rack`?) [unknown-key]"),
        ("labels: node_labels", "groups: {gpu: {nodes: n1}}", 'inventories/c.yaml:5:10: `@gpu` is already a group of the nodes\' source (rename this one; it may use `nodes: "@…"`) [name-taken]'),
        ("rack: rack", "nodes: {n7: }", "inventories/c.yaml:3:1: nodes are listed here (`nodes`) or come from elsewhere (`nodesFrom`), not both [two-sources]"),
        ("rack: rack", "settings: {maxPods: }", "inventories/c.yaml:5:21: `maxPods` has no value (write one, or remove the line) [bad-setting]"),
    ],
)  # fmt: skip
def test_mistakes_in_the_file_are_named(more: str, rest: str, said: str) -> None:
    assert complaint(HOSTS, more, rest) == said


def test_the_same_mistake_on_many_nodes_is_reported_once() -> None:
    hosts = [f"n{at}" for at in range(1000)]
    printed = {"_meta": {"hostvars": {host: {"ansible_port": 0} for host in hosts}}, "kube_node": hosts}
    lines = complaint(printed, "labels: x").splitlines()
    assert len(lines) == 21
    assert lines[-1] == "… and 980 more mistakes [more-mistakes]"


def test_no_source_is_asked_if_the_file_is_wrong() -> None:
    sources = FakeSources(printed=json.dumps(HOSTS))
    files = FakeFiles({"inventories/c.yaml": FILE.format(more="rack: rack") + "apiServer2: x\n"})
    with pytest.raises(InputError):
        load_cluster(files, sources, "c")
    assert sources.asked == []
