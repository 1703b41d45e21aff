"""A file of a person after nodes came and went: the names change, and every other byte stays."""

from __future__ import annotations

import pytest

from rollout.core.reading.found_nodes import FoundNode, FoundNodes
from rollout.core.reading.inventory_file import load_inventory
from rollout.errors import InputError
from rollout.features.init.rules.guesses import Guessed
from rollout.features.init.words.refreshed import Refreshed, refreshed

FOLDED = """\
# The fleet of the edge.
cluster: c
apiServer: v1.33.0
ssh: {user: sre}
nodes:
  n[1-4]: {}   # the first rack
  # bought in 2024

  'm1': {address: 10.0.0.1, settings: {maxPods: 60}}
  m2: {address: 10.0.0.2}
racks:
  r1: n[1-4]
  r2:
    - m1
    - m2

groups:
  all-but-one: {nodes: "@all!n1"}
  gpu: {nodes: [n4, m2], labels: {gpu: "yes"}}
  last: {nodes: m2}
settings: {maxPods: 110}
"""
LISTED = """\
cluster: c
apiServer: v1.33.0
nodes:
  - {name: n1, rack: r1}
  # the second
  - name: n2
    rack: r1

  - {name: n3, rack: r1}
"""


def again(text: str, *nodes: FoundNode, **groups: list[str]) -> Refreshed:
    return refreshed(text, "c.yaml", Guessed(FoundNodes("hosts", nodes, groups), ()))


def node(name: str, rack: str | None = None, **more: object) -> FoundNode:
    return FoundNode(name, rack=rack, **more)


N = [node(f"n{number}", "r1") for number in range(1, 5)]
M = [node("m1", "r2", address="10.0.0.1"), node("m2", "r2", address="10.0.0.2")]


def test_without_a_difference_nothing_changes() -> None:
    assert again(FOLDED, *N, *M) == Refreshed(FOLDED, (), (), ())


def test_groups_go_with_their_last_entry() -> None:
    """The key without entries would be a mistake, and the refresh was refused for it."""
    text = "cluster: c\napiServer: v1.33.0\nnodes:\n  n[1-3]: {}\ngroups:\n  gpu: {nodes: n3}\n"
    made = again(text, node("n1"), node("n2"))
    assert made.text == 'cluster: c\napiServer: v1.33.0\nnodes:\n  "n[1-2]": {}\n'
    kept = again(f"{text}# the end\nsettings: {{maxPods: 60}}\n", node("n1"), node("n2"), node("n4"), new=["n4"]).text
    assert kept.endswith("# the end\nsettings: {maxPods: 60}\n")
    assert "gpu" not in kept
    assert load_inventory(kept, "c.yaml").nodes["n4"].groups == ("new",)


def test_the_nodes_of_another_cluster_replace_none() -> None:
    """A source that has few of the nodes shows of none that it went."""
    for nodes in ([node("x1"), node("x2")], [N[0], node("x1")]):
        with pytest.raises(
            InputError, match=r"the source has [01] of 6 nodes of c.yaml: it may be that of another cluster"
        ):
            again(FOLDED, *nodes)


def test_a_node_that_went_leaves_its_lines_racks_and_groups() -> None:
    made = again(FOLDED, *N[:3], M[0])
    assert (made.came, made.went) == ((), ("n4", "m2"))
    assert made.text == (
        FOLDED.replace("n[1-4]: {} ", '"n[1-3]": {} ')
        .replace("  m2: {address: 10.0.0.2}\n", "")
        .replace("r1: n[1-4]", 'r1: "n[1-3]"')
        .replace("    - m2\n", "")
        .replace("  gpu: {nodes: [n4, m2], labels: {gpu: \"yes\"}}\n", "")
        .replace("  last: {nodes: m2}\n", "")
    )  # fmt: skip


def test_a_node_that_came_joins_its_like_its_rack_and_the_groups_of_the_file() -> None:
    new = [node("n5", "r1", user="sre"), node("m3", "r3", address="10.0.0.3")]
    made = again(FOLDED, *N, *M, *new, gpu=["n4", "n5", "m2"])
    assert made.came == ("n5", "m3")
    assert made.text == (
        FOLDED.replace("n[1-4]: {} ", '"n[1-5]": {} ')
        .replace("  m2: {address: 10.0.0.2}\n", '  m2: {address: 10.0.0.2}\n  "m3": {address: "10.0.0.3"}\n')
        .replace("r1: n[1-4]", 'r1: "n[1-5]"')
        .replace("    - m2\n", '    - m2\n  "r3": "m3"\n')
        .replace("[n4, m2]", '[n4, "m2,n5"]')
    )


def test_a_group_that_the_file_lacks_comes_with_its_first_new_node() -> None:
    new = node("n5", "r1", user="sre")
    made = again(FOLDED, *N, *M, new, infra=["n1", "n5"], removed=["n1", "n2"], r2=["n5"])
    assert '  last: {nodes: m2}\n  "infra": {nodes: "n[1,5]"}\nsettings:' in made.text
    assert "removed" not in made.text, "a person may have removed it"
    assert '"r2"' not in made.text, "a rack has this name"


