"""A flag goes into an environment file that the unit reads, which needs no daemon-reload, before a drop-in of ours."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rollout.core.model.snapshot import Snapshot
from rollout.core.model.surroundings import Listing, NodeSurroundings
from rollout.kubelet.changes.changes import Proposal, ProposalCache
from rollout.kubelet.node.layout import DROP_IN
from tests.kubelet import layouts, nodes
from tests.kubelet.deciding import applied_twice_is_once, proposed
from tests.kubelet.layouts import LAYOUTS, texts_of
from tests.kubelet.nodes import POLICY, settings

ENV, GKE_ENV = "/etc/kubernetes/kubelet.env", "/etc/default/kubelet"
WANTED = settings(__registry_qps=3)
UNIT_FILE = "/etc/systemd/system/kubelet.service"


def by_hand(command: str, environment: str, path: str = "/etc/kubelet/flags.env") -> Snapshot:
    """A unit that somebody wrote, with an environment file."""
    words = "--config=/var/lib/kubelet/config.yaml --container-runtime-endpoint=unix:///run/containerd/containerd.sock"
    unit = f"[Service]\nEnvironmentFile={path}\nExecStart=/usr/bin/kubelet {words} {command}\nRestart=always\n"
    return layouts.node({UNIT_FILE: unit, path: environment, nodes.CONFIG: nodes.CONFIG_TEXT})


def with_gpus(found: Snapshot) -> Snapshot:
    return replace(found, surroundings=NodeSurroundings(devices=Listing(("/dev/nvidia0",))))


@pytest.mark.parametrize(
    ("layout", "path", "line"),
    [
        ("kubespray", ENV, "--runtime-cgroups=/system.slice/containerd.service --registry-qps=3"),
        ("gke", GKE_ENV, "max-pods-per-node=110 --registry-qps=3"),
    ],
)
def test_the_variable_for_flags_of_an_installer_is_their_home(layout: str, path: str, line: str) -> None:
    found = layouts.node(texts_of(layout))
    change, texts = proposed(found, WANTED)
    assert list(texts) == [path]
    assert line in texts[path]
    assert not change.reload
    applied_twice_is_once(found, WANTED)


@pytest.mark.parametrize(
    ("layout", "facts"), [("kubespray", {"manager-kubespray": ENV}), ("gke", {"os": "cos"})], ids=["kubespray", "cos"]
)
def test_where_a_tool_writes_that_file_anew_the_drop_in_keeps_the_flag_and_with_gpus_no_reload_comes_first(
    layout: str, facts: dict[str, str]
) -> None:
    found = layouts.node(texts_of(layout), **facts)
    change, texts = proposed(found, WANTED)
    assert (list(texts), change.reload) == ([DROP_IN], True)
    assert not proposed(with_gpus(found), WANTED)[0].reload
    cache = ProposalCache(POLICY)
    made = [cache.made_for(each, WANTED, nodes.node()) for each in (found, with_gpus(found))]
    assert [isinstance(each, Proposal) and each.change.reload for each in made] == [True, False]


def test_a_variable_for_one_flag_is_a_home_where_no_other_is() -> None:
    found = by_hand("$KUBELET_HOSTNAME", "KUBELET_HOSTNAME=--hostname-override=n1\n")
    assert proposed(found, WANTED)[1] == {
        "/etc/kubelet/flags.env": 'KUBELET_HOSTNAME="--hostname-override=n1 --registry-qps=3"\n'
    }
    both = by_hand("$KUBELET_OPTS $KUBELET_HOSTNAME", "KUBELET_OPTS=--v=2\nKUBELET_HOSTNAME=--hostname-override=n1\n")
    assert 'KUBELET_OPTS="--v=2 --registry-qps=3"\n' in proposed(both, WANTED)[1]["/etc/kubelet/flags.env"]


@pytest.mark.parametrize(
    ("command", "environment"),
    [
        ("${OPTIONS}", "OPTIONS=--v=2\n"),
        ("--v=2", "OTHER=--v=2\n"),
        ("$OPTIONS", "OTHER=--v=2\n"),
        ("$OPTIONS --registry-qps=9", "OPTIONS=--v=2\n"),
        ("$KUBELET_KUBEADM_ARGS", "KUBELET_KUBEADM_ARGS=--v=2\n"),
    ],
    ids=["one word", "not named", "not set by a file", "a later flag wins", "kubeadm's own"],
)
def test_without_such_a_variable_the_drop_in_is_their_home(command: str, environment: str) -> None:
    change, texts = proposed(by_hand(command, environment), WANTED)
    assert (list(texts), change.reload) == ([DROP_IN], True)
    assert "--registry-qps=3" in texts[DROP_IN]


def test_every_layout_prefers_what_needs_no_reload() -> None:
    """The stock units of EKS, Flatcar and the like read no environment file with flags: a drop-in is all there is."""
    reloads = {name for name in LAYOUTS if proposed(layouts.node(texts_of(name), hostname="n1"), WANTED)[0].reload}
    assert reloads == {"eks-al2", "flatcar"}
