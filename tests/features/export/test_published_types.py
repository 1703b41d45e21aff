"""Texts for new nodes against the names and types that their tools publish.

``published.json`` has these as facts, each with its repository, path and commit: schemas of custom resources of kops and
MCO, types of nodeadm and Talos, the specifications of Butane. No release of Butane, k3s or RKE2 can be had from Debian or PyPI.
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
from rollout.kubelet.node import rancher

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
    kinds = {name: kind_of(value) for name, value in found.items()}
    assert kinds == {name: types.get(name) for name in found}


def kind_of(value: Any) -> str:
    return "object" if isinstance(value, dict) else type_of(value)


@pytest.mark.parametrize("variant", ["fcos", "flatcar"])
def test_the_file_of_butane_has_the_keys_of_its_specification(variant: str) -> None:
    """coreos/butane, docs/config-VARIANT-v1_0.md: ``variant`` and ``version`` are required, and so is the ``path`` of a file, which is
    absolute. ``contents`` must be specified if ``overwrite`` is true, and has one of ``source`` and ``inline``.
    """
    wanted = NewNodeSettings({"maxPods": 3, "evictionHard": {"memory.available": "5%"}}, FLAGS, nodes=("n1",))
    document = yaml.safe_load("\n".join(exported_lines("butane", exported("butane", [wanted]))))
    assert document.keys() == {"variant", "version", "storage"}
    assert (document["variant"], document["version"]) == ("fcos", "1.0.0")
    (file,) = document["storage"]["files"]
    for at, found in (("files[]", file), ("files[].contents", file["contents"])):
        types = PUBLISHED[f"butane {variant} 1.0.0: storage.{at}"]
        assert {key: kind_of(value) for key, value in found.items()} == {key: types.get(key) for key in found}
    assert file["path"].startswith("/")
    assert (file["overwrite"], [*file["contents"]]) == (True, ["inline"])


@pytest.mark.parametrize("form", ["k3s", "rke2"])
@pytest.mark.parametrize(
    ("site", "first", "kept"),
    [
        ("kubelet-arg: one=1\n", "kubelet-arg+: two=2\n", ["one=1", "two=2"]),
        ("kubelet-arg: [one=1, two=2]\n", "kubelet-arg+: [three=3]\n", ["one=1", "two=2", "three=3"]),
        ("kubelet-arg: [one=1, two=2]\n", "kubelet-arg: [three=3, four=4]\n", ["three=3", "four=4"]),
        ("", "kubelet-arg+: [one=1, two=2]\n", ["one=1", "two=2"]),
    ],
)
def test_the_file_for_k3s_appends_to_those_before_it(form: str, site: str, first: str, kept: list[str]) -> None:
    """k3s-io/k3s, pkg/configfilearg/parser_test.go (4de6d2dbcd) with testdata/data.yaml and data.yaml.d: of a key in two files the later
    one counts, and a key with ``+`` appends, to one text as to a list, and where no file has the key. Each row is one of its
    keys: b-string, c-slice, d-slice, e-slice.
    """
    embedding = rancher.EMBEDDINGS[{"k3s": "k3s-agent.service", "rke2": "rke2-agent.service"}[form]]
    wanted = NewNodeSettings({"maxPods": 3, "featureGates": {"A": True, "B": False}}, FLAGS, nodes=("n1",))
    ours = "\n".join(exported_lines(form, exported(form, [wanted])))
    texts = {embedding.config: site, f"{embedding.folder}/10-site.yaml": first, embedding.own_file: ours}
    read = {path: texts[path] for path in rancher.in_order(embedding, texts)}
    before = rancher.kubelet_args({path: text for path, text in read.items() if path != embedding.own_file})
    assert [each.text for each in before] == kept
    (key,) = yaml.safe_load(ours)
    assert key == "kubelet-arg+"
    assert [each.text for each in rancher.kubelet_args(read)] == [*kept, *yaml.safe_load(ours)[key]]


def test_a_field_without_a_place_is_named_in_full() -> None:
    wanted = NewNodeSettings({"authentication": {"anonymous": {"enabled": False}}}, (), nodes=("n1",))
    assert any(
        line.startswith("# No place for authentication: Talos")
        for line in exported_lines("talos", exported("talos", [wanted]))
    )
