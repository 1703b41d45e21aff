"""Which settings a node must have, and how a node that was read stands to them."""

from __future__ import annotations

from dataclasses import replace

from rollout.core.model.inventory import Inventory
from rollout.core.model.live import LiveNode
from rollout.core.model.owned import OwnedStanding
from rollout.core.model.plan import ExcludedNode, Standing, WantedSetting
from rollout.core.model.verification import ChangeStanding, Drift, NodeCheck
from rollout.errors import Place
from rollout.features.own.rules import (
    CountingRun,
    NewcomerRule,
    NewcomersThen,
    compared_nodes,
    newcomers_then,
    owned_nodes,
    why_not_yet,
)
from tests.app.site import SMALL
from tests.kubelet.nodes import inventory

FLEET = inventory(4, per_rack=2)
NAMES = tuple(FLEET.nodes)
PODS = WantedSetting("maxPods", "64", "")
FIRST = CountingRun("r1", "pulls", "", (PODS, WantedSetting("registryBurst", "10", "@rack1")))


def values(*runs: CountingRun, fleet: Inventory = FLEET) -> dict[str, dict[str, object]]:
    found = owned_nodes(runs, fleet)
    return {name: {key: each.value for key, each in owned.settings.items()} for name, owned in found.items()}


def test_each_node_must_have_the_last_value_for_it() -> None:
    fleet = replace(FLEET, nodesets={"rack1": frozenset(NAMES[:2])})
    found = values(FIRST, fleet=fleet)
    assert [found[name] for name in NAMES[:2]] == [{"maxPods": 64, "registryBurst": 10}] * 2
    assert [found[name] for name in NAMES[2:]] == [{"maxPods": 64}] * 2


def test_a_selection_means_the_nodes_that_it_has_now() -> None:
    few = replace(FIRST, limit="@rack1", wanted=(PODS,))
    assert list(values(few, fleet=replace(FLEET, nodesets={"rack1": frozenset(NAMES[:1])}))) == [NAMES[0]]
    assert list(values(few, fleet=replace(FLEET, nodesets={"rack1": frozenset(NAMES[1:])}))) == list(NAMES[1:])
    assert values(few, fleet=replace(FLEET, nodesets={})) == {}, "the group is gone"


def test_a_later_run_replaces_an_owned_setting_on_its_nodes_and_owns_no_other() -> None:
    later = CountingRun(
        "r2", "pulls", NAMES[0], (replace(PODS, value="32"), WantedSetting("podPidsLimit", "9", "")), is_owned=False
    )
    only = replace(FIRST, wanted=(PODS,))
    found = values(only, later)
    assert [found[name]["maxPods"] for name in NAMES] == [32, 64, 64, 64]
    assert set().union(*found.values()) == {"maxPods"}
    whole = replace(later, limit="")
    assert values(only, replace(whole, within=frozenset(NAMES[:1]))) == found, "it halted after its first node"
    assert values(only, replace(whole, reverted=frozenset(NAMES[1:]))) == found


# ------------------------------------------------------------------------------------------- comparing


def check(standing: ChangeStanding, *references: str) -> NodeCheck:
    return NodeCheck(tuple(Drift(each, "/f", "why") for each in references), standing)


CHANGES = replace(
    SMALL,
    left=(
        ExcludedNode("m1", "r", Standing.AS_WANTED, "as-wanted", "it is"),
        ExcludedNode("m2", "r", Standing.SKIPPED, "cordoned", "by others"),
        ExcludedNode("m3", "r", Standing.REFUSED, "gpu-lost-at-reload", "it has GPUs"),
        ExcludedNode("m4", "r", Standing.UNREACHABLE, "host-key-unknown", "no key"),
    ),
)


UNCHANGED = {name: check(ChangeStanding.NEVER) for name in ("n1", "n2", "n3", "m1")}


def standings(
    checks: dict[str, NodeCheck], changed: tuple[str, ...] = ()
) -> dict[str, tuple[OwnedStanding, bool, str]]:
    found = compared_nodes(CHANGES, UNCHANGED | checks, dict.fromkeys(changed, "r1"), {})
    return {each.name: (each.standing, each.lacks, each.reference) for each in found}


