"""The inventory file: its meaning, and every mistake with its place."""

from __future__ import annotations

from hashlib import sha256

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rollout.core.model.inventory import Inventory, Level, Node
from rollout.core.model.settings import IfUnsupported, Setting
from rollout.core.reading.inventory_file import load_inventory
from rollout.core.text import yaml_source
from rollout.errors import InputError
from tests.places import ROOT
from tests.sampling import examples

RNO = ROOT / "inventories" / "rno.yaml"


def complaints(text: str) -> list[str]:
    with pytest.raises(InputError) as caught:
        load_inventory(text, "c.yaml")
    return [str(problem) for problem in caught.value.problems]


FOLDED = """\
cluster: c
apiServer: v1.23.17
ssh: {user: sre, port: 2222}
settings: {registryPullQPS: 10}
nodes:
  n[1-4]: {address: "{name}.example.net"}
  n5:
    labels: {layout: plain, disk: nvme}
    settings: {maxPods: {value: 30, ifUnsupported: skip}}
    user: root
    port: 22
racks:
  r1: n[1-3]
  r2: [n4, n5]
zones:
  a: r[1-2]
groups:
  gpu:
    nodes: "@r2!n4"
    labels: {gpu: "true", disk: ssd}
  later:
    nodes: ["@gpu", "n1"]
    labels: {gpu: "no"}
    settings: {maxPods: 40, evictionHard: {memory.available: 5%}}
"""


def test_by_nodeset() -> None:
    inventory = load_inventory(FOLDED, "c.yaml")
    labels = {"gpu": "no", "disk": "nvme", "layout": "plain"}
    assert inventory == Inventory(
        cluster="c",
        api_server="v1.23.17",
        nodes={
            "n1": Node("n1", "n1.example.net", "r1", "a", {"gpu": "no"}, ("later",), "sre", 2222),
            "n2": Node("n2", "n2.example.net", "r1", "a", {}, (), "sre", 2222),
            "n3": Node("n3", "n3.example.net", "r1", "a", {}, (), "sre", 2222),
            "n4": Node("n4", "n4.example.net", "r2", "a", {}, (), "sre", 2222),
            "n5": Node("n5", "n5", "r2", "a", labels, ("gpu", "later"), "root", 22),
        },
        nodesets={
            "all": frozenset({"n1", "n2", "n3", "n4", "n5"}),
            "r1": frozenset({"n1", "n2", "n3"}),
            "r2": frozenset({"n4", "n5"}),
            "a": frozenset({"n1", "n2", "n3", "n4", "n5"}),
            "gpu": frozenset({"n5"}),
            "later": frozenset({"n1", "n5"}),
        },
        levels=(
            Level("cluster", None, {"registryPullQPS": Setting("registryPullQPS", 10, source="cluster c")}),
            Level(
                "group later",
                frozenset({"n1", "n5"}),
                {
                    "maxPods": Setting("maxPods", 40, source="group later"),
                    "evictionHard": Setting("evictionHard", {"memory.available": "5%"}, source="group later"),
                },
            ),
            Level("node n5", frozenset({"n5"}), {"maxPods": Setting("maxPods", 30, IfUnsupported.SKIP, "node n5")}),
        ),
        digest=sha256(FOLDED.encode()).hexdigest(),
    )


def test_one_by_one() -> None:
    inventory = load_inventory(
        "cluster: c\napiServer: '1.23'\nnodes:\n"
        "  - {name: b, address: 10.0.0.1, rack: r1, zone: z1}\n"
        "  - {name: a, address: '[fd00::1]', rack: r2, zone: z1, settings: {maxPods: 3}}\n",
        "c.yaml",
    )
    assert [*inventory.nodes.values()] == [Node("b", "10.0.0.1", "r1", "z1"), Node("a", "[fd00::1]", "r2", "z1")]
    assert inventory.nodesets["z1"] == {"a", "b"}
    assert [level.name for level in inventory.levels] == ["cluster", "node a"]


