"""A plan and the fleet of today: which nodes left, joined or differ, and what of it is refused by name."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rollout.core.model.fleet_changes import GONE, REPLACED
from rollout.core.model.inventory import Inventory, Level, Node
from rollout.core.model.plan import ExcludedNode, Plan, PlannedNode, Standing
from rollout.core.model.settings import Setting
from rollout.core.plans.fleet_comparison import change_lines, check_fleet, fleet_changes, inventory_settings
from rollout.errors import InputError, Place
from rollout.features.change_windows.rules import ChangeCalendar
from tests.core.run.test_order import PLAN

NAMES = ("w-1", "w-2", "w-3")
NODES = {name: Node(name, f"10.0.0.{name[-1]}", "r1", "z1", user="sre", port=22) for name in NAMES}
BEFORE = Inventory("c", "v1.34.2", NODES, {}, (), "d", machines={name: f"m{name[-1]}" for name in NAMES})
JUMPS = dict.fromkeys(NAMES, ("bastion-a",))
PLANNED = replace(
    PLAN,
    nodes={
        name: PlannedNode(
            name, node.address, "r1", "z1", "g1", 0, f"m{name[-1]}", "sre", 22, jumps=("bastion-a",), settings=""
        )
        for name, node in NODES.items()
        if name != "w-3"
    },
    left=(ExcludedNode("w-3", "r1", Standing.AS_WANTED, "as-wanted", "it is"),),
    racks={"r1": 3},
    zones={"z1": 3},
)


def refusal(plan: Plan, inventory: Inventory, jumps: dict[str, tuple[str, ...]] | None = None) -> str:
    with pytest.raises(InputError) as caught:
        check_fleet(plan, inventory, fleet_changes(plan, inventory, JUMPS if jumps is None else jumps), "p.json")
    assert caught.value.exit_code == 2
    assert caught.value.reference == "plan-for-another-inventory"
    return "; ".join(problem.message for problem in caught.value.problems)


def with_nodes(**changes: Node | None) -> Inventory:
    found = {name: changes.get(name.replace("-", ""), node) for name, node in NODES.items()}
    joined = {node.name: node for node in changes.values() if node is not None and node.name not in NODES}
    return replace(BEFORE, nodes={name: node for name, node in {**found, **joined}.items() if node is not None})


def test_an_unchanged_fleet_has_no_changes() -> None:
    found = fleet_changes(PLANNED, BEFORE, JUMPS)
    check_fleet(PLANNED, BEFORE, found, "p.json")
    assert not list(change_lines(found))


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"address": "10.9.9.9"}, "p.json: w-2: its address is 10.9.9.9; planned: 10.0.0.2"),
        ({"port": 2222}, "p.json: w-2: its port is 2222; planned: 22"),
        ({"user": None}, "p.json: w-2: its user is not set; planned: sre"),
        ({"rack": "r2"}, "p.json: w-2: its rack is r2; planned: r1"),
        ({"zone": "z2"}, "p.json: w-2: its zone is z2; planned: z1"),
    ],
)
def test_a_changed_field_of_a_planned_node_is_refused_with_its_name(changes: dict[str, object], said: str) -> None:
    assert refusal(PLANNED, with_nodes(w2=replace(NODES["w-2"], **changes))) == said  # type: ignore[arg-type]


def test_another_bastion_and_another_setting_are_refused_with_their_name() -> None:
    assert refusal(PLANNED, BEFORE, {**JUMPS, "w-1": ()}) == "p.json: w-1: its jumps is not set; planned: bastion-a"
    level = Level("settings", None, {"maxPods": Setting("maxPods", 60)})
    assert (
        refusal(PLANNED, replace(BEFORE, levels=(level,)))
        == "p.json: w-[1-2]: the inventory's settings of it changed since the plan"
    )


def test_change_windows_of_the_inventory_that_are_not_those_of_the_plan_are_refused() -> None:
    place = Place("inventories/c.yaml", 3, 1)
    mine = ChangeCalendar(place, "UTC", (), ())
    known = replace(PLANNED, conditions=(mine,))
    with_windows = replace(BEFORE, conditions=(mine,))
    check_fleet(known, with_windows, fleet_changes(known, with_windows, JUMPS), "p.json")
    said = "p.json: the inventory's change windows are not those of the plan"
    assert refusal(known, replace(BEFORE, conditions=(replace(mine, zone="Europe/Rome"),))) == said
    assert refusal(PLANNED, with_windows) == said, "the plan has none"


def test_bastions_that_are_not_known_on_both_sides_are_not_compared() -> None:
    check_fleet(PLANNED, BEFORE, fleet_changes(PLANNED, BEFORE, {}), "p.json")


def test_the_settings_of_a_node_are_told_apart_by_their_content_alone() -> None:
    def of(*levels: Level) -> str:
        return inventory_settings(replace(BEFORE, levels=levels)).get("w-1", "")

    pods, pulls = (
        {"maxPods": Setting("maxPods", 60)},
        {"serializeImagePulls": Setting("serializeImagePulls", value=False)},
    )
    first, second = Level("a", frozenset({"w-1"}), pods), Level("b", frozenset({"w-1", "w-2"}), pulls)
    assert of(first, second) == of(second, first) != of(first) != of() == ""
    assert of(Level("b", frozenset({"w-2"}), pods)) == ""


def test_nodes_that_left_were_replaced_or_joined_are_named_and_nothing_is_refused() -> None:
    fleet = replace(with_nodes(w1=None, w3=None, w4=Node("w-4", "10.0.0.4", "r1", "z1")), machines={"w-2": "m9"})
    found = fleet_changes(
        replace(PLANNED, nodes={**PLANNED.nodes, "w-5": replace(PLANNED.nodes["w-1"], name="w-5")}),
        replace(fleet, nodes={**fleet.nodes, "w-5": replace(NODES["w-1"], name="w-5")}),
        {},
    )
    assert {name: leaver.reference for name, leaver in found.left.items()} == {"w-1": GONE, "w-2": REPLACED}
    assert found.left["w-1"].reason == "the inventory no longer lists it"
    assert (found.joined, found.fields, found.unplanned) == (("w-4",), (), frozenset({"w-3"}))
    assert list(change_lines(found)) == [
        "gone since the plan, left alone, not counted as failed: 1 node  w-1",
        "replaced by other machines with the same name since the plan, left alone, not counted as failed: 1 node  w-2",
        "joined since the plan, not part of it: 1 node  w-4",
    ]


def test_a_plan_of_which_no_node_is_left_is_refused() -> None:
    said = refusal(PLANNED, with_nodes(w1=None, w2=None))
    assert (
        said
        == "p.json: none of its 2 nodes is left: gone since the plan, left alone, not counted as failed: 2 nodes  w-[1-2]"
    )


def test_a_plan_for_another_cluster_is_refused() -> None:
    assert refusal(PLANNED, replace(BEFORE, cluster="d")) == "p.json was made for c, not for d"


def test_a_plan_that_does_not_record_settings_needs_the_same_inventory() -> None:
    old = replace(PLANNED, nodes={name: replace(node, settings=None) for name, node in PLANNED.nodes.items()})
    check_fleet(replace(old, inventory_digest="d"), BEFORE, fleet_changes(old, BEFORE, {}), "p.json")
    assert refusal(old, BEFORE) == "p.json was made with another version of the inventory of c"


@pytest.mark.parametrize(
    ("limit", "joined"), [("", ("w-4",)), ("w-[1-3]", ()), ("@pool", ("w-4",)), ("w-9,@pool", ("w-4",))]
)
def test_only_what_the_plans_selection_has_now_has_joined(limit: str, joined: tuple[str, ...]) -> None:
    fleet = with_nodes(w4=Node("w-4", "10.0.0.4", "r1", "z1"))
    found = replace(fleet, nodesets={"pool": frozenset({"w-1", "w-4"})})
    assert fleet_changes(replace(PLANNED, limit=limit), found, {}).joined == joined


def test_sizes_are_the_smaller_ones() -> None:
    assert fleet_changes(PLANNED, with_nodes(w3=None), {}).sizes.racks == {"r1": 2}
    grown = with_nodes(w4=Node("w-4", "10.0.0.4", "r1", "z1"))
    assert fleet_changes(PLANNED, grown, {}).sizes.racks == {}
