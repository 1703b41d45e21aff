"""The JSON Schemas: they match the models, shipped files match them, and they find mistakes."""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator

from rollout.core.reading.inventory_draft import draft_of, finish
from rollout.core.reading.playbook_file import load_playbook
from rollout.errors import InputError
from rollout.features.sequence.written import load_sequence
from rollout.features.table import schemas
from tests.places import ROOT

SHIPPED = [*sorted((ROOT / "inventories").glob("*.yaml")), *sorted((ROOT / "playbooks").glob("*.yaml"))]
TEMPLATES = {path.name: path.read_text() for path in (ROOT / "templates").glob("*.j2")}
INVENTORY: dict[str, Any] = {"cluster": "c", "apiServer": "v1.34.1", "nodes": {"n[1-4]": None}}
PLAYBOOK: dict[str, Any] = {"name": "p", "settings": {"maxPods": 30}}
SEQUENCE: dict[str, Any] = {"name": "s", "stages": [{"clusters": {"a": "a.json"}}]}


@cache
def schema_of(what: str) -> Draft202012Validator:
    made = schemas()[what]()
    Draft202012Validator.check_schema(made)
    return Draft202012Validator(made)


@pytest.mark.parametrize("what", sorted(schemas()))
def test_the_kept_schema_is_that_of_the_models(what: str) -> None:
    kept = json.loads((ROOT / f"docs/schemas/{what}.json").read_text())
    assert kept == schemas()[what](), f"rollout show schema {what} > docs/schemas/{what}.json"


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.name)
def test_shipped_files_match_the_schema_in_their_first_line(path: Path) -> None:
    text = path.read_text()
    named = re.match(r"# yaml-language-server: \$schema=(\S+)\n", text)
    assert named
    schema = json.loads((path.parent / named[1]).read_text())
    assert [error.message for error in Draft202012Validator(schema).iter_errors(yaml.safe_load(text))] == []


RIGHT_INVENTORIES: list[dict[str, Any]] = [
    {"nodes": [{"name": "n1", "address": "10.0.0.1", "rack": "r1", "labels": {"a": ""}, "port": 22}]},
    {
        "racks": {"r1": ["n[1-2]", "n[3-4]"]},
        "zones": {"z": "r1"},
        "playbook": "p",
        "ssh": {"user": "sre", "sudo": True},
    },
    {"groups": {"g": {"nodes": "@all", "settings": {"maxPods": {"value": 3, "ifUnsupported": "skip"}}}}},
    {"nodesFrom": {"ansible": {"path": "hosts", "rackGroups": "rack_", "registry": "pulls_from"}}},
    {"registry": "r.example.net", "groups": {"g": {"nodes": "@all", "registry": "r:5000"}}},
    {"nodesFrom": {"kubernetes": {"kubeconfig": "k", "selector": "a in (b)", "address": "Hostname"}}},
]
WRONG_INVENTORIES: list[dict[str, Any]] = [
    {"apiServer": 1.34},
    {"apiServer": "latest"},
    {"cluster": "a b"},
    {"nodez": {}},
    {"nodes": {"n1": {"port": "22"}}},
    {"nodes": {"n1": {"port": 70000}}},
    {"nodes": {"n1": {"address": "a;b"}}},
    {"nodes": {"n1": {"labels": {"gpu": True}}}},
    {"nodes": [{"address": "10.0.0.1"}]},
    {"racks": {"a b": "n1"}},
    {"racks": {"r1": 7}},
    {"groups": {"g": {"labels": {}}}},
    {"registry": "http://r.example.net"},
    {"settings": {"max pods": 3}},
    {"settings": {"maxPods": None}},
    {"settings": {"maxPods": {"value": 3, "ifUnsupported": "maybe"}}},
    {"nodesFrom": {}},
    {"nodesFrom": {"ansible": {"path": "hosts", "racks": "r"}}},
    {"nodesFrom": {"ansible": {"path": "a"}, "kubernetes": {"kubeconfig": "k"}}},
    {"nodesFrom": {"kubernetes": {"kubeconfig": "k", "address": "Inside"}}},
]
RIGHT_PLAYBOOKS: list[dict[str, Any]] = [
    {"waves": ["canary", {"perRack": 1, "soak": "10m"}, {"upTo": "5%", "hold": True}, "rest"]},
    {
        "limits": {"perRack": "5%", "perZone": 3, "pace": 0.5},
        "budgets": {"wave": "2 %", "causes": {"unreachable": {"fleet": 2}}},
    },
    {"gates": {"node": ["unit", {"command": ["true"]}], "wave": [{"http": "https://x.example.net/", "status": 204}]}},
    {
        "disruption": "reload",
        "pullsInFlight": "override",
        "shadowedByFlag": "move",
        "accept": ["readOnlyPort", {"setting": "maxPods", "reason": "ours"}],
    },
    {"disruption": "drain-and-restart", "drain": "15m"},
    {"drain": {"within": "15m", "evictToo": ["bare", "local"]}},
    {"pullsInFlight": {"within": "90s", "then": "skip"}, "registryCaps": [{"registry": "r:5000/m", "qps": 9}]},
    {"settings": {"registryMirrors": {"value": {"docker.io": ["m.example.net"]}, "pin": True}}},
    {"guard": "2m", "soak": "0", "onFailure": {"revert": "run"}, "controlPlane": True, "cordoned": True},
]
WRONG_PLAYBOOKS: list[dict[str, Any]] = [
    {"settings": None},
    {"soak": 60},
    {"soak": "60"},
    {"soak": "1 day"},
    {"waves": []},
    {"waves": ["canery"]},
    {"waves": ["upTo"]},
    {"waves": [{"perRack": 1, "upTo": "5%"}]},
    {"limits": {"perRack": 0}},
    {"limits": {"perRack": "5"}},
    {"limits": {"inFlight": 2.5}},
    {"budgets": {"causes": {"lost": {"wave": 1}}}},
    {"gates": {"node": ["healthy"]}},
    {"gates": {"wave": [{"prometheus": "up", "http": "https://x.example.net/"}]}},
    {"onFailure": {"revert": "cluster"}},
    {"controlPlane": "yes"},
    {"disruption": "drain"},
    {"drain": 15},
    {"drain": "soon"},
    {"drain": {"evictToo": ["local", "all"]}},
    {"pullsInFlight": "wait"},
    {"pullsInFlight": {"within": 600}},
    {"shadowedByFlag": True},
    {"accept": [{"reason": "ours"}]},
    {"registryCaps": [{"perZone": True}]},
    {"registryCaps": [{"registry": "https://r", "qps": 3}]},
    {"settings": {"maxPods": {"value": 3, "pin": "yes"}}},
]