def test_the_registry_of_a_node_overrides_its_groups_later_groups_earlier_ones_and_all_the_cluster() -> None:
    inventory = load_inventory(
        "cluster: c\napiServer: v1.23.17\nregistry: registry.example.net\n"
        "nodes: {'n[1-4]': , n5: {registry: 'edge.example.net:5000/mirror'}}\n"
        "groups:\n"
        "  a: {nodes: 'n[2-3]', registry: a.example.net}\n"
        "  b: {nodes: 'n[3-5]', registry: b.example.net}\n"
        "  c: {nodes: '@all'}\n",
        "c.yaml",
    )
    assert {name: node.registry for name, node in inventory.nodes.items()} == {
        "n1": "registry.example.net",
        "n2": "a.example.net",
        "n3": "b.example.net",
        "n4": "b.example.net",
        "n5": "edge.example.net:5000/mirror",
    }
    assert {node.registry for node in load_inventory(FOLDED, "c.yaml").nodes.values()} == {""}


def test_without_racks_all_nodes_are_in_one_rack() -> None:
    (node,) = load_inventory("cluster: c\napiServer: v1.23\nnodes: {n1: }", "c.yaml").nodes.values()
    assert (node.rack, node.zone, node.address) == ("none", "none", "n1")


def good(**changed: str) -> str:
    """A valid inventory, except for the changed keys."""
    keys = {"cluster": "c", "apiServer": "v1.23.17", "nodes": "{'n[1-4]': }", "racks": "{r1: 'n[1-2]', r2: 'n[3-4]'}"}
    return "".join(f"{key}: {value}\n" for key, value in {**keys, **changed}.items() if value)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        # Shape.
        ("", "c.yaml:1:1: the file is empty [wrong-type]"),
        ("[]", "c.yaml:1:1: the file must be a map of keys and values [wrong-type]"),
        ("a: [", "c.yaml:2:1: did not find expected node content [yaml-syntax]"),
        (good(cluster=""), "c.yaml:1:1: `cluster` is missing [missing-key]"),
        (good(nodes="", racks=""), "c.yaml:1:1: `nodes` is missing [missing-key]"),
        (good(nodes="{}", racks=""), "c.yaml:3:1: the inventory has no nodes [no-nodes]"),
        (good(nodes="3", racks=""), "c.yaml:3:8: `nodes` must be a map, not a number [wrong-type]"),
        (good(raks="{}"), "c.yaml:5:1: unknown key `raks` (did you mean `racks`?) [unknown-key]"),
        (good(zzz="{}"), "c.yaml:5:1: unknown key `zzz` [unknown-key]"),
        (good(nodes="{'n[1-4]': {adress: x}}"), "c.yaml:3:20: unknown key `adress` (did you mean `address`?) [unknown-key]"),
        (good(groups="{g: {nodes: n1, label: {}}}"), "c.yaml:5:25: unknown key `label` (did you mean `labels`?) [unknown-key]"),
        (good(groups="{g: {}}"), "c.yaml:5:13: `nodes` is missing [missing-key]"),
        (good(groups="{g: n1}"), "c.yaml:5:13: `g` must be a map, not text [wrong-type]"),
        (good(groups="[]"), "c.yaml:5:9: `groups` must be a map, not a list [wrong-type]"),
        (good(ssh="{port: 99999}"), "c.yaml:5:13: `port` must be at most 65535, not 99999 [out-of-range]"),
        (good(ssh="{port: 0}"), "c.yaml:5:13: `port` must be at least 1, not 0 [out-of-range]"),
        (good(ssh="{port: '22'}"), "c.yaml:5:13: `port` must be a whole number, not text [wrong-type]"),
        (good(ssh="{port: 2.5}"), "c.yaml:5:13: `port` must be a whole number, not 2.5 [wrong-type]"),
        (good(ssh="{user: '-x'}"), "c.yaml:5:13: `user`: `-x` is not a user name [bad-user]"),
        (good(registry="https://r.example.net"), "c.yaml:5:11: `registry`: `https://r.example.net` is not a registry; write its host, with port and path if needed, without a scheme [bad-registry]"),
        (good(registy="r"), "c.yaml:5:1: unknown key `registy` (did you mean `registry`?) [unknown-key]"),
        (good(groups="{g: {nodes: n1, registry: 5000}}"), "c.yaml:5:35: `registry`: `5000` is not a registry; write its host, with port and path if needed, without a scheme [bad-registry]"),
        (good(apiServer="1.20"), "c.yaml:2:12: `apiServer` must be text such as v1.23.17 (as a number, 1.20 would turn into 1.2) [bad-version]"),
        (good(apiServer="latest"), "c.yaml:2:12: `apiServer`: `latest` is not a Kubernetes version; write for example v1.23.17 [bad-version]"),
        (good(cluster="a b"), "c.yaml:1:10: `a b` is not a name; names are letters, digits, `-`, `_` and `.` [bad-name]"),
        (good(cluster="3"), "c.yaml:1:10: `cluster` must be a name, not a number [wrong-type]"),
        (good(groups="{'a b': {nodes: n1}}"), "c.yaml:5:10: `a b` is not a name; names are letters, digits, `-`, `_` and `.` [bad-name]"),
        (good(nodes="{'n[1-4]': {labels: {gpu: true}}}"), 'c.yaml:3:34: label `gpu` must be text, not a boolean (write "true" in quotes) [wrong-type]'),
        (good(nodes="{'n[1-4]': {address: '-oX'}}"), "c.yaml:3:29: `address`: `-oX` is not a host name or address; `{name}` stands for the node's name [bad-address]"),
        (good(nodes='{"n[1-4]": {labels: {a: "b\\nc"}}}'), "c.yaml:3:32: label `a` must be one line of at most 253 characters [bad-label]"),
        (good(nodes="{'n[1-4]': {address: 'KEY KEY'}}"), "c.yaml:3:29: `address`: `KEY KEY` is not a host name or address; `{name}` stands for the node's name [bad-address]"),
        (good(nodes="{n1: {address: 'sre@h1'}}", racks="{r1: n1}"), "c.yaml:3:23: `address`: `sre@h1` is not a host name or address; `{name}` stands for the node's name (`user` is a key of its own) [bad-address]"),
        (good(nodes="{n1: {address: '10.0.0.1:2222'}}", racks="{r1: n1}"), "c.yaml:3:23: `address`: `10.0.0.1:2222` is not a host name or address; `{name}` stands for the node's name (`port` is a key of its own) [bad-address]"),
        (good(nodes="{n1: {address: '[::1]:2222'}}", racks="{r1: n1}"), "c.yaml:3:23: `address`: `[::1]:2222` is not a host name or address; `{name}` stands for the node's name (`port` is a key of its own) [bad-address]"),
        (good(nodes="{n1: {address: 'ssh://h1'}}", racks="{r1: n1}"), "c.yaml:3:23: `address`: `ssh://h1` is not a host name or address; `{name}` stands for the node's name (write the host alone; `user` and `port` are keys of their own) [bad-address]"),
        (good(nodes="{n1: {address: 10.0.0.256}}", racks="{r1: n1}"), "c.yaml:3:23: `address`: `10.0.0.256` is not a host name or address; `{name}` stands for the node's name [bad-address]"),
        (good(nodes="{n1: {address: '2001:db8:::1'}}", racks="{r1: n1}"), "c.yaml:3:23: `address`: `2001:db8:::1` is not a host name or address; `{name}` stands for the node's name [bad-address]"),
        # Nodes.
        (good(nodes="{N1: }", racks=""), "c.yaml:3:9: `N1` cannot be the name of a Node: lower-case letters, digits and `-`, in parts with `.` between them (its Node is probably `n1`) [bad-node-name]"),
        (good(nodes="{n1: , 'Rno_[1-300]': {address: '{name}.example.net'}}", racks=""), "c.yaml:3:15: `Rno_[1-300]` cannot be the name of a Node: lower-case letters, digits and `-`, in parts with `.` between them (the Node of `Rno_1` is probably `rno-1`) [bad-node-name]"),
        (good(nodes="{'n[1-2],a..b': }", racks=""), "c.yaml:3:9: `a..b` cannot be the name of a Node: lower-case letters, digits and `-`, in parts with `.` between them [bad-node-name]"),
        (good(nodes="{a-.b: }", racks=""), "c.yaml:3:9: `a-.b` cannot be the name of a Node: lower-case letters, digits and `-`, in parts with `.` between them [bad-node-name]"),
        (good(nodes=f"{{{'a' * 254}: }}", racks=""), f"c.yaml:3:9: `{'a' * 59}…`: a name is longer than 253 characters [bad-nodeset]"),
        (good(nodes="[{name: n1}, {name: N_2, labels: {}}]", racks=""), "c.yaml:3:28: `N_2` cannot be the name of a Node: lower-case letters, digits and `-`, in parts with `.` between them (its Node is probably `n-2`) [bad-node-name]"),
        (good(nodes="[{name: KEY}]", racks=""), "c.yaml:3:16: `KEY` cannot be the name of a Node: lower-case letters, digits and `-`, in parts with `.` between them (its Node is probably `key`) [bad-node-name]"),
        (good(nodes=f"[{{name: {'a' * 254}}}]", racks=""), f"c.yaml:3:16: `{'a' * 59}…` is longer than 253 characters [bad-node-name]"),
        (good(nodes="[{name: 3}]", racks=""), "c.yaml:3:16: `name` must be a name, not a number [wrong-type]"),
        (good(nodes="{'n[1-4': }"), "c.yaml:3:9: `n[1-4`: a `[` without its partner [bad-nodeset]"),
        (good(nodes="{'n[1-4]': , 'n[2-3]': }"), "c.yaml:3:21: duplicate nodes `n[2-3]`, already in line 3 [duplicate-node]"),
        (good(nodes="[{name: n1}, {name: n1}]", racks="{r1: n1}"), "c.yaml:3:28: duplicate node `n1`, already in line 3 [duplicate-node]"),
        (good(nodes="[{name: n1}, {}]", racks="{r1: n1}"), "c.yaml:3:21: `name` is missing [missing-key]"),
        (good(nodes="{'n[1-4]': {address: same}}"), "c.yaml:3:29: duplicate address `same` of `n[2-4]`, already that of `n1` (`{name}` in an address stands for the node's name) [duplicate-address]"),
        (good(nodes="[{name: n1, address: x}, {name: n2, address: x}]", racks=""), "c.yaml:3:53: duplicate address `x` of `n2`, already that of `n1` [duplicate-address]"),
        (good(nodes="{n1: {address: n2}, n2: }", racks=""), "c.yaml:3:28: duplicate address `n2` of `n2`, already that of `n1` [duplicate-address]"),
        # Racks and zones.
        (good(racks="{r1: 'n[1-3]', r2: 'n[3-4]'}"), "c.yaml:4:27: node `n3` in rack r2 and in rack r1 [two-racks]"),
        (good(racks="{r1: 'n[1-3]'}"), "c.yaml:4:1: `n4` in no rack [no-rack]"),
        (good(racks="{r1: 'n[1-5]'}"), "c.yaml:4:13: no node `n5` in the inventory [unknown-node]"),
        (good(racks="{r1: 3}"), "c.yaml:4:13: `r1` must be a nodeset such as tess-node-[0001-0060], or a list of them [wrong-type]"),
        (good(racks="{r1: []}"), "c.yaml:4:13: `r1` must be a nodeset such as tess-node-[0001-0060], or a list of them [wrong-type]"),
        (good(nodes="{'n[1-4]': {rack: r1}}"), "c.yaml:3:26: node `n[3-4]` in rack r1 and in rack r2 [two-racks]"),
        (good(zones="{a: r1}"), "c.yaml:5:1: `n[3-4]` in no zone [no-zone]"),
        (good(zones="{a: 'r[1-2]', b: r2}"), "c.yaml:5:25: rack `r2` in zone b and in zone a [two-zones]"),
        (good(zones="{a: 'r[1-2]', b: r3}"), "c.yaml:5:25: no rack `r3` in the inventory [unknown-rack]"),
        (good(nodes="{'n[1-4]': {zone: z}}", zones="{a: 'r[1-2]'}"), "c.yaml:3:26: node `n[1-4]` in zone z and in zone a [two-zones]"),
        # Groups.
        (good(groups="{g: {nodes: 'n[4-5]'}}"), "c.yaml:5:21: no node `n5` in the inventory [unknown-node]"),
        (good(groups="{g: {nodes: '@r3'}}"), "c.yaml:5:21: there is no rack, zone or group `@r3` (did you mean `@r2`?) [unknown-group]"),
        (good(groups="{g: {nodes: [n1, '@r3']}}"), "c.yaml:5:26: there is no rack, zone or group `@r3` (did you mean `@r2`?) [unknown-group]"),
        (good(groups="{g: {nodes: '@h'}, h: {nodes: n1}}"), "c.yaml:5:21: there is no rack, zone or group `@h` [unknown-group]"),
        (good(groups="{r1: {nodes: n1}}"), "c.yaml:5:10: `@r1` would be both a rack and a group [name-taken]"),
        (good(groups="{all: {nodes: n1}}"), "c.yaml:5:10: `@all` means every node and cannot be a group [name-taken]"),
        # Settings.
        (good(settings="{a b: 1}"), "c.yaml:5:12: `a b` is not a setting's name; names are letters and digits, flags also have `-` [bad-setting]"),
        (good(settings="{a: }"), "c.yaml:5:15: `a` has no value (write one, or remove the line) [bad-setting]"),
        (good(settings="{a: {ifUnsupported: skip}}"), "c.yaml:5:15: `a` has no value (write one, or remove the line) [bad-setting]"),
        (good(settings="{a: {value: 1, ifUnsuported: skip}}"), "c.yaml:5:26: unknown key `ifUnsuported` (did you mean `ifUnsupported`?) [unknown-key]"),
        (good(settings="{a: {value: 1, ifUnsupported: skipp}}"), "c.yaml:5:41: `ifUnsupported` must be refuse or skip, not `skipp` (did you mean `skip`?) [bad-choice]"),
        (good(groups="{g: {nodes: n1, settings: {a: yes}}}"), 'c.yaml:5:39: `yes` is a boolean to some readers and text to others; write true or "yes" [yaml-ambiguous]'),
        (good(cluster='"\\e[2J"'), "c.yaml:1:10: control or invisible character U+001B in quotes [control-character]"),
    ],
)  # fmt: skip
def test_refused(text: str, complaint: str) -> None:
    assert complaints(text) == [complaint]


