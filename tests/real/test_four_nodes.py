"""Four real nodes, two racks, two layouts: the whole path, and a controller that dies in the middle of it."""

from __future__ import annotations

import pytest

from tests.real.fleet import Fleet

pytestmark = pytest.mark.real_node


def test_check_plan_apply_plan_again_and_both_ways_back(fleet: Fleet) -> None:
    before = fleet.everything()
    assert fleet.rollout("check").code == 0
    fleet.plan()
    assert fleet.everything() == before, "planning changes nothing"

    applied = fleet.rollout("apply", "p.json", "--yes")
    assert applied.code == 0, applied.all
    assert [fleet.is_new(node) for node in fleet.nodes] == [True] * 4
    assert [fleet.runs_new(node) for node in fleet.nodes] == [True] * 4
    found = fleet.status()
    assert (found["counts"], found["exit_code"], found["troubles"]) == ({"confirmed": 4}, 0, [])
    assert [(wave["name"], wave["total"]) for wave in found["waves"]] == [("canary", 2), ("rest", 2)]
    for node in fleet.nodes:
        newest = fleet.receipts(node)[-1]
        assert (newest["state"], newest["run"]) == ("confirmed", found["run"]), "the nodes say what the journal says"
    fleet.nothing_left()

    again = fleet.rollout("plan", "--cluster", "real", "--out", "again.json", "--exit-code")
    assert again.code == 0, again.all

    back = fleet.rollout("rollback", found["run"], "--yes")
    assert back.code == 0, back.all
    assert fleet.everything() == before
    assert [fleet.runs_new(node) for node in fleet.nodes] == [False] * 4
    assert fleet.status()["counts"] == {"reverted": 4}

    assert fleet.rollout("apply", "--cluster", "real", "--yes").code == 0
    assert [fleet.runs_new(node) for node in fleet.nodes] == [True] * 4
    lost = ("rollback", "--cluster", "real", "--emergency", "--yes", "--state", "elsewhere")
    emergency = fleet.rollout(*lost)
    assert emergency.code == 0, emergency.all
    assert fleet.everything() == before, "with no journal at all"
    assert [fleet.runs_new(node) for node in fleet.nodes] == [False] * 4
    fleet.nothing_left()
