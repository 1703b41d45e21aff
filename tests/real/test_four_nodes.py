"""Four real nodes, two racks, two layouts: the whole path, and a controller that dies in the middle of a run."""

from __future__ import annotations

import pytest

from tests.controllers import until
from tests.real.fleet import PATIENCE, Fleet

pytestmark = [pytest.mark.root, pytest.mark.drawn(1)]


def test_check_plan_apply_plan_again_rollback_and_emergency(fleet: Fleet) -> None:
    fleet.playbook("rehearsal: false", "rehearsal: true")
    before = fleet.everything()
    assert fleet.rollout("check").code == 0
    fleet.plan()
    assert fleet.everything() == before, "planning changes nothing"

    applied = fleet.rollout("apply", "p.json", "--yes")
    assert applied.code == 0, applied.all
    assert [fleet.is_new(node) for node in fleet.nodes] == [True] * 4
    assert [fleet.runs_new(node) for node in fleet.nodes] == [True] * 4
    found = fleet.status()
    assert (found["counts"], found["exitCode"], found["troubles"]) == ({"confirmed": 4}, 0, [])
    assert [(wave["name"], wave["total"]) for wave in found["waves"]] == [("canary", 2), ("rest", 2)]
    for node in fleet.nodes:
        newest = fleet.receipts(node)[-1]
        assert (newest["state"], newest["run"]) == ("confirmed", found["run"]), "the nodes and the journal agree"
    fleet.nothing_left()

    again = fleet.rollout("plan", "--cluster", "real", "--out", "again.json", "--exit-code")
    assert again.code == 0, again.all

    back = fleet.rollout("rollback", found["run"], "--yes")
    assert back.code == 0, back.all
    assert fleet.everything() == before
    assert [fleet.runs_new(node) for node in fleet.nodes] == [False] * 4
    told = fleet.rollout("status", "-o", "json").json()
    assert {**told, "age": 0} == {**fleet.status(), "age": 0}
    assert fleet.status()["counts"] == {"reverted": 4}

    fleet.playbook("rehearsal: true", "rehearsal: false")
    assert fleet.rollout("apply", "--cluster", "real", "--yes").code == 0
    assert [fleet.runs_new(node) for node in fleet.nodes] == [True] * 4
    lost = ("rollback", "--cluster", "real", "--emergency", "--yes", "--state", "elsewhere")
    emergency = fleet.rollout(*lost)
    assert emergency.code == 0, emergency.all
    assert fleet.everything() == before, "without a journal"
    assert [fleet.runs_new(node) for node in fleet.nodes] == [False] * 4
    fleet.nothing_left()


def test_the_controller_is_killed_in_the_middle_of_a_wave_and_resume_continues(fleet: Fleet) -> None:
    fleet.playbook("[canary, rest]", "[rest]")
    before = fleet.everything()
    early, between, armed, confirmed = fleet.nodes
    instants = ((early, "*/next/armed *"), (between, "*/new.2 *"), (armed, "*/next/finished *"))
    for node, instant in instants:
        node.hold(instant)
    fleet.plan()
    with fleet.begun("apply", "p.json", "--yes") as process:
        until(lambda: all(node.holds() for node, _ in instants), PATIENCE, "three are held at their instants")
        until(lambda: fleet.receipt(confirmed) == "confirmed -", PATIENCE, "the fourth is confirmed")
        process.kill()
        process.wait()
    for node, _ in instants:
        node.let_go()
    resumed = fleet.rollout("resume", "--yes")
    assert resumed.code == 0, resumed.all
    found = fleet.status()
    assert found["counts"] == {"confirmed": 4}
    assert [fleet.is_new(node) and fleet.runs_new(node) for node in fleet.nodes] == [True] * 4
    assert {fleet.receipts(node)[-1]["run"] for node in fleet.nodes} == {found["run"]}
    assert [len(fleet.receipts(node)) for node in fleet.nodes] == [1] * 4, "each node was changed once"
    fleet.nothing_left()
    back = fleet.rollout("rollback", found["run"], "--yes")
    assert back.code == 0, back.all
    assert fleet.everything() == before