def test_all_mistakes_of_a_file_come_at_once_in_its_order() -> None:
    text = """\
clusster: c
apiServer: 1.20
ssh: {port: 99999}
settings: {maxPods: }
nodes:
  n[1-3]: {adress: x}
  n[3-4]:
  n5: {labels: {gpu: true}, address: n1}
racks: {r1: "n[1-4]", r2: "n[4-5]"}
groups:
  g: {nodes: [n1, "n["]}
  r1: {nodes: n1, settings: [1]}
"""
    assert complaints(text) == [
        "c.yaml:1:1: `cluster` is missing [missing-key]",
        "c.yaml:1:1: unknown key `clusster` (did you mean `cluster`?) [unknown-key]",
        "c.yaml:2:12: `apiServer` must be text such as v1.23.17 (as a number, 1.20 would turn into 1.2) [bad-version]",
        "c.yaml:3:13: `port` must be at most 65535, not 99999 [out-of-range]",
        "c.yaml:4:21: `maxPods` has no value (write one, or remove the line) [bad-setting]",
        "c.yaml:6:12: unknown key `adress` (did you mean `address`?) [unknown-key]",
        "c.yaml:7:3: duplicate node `n3`, already in line 6 [duplicate-node]",
        'c.yaml:8:22: label `gpu` must be text, not a boolean (write "true" in quotes) [wrong-type]',
        "c.yaml:8:38: duplicate address `n1` of `n5`, already that of `n1` [duplicate-address]",
        "c.yaml:9:27: node `n4` in rack r2 and in rack r1 [two-racks]",
        "c.yaml:11:19: `n[`: a `[` without its partner [bad-nodeset]",
        "c.yaml:12:3: `@r1` would be both a rack and a group [name-taken]",
        "c.yaml:12:29: `settings` must be a map, not a list [wrong-type]",
    ]


