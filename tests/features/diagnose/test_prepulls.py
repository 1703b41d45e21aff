"""Pulls that an operator asks for: which images, how each node pulls, which nodes are asked, and what is told of them."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import pytest

from rollout.app.node_access import NodeAccess
from rollout.app.ports import Target
from rollout.core.model.report import RemoteAnswer, RemoteCommand
from rollout.core.model.snapshot import Snapshot, Unread
from rollout.core.run.at_once import AtOnce
from rollout.errors import InputError
from rollout.features.diagnose.asking.prepulls import (
    NotPulled,
    Pulled,
    PullOrder,
    checked_images,
    few_of_each_kind,
    folded_unknown,
    pull_on_all,
    pulls_document,
    ways_of,
)
from rollout.features.diagnose.rules.finding import ProposalTarget
from rollout.features.diagnose.rules.timed_pulls import PullEnd, PullWay
from rollout.kubelet.runtimes.description import Runtime
from tests.kubelet.nodes import fleet, inventory, kubeadm

IMAGE = "reg.example/team/big:1"
OTHER = "reg.example/team/small:1"
SITE = inventory(8, per_rack=4)
NAMES = list(SITE.nodes)


def read(*versions: str) -> dict[str, Snapshot | Unread]:
    """A node for each version; ``""``: one that could not be read."""
    return {
        name: kubeadm(name, version) if version else Unread(name, "unreachable", "no route")
        for name, version in zip(NAMES, versions, strict=False)
    }


def test_an_image_is_a_plain_reference_and_a_wrong_one_is_not_repeated() -> None:
    assert checked_images([IMAGE, OTHER, IMAGE]) == (IMAGE, OTHER)
    with pytest.raises(InputError) as raised:
        checked_images([IMAGE, "https://joe:hunter2@reg.example/x"])
    assert "image 2" in str(raised.value)
    assert "hunter2" not in str(raised.value)


def test_a_node_that_could_not_be_read_is_unknown_with_the_reason() -> None:
    found = read("v1.23.17", "", "v1.23.17")
    found[NAMES[2]] = replace(kubeadm(NAMES[2]), kubelet_version="garbage")
    ways, unread = ways_of(fleet(SITE, found))
    assert list(ways) == [NAMES[0]]
    assert [(each.node, each.why.rpartition(" ")[2]) for each in unread] == [
        (NAMES[1], "[unreachable]"),
        (NAMES[2], "[kubelet-version-unknown]"),
    ]


@pytest.mark.parametrize(
    ("runtime", "printed", "why"),
    [
        (
            "containerd",
            {"containerd": "containerd github.com/containerd/containerd v1.6.39 0"},
            "exists from containerd 1.7.0",
        ),
        ("containerd", {"containerd": "containerd github.com/containerd/containerd v1.7.28 0"}, ""),
        ("containerd", {}, ""),
        ("dockershim", {}, ""),
    ],
)
def test_a_runtime_without_a_deadline_is_known_by_its_version(runtime: str, printed: dict[str, str], why: str) -> None:
    node = replace(kubeadm(NAMES[0], version="1.23.17", runtime=runtime), runtimes=printed)
    ways, _ = ways_of(fleet(SITE, {NAMES[0]: node}))
    assert why in ways[NAMES[0]].no_deadline
    assert bool(ways[NAMES[0]].no_deadline) is bool(why)


def test_a_few_nodes_of_each_kind_are_of_different_racks() -> None:
    found = read(*["v1.23.17"] * 6, "v1.22.3", "")
    assert few_of_each_kind(SITE, fleet(SITE, found), 2) == (NAMES[0], NAMES[4], NAMES[6])


@dataclass
class Fleet:
    """Each node answers with its text; ``""``: it is not reached."""

    texts: dict[str, str]
    asked: list[tuple[str, bool]] = field(default_factory=list)

    def run(self, target: Target, command: RemoteCommand) -> RemoteAnswer:
        self.asked.append((target.name, IMAGE in command.line))
        text = self.texts[target.name]
        if not text:
            return RemoteAnswer(None, b"", b"", started=False, reference="unreachable", message="no route")
        return RemoteAnswer(0, text.encode(), b"", started=True)

    def release(self, target: Target) -> None:
        """It is open no more."""

    def close(self) -> None:
        """Nothing is open."""


def test_one_image_after_the_other_on_all_nodes_and_each_result_is_heard_at_once() -> None:
    whole = "-- tool ctr\n-- status 0\n-- took 1250\n-- end .\n"
    site = Fleet({"a": whole, "b": "", "c": "-- tool ctr\n"})
    access = NodeAccess("", {name: Target(name, name) for name in site.texts}, dict.fromkeys(site.texts, True))
    order = PullOrder((IMAGE, OTHER), dict.fromkeys(site.texts, PullWay(Runtime.CONTAINERD)), 60.0, watched=False)
    pulled = Pulled()
    heard: list[object] = []
    bounds = AtOnce(1, dict.fromkeys(site.texts, ()), {})
    pull_on_all(access, site, order, bounds, pulled, stopping=lambda: False, heard=heard.append)
    assert site.asked == [("a", True), ("b", True), ("c", True), ("a", False), ("b", False), ("c", False)]
    assert heard == [heard[0], *pulled.unknown[:2], heard[3], *pulled.unknown[2:]]
    assert [(pull.node, pull.image, pull.end, pull.took) for pull in pulled.pulls] == [
        ("a", IMAGE, PullEnd.PULLED, 12.5),
        ("a", OTHER, PullEnd.PULLED, 12.5),
    ]
    assert list(folded_unknown(pulled.unknown)) == [
        (IMAGE, "no route [unreachable]", ["b"]),
        (IMAGE, "the answer is not whole", ["c"]),
        (OTHER, "no route [unreachable]", ["b"]),
        (OTHER, "the answer is not whole", ["c"]),
    ]
    assert (pulled.left, pulled.good) == (0, False)
    document = pulls_document(pulled, ProposalTarget("rno"))
    assert (len(document.pulls), len(document.unknown), document.not_started) == (2, 4, 0)


def test_pulls_that_were_not_started_are_counted() -> None:
    order = PullOrder((IMAGE,), {"a": PullWay(Runtime.CONTAINERD)}, 60.0, watched=False)
    pulled = Pulled()
    access = NodeAccess("", {"a": Target("a", "a")}, {"a": True})
    bounds = AtOnce(1, {"a": ()}, {})
    pull_on_all(access, Fleet({}), order, bounds, pulled, stopping=lambda: True, heard=lambda _found: None)
    assert (pulled.left, pulled.good) == (1, False)
    assert NotPulled("a", IMAGE, "x") not in pulled.unknown
