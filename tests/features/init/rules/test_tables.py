"""Lists of nodes as people have them: names, nodesets, tables of a spreadsheet; each mistake has its place."""

from __future__ import annotations

import pytest

from rollout.errors import InputError
from rollout.features.init.asking import drafted
from rollout.features.init.rules.guesses import Guessed
from rollout.features.init.rules.tables import read_names


def read(*lines: str) -> Guessed:
    return read_names("".join(f"{line}\n" for line in lines), "fleet.csv")


def inventory(*lines: str) -> str:
    return drafted("c", read(*lines), "v1.33.0", "").texts["inventories/c.yaml"].partition("nodes:\n")[2]


@pytest.mark.parametrize(
    "lines",
    [
        ("name,address,rack,zone", "n1,10.0.0.1,r1,z1", "n2,10.0.0.2,r2,z1"),
        ("\ufeffHostname;Rack;Availability Zone;IP Address", "n1;r1;z1;10.0.0.1", "n2;r2;z1;10.0.0.2"),
        ("rack\tzone\tansible_host\tnode_name", "r1\tz1\t10.0.0.1/24\tn1", "# a comment", "r2\tz1\t10.0.0.2/24\tn2"),
        ('"name", "address", "rack", "zone"', '"n1", "10.0.0.1", "r1", "z1"', '"n2", "10.0.0.2", "r2", "z1"', ",,,"),
    ],
)  # fmt: skip
def test_columns_by_their_names(lines: tuple[str, ...]) -> None:
    assert inventory(*lines) == (
        '  "n1": {address: "10.0.0.1"}\n  "n2": {address: "10.0.0.2"}\nracks:\n  "r1": "n1"\n  "r2": "n2"\nzones:\n  "z1": "r[1-2]"\n'
    )


@pytest.mark.parametrize(
    "lines",
    [
        ("NAME   STATUS   ROLES           AGE   INTERNAL-IP   OS-IMAGE",
         "n1     Ready    control-plane   5d    10.0.0.1      Ubuntu 22.04.1 LTS",
         "n2     Ready    <none>          5d    10.0.0.2      Ubuntu 22.04.1 LTS"),
        ("sep=;", "PrivateDnsName;PrivateIpAddress;Role", "n1;10.0.0.1;master", "n2;10.0.0.2;"),
        ("name ip roles", "# the first", "n1 10.0.0.1 master  # old", "n2 10.0.0.2 node"),
        ("NAME,INTERNAL_IP,ROLE", "node/n1,10.0.0.1,master", "node/n2,10.0.0.2,none"),
    ],
)  # fmt: skip
def test_tables_that_tools_print(lines: tuple[str, ...]) -> None:
    found = read(*lines)
    assert {node.name: node.address for node in found.found.nodes} == {"n1": "10.0.0.1", "n2": "10.0.0.2"}
    assert found.found.groups == {"control-plane": ["n1"]}


@pytest.mark.parametrize("sign", [" ", "\t", "    "])
def test_names_behind_their_addresses_are_those_of_etc_hosts(sign: str) -> None:
    found = read(f"10.0.0.1{sign}n1", "", f"10.0.0.20{sign}n2")
    assert {node.name: node.address for node in found.found.nodes} == {"n1": "10.0.0.1", "n2": "10.0.0.20"}


def test_names_as_kubectl_prints_them() -> None:
    assert [node.name for node in read("node/n1", "node/n2").found.nodes] == ["n1", "n2"]


def test_columns_by_their_values() -> None:
    assert inventory("n1,10.0.0.1,rack-1,worker,disk=nvme", "n2,10.0.0.2,rack-2,control-plane,disk=hdd") == (
        '  "n1": {address: "10.0.0.1", labels: {"disk": "nvme"}}\n  "n2": {address: "10.0.0.2", labels: {"disk": "hdd"}}\n'
        'racks:\n  "rack-1": "n1"\n  "rack-2": "n2"\n'
        'groups:\n  "control-plane": {nodes: "n2", labels: {"node-role.kubernetes.io/control-plane": ""}}\n'
    )


def test_roles_make_groups_and_leave_out_what_is_no_node() -> None:
    found = read("name,role", "a,controlplane+etcd+worker", "b,k8s-worker", "c,", "jump,bastion", "e,etcd")
    assert [node.name for node in found.found.nodes] == ["a", "b", "c"]
    assert found.found.groups == {"control-plane": ["a"], "etcd": ["a"]}
    assert found.told == ("left out 1 host, no node by its role: jump", "left out 1 host, etcd without a kubelet: e")


def test_a_region_is_the_beginning_of_a_zone() -> None:
    zones = [node.zone for node in read("name,region,zone", "a,rno,z1", "b,rno,rno-z2", "c,iad,").found.nodes]
    assert zones == ["rno-z1", "rno-z2", "iad"]