def test_consequences_of_a_mistake_are_not_reported() -> None:
    """The nodes of the broken nodeset are missing everywhere below; one message is enough."""
    text = good(nodes="{'n[1-4': , n9: }", groups="{g: {nodes: 'n[1-2]'}, h: {nodes: '@g&n3'}}")
    assert complaints(text) == ["c.yaml:3:9: `n[1-4`: a `[` without its partner [bad-nodeset]"]


def test_a_rack_with_unknown_nodes_is_reported_once() -> None:
    """Its other nodes are still in it, and so in its zone and in groups that refer to it."""
    racks, zones = "{r1: 'n[1-2]', r2: 'n[3-9]'}", "{a: 'r[1-2]'}"
    text = good(racks=racks, zones=zones, groups="{g: {nodes: '@r2'}}")
    assert complaints(text) == ["c.yaml:4:27: no nodes `n[5-9]` in the inventory [unknown-node]"]


def test_nodes_without_a_rack_are_not_reported_again_for_their_zone() -> None:
    text = good(racks="{r1: 'n[1-2]', r2: 'n9'}", zones="{a: 'r1'}", groups="{g: {nodes: '@r2'}}")
    assert complaints(text) == [
        "c.yaml:4:1: `n[3-4]` in no rack [no-rack]",
        "c.yaml:4:27: no node `n9` in the inventory [unknown-node]",
    ]


