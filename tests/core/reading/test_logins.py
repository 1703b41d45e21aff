"""Logins by precedence: the cluster's, then its groups' in file order, then the node's own."""

from __future__ import annotations

import pytest

from rollout.core.reading.inventory_file import load_inventory
from rollout.errors import InputError

TEXT = """\
cluster: c
apiServer: v1.23.17
ssh: {user: sre, port: 22}
nodes:
  n[1-3]: {}
  n4: {user: root}
  n5: {port: 2205, sudo: true}
groups:
  gpu: {nodes: "n[2-5]", ssh: {user: gpu, port: 2200, sudo: false}}
  odd: {nodes: "n[3-5]", ssh: {user: odd, sudo: true}}
"""


def test_precedence() -> None:
    nodes = load_inventory(TEXT, "c.yaml").nodes
    assert {name: (node.user, node.port, node.through_sudo) for name, node in nodes.items()} == {
        "n1": ("sre", 22, True),
        "n2": ("gpu", 2200, False),
        "n3": ("odd", 2200, True),
        "n4": ("root", 2200, True),
        "n5": ("odd", 2205, True),
    }


@pytest.mark.parametrize(("user", "sudo"), [("root", False), ("sre", True), ("null", True)])
def test_every_user_but_root_uses_sudo_unless_set(user: str, sudo: bool) -> None:
    text = f"cluster: c\napiServer: v1.23.17\nssh: {{user: {user}}}\nnodes: {{n1: {{}}}}\n"
    assert load_inventory(text, "c.yaml").nodes["n1"].through_sudo is sudo


def test_the_program_that_makes_root_has_the_same_precedence() -> None:
    text = "cluster: c\napiServer: v1.23.17\nssh: {become: doas}\nnodes: {n1: {}, n2: {become: sudo}, n3: {}, n4: {user: root}}\n"
    nodes = load_inventory(f"{text}groups: {{g: {{nodes: n3, ssh: {{become: sudo, sudo: false}}}}}}\n", "c.yaml").nodes
    assert {name: (node.through_sudo, str(node.become)) for name, node in nodes.items()} == {
        "n1": (True, "doas"),
        "n2": (True, "sudo"),
        "n3": (False, "sudo"),
        "n4": (False, "doas"),
    }


def test_two_nodes_may_share_an_address_on_different_ports_of_their_groups() -> None:
    text = "cluster: c\napiServer: v1.23.17\nnodes: {n1: {address: h}, n2: {address: h}}\n"
    groups = "groups: {g: {nodes: n2, ssh: {port: 2222}}}\n"
    assert load_inventory(text + groups, "c.yaml").nodes["n2"].port == 2222
    with pytest.raises(InputError, match="duplicate address"):
        load_inventory(text, "c.yaml")


@pytest.mark.parametrize("said", ["{user: 'a b'}", "{port: 0}", "{sudo: maybe}", "{become: su}", "{usr: x}"])
def test_a_group_with_invalid_values(said: str) -> None:
    with pytest.raises(InputError) as caught:
        load_inventory(f"{TEXT}  bad: {{nodes: n1, ssh: {said}}}\n", "c.yaml")
    assert [problem.place and problem.place.line for problem in caught.value.problems] == [11]
