"""Four real nodes, two racks, two layouts: the whole path, a controller that dies in the middle of a run, and nodes that join later."""

from __future__ import annotations

import os
import time

import pytest

from tests.bed.node import Node
from tests.controllers import Done, anew, finished, until
from tests.real.fleet import PATIENCE, Fleet
from tests.real.stand_in_api import api

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


# ------------------------------------------------------------------------------------------- what the cluster owns

WITHOUT_API = "\ngates: {without: [nodeReady, podsKept, devicesKept, nodesSteady]}\n"
"""No API server knows these kubelets: the stand-in answers with what a Node would show."""


def lists(fleet: Fleet, nodes: tuple[Node, ...], endpoints: str = "") -> None:
    """The inventory from now on."""
    listed = "".join(f"  {node.name}: {{}}\n" for node in nodes)
    (fleet.folder / "inventories/real.yaml").write_text(
        f"cluster: real\napiServer: v1.20.15\n{endpoints}nodes:\n{listed}"
    )


def by_timer(fleet: Fleet) -> Done:
    """As `docs/systemd/rollout-newcomers.service` starts it: no terminal, no input, hardly an environment."""
    bare = {"PATH": os.environ["PATH"], "HOME": "/nonexistent"}
    command = anew(fleet.command("newcomers", "--cluster", "real", "--yes"))
    return finished(command, fleet.folder, PATIENCE, bare)


def told(fleet: Fleet, code: int) -> dict[str, str]:
    done = fleet.rollout("verify", "--cluster", "real", "-o", "json")
    assert done.code == code, done.all
    return {node["name"]: node["standing"] for node in done.json()["owned"]["nodes"]}


def test_a_timer_changes_a_node_that_joined_and_a_machine_that_was_replaced(fleet: Fleet) -> None:
    stays, goes, joins, _ = fleet.nodes
    lists(fleet, (stays, goes))
    fleet.playbook("\nguard: 120s", f"{WITHOUT_API}guard: 120s\nnewcomers: {{then: apply, readyFor: 10m}}")
    assert fleet.rollout("apply", "--cluster", "real", "--yes").code == 0
    assert fleet.rollout("own").code == 0
    assert set(told(fleet, 0).values()) == {"as-wanted"}
    fleet.bed.renew(goes)
    now = time.time()
    ages = {stays.name: now - 86_400, goes.name: now - 700, joins.name: now - 60}
    with api(fleet.folder, ages) as endpoints:
        lists(fleet, (stays, goes, joins), endpoints)
        assert told(fleet, 10) == {stays.name: "as-wanted", goes.name: "replaced", joins.name: "never-changed"}
        early = by_timer(fleet)
        assert early.code == 0, early.all
        assert "its Node has been Ready for less than 10 min" in early.err, early.all
        assert (fleet.runs_new(goes), fleet.runs_new(joins)) == (True, False)
        ages[joins.name] = now - 600
        assert by_timer(fleet).code == 0
        assert fleet.runs_new(joins)
        assert told(fleet, 0) == dict.fromkeys((stays.name, goes.name, joins.name), "as-wanted")
        assert by_timer(fleet).code == 0
    fleet.nothing_left()
