"""The reference pages: their examples are read unchanged, and no key is missing on them."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from rollout.app.load import load_cluster
from rollout.app.load_playbook import load_policy
from rollout.features.table import schemas
from rollout.gates.table import keys_of_waves
from tests.app.test_live_inventories import RACK, ZONE, live
from tests.app.test_load import TEMPLATES, FakeFiles, FakeSources
from tests.places import ROOT

DOCS = ROOT / "docs"
HOSTS = {
    "_meta": {"hostvars": {"n1": {"ansible_host": "10.0.0.1", "datacenter": "z1", "node_labels": {"pool": "batch"}}}},
    "kube_node": ["n1"],
    "rack_1": ["n1"],
}
SOURCES = FakeSources(json.dumps(HOSTS), (live("n1", labels={"pool": "batch", RACK: "rack1", ZONE: "z1"}),))


def examples(page: str, kind: str) -> list[tuple[str, str]]:
    return re.findall(rf"```yaml {kind}=(\S+)\n(.*?)```", (DOCS / page).read_text(), re.DOTALL)


@pytest.mark.parametrize(("name", "text"), examples("inventory.md", "inventory"), ids=lambda found: found[:10])
def test_examples_of_inventories(name: str, text: str) -> None:
    assert load_cluster(FakeFiles({f"inventories/{name}.yaml": text}), SOURCES, name).nodes


@pytest.mark.parametrize(("name", "text"), examples("playbook.md", "playbook"), ids=lambda found: found[:10])
def test_examples_of_playbooks(name: str, text: str) -> None:
    assert load_policy(FakeFiles({f"playbooks/{name}.yaml": text, **TEMPLATES}), name).settings


def keys(part: Any) -> set[str]:
    """Every key of a schema."""
    if isinstance(part, list):
        return {key for inner in part for key in keys(inner)}
    if not isinstance(part, dict):
        return set()
    own = part.get("properties", {})
    return {*own, *(key for inner in part.values() for key in keys(inner))}


def keys_of_wave_gates() -> set[str]:
    """The keys of a playbook that the page of gates explains."""
    return {"url", *(key for kind in keys_of_waves() for key in keys(kind.model_json_schema()))}


def missing(wanted: set[str], page: str) -> set[str]:
    text = (DOCS / page).read_text()
    return {key for key in wanted if not re.search(rf"\b{key}\b", text)}


@pytest.mark.parametrize("what", sorted(schemas()))
def test_every_key_is_on_its_page(what: str) -> None:
    elsewhere = keys_of_wave_gates() if what == "playbook" else set()
    assert missing(keys(schemas()[what]()) - elsewhere, f"{what}.md") == set()


def test_every_key_of_a_wave_gate_is_on_the_page_of_gates() -> None:
    assert missing(keys_of_wave_gates(), "gates.md") == set()
