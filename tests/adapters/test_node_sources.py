"""The last answer of an API server, where it is away: also as another version of rollout has kept it."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rollout.adapters.node_sources import RecallingSources, RememberingSources
from rollout.core.model.live import LiveNode
from rollout.core.model.pods import PlacedPod
from rollout.errors import RemoteError
from tests.app.test_live_inventories import live
from tests.sampling import examples

NODES = (live("n1"), live("n2"))
NEEDED = frozenset({"name", "addresses", "labels"})
OTHERS = sorted(LiveNode.__dataclass_fields__.keys() - NEEDED)


class Api:
    """An API server; ``away``: it cannot be reached."""

    def __init__(self, *, away: bool = False) -> None:
        self.away = away

    def live(self, _kubeconfig: str, _context: str) -> tuple[LiveNode, ...]:
        if self.away:
            raise RemoteError("api-away", "connection refused")
        return NODES

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
    RememberingSources(Api(), folder).live("k", "")
    (kept,) = folder.glob("nodes-*.json")
    written = json.loads(kept.read_text())
    nodes = [
        {key: value for key, value in node.items() if key not in without} | (changed or {}) for node in written["nodes"]
    ]
    kept.write_text(json.dumps({**written, "nodes": nodes}))
    return RecallingSources(Api(away=True), folder, lambda _said: None).live("k", "")


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
        RecallingSources(Api(away=True), tmp_path, lambda _said: None).live("k", "")
