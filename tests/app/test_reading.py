"""Reading a fleet: one round trip per node. An error of one node is data and does not delay the others."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rollout.app import node_access
from rollout.app.ports import Target
from rollout.app.reading import each, read_receipts, restart_pauses, snapshot_fleet
from rollout.core.model.report import Outcome
from rollout.core.model.snapshot import Snapshot, Token, Unread
from tests.app.agents import MACHINE, SILENT, Agents, access_to, answer, receipt, well
from tests.kubelet.nodes import inventory, listing

ACCESS = access_to("n1", "n2")


class Wall:
    def now(self) -> float:
        raise AssertionError("a snapshot says when it was taken by the wall clock")

    def wall(self) -> str:
        return "2026-11-20T16:00:00Z"


def test_nodes_are_reached_as_the_inventory_defines() -> None:
    found = inventory(3)
    first, second, _ = found.nodes
    nodes = dict(found.nodes)
    nodes[first] = replace(nodes[first], address="10.0.0.1", user="root", port=2222)
    access = node_access.access_to(replace(found, nodes=nodes), "program", (second, first))
    assert list(access.targets) == [second, first], "those that were chosen, in their order"
    assert access.targets[first] == Target(first, "10.0.0.1", "root", 2222, nodes[first].zone)
    assert access.sudo == {name: nodes[name].through_sudo for name in (first, second)}


def test_a_snapshot_contains_every_node_including_unread_ones() -> None:
    says = {("n1", "snapshot"): answer("snapshot", f"fact machine-id {MACHINE}", *well()), ("n2", "snapshot"): SILENT}
    nodes = Agents(says)
    found = snapshot_fleet(listing("n1", "n2"), ACCESS, nodes, Wall())
    assert (found.cluster, found.inventory_digest, found.taken) == ("rno", "i" * 64, Wall().wall())
    read = found.nodes["n1"]
    assert isinstance(read, Snapshot)
    assert read.machine_id == MACHINE
    assert found.addresses == {name: target.address for name, target in ACCESS.targets.items()}
    assert found.nodes["n2"] == Unread("n2", "connect-timeout", "no answer in 10 s")
    assert sorted(nodes.released) == ["n1", "n2"]
    assert {words["verb"] for _, words in nodes.asked} == {"snapshot"}, "a verb that only reads"
    snapshot_fleet(listing("n1", "n2"), ACCESS, nodes, Wall(), goes_on=True)
    assert sorted(nodes.released) == ["n1", "n2"], "a run that goes on keeps its connections"


def test_receipts_are_read_without_a_claim_and_each_answer_is_announced() -> None:
    nodes = Agents(
        {("n1", "status"): answer("status", "token 3 r1 live", receipt("r1-1", "confirmed")), ("n2", "status"): SILENT}
    )
    heard: list[str] = []
    found = read_receipts(ACCESS, nodes, heard=heard.append)
    assert found["n1"].token == Token(3, "r1", live=True)
    assert [known.tx for known in found["n1"].receipts] == ["r1-1"]
    assert (found["n2"].outcome, found["n2"].reference) == (Outcome.UNREACHED, "connect-timeout")
    assert heard == ["n1"]
    assert not any("claim" in words for _, words in nodes.asked), "a reading takes no claim from a run"
    assert nodes.released == [], "more will be requested from them"


def test_a_node_that_does_not_answer_has_no_restart_pause() -> None:
    no_unit = answer("status", "token 0 - ended")
    nodes = Agents({("n2", "status"): SILENT, ("n3", "status"): no_unit})
    assert restart_pauses(access_to("n1", "n2", "n3"), nodes) == ("10s",)


@pytest.mark.parametrize("sudo", [False, True])
def test_sudo_is_used_if_the_inventory_sets_it(*, sudo: bool) -> None:
    nodes = Agents()
    read_receipts(access_to("n1", sudo=sudo), nodes)
    assert [words["sudo"] for _, words in nodes.asked] == [str(sudo)]


def test_a_connection_is_always_released() -> None:
    nodes = Agents()

    def read(target: Target) -> str:
        if target.name == "n1":
            raise ValueError("a fault of ours")
        return target.name

    with pytest.raises(ValueError, match="of ours"):
        each(access_to("n1"), nodes, read)
    assert each(access_to("n3", "n2"), nodes, read) == {"n3": "n3", "n2": "n2"}
    assert sorted(nodes.released) == ["n1", "n2", "n3"]
