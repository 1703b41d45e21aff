"""Texts for new nodes against the names and types that their tools publish.

``published.json`` has these as facts, each with its repository, path and commit: schemas of custom resources of kops and
MCO, types of nodeadm and Talos.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from rollout.core.model.settings import Value
from rollout.features.export.rules.settings import NewNodeSettings
from rollout.features.export.words import exported, exported_lines
from rollout.kubelet import fields as kubelet_fields
from rollout.kubelet.configuration import schema
from rollout.kubelet.configuration.schema import FieldType, Form

PUBLISHED: Mapping[str, Mapping[str, str]] = {
    each["at"]: each["types"] for each in json.loads((Path(__file__).parent / "published.json").read_text())
}
NEWEST = kubelet_fields.known_minors()[-1]
FLAGS = ("--image-pull-progress-deadline=5m", "--v=4", "--node-ip=::1")


def sample(kind: FieldType) -> Value:
    match kind.form:
        case Form.BOOL:
            return True
        case Form.INT32 | Form.INT64 | Form.UINT32 | Form.NANOSECONDS:
            return 3
        case Form.FLOAT64:
            return 0.5
        case Form.DURATION | Form.DURATION_OR_NANOSECONDS:
            return "1m0s"
        case Form.LIST:
            return [sample(kind.element)] if kind.element else ["a"]
        case Form.MAP:
            return {"a": sample(kind.element)} if kind.element else {"a": "b"}
        case Form.OBJECT:
            return {name: sample(inner) for name, inner in schema.fields_of(kind.type_name, NEWEST).items()}
        case _:
            return "a"


def kubelet_of(form: str, wanted: NewNodeSettings, *path: str) -> dict[str, Any]:
    document = yaml.safe_load("\n".join(exported_lines(form, exported(form, [wanted])))) or {}
    for key in path:
        document = document.get(key, {})
    return dict(document)


def type_of(value: Any) -> str:
    match value:
        case bool():
            return "boolean"
        case int():
            return "integer"
        case str():
            return "string"
        case list():
            return f"list of {type_of(value[0])}"
        case dict():
            return f"map of {type_of(next(iter(value.values())))}"
        case _:
            return "number"


@pytest.mark.parametrize("name", [*schema.fields_of(schema.ROOT, NEWEST)])
def test_what_kops_gets_is_a_field_of_its_cluster_with_its_type(name: str) -> None:
    value = sample(schema.fields_of(schema.ROOT, NEWEST)[name])
    for key, there in kubelet_of("kops", NewNodeSettings({name: value}, FLAGS), "spec", "kubelet").items():
        assert (key, type_of(there)) == (key, PUBLISHED["kops: spec.kubelet"].get(key))


@pytest.mark.parametrize(
    ("form", "path"), [("nodeadm", ("spec", "kubelet")), ("talos", ("machine", "kubelet")), ("mco", ("spec",))]
)
def test_the_keys_of_the_others_are_theirs(form: str, path: tuple[str, ...]) -> None:
    wanted = NewNodeSettings({"maxPods": 3, "evictionHard": {"memory.available": "5%"}}, FLAGS, nodes=("n1",))
    found = kubelet_of(form, wanted, *path)
    types = PUBLISHED[f"{form}: {'.'.join(path)}"]
    assert len(found) >= 2
    kinds = {name: "object" if isinstance(value, dict) else type_of(value) for name, value in found.items()}
    assert kinds == {name: types.get(name) for name in found}


def test_a_field_without_a_place_is_named_in_full() -> None:
    wanted = NewNodeSettings({"authentication": {"anonymous": {"enabled": False}}}, (), nodes=("n1",))
    assert any(
        line.startswith("# No place for authentication: Talos")
        for line in exported_lines("talos", exported("talos", [wanted]))
    )
