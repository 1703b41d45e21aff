"""Nodes that reboot or lose their power in the middle of an apply: old files or new, never a mix, and the journal records which.

Each node is held at an instant of its own (``Node.hold``), and all lose power together.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.bed.node import Node
from tests.controllers import until
from tests.real.fleet import PATIENCE, Fleet

pytestmark = [pytest.mark.root, pytest.mark.drawn(1)]

BEFORE_ARMED = "*/next/armed *"
BETWEEN_THE_RENAMES = "*/new.2 *"
ARMED = "*/next/finished *"  # new files, a healthy kubelet; the agent is about to report it
BEING_CONFIRMED = "*/next/confirmed *"  # the confirm has arrived, but is not in the receipt yet


def reboot(nodes: tuple[Node, ...]) -> None:
    for node in nodes:
        node.reboot()


def power_cut(nodes: tuple[Node, ...]) -> None:
    for node in nodes:
        node.powercut()
    for node in nodes:
        node.heal()
        node.boot()


@pytest.mark.parametrize("strike", [reboot, power_cut])
def test_nodes_that_go_down_in_the_middle_of_an_apply(fleet: Fleet, strike: Callable[[tuple[Node, ...]], None]) -> None:
    fleet.playbook("[canary, rest]", "[rest]")
    fleet.one_rack()
    before = fleet.everything()
    early, between, armed, well = fleet.nodes
    for node, instant in ((early, BEFORE_ARMED), (between, BETWEEN_THE_RENAMES), (armed, ARMED)):
        node.hold(instant)
    fleet.plan()
    with fleet.begun("apply", "p.json", "--yes") as process:
        until(
            lambda: all(node.holds() for node in (early, between, armed)),
            PATIENCE,
            "all three are held at their instants",
        )
        until(lambda: fleet.receipt(well) == "confirmed -", PATIENCE, "none of them delays the fourth")
        assert fleet.versions(early) == "old old"
        assert fleet.versions(between) == "new old"
        assert fleet.versions(armed) == "new new"
        assert [fleet.receipt(node) for node in (early, between, armed)] == ["", "armed -", "armed -"]
        strike((early, between, armed))
        code = process.wait(PATIENCE)
    assert code == 4, fleet.said()

    assert [fleet.is_new(node) for node in fleet.nodes] == [True, False, False, True]
    assert [fleet.runs_new(node) for node in fleet.nodes] == [True, False, False, True]
    assert [fleet.receipt(node) for node in fleet.nodes] == [
        "confirmed -",
        "reverted boot",
        "reverted boot",
        "confirmed -",
    ]
    found = fleet.status()
    assert found["counts"] == {"confirmed": 2, "reverted": 2}, "a node that was not armed is tried again"
    assert fleet.receipts(early)[-1]["tx"] == f"{found['run']}-2"
    assert [fleet.standing(node) for node in (between, armed)] == ["reverted not-confirmed-in-time"] * 2
    fleet.nothing_left()

    back = fleet.rollout("rollback", found["run"], "--yes")
    assert back.code == 0, back.all
    assert [fleet.runs_new(node) for node in fleet.nodes] == [False] * 4
    assert fleet.everything() == before


def test_a_canary_that_loses_its_power_while_it_is_confirmed_halts_the_run_and_resume_continues(fleet: Fleet) -> None:
    fleet.playbook("{wave: 4, rack: 4, fleet: 4}", "{wave: 1, rack: 1, fleet: 1}")
    fleet.playbook("revert: node", "revert: wave")
    before = fleet.everything()
    struck, *rest, other = fleet.nodes
    struck.hold(BEING_CONFIRMED)
    fleet.plan()
    with fleet.begun("apply", "p.json", "--yes") as process:
        until(struck.holds, PATIENCE, "it is being confirmed")
        assert (fleet.versions(struck), fleet.receipt(struck)) == ("new new", "armed -")
        until(lambda: fleet.status()["counts"].get("confirmed") == 1, PATIENCE, "the other canary is confirmed")
        power_cut((struck,))
        code = process.wait(PATIENCE)
    assert code == 3, fleet.said()
    assert fleet.receipt(struck) == "reverted boot"
    assert [fleet.standing(node) for node in (struck, other)] == [
        "reverted not-confirmed-in-time",
        "reverted taken-back-with-others",
    ]
    assert [fleet.receipts(node) for node in rest] == [[], []], "never started"
    assert fleet.everything() == before
    assert [fleet.runs_new(node) for node in fleet.nodes] == [False] * 4
    fleet.nothing_left()

    resumed = fleet.rollout("resume", "--yes")
    assert resumed.code == 4, resumed.all
    assert fleet.status()["counts"] == {"confirmed": 3, "reverted": 1}, "a charged node is not tried again"
    assert [fleet.is_new(node) and fleet.runs_new(node) for node in fleet.nodes] == [False, True, True, True]
    back = fleet.rollout("rollback", fleet.status()["run"], "--yes")
    assert back.code == 0, back.all
    assert fleet.everything() == before
