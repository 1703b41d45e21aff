"""The last answer of an API server, where it is away: also as another version of rollout has kept it."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rollout.adapters.node_sources import ApiServer, OnlyRemembered, RealSources, RecallingSources, RememberingSources
from rollout.core.model.live import LiveNode
from rollout.core.model.pods import PlacedPod
from rollout.errors import RemoteError
from tests.app.test_live_inventories import live
from tests.sampling import examples

NODES = (live("n1"), live("n2"))
NEEDED = frozenset({"name", "addresses", "labels"})
OTHERS = sorted(LiveNode.__dataclass_fields__.keys() - NEEDED)


RNO, DEV = (ApiServer("k", name, f"https://{name}:6443", name) for name in ("rno", "dev"))


def rno(_kubeconfig: str, _context: str) -> ApiServer:
    return RNO


def dev(_kubeconfig: str, _context: str) -> ApiServer:
    return DEV


class Api:
    """An API server; ``away``: it cannot be reached."""

    def __init__(self, *, away: bool = False, nodes: tuple[LiveNode, ...] = NODES) -> None:
        self.away, self.nodes = away, nodes

    def live(self, _kubeconfig: str, _context: str) -> tuple[LiveNode, ...]:
        if self.away:
            raise RemoteError("api-away", "connection refused")
        return self.nodes

    def ansible_values(self, path: str, templates: Mapping[str, Collection[str]]) -> Mapping[str, Mapping[str, object]]:
        raise AssertionError(path)

    def ansible(self, path: str) -> str:
        raise AssertionError(path)

    def pods(self, *_asked: object) -> tuple[PlacedPod, ...]:
        raise AssertionError("only nodes are listed")

    def configz(self, *_asked: object) -> Mapping[str, Any]:
        raise AssertionError("only nodes are listed")


def recalled(
    folder: Path, changed: dict[str, int] | None = None, without: frozenset[str] = frozenset()
) -> tuple[LiveNode, ...]:
    RememberingSources(Api(), folder, rno).live("k", "")
    (kept,) = folder.glob("nodes-*.json")
    written = json.loads(kept.read_text())
    nodes = [
        {key: value for key, value in node.items() if key not in without} | (changed or {}) for node in written["nodes"]
    ]
    kept.write_text(json.dumps({**written, "nodes": nodes}))
    return RecallingSources(Api(away=True), folder, rno, lambda _said: None).live("k", "")


@given(st.frozensets(st.sampled_from(OTHERS)), st.dictionaries(st.sampled_from(("zone", "machineId")), st.integers()))
@settings(max_examples=examples(20))
def test_a_list_that_another_version_kept_still_names_the_nodes(without: frozenset[str], new: dict[str, int]) -> None:
    with TemporaryDirectory() as folder:
        found = recalled(Path(folder), new, without)
    assert [(node.name, node.addresses, node.labels) for node in found] == [
        (node.name, node.addresses, node.labels) for node in NODES
    ]


@pytest.mark.parametrize(
    "written", ["", "[]", '{"taken": "t"}', '{"taken": "t", "nodes": [1]}', '{"taken": 1, "nodes": 5}']
)
def test_what_is_no_list_is_none(tmp_path: Path, written: str) -> None:
    recalled(tmp_path)
    (kept,) = tmp_path.glob("nodes-*.json")
    kept.write_text(written)
    with pytest.raises(RemoteError, match="connection refused"):
        RecallingSources(Api(away=True), tmp_path, rno, lambda _said: None).live("k", "")


def test_a_list_counts_only_for_the_api_server_that_gave_it(tmp_path: Path) -> None:
    """``kubectl config use-context`` changes what an inventory without a context means."""
    RememberingSources(Api(), tmp_path, dev).live("k", "")
    said: list[str] = []
    with pytest.raises(RemoteError) as caught:
        RecallingSources(Api(away=True), tmp_path, rno, said.append).live("k", "")
    assert caught.value.reference == "list-of-another-cluster"
    assert "is of context dev (https://dev:6443)" in caught.value.message
    assert not said
    with pytest.raises(RemoteError, match="no answer of the API server is kept"):
        OnlyRemembered(tmp_path, rno).live("k", "")


def test_the_list_of_each_api_server_is_kept(tmp_path: Path) -> None:
    for server in (rno, dev):
        RememberingSources(Api(), tmp_path, server).live("k", "")
    said: list[str] = []
    sources = RecallingSources(Api(away=True), tmp_path, rno, said.append)
    assert sources.live("k", "") == NODES
    assert sources.api == "context rno (https://rno:6443)"
    assert said == [
        f"the API server of context rno (https://rno:6443) did not list its nodes (connection refused); using its node list of {sources.taken}"
    ]


def test_a_context_of_another_name_and_the_same_server_has_its_list(tmp_path: Path) -> None:
    RememberingSources(Api(), tmp_path, rno).live("k", "")
    renamed = RecallingSources(
        Api(away=True), tmp_path, lambda *_: replace(RNO, kubeconfig="k2", context="prod"), print
    )
    assert renamed.live("k2", "") == NODES


def test_an_authority_of_another_cluster_at_the_same_address_is_another_one(tmp_path: Path) -> None:
    """Two tunnels, one after another, may have one port of this machine."""
    RememberingSources(Api(), tmp_path, rno).live("k", "")
    other = RecallingSources(Api(away=True), tmp_path, lambda *_: replace(RNO, authority="dev"), print)
    with pytest.raises(RemoteError, match=r"the node list of .* is of context rno"):
        other.live("k", "")


def test_a_list_that_was_asked_for_while_the_context_was_switched_is_not_kept(tmp_path: Path) -> None:
    servers = iter((RNO, DEV))
    assert RememberingSources(Api(), tmp_path, lambda *_: next(servers)).live("k", "") == NODES
    assert not list(tmp_path.glob("nodes-*"))


def test_an_empty_list_does_not_replace_one_with_nodes(tmp_path: Path) -> None:
    RememberingSources(Api(), tmp_path, rno).live("k", "")
    assert RememberingSources(Api(nodes=()), tmp_path, rno).live("k", "") == ()
    assert RecallingSources(Api(away=True), tmp_path, rno, lambda _said: None).live("k", "") == NODES


def test_a_current_context_is_told_by_its_name_and_its_server(tmp_path: Path) -> None:
    written = tmp_path / "kubeconfig"
    config = {
        "clusters": [{"name": name, "cluster": {"server": f"https://{name}:6443"}} for name in ("rno", "dev")],
        "contexts": [{"name": name, "context": {"cluster": name, "user": "u"}} for name in ("rno", "dev")],
        "users": [{"name": "u", "user": {"token": "t"}}],
    }
    for name in ("rno", "dev"):
        written.write_text(json.dumps({**config, "current-context": name}))
        written.chmod(0o600)
        assert str(RealSources().meant(str(written), "")) == f"context {name} (https://{name}:6443)"
        assert str(RealSources(str(written)).meant("another", "ignored")) == f"context {name} (https://{name}:6443)"
    assert RealSources().meant(str(written), "rno").context == "rno"
