"""What planning reads from the API server, and what it reports if there is no answer."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from rollout.adapters.no_journal import NoJournal
from rollout.app.cluster_context import look_around
from rollout.app.explain import explain_on_node, shown_by
from rollout.core.model.inventory import Endpoints
from rollout.core.model.live import LiveNode
from rollout.core.model.pods import PlacedPod
from rollout.core.model.snapshot import Snapshot, Unread
from rollout.errors import InputError, RemoteError
from rollout.kubelet.explained.explanation import explain
from rollout.kubelet.explained.explanation_text import ConfigzAnswer
from tests.app.test_impact import FOUND, NAMES, node, pods
from tests.kubelet.nodes import fleet, kubeadm

FORBIDDEN = RemoteError("forbidden", "pods is forbidden")
WITH_KUBECONFIG = replace(FOUND, endpoints=Endpoints(kubeconfig="k", context="c"))


@dataclass
class Api:
    """An API server with one extra node. ``trouble`` is raised for what it names."""

    trouble: Mapping[str, RemoteError] = field(default_factory=dict)
    asked: list[tuple[str, ...]] = field(default_factory=list)

    def _ask(self, what: str, *said: str) -> None:
        self.asked.append((what, *said))
        if what in self.trouble:
            raise self.trouble[what]

    def ansible(self, path: str) -> str:
        raise NotImplementedError

    def live(self, kubeconfig: str, context: str) -> tuple[LiveNode, ...]:
        self._ask("live", kubeconfig, context)
        return tuple(node(name) for name in (*NAMES, "stranger"))

    def pods(self, kubeconfig: str, context: str, nodes: Collection[str]) -> tuple[PlacedPod, ...]:
        self._ask("pods", kubeconfig, context, *sorted(nodes))
        return tuple(pod for name in nodes for pod in pods(name, 1))

    def configz(self, kubeconfig: str, context: str, node: str) -> Mapping[str, Any]:
        self._ask("configz", kubeconfig, context, node)
        return {"maxPods": 110}


def test_nodes_and_the_pods_on_those_that_are_planned() -> None:
    api = Api()
    found = look_around(WITH_KUBECONFIG, NoJournal(), api, "", NAMES[:2])
    assert api.asked == [("live", "k", "c"), ("pods", "k", "c", *NAMES[:2])]
    assert {pod.node for pod in found.pods or ()} == set(NAMES[:2])
    assert (found.not_asked, found.pods_not_asked) == ("", "")


def test_the_kubeconfig_of_the_call_takes_precedence() -> None:
    api = Api()
    look_around(WITH_KUBECONFIG, NoJournal(), api, "mine")
    assert [asked[1:3] for asked in api.asked] == [("mine", ""), ("mine", "")]


def test_without_a_kubeconfig_nothing_is_asked() -> None:
    api = Api()
    found = look_around(FOUND, NoJournal(), api, "", NAMES)
    assert (api.asked, found.pods, found.pods_not_asked) == ([], None, "no kubeconfig is named")


@pytest.mark.parametrize(("trouble", "nodes_known"), [("live", False), ("pods", True)])
def test_the_right_to_list_nodes_does_not_include_pods(trouble: str, *, nodes_known: bool) -> None:
    found = look_around(WITH_KUBECONFIG, NoJournal(), Api({trouble: FORBIDDEN}), "", NAMES)
    assert (found.live is not None, found.pods) == (nodes_known, None)
    assert found.pods_not_asked == "pods is forbidden [forbidden]"


def test_configz_is_read_if_the_kubeconfig_allows_it() -> None:
    snapshot = kubeadm(NAMES[0], "1.33.4", "containerd")
    here = explain_on_node(FOUND.nodes[NAMES[0]], fleet(FOUND, {NAMES[0]: snapshot}), explain("maxPods"))
    assert shown_by(here, FOUND, Api()) == ConfigzAnswer(not_asked="no kubeconfig is named")
    assert shown_by(here, WITH_KUBECONFIG, Api()) == ConfigzAnswer(110, agrees=True)
    assert shown_by(here, WITH_KUBECONFIG, Api({"configz": FORBIDDEN})) == ConfigzAnswer(
        not_asked="pods is forbidden [forbidden]"
    )


@pytest.mark.parametrize(
    ("found", "reference"),
    [
        (None, "not-in-snapshot"),
        (Unread(NAMES[0], "ssh-timeout", "no banner"), "ssh-timeout"),
        (replace(kubeadm(NAMES[0]), kubelet_version="1.99.1"), "kubelet-version-unknown"),
        (replace(kubeadm(NAMES[0]), files={}), "layout-not-understood"),
    ],
)
def test_a_node_that_cannot_be_explained_has_a_reason(found: Snapshot | Unread | None, reference: str) -> None:
    with pytest.raises(InputError) as error:
        explain_on_node(FOUND.nodes[NAMES[0]], fleet(FOUND, {NAMES[0]: found} if found else {}), explain("maxPods"))
    assert error.value.reference == reference
