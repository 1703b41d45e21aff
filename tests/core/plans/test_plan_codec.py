"""The plan file: the same bytes for the same plan, the same plan for the same bytes, and any edit is detected."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from rollout.app.plan import build_plan
from rollout.core.model.plan import Plan
from rollout.core.model.playbook import Share
from rollout.core.model.snapshot import digest as content_digest
from rollout.core.plans import plan_codec
from rollout.core.text.json_text import ShapeError, converter, decode, encode
from rollout.errors import InputError
from tests.kubelet.nodes import IMAGE_PULLS, POLICY, fleet, inventory, kubeadm, mixed, plain


@pytest.fixture(scope="module")
def plan() -> Plan:
    found = inventory(12, per_rack=4)
    return build_plan(found, POLICY, mixed(found), dict.fromkeys(found.nodes, IMAGE_PULLS), tuple(found.nodes), "@all")


def reseal(data: bytes, edit: Callable[[dict[str, Any]], object]) -> bytes:
    """The file as another program would have written it: edited, with a digest that fits."""
    document = json.loads(data)
    document.pop("digest")
    edit(document)
    return plan_codec._sealed(document)[1]  # noqa: SLF001


def test_round_trip(plan: Plan) -> None:
    data = plan_codec.encode(plan)
    again = plan_codec.decode(data, "p.json")
    assert again == plan
    assert plan_codec.encode(again) == data
    assert plan_codec.digest(again) == plan_codec.digest(plan) == json.loads(data)["digest"]
    digest, data = plan_codec.sealed(plan)
    assert (digest, data) == (plan_codec.digest(plan), plan_codec.encode(plan))
    assert plan_codec.file_name(plan, digest) == f"rno-{digest[:12]}.plan.json"


def test_contents_are_written_once_and_named_by_their_digests(plan: Plan) -> None:
    document = json.loads(plan_codec.encode(plan))
    files = [file for group in document["groups"] for file in group["change"]["files"]]
    named = {file[side] for file in files for side in ("before", "after")}
    assert "" in named, "a file that does not exist yet"
    assert document["blobs"].keys() == named - {""}
    assert all(content_digest(content.encode()) == name for name, content in document["blobs"].items())


def test_a_file_shows_digests_and_no_contents(plan: Plan) -> None:
    """They can hold credentials, and traces of errors show values."""
    shown = repr(plan)
    assert "serializeImagePulls: true\\n" not in shown
    assert all(file.digest_after in shown for group in plan.groups for file in group.change.files)


def test_contents_that_are_not_text_survive(plan: Plan) -> None:
    assert encode(replace(POLICY.limits))["per_rack"] == {"count": None, "percent": 5.0}
    bytes_of = converter(bytes)
    for content in (b"", b"text", b"\xff\x00"):
        assert bytes_of.decode(json.loads(json.dumps(bytes_of.encode(content))), "x") == content


@pytest.mark.parametrize(
    "edit",
    [
        lambda data: data.replace(b"false", b"true ", 1),
        lambda data: data + b"\n",
        lambda data: data.replace(b'"digest": "', b'"digest": "0', 1),
        lambda data: json.dumps(json.loads(data)).encode(),
    ],
)
def test_an_edited_file_is_detected(plan: Plan, edit: Callable[[bytes], bytes]) -> None:
    with pytest.raises(InputError) as caught:
        plan_codec.decode(edit(plan_codec.encode(plan)), "p.json")
    assert caught.value.reference == "plan-edited"


@pytest.mark.parametrize("data", [b"", b"[]", b"\xff", b"[" * 100_000])
def test_files_that_are_not_plans(data: bytes) -> None:
    with pytest.raises(InputError) as caught:
        plan_codec.decode(data, "p.json")
    assert caught.value.reference == "plan-unreadable"


def test_too_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plan_codec, "MOST_BYTES", 2)
    with pytest.raises(InputError, match="larger than"):
        plan_codec.decode(b"{ }", "p.json")


def test_another_version(plan: Plan) -> None:
    with pytest.raises(InputError) as caught:
        plan_codec.decode(reseal(plan_codec.encode(plan), lambda document: document.update(version=99)), "p.json")
    assert caught.value.reference == "plan-version"


@pytest.mark.parametrize(
    "edit",
    [
        lambda document: document.pop("guard"),
        lambda document: document.update(extra=1),
        lambda document: document.update(guard="soon"),
        lambda document: document.update(waves={}),
        lambda document: document.update(nodes=[]),
        lambda document: document.update(limits=[]),
        lambda document: document.update(on_failure="never"),
        lambda document: document["blobs"].update({"0" * 64: "x"}),
        lambda document: document["blobs"].clear(),
        lambda document: document.pop("blobs"),
        lambda document: document["blobs"].update({content_digest(b"x"): "x"}),
        lambda document: document["groups"][0]["change"]["files"][0].update(before=None),
        lambda document: document["groups"][0]["change"]["files"][0].update(after=""),
        lambda document: document["waves"][0]["nodes"].append("nobody"),
        lambda document: next(iter(document["nodes"].values())).update(group="g99"),
        lambda document: document["blobs"].update({"0" * 64: {"base64": "!"}}),
        lambda document: document["blobs"].update({"0" * 64: "\ud800"}),
        lambda document: document["blobs"].update({"0" * 64: 5}),
    ],
)
def test_a_sealed_plan_that_is_inconsistent(plan: Plan, edit: Callable[[dict[str, Any]], object]) -> None:
    with pytest.raises(InputError) as caught:
        plan_codec.decode(reseal(plan_codec.encode(plan), edit), "p.json")
    assert caught.value.reference == "plan-unreadable"


def test_a_plan_is_the_same_bytes_however_its_nodes_were_read() -> None:
    found = inventory(4)
    nodes = {name: (plain if at % 2 else kubeadm)(name) for at, name in enumerate(found.nodes)}
    backwards = dict(reversed(nodes.items()))
    plans = [
        build_plan(found, POLICY, fleet(found, order), dict.fromkeys(found.nodes, IMAGE_PULLS), names, "")
        for order, names in ((nodes, tuple(nodes)), (backwards, tuple(backwards)))
    ]
    assert plan_codec.encode(plans[0]) == plan_codec.encode(plans[1])


def test_numbers_keep_their_types() -> None:
    assert decode(Share, {"count": None, "percent": 2}) == Share(percent=2.0)
    with pytest.raises(ShapeError, match="count is not of type int"):
        decode(Share, {"count": True, "percent": None})
    with pytest.raises(TypeError):
        converter(dict[str, int])
    with pytest.raises(TypeError):
        converter(int | str)


@pytest.mark.parametrize("version", plan_codec.BEFORE)
def test_a_plan_of_an_earlier_version_is_read_in_a_journal_and_refused_as_a_file(plan: Plan, version: int) -> None:
    """Its digest, which people signed, is that of its own form."""

    def before(document: dict[str, Any]) -> None:
        document["version"] = version
        del document["wanted"]
        if version == plan_codec.BEFORE[0]:
            del document["config_map"]

    old = reseal(plan_codec.encode(plan), before)
    assert plan_codec.decode_journaled(old, "r1") == replace(plan, wanted=())
    assert plan_codec.wanted_in(old) == ()
    with pytest.raises(InputError) as caught:
        plan_codec.decode(old, "p.json")
    assert caught.value.reference == "plan-version"
