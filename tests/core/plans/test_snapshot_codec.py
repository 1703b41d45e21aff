"""Snapshots as files: each content is stored once and checked, and other files are refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from rollout.core.model.snapshot import FileState, FleetSnapshot, Receipt, ReceiptState, Snapshot, Unread
from rollout.core.model.surroundings import Listing, Manifests, Swap
from rollout.core.plans import snapshot_codec
from rollout.errors import InputError
from tests.kubelet.nodes import SURROUNDINGS, fleet, inventory, kubeadm, mixed, regular

FOUND = inventory(12)
OTHER = replace(
    SURROUNDINGS,
    cgroups=Listing(("/kubepods",), whole=False),
    manifests=(Manifests("/etc/kubernetes/manifests", Listing(("etcd.yaml",))),),
    swaps=(Swap("/dev/sda2", "partition", 1000, 10),),
    rooms=tuple(replace(room, free=1) for room in SURROUNDINGS.rooms),
    inhibit_delay=None,
    processes=None,
)


def test_round_trip_in_inventory_order() -> None:
    snapshot = mixed(FOUND)
    again = snapshot_codec.decode(snapshot_codec.encode(snapshot), "s.json")
    assert again == snapshot
    assert list(again.nodes) == list(snapshot.nodes)
    assert snapshot_codec.encode(again) == snapshot_codec.encode(snapshot)


def test_everything_a_node_can_report_survives() -> None:
    name = next(iter(FOUND.nodes))
    odd = replace(kubeadm(name), receipts=(Receipt("t", "r", 2, ReceiptState.REVERTED, "guard", 1.5, finished=True),))
    odd = replace(
        odd,
        files={**odd.files, "/b": replace(regular("/b", ""), content=b"\xff\x00"), "/l": FileState("/l", "symlink")},
    )
    odd = replace(
        odd, measurement=replace(odd.measurement, files={"/m": regular("/m", "x")}, commands={"c": 1}, healthz=None)
    )
    snapshot = fleet(FOUND, {name: replace(odd, files={"/b": replace(odd.files["/b"], digest="")})})
    assert snapshot_codec.decode(snapshot_codec.encode(snapshot), "s.json") == snapshot
    empty = FleetSnapshot("rno", "i", "", {})
    assert snapshot_codec.decode(snapshot_codec.encode(empty), "s.json") == empty


def test_the_ways_to_nodes_are_stored_and_snapshots_of_before_have_none() -> None:
    ways = {name: ("bastion-a", "bastion-b")[: at % 3] for at, name in enumerate(FOUND.nodes)}
    snapshot = replace(
        mixed(FOUND), jumps=ways, addresses={name: node.reached_at for name, node in FOUND.nodes.items()}
    )
    found = snapshot_codec.encode(snapshot)
    assert snapshot_codec.decode(found, "s.json") == snapshot
    document = json.loads(found)
    addresses = document.pop("addresses")

    def of(version: int, **keys: Any) -> bytes:
        return json.dumps({**document, "version": version, **keys}).encode()

    def older(text: bytes) -> FleetSnapshot:
        """As its version has written it: nodes without surroundings."""
        written = json.loads(text)
        for kind in written["kinds"].values():
            kind.pop("surroundings")
        return snapshot_codec.decode(json.dumps(written).encode(), "s.json")

    assert older(of(6)) == replace(snapshot, addresses={})
    jumps = document.pop("jumps")
    assert older(of(5)) == mixed(FOUND)
    wrong = (of(6), of(5, jumps={}), of(6, jumps=jumps, addresses={}), of(7, jumps=jumps), of(7, addresses=addresses))
    for document_of_another in wrong:
        with pytest.raises(InputError, match="snapshot-unreadable"):
            snapshot_codec.decode(document_of_another, "s.json")


def test_surroundings_come_back_and_are_unknown_in_snapshots_of_before() -> None:
    near, far = (replace(kubeadm(name), surroundings=found) for name, found in (("a", SURROUNDINGS), ("b", OTHER)))
    snapshot = fleet(FOUND, {"a": near, "b": far})
    document = json.loads(snapshot_codec.encode(snapshot))
    assert len(document["kinds"]) == 1, "free space makes no kind of its own"
    assert snapshot_codec.decode(json.dumps(document).encode(), "s.json") == snapshot
    document = json.loads(snapshot_codec.encode(fleet(FOUND, {"a": near})))
    assert document["kinds"]["1"].pop("surroundings")
    with pytest.raises(InputError, match="surroundings"):
        snapshot_codec.decode(json.dumps(document).encode(), "s.json")
    before = snapshot_codec.decode(json.dumps({**document, "version": 7}).encode(), "s.json")
    assert before.nodes == {"a": replace(near, surroundings=None)}


def test_contents_and_kinds_are_held_once() -> None:
    small = len(snapshot_codec.encode(fleet(FOUND, {name: kubeadm(name) for name in list(FOUND.nodes)[:1]})))
    large = len(snapshot_codec.encode(fleet(FOUND, {name: kubeadm(name) for name in list(FOUND.nodes)[:2]})))
    assert json.loads(snapshot_codec.encode(fleet(FOUND, {"a": kubeadm("a")})))["blobs"]
    assert large - small < 250


def test_decoded_nodes_of_a_kind_share_what_does_not_differ() -> None:
    names = list(FOUND.nodes)[:2]
    again = snapshot_codec.decode(
        snapshot_codec.encode(fleet(FOUND, {name: kubeadm(name) for name in names})), "s.json"
    )
    one, other = (again.nodes[name] for name in names)
    assert isinstance(one, Snapshot)
    assert isinstance(other, Snapshot)
    assert one != other
    assert one.files is other.files


def test_nodes_that_report_other_keys_are_of_another_kind() -> None:
    odd = replace(kubeadm("b"), facts={**kubeadm("b").facts, "one": "more"})
    snapshot = fleet(FOUND, {"a": kubeadm("a"), "b": odd})
    assert len(json.loads(snapshot_codec.encode(snapshot))["kinds"]) == 2
    assert snapshot_codec.decode(snapshot_codec.encode(snapshot), "s.json") == snapshot


def edited(edit: Callable[[dict[str, Any]], object]) -> bytes:
    document = json.loads(snapshot_codec.encode(fleet(FOUND, {"a": kubeadm("a"), "b": Unread("b", "r", "m")})))
    edit(document)
    return json.dumps(document).encode()


@pytest.mark.parametrize(
    "edit",
    [
        lambda document: document.pop("taken"),
        lambda document: document.update(more=1),
        lambda document: document.update(cluster=1),
        lambda document: document.update(read=[]),
        lambda document: document.update(order=["a"]),
        lambda document: document["blobs"].clear(),
        lambda document: document["blobs"].update({next(iter(document["blobs"])): "x"}),
        lambda document: document["kinds"]["1"].pop("token"),
        lambda document: document["kinds"]["1"]["token"].update(counter="1"),
        lambda document: document["read"]["a"].update(kind="2"),
        lambda document: document["read"]["a"].update(kind=["1"]),
        lambda document: document["read"]["a"].pop("but"),
        lambda document: document["read"]["a"].update(but=7),
        lambda document: document["read"]["a"]["but"].update(nonsense=1),
        lambda document: document["read"]["a"]["but"].update(machine_id=1),
        lambda document: document["read"]["a"]["but"].update(machine_id={"x": "y"}),
        lambda document: document["read"]["a"]["but"].update(facts={"unknown": "x"}),
        lambda document: document["read"]["a"]["but"].update(files={"/var/lib/kubelet/config.yaml": {"content": "x"}}),
        lambda document: document.update(kinds=document.pop("kinds")),
        lambda document: document["unread"]["b"].update(message=None),
        lambda document: document.pop("version"),
        lambda document: document.update(jumps={"a": [1]}),
        lambda document: document.update(jumps={"a": None}),
    ],
)
def test_inconsistent_snapshots(edit: Callable[[dict[str, Any]], object]) -> None:
    with pytest.raises(InputError) as caught:
        snapshot_codec.decode(edited(edit), "s.json")
    assert caught.value.reference == "snapshot-unreadable"


@pytest.mark.parametrize("data", [b"", b"[]", b"\xff"])
def test_files_that_are_not_snapshots(data: bytes) -> None:
    with pytest.raises(InputError) as caught:
        snapshot_codec.decode(data, "s.json")
    assert caught.value.reference == "snapshot-unreadable"


def test_another_version_and_too_large(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputError, match="snapshot-version"):
        snapshot_codec.decode(edited(lambda document: document.update(version=9)), "s.json")
    monkeypatch.setattr(snapshot_codec, "MOST_BYTES", 2)
    with pytest.raises(InputError, match="larger than"):
        snapshot_codec.decode(b"{ }", "s.json")
