"""One machine in two inventories of a project."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from rollout.adapters.journal import SqlJournal
from rollout.app.following import other_cluster
from rollout.app.runs import start_apply
from rollout.app.shared_machines import shared_machines
from rollout.app.unlock import unlock_cluster
from rollout.core.model.inventory import Inventory
from rollout.core.reading.inventory_file import load_inventory
from rollout.core.run.state import Ending, Verb
from rollout.errors import StateError
from tests.app.call import CLUSTER, FakeCall, FakeOperator
from tests.app.site import ACCESS, SMALL, KilledError, Site


def inventory(cluster: str, nodes: str) -> Inventory:
    return load_inventory(f"cluster: {cluster}\napiServer: v1.33.0\nnodes:\n{nodes}", f"inventories/{cluster}.yaml")


def by_address(found: Inventory) -> Mapping[str, Hashable]:
    return {name: (node.address, node.port) for name, node in found.nodes.items()}


def test_machines_of_two_clusters_are_named_with_both_places() -> None:
    one = inventory("east", '  n[1-4]: {address: "{name}.example"}\n  m1: {}\n')
    other = inventory("west", "  x1: {}\n  y1: {address: n1.example}\n  n[2-3]: {address: '{name}.example'}\n")
    single, several = map(str, shared_machines((one, other), by_address))
    assert single.startswith(
        "one machine in two clusters: n1 of east (inventories/east.yaml:4:21) and y1 of west (inventories/west.yaml:5:17): "
    )
    assert several.startswith(
        "2 machines in two clusters: n[2-3] of east (inventories/east.yaml:4:21) and n[2-3] of west (inventories/west.yaml:6:21): "
    )


def test_two_ports_of_one_address_are_two_machines() -> None:
    one, other = (
        inventory("east", "  n1: {address: nat, port: 2201}\n"),
        inventory("west", "  n1: {address: nat, port: 2202}\n"),
    )
    assert shared_machines((one, other), by_address) == ()


def test_an_inventory_under_another_name_shares_all_its_machines() -> None:
    (found,) = shared_machines((inventory("old", "  n[1-9]: {}\n"), inventory("new", "  n[1-9]: {}\n")), by_address)
    assert (found.count, found.one.cluster, found.other.cluster) == (9, "old", "new")


def test_a_run_that_meets_one_of_another_cluster_is_refused_with_its_name(tmp_path: Path) -> None:
    """It is not taken for a run of another journal, which the operator would have to search for."""
    site = Site(SqlJournal(tmp_path), dies_at=("n1", Verb.APPLY))
    with pytest.raises(KilledError):
        site.apply()
    site.answers, site.dies_at = [], None
    ended = start_apply(replace(SMALL, cluster="west"), ACCESS, site.tools())
    assert ended.ending is Ending.CLAIMED
    told = {record.message for record in ended.nodes.values() if record.reference in ("claimed", "fenced")}
    assert told == {f"1 r1 live: that run is of cluster {SMALL.cluster}, which has this machine in its inventory, too"}
    assert other_cluster(site.journal, "west", "r1") == SMALL.cluster
    assert (other_cluster(site.journal, SMALL.cluster, "r1"), other_cluster(site.journal, "west", "x9")) == ("", "")
    site.journal.close()  # type: ignore[attr-defined] # a real one


@pytest.mark.parametrize("alive", [True, False])
def test_an_unlock_names_the_other_cluster_and_ends_no_claim_of_its_live_controller(
    tmp_path: Path, *, alive: bool
) -> None:
    call, operator = FakeCall(tmp_path).killed("n1", Verb.APPLY), FakeOperator()
    journal = call.journal()
    journal.begin(replace(journal.header("r1"), run="r9", cluster="west", at=5.0))
    call.agents.nodes["n1"].claim = (9, "r9", "live")
    call.held(None)
    if alive:
        journal.acquire("west", "r9")
        with pytest.raises(StateError, match="run r9 of cluster west is in progress on this machine"):
            unlock_cluster(call, operator, CLUSTER, "n1", force=False)
        assert call.agents.nodes["n1"].claim == (9, "r9", "live")
        return
    assert unlock_cluster(call, operator, CLUSTER, "n1", force=False).released == "n1"
    assert "run r9 of cluster west has claimed 1 node: n1" in operator.must_read