def test_many_broken_entries_are_each_reported_once() -> None:
    text = "cluster: c\napiServer: v1.23\nnodes:\n" + "  - {name: n1, labels: 3, user: ''}\n  - {}\n" * 50
    assert len(complaints(text)) == 50 * 3 + 49


@st.composite
def spoiled(draw: st.DrawFn) -> str:
    """The example above with a few pieces cut, doubled or overwritten."""
    text = FOLDED
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(text)))
        end = min(len(text), start + draw(st.integers(0, 12)))
        piece = draw(
            st.sampled_from(
                ["", text[start:end] * 2, "[", "]", "{", "}", ": ", "\n", "- ", "~", "3", "&a ", "*a", '"', "n[1-", "@"]
            )
        )
        text = text[:start] + piece + text[end:]
    return text


@settings(max_examples=examples(300))
@given(spoiled())
def test_any_file_is_an_inventory_or_a_list_of_mistakes_with_places(text: str) -> None:
    try:
        load_inventory(text, "c.yaml")
    except InputError as error:
        assert all(problem.place and problem.place.line >= 1 for problem in error.problems)  # noqa: PT017 - either is right


class TestRno:
    """The cluster of the incidents."""

    inventory = load_inventory(RNO.read_text(), "inventories/rno.yaml")

    def test_racks_of_sixty(self) -> None:
        sizes = [len(self.inventory.nodesets[f"rack{number:02d}"]) for number in range(1, 35)]
        assert sizes == [60] * 33 + [20]
        assert len(self.inventory.nodes) == 2_000

    def test_one_api_server_over_four_kubelets_and_three_runtimes(self) -> None:
        counts: dict[tuple[str, str], int] = {}
        for node in self.inventory.nodes.values():
            key = node.labels["kubeletVersion"], node.labels["containerRuntime"]
            counts[key] = counts.get(key, 0) + 1
        assert self.inventory.api_server == "v1.23.17"
        assert counts == {
            ("v1.20.15", "dockershim"): 700,
            ("v1.21.14", "dockershim"): 500,
            ("v1.22.17", "dockershim"): 300,
            ("v1.23.17", "dockershim"): 200,
            ("v1.22.17", "containerd"): 100,
            ("v1.23.17", "containerd"): 100,
            ("v1.23.17", "cri-dockerd"): 100,
        }

    def test_every_rack_contains_every_kind(self) -> None:
        kinds: dict[str, set[tuple[str, str]]] = {}
        for node in self.inventory.nodes.values():
            kinds.setdefault(node.rack, set()).add((node.labels["kubeletVersion"], node.labels["containerRuntime"]))
        assert {len(kind) for kind in kinds.values()} == {7}

    def test_zones_consist_of_racks(self) -> None:
        sizes = {zone: len(self.inventory.nodesets[zone]) for zone in ("rno-a", "rno-b", "rno-c")}
        assert sizes == {"rno-a": 720, "rno-b": 720, "rno-c": 560}

    def test_nodes_that_are_alike_share_their_labels(self) -> None:
        assert len({id(node.labels) for node in self.inventory.nodes.values()}) < 20


def test_work_grows_linearly_with_the_nodes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Counted in parser events and ClusterShell calls, not in time, which depends on the load of the machine."""
    calls: list[str] = []

    def note(term: str) -> list[str]:
        calls.append(term)
        return []

    monkeypatch.setattr("rollout.core.text.nodesets._clustershell", note)
    events = [_events(monkeypatch, count) for count in (100, 200, 400)]
    assert events[2] - events[1] == 2 * (events[1] - events[0])
    assert calls == []


def _events(monkeypatch: pytest.MonkeyPatch, count: int) -> int:
    seen: list[object] = []
    place = yaml_source._Tree._place  # noqa: SLF001 - counting the values a file costs

    def counted(tree: yaml_source._Tree, item: yaml_source.Item) -> None:
        seen.append(item)
        place(tree, item)

    with monkeypatch.context() as patched:
        patched.setattr(yaml_source._Tree, "_place", counted)  # noqa: SLF001
        nodes = "".join(
            f"  - {{name: n{at:05d}, address: 10.0.{at // 250}.{at % 250}, rack: r{at // 60}}}\n" for at in range(count)
        )
        load_inventory(f"cluster: c\napiServer: v1.23.17\nnodes:\n{nodes}", "c.yaml")
    return len(seen)
