"""What running kubelets loaded of files that changed since: from /configz, our last transaction, or unknown."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rollout.adapters.journal import SqlJournal
from rollout.app.cluster_context import with_running
from rollout.app.ports import RunHeader
from rollout.core.model.inventory import Endpoints, Inventory
from rollout.core.model.snapshot import Receipt, ReceiptState, Snapshot, Stale, Unread
from rollout.core.plans import plan_codec
from rollout.core.text.blobs import digest
from rollout.errors import RemoteError
from tests.app.site import SMALL
from tests.kubelet.nodes import CONFIG, CONFIG_TEXT, fleet, kubeadm
from tests.kubelet.nodes import inventory as some_nodes

LOADED, EDITED = CONFIG_TEXT, CONFIG_TEXT + "maxPods: 1\n"
STALE = (Stale(CONFIG, "kubelet.service", edited=True, seconds=60),)
WITH_API = replace(some_nodes(1), endpoints=Endpoints(kubeconfig="admin.conf", context="blue"))
(NAME,) = WITH_API.nodes


class Api:
    """Answers of ``/configz``; records the kubeconfig of each request."""

    def __init__(self, answer: Mapping[str, Any] | Exception) -> None:
        self.answer = answer
        self.asked: list[tuple[str, str, str]] = []

    def configz(self, kubeconfig: str, context: str, node: str) -> Mapping[str, Any]:
        self.asked.append((kubeconfig, context, node))
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer

    def __getattr__(self, name: str) -> Any:
        raise AssertionError(f"{name} is not asked for")


@pytest.fixture
def journal(tmp_path: Path) -> SqlJournal:
    """A journal with one run that wrote ``LOADED`` to the node."""
    (group,) = SMALL.groups
    file = replace(group.change.files[0], path=CONFIG, after=digest(LOADED.encode()))
    change = replace(group.change, files=(file,))
    node = replace(SMALL.nodes["n1"], name=NAME)
    plan = replace(
        SMALL,
        groups=(replace(group, change=change),),
        nodes={NAME: node},
        waves=(replace(SMALL.waves[0], nodes=(NAME,)),),
        racks={"r": 1},
        blobs={**SMALL.blobs, file.after: LOADED.encode()},
    )
    kept = SqlJournal(tmp_path)
    kept.begin(RunHeader("r1", "rno", "apply", "{}", 1, plan_codec.encode(plan), 0.0, "me", ""))
    return kept


def edited(**facts: str) -> Snapshot:
    receipts = (Receipt("r1-1", "r1", 1, ReceiptState.CONFIRMED, finished=True),)
    return replace(kubeadm(NAME, config=EDITED), stale=STALE, facts=facts, receipts=receipts)


OURS = {"loaded.kubelet.service": "r1-1"}


def known(node: Snapshot, journal: SqlJournal, api: Api, inventory: Inventory, kubeconfig: str = "") -> Snapshot:
    found = with_running(fleet(inventory, {NAME: node}), inventory, journal, api, kubeconfig).nodes[NAME]
    assert isinstance(found, Snapshot)
    return found


def max_pods(found: Snapshot) -> object:
    return json.loads(found.running)["maxPods"]


def test_the_kubelet_itself_is_asked_first(journal: SqlJournal) -> None:
    api = Api({"maxPods": 77})
    found = known(edited(**OURS), journal, api, WITH_API)
    assert (max_pods(found), api.asked) == (77, [("admin.conf", "blue", NAME)])


def test_the_kubeconfig_of_the_command_line_replaces_the_inventorys(journal: SqlJournal) -> None:
    api = Api({"maxPods": 77})
    known(edited(), journal, api, WITH_API, "mine.conf")
    assert api.asked == [("mine.conf", "", NAME)]


@pytest.mark.parametrize("api", [Api(RemoteError("forbidden", "no")), Api({})], ids=["not allowed", "no kubeconfig"])
def test_otherwise_the_last_transaction_counts(journal: SqlJournal, api: Api) -> None:
    endpoints = Endpoints() if api.answer == {} else WITH_API.endpoints
    found = known(edited(**OURS), journal, api, replace(WITH_API, endpoints=endpoints))
    assert (max_pods(found), found.stale) == (110, STALE)


def test_otherwise_it_is_unknown(journal: SqlJournal) -> None:
    """The kubelet was started by no transaction, by a run of another journal, or by a run that is gone."""
    here = replace(WITH_API, endpoints=Endpoints())
    for node in (edited(), edited(**{"loaded.kubelet.service": "r9-1"})):
        assert known(node, journal, Api({}), here).running == ""
    foreign = replace(edited(**OURS), receipts=(Receipt("r1-1", "r7", 1, ReceiptState.CONFIRMED, finished=True),))
    assert known(foreign, journal, Api({}), here).running == ""


def test_a_file_with_the_loaded_content_is_not_stale(journal: SqlJournal) -> None:
    """The file was saved again, or an edit was undone."""
    same = replace(kubeadm(NAME, config=LOADED), stale=STALE, facts=OURS, receipts=edited().receipts)
    assert known(same, journal, Api({"maxPods": 110}), WITH_API).stale == ()


def test_nodes_without_edits_are_not_asked(journal: SqlJournal) -> None:
    api = Api(RemoteError("forbidden", "no"))
    quiet = fleet(WITH_API, {NAME: kubeadm(NAME)})
    assert with_running(quiet, WITH_API, journal, api) is quiet
    other = replace(
        edited(), stale=(Stale("/etc/containerd/config.toml", "containerd.service", edited=True, seconds=1),)
    )
    assert known(other, journal, api, WITH_API).running == ""
    assert api.asked == []


def test_one_failing_node_does_not_affect_others(journal: SqlJournal) -> None:
    """An answer that rollout fails on leaves its node unread."""
    inventory = replace(some_nodes(2), endpoints=WITH_API.endpoints)
    first, second = inventory.nodes
    api = Api(ValueError("s3cret"))
    nodes = {first: edited(), second: kubeadm(second)}
    found = with_running(fleet(inventory, nodes), inventory, journal, api).nodes
    left = found[first]
    assert isinstance(left, Unread)
    assert "s3cret" not in left.message
    assert found[second] == nodes[second]