def test_a_group_under_another_name_takes_the_new_nodes_of_its_group() -> None:
    renamed = FOLDED.replace("gpu: {nodes: [n4, m2]", "accelerated: {nodes: [n4, m2]")
    made = again(renamed, *N, *M, node("n5", "r1"), gpu=["n4", "n5", "m2"])
    assert "gpu: {" not in made.text.replace("labels: {gpu", "")
    assert load_inventory(made.text, "c.yaml").nodes["n5"].groups == ("all-but-one", "accelerated")
    assert made.notes == ("nodes of gpu joined accelerated: it has the same nodes under another name",)


def test_a_group_under_another_name_is_found_also_after_its_nodes_have_changed() -> None:
    """Most nodes of each are in the other, of those that stay. What a person did to their own group stays."""
    renamed = FOLDED.replace("gpu: {nodes: [n4, m2]", "accelerated: {nodes: [n4, m2, m1]")
    made = again(renamed, *N, *M, node("n5", "r1"), gpu=["n3", "n4", "n5", "m2"])
    assert load_inventory(made.text, "c.yaml").nodes["n5"].groups == ("all-but-one", "accelerated")
    assert load_inventory(made.text, "c.yaml").nodes["n3"].groups == ("all-but-one",)
    assert made.notes == ("nodes of gpu joined accelerated: it has 2 of its 3 nodes under another name",)


@pytest.mark.parametrize("nodes", [["m2"], ["m2", "n4"], ["m2", "m1", "n3", "n4"]])
def test_a_group_with_few_nodes_of_another_is_a_new_one(nodes: list[str]) -> None:
    mine = FOLDED.replace("gpu: {nodes: [n4, m2]", "mine: {nodes: [n2, m2]").replace("  last: {nodes: m2}\n", "")
    made = again(mine, *N, *M, node("n5", "r1"), storage=[*nodes, "n5"] if len(nodes) > 1 else [*nodes, "n1", "n5"])
    assert load_inventory(made.text, "c.yaml").nodes["n5"].groups == ("all-but-one", "storage")
    assert (made.notes, "another name" in made.text) == ((), False)


def test_a_group_like_two_others_is_neither_and_the_line_that_adds_it_says_so() -> None:
    twice = FOLDED.replace("  last: {nodes: m2}", "  one: {nodes: m2}\n  two: {nodes: m2}")
    made = again(twice, *N, *M, node("n5", "r1"), storage=["n5", "m2"])
    assert load_inventory(made.text, "c.yaml").nodes["n5"].groups == ("all-but-one", "storage")
    assert (
        '  "storage": {nodes: "m2,n5"}  # perhaps one or two under another name: then move its new nodes there\n'
        in made.text
    )
    assert made.notes == ()


def test_a_group_that_is_computed_from_others_takes_no_node() -> None:
    mine = FOLDED.replace("last: {nodes: m2}", 'mine: {nodes: "@r2!m1"}')
    made = again(mine, *N, *M, node("n5", "r1"), gpu=["n4", "m2"], storage=["m2", "n5"])
    assert load_inventory(made.text, "c.yaml").nodes["n5"].groups == ("all-but-one", "storage")
    assert made.notes == ()


def test_a_file_without_groups_gets_them_with_the_labels_of_their_roles() -> None:
    new = node("n4", "r1")
    labels = {"etcd": {"node-role.kubernetes.io/etcd": ""}}
    found = Guessed(FoundNodes("hosts", (*N[:3], new), {"etcd": ["n1", "n4"]}), (), labels=labels)
    made = refreshed(LISTED, "c.yaml", found)
    assert made.text == (
        f'{LISTED}  - {{name: "n4", rack: "r1"}}\n'
        'groups:\n  "etcd": {nodes: "n[1,4]", labels: {"node-role.kubernetes.io/etcd": ""}}\n'
    )


def test_a_list_of_nodes_stays_a_list() -> None:
    made = again(LISTED, N[0], N[2], node("n4", "r9", address="10.0.0.4"))
    assert made.text == (
        LISTED.replace("  - name: n2\n    rack: r1\n", "")
        + '  - {name: "n4", address: "10.0.0.4", rack: "r9"}\n'
    )  # fmt: skip


def test_other_differences_are_told_and_left() -> None:
    made = again(LISTED, node("n1", "r2", address="10.0.0.9"), *N[1:3])
    assert made.text == LISTED
    assert made.notes == (
        "left as it is: the address of n1 differs in the source",
        "left as it is: the rack of n1 differs in the source",
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (FOLDED.replace('"@all!n1"', '"@all!n4"'), "no node `n4` in the inventory"),
        (LISTED.replace("\n  - {name: n1, rack: r1}", " [{name: n1, rack: r1}, {name: n4, rack: r1},").replace("  # the second\n", "").partition("  - name")[0] + "]\n", "its entries are not in lines of their own"),
    ],
)  # fmt: skip
def test_what_cannot_be_changed_line_by_line_is_refused(text: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        again(text, *N[:3], *M)
    assert message in str(caught.value)