def test_a_node_that_a_plan_would_change_lacks_a_setting() -> None:
    never = check(ChangeStanding.NEVER)
    found = standings(
        {"n1": never, "n2": check(ChangeStanding.CHANGED, "content-differs"), "n3": check(ChangeStanding.REVERTED)},
        ("n2",),
    )
    assert found["n1"] == (OwnedStanding.NEVER_CHANGED, True, "")
    assert found["n2"] == (OwnedStanding.DRIFTED, True, "content-differs")
    assert found["n3"] == (OwnedStanding.DRIFTED, True, "change-reverted")
    found = standings(
        dict.fromkeys(("n1", "n2"), never) | {"n3": check(ChangeStanding.CHANGED, "machine-replaced")}, ("n1", "n3")
    )
    assert found["n1"] == (OwnedStanding.DRIFTED, True, "another-value"), "the journal has a change of it"
    assert found["n2"] == (OwnedStanding.NEVER_CHANGED, True, "")
    assert found["n3"] == (OwnedStanding.REPLACED, True, "")
    (first, *_) = compared_nodes(CHANGES, {}, {}, {})
    assert (first.standing, first.lacks, first.reference) == (OwnedStanding.NOT_READABLE, True, "receipts-unread")


def test_only_machines_that_no_run_has_changed_are_newcomers() -> None:
    checks = {
        "n1": check(ChangeStanding.NEVER),
        "n2": check(ChangeStanding.CHANGED, "machine-replaced"),
        "n3": check(ChangeStanding.CHANGED),
    }
    found = compared_nodes(CHANGES, UNCHANGED | checks, {"n2": "r1", "n3": "r1"}, {})
    assert [each.name for each in found if each.is_newcomer] == ["n1", "n2"]


def test_a_node_that_a_plan_would_leave_alone_lacks_nothing() -> None:
    """A node that rollout has never changed may be as wanted."""
    checks = {"m1": check(ChangeStanding.NEVER)}
    found = {name: each for name, each in standings(checks).items() if name.startswith("m")}
    assert found == {
        "m1": (OwnedStanding.AS_WANTED, False, ""),
        "m2": (OwnedStanding.LEFT_ALONE, False, "cordoned"),
        "m3": (OwnedStanding.NOT_COMPARED, False, "gpu-lost-at-reload"),
        "m4": (OwnedStanding.NOT_READABLE, False, "host-key-unknown"),
    }
    replaced = standings({"m1": check(ChangeStanding.CHANGED, "machine-replaced")})
    assert replaced["m1"] == (OwnedStanding.REPLACED, False, ""), "its image has the values"


# ------------------------------------------------------------------------------------------- nodes that join

READY = LiveNode(
    "n1",
    "u",
    "",
    (),
    {},
    unschedulable=False,
    taints=(),
    kubelet_version="",
    runtime="",
    os_image="",
    ready="True",
    ready_since="1970-01-01T00:10:00Z",
)


def test_a_node_is_planned_once_it_is_ready_for_long_enough() -> None:
    assert why_not_yet(READY, 300.0, 900.0) == ""
    early = "its Node has been Ready for less than 5 min; planned from 1970-01-01 00:15:00 UTC on"
    assert why_not_yet(READY, 300.0, 899.0) == early
    later = replace(READY, ready_since="1970-01-01T00:09:01Z")
    assert why_not_yet(later, 300.0, 700.0) == early, "nodes that joined in one minute are one line"
    away = replace(READY, ready="False")
    assert why_not_yet(away, 300.0, 9e6) == "its Node is not Ready since 1970-01-01 00:10:00 UTC"
    assert why_not_yet(replace(away, ready_since=""), 300.0, 9000.0) == "its Node is not Ready"
    assert "does not report since when" in why_not_yet(replace(READY, ready_since=""), 300.0, 9000.0)
    assert "no Node of this name" in why_not_yet(None, 300.0, 9000.0)
    assert why_not_yet(None, 0.0, 900.0) == "", "the playbook demands nothing"


def test_playbook_and_inventory_together_allow_the_least() -> None:
    place = Place("p.yaml", 1, 1)
    rules = (NewcomerRule(place, NewcomersThen.APPLY, 60.0), NewcomerRule(place, NewcomersThen.PLAN, 30.0))
    assert newcomers_then(rules) == (NewcomersThen.PLAN, 60.0)
    assert newcomers_then(()) == (NewcomersThen.REPORT, 0.0)