def test_columns_without_a_use_and_lines_that_stand_twice_are_told() -> None:
    found = read("name,serial,owner", "a,1,x", "b,2,y", "a,1,x")
    assert found.told[0].startswith("dropped 2 columns: serial, owner (the columns are name, address, ")
    assert found.told[1] == "duplicate, taken once: a"


@pytest.mark.parametrize(
    ("lines", "place"),
    [
        (("name,ip,rack", "n1,10.0.0.1,row1#1", "n2,10.0.0.2,row1#2"), "2:13: `row1#1`"),
        (("name,ip,rack", "n1,10.0.0.1,Rack #1", "n2,10.0.0.2,Rack #2"), "2:13: `Rack #1`"),
        (("name,ip,rack", 'n1,10.0.0.1,"Rack #1"'), "2:13: `Rack #1`"),
        (("Rack #,Name,Rack", "x #1,n1,a #1"), "2:9: `a #1`"),
    ],
)  # fmt: skip
def test_a_number_sign_in_a_table_is_a_part_of_its_value(lines: tuple[str, ...], place: str) -> None:
    with pytest.raises(InputError, match=f"fleet.csv:{place} is no name of a rack"):
        read(*lines)


def test_places_that_differ_in_zeros_or_capitals_alone_are_told() -> None:
    found = read(
        "name,rack,zone", "n1,1,z-a", "n2,01,Z-A", "n3,10,z-b", "n4,row1-r010,z-b", "n5,row1-r10,z-b", "n6,100,z-b"
    )
    assert [note.text for note in found.notes if "correct the source" in note.text] == [
        "rack: 1, 01 are 2 racks; correct the source if they are one",
        "rack: row1-r010, row1-r10 are 2 racks; correct the source if they are one",
        "zone: z-a, Z-A are 2 zones; correct the source if they are one",
    ]


def test_a_comment_begins_a_line_or_stands_behind_a_blank() -> None:
    text = ["# name,rack", "  # all of row 1, and more", "n1 # again, or not", "n[2-3],m1\t# x", '"n4" # "x"']
    assert [node.name for node in read(*text).found.nodes] == ["n1", "n2", "n3", "m1", "n4"]
    with pytest.raises(InputError, match="n1#2"):
        read("n1#2")


def test_names_and_nodesets_need_no_columns() -> None:
    assert [node.name for node in read("n[1-2],m1", "o", "n1 # again").found.nodes] == ["n1", "n2", "m1", "o"]


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (("n1,r1", "n2,r2"), "fleet.csv:1:4: nothing shows what column 2 is: `r1` (add a first line with the names of the columns, such as name,address,rack) [bad-table]"),
        (("n1,10.0.0.1", "n2,"), ""),
        (("n1,10.0.0.1", "n2,ten"), "fleet.csv:2:4: nothing shows what column 2 is: `ten`"),
        (("n1,10.0.0.1,10.1.0.1",), "fleet.csv:1:13: nothing shows what column 3 is: `10.1.0.1`"),
        (("name,ip", '"n1","10.0.0.1"', '"N,2","10.0.0.2"'), "fleet.csv:3:1: `N,2` cannot be the name of a Node"),
        (("name,rack", "n1,row 9/3"), "fleet.csv:2:4: `row 9/3` is no name of a rack"),
        (("name,rack", 'n1,"a",b'), "fleet.csv:2:8: the line has 3 columns, and the first line 2"),
        (("name,rack,cabinet", "n1,a,b"), "fleet.csv:1:11: `cabinet` is a second column of rack (remove one of them)"),
        (("name,", "n1,a"), "fleet.csv:1:6: column 2 has no name"),
        (("name,role", "n1,boss"), "fleet.csv:2:4: `boss` is no role of a node"),
        (("name,port", "n1,ssh"), "fleet.csv:2:4: `ssh` is no port"),
        (("name,labels", "n1,fast"), "fleet.csv:2:4: `fast` are no labels"),
        (("name,rack", ",r1"), "fleet.csv:2:1: the line has no name"),
        (("name,rack", "n1,r1", "n1,r2"), "fleet.csv:3:1: duplicate node `n1` with other values, already in line 2"),
        (("# none", ""), "fleet.csv: there are no names in it [no-nodes]"),
        (("n" * 254,), "is longer than 253 characters"),
    ],
)  # fmt: skip
def test_mistakes_have_a_place(lines: tuple[str, ...], message: str) -> None:
    if not message:
        assert read(*lines).found.nodes
        return
    with pytest.raises(InputError) as caught:
        read(*lines)
    assert message in str(caught.value)
