"""Values that can be right on one node only are refused for several, by plan and by check."""

from __future__ import annotations

import pytest

from rollout.core.model.inventory import Level
from rollout.core.model.settings import Setting
from rollout.kubelet.homes import OWN_VALUES, own_values_for_many, shared_own_values


def said(value: str, name: str = "--node-ip") -> dict[str, Setting]:
    return {name: Setting(name, value, source="settings")}


@pytest.mark.parametrize("name", OWN_VALUES)
def test_one_value_for_several_nodes_is_a_mistake(name: str) -> None:
    found = shared_own_values(dict.fromkeys(("n1", "n2", "n3"), said("a", name)), ("n1", "n2"))
    assert [problem.reference for problem in found] == ["one-nodes-own"]
    assert f"{name} has one value for 2 nodes: n[1-2] (settings)" in found[0].message


def test_one_value_for_each_node_is_no_mistake() -> None:
    assert shared_own_values({"n1": said("a"), "n2": said("b"), "n3": {}}, ("n1", "n2", "n3")) == ()


def test_one_value_for_the_only_selected_node_is_no_mistake() -> None:
    assert shared_own_values(dict.fromkeys(("n1", "n2"), said("a")), ("n1",)) == ()


@pytest.mark.parametrize(("nodes", "mistakes"), [(None, 1), (frozenset({"n1", "n2"}), 1), (frozenset({"n1"}), 0)])
def test_a_level_of_the_inventory(nodes: frozenset[str] | None, mistakes: int) -> None:
    assert len(own_values_for_many(Level("g", nodes, said("a")))) == mistakes