RIGHT_SEQUENCES: list[dict[str, Any]] = [
    {"budget": "2%"},
    {"stages": [{"name": "one", "clusters": {"a": "a.json"}, "soak": "30m"}, {"clusters": {"b": "b.json"}}]},
]
WRONG_SEQUENCES: list[dict[str, Any]] = [
    {"stages": []},
    {"budget": 0},
    {"stages": [{"clusters": {}}]},
    {"stages": [{"clusters": ["a"]}]},
    {"stages": [{"clusters": {"a b": "a.json"}}]},
    {"stages": [{"clusters": {"a": ""}}]},
    {"stages": [{"clusters": {"a": "a.json"}, "soak": 30}]},
]


def inventory(changes: dict[str, Any]) -> dict[str, Any]:
    base = {key: value for key, value in INVENTORY.items() if "nodesFrom" not in changes or key != "nodes"}
    return {**base, **changes}


def found(what: str, document: dict[str, Any]) -> bool:
    return not schema_of(what).is_valid(document)


def refused_by_us(what: str, document: dict[str, Any]) -> bool:
    text = yaml.safe_dump(document, sort_keys=False)
    try:
        if what == "playbook":
            load_playbook(text, "p.yaml", TEMPLATES)
        elif what == "sequence":
            load_sequence(text, "s.yaml")
        else:
            draft = draft_of(text, "c.yaml")
            if draft.source is None:
                finish(draft)
    except InputError:
        return True
    return False


CASES = [
    *(("inventory", inventory(changes), False) for changes in RIGHT_INVENTORIES),
    *(("inventory", inventory(changes), True) for changes in WRONG_INVENTORIES),
    *(("playbook", {**PLAYBOOK, **changes}, False) for changes in RIGHT_PLAYBOOKS),
    *(("playbook", {**PLAYBOOK, **changes}, True) for changes in WRONG_PLAYBOOKS),
    *(("sequence", {**SEQUENCE, **changes}, False) for changes in RIGHT_SEQUENCES),
    *(("sequence", {**SEQUENCE, **changes}, True) for changes in WRONG_SEQUENCES),
]


@pytest.mark.parametrize(("what", "document", "wrong"), CASES)
def test_schema_and_reader_agree(what: str, document: dict[str, Any], wrong: bool) -> None:
    assert (found(what, document), refused_by_us(what, document)) == (wrong, wrong)
