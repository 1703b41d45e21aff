"""Edited but unloaded files are not in force: a plan reports what a restart puts in force, and which edit it is."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from rollout.core.model.inventory import Node
from rollout.core.model.plan import ExcludedNode, Standing
from rollout.core.model.playbook import Disruption
from rollout.core.model.snapshot import Snapshot, Stale
from rollout.kubelet import versions
from rollout.kubelet.node import sources
from rollout.kubelet.runtimes.description import Runtime
from tests.kubelet.deciding import decide, proposed, refused
from tests.kubelet.nodes import CONFIG, CONFIG_TEXT, POLICY, kubeadm, regular, settings
from tests.kubelet.runtimes import nodes as runtimes

PULLS = settings(serializeImagePulls=False)
BY_HAND = CONFIG_TEXT.replace("serializeImagePulls: true", "serializeImagePulls: false")
FOREIGN = CONFIG_TEXT.replace("healthzPort: 10248", "healthzPort: 10248\nmaxPods: 1")
TOML = "/etc/containerd/config.toml"


def edited(config: str, running: str | None = CONFIG_TEXT, **node: str) -> Snapshot:
    """A node with a file edited after its kubelet started with ``running``; ``None``: values in force unknown."""
    version = node.setdefault("version", "1.31.4")
    node.setdefault("runtime", "containerd")
    now = replace(kubeadm(config=config, **node), stale=(Stale(CONFIG, "kubelet.service", edited=True, seconds=300),))
    return now if running is None else replace(now, running=shown(kubeadm(config=running, **node), version))


def shown(node: Snapshot, version: str) -> str:
    """The answer of ``/configz`` on this node."""
    here = sources.find(node, versions.known(version), Node(node.node, "", "", ""))
    return json.dumps(dict(here.outcome.effective))


def test_an_unloaded_fix_by_hand_needs_only_the_restart() -> None:
    change, texts = proposed(edited(BY_HAND), PULLS)
    assert texts == {CONFIG: BY_HAND}
    assert [file.before == file.after for file in change.files] == [True]
    assert change.units == ("kubelet.service",)
    assert change.notes[0] == (
        "restart only: the files already match, but this is not in force yet: serializeImagePulls: true → false"
    )
    assert ("serializeImagePulls", "false") in change.effective


def test_without_known_values_in_force_every_value_is_reported_and_those_that_are_no_default_come_first() -> None:
    reference, reason = refused(edited(BY_HAND, None), PULLS)
    assert reference == "edited-not-loaded"
    assert reason.startswith(f"{CONFIG} was edited and not loaded. Undo the edit, or allow it in the playbook with ")
    assert f"`accept: [{{setting: {CONFIG}, reason: …}}]`" in reason
    assert "with a kubeconfig that may read nodes/proxy, /configz shows the values of the running kubelet" in reason
    assert "; what differs from the defaults of the kubelet and of kubeadm comes first." in reason
    told = reason.partition(" This restart would put into force: ")[2].split("; ")
    first = [each.partition(":")[0] for each in told[:2]]
    assert first == ["clusterDNS", "evictionHard.memory.available"], (
        "what differs from the kubelet's and kubeadm's defaults"
    )
    assert len(told) > 8
    _, listed = refused(edited(FOREIGN, None), PULLS)
    assert "maxPods: unknown → 1" in listed.partition(" This restart would put into force: ")[2].split("; ")[:3]
    policy = replace(POLICY, accepted={CONFIG: "reviewed"})
    change, _ = proposed(edited(BY_HAND, None), PULLS, policy)
    assert "serializeImagePulls: unknown → false" in change.notes[0]
    assert any(note.endswith('clusterDomain: unknown → "cluster.local" (accepted: reviewed)') for note in change.notes)


@pytest.mark.parametrize("held", [CONFIG_TEXT, FOREIGN.replace("maxPods: 1", "maxPods: 60")])
def test_what_differs_from_the_last_known_bytes_comes_first(held: str) -> None:
    """They are no proof of what the kubelet has loaded: the value in force stays unknown, and all others are listed too."""
    node = edited(FOREIGN, None)
    then = shown(kubeadm(config=held, version="1.31.4", runtime="containerd"), "1.31.4")
    known = {"last known": then, "compared with": f"{CONFIG}: run r1 wrote them"}
    _, reason = refused(replace(node, facts={**node.facts, **known}), PULLS)
    first = f"; what differs from the last known bytes ({CONFIG}: run r1 wrote them) comes first. This restart"
    assert first in reason
    told = reason.partition(" This restart would put into force: ")[2].split("; ")
    before = "60" if "60" in held else "110"
    assert told[0] == f"maxPods: unknown, last known {before} → 1"
    assert all(": unknown → " in each for each in told[1:])
    assert len(told) > 8


def test_a_value_that_an_edit_removed_is_known_by_the_last_known_bytes() -> None:
    without = CONFIG_TEXT.replace("evictionHard:\n  memory.available: 200Mi   # more than the default\n", "")
    node = edited(without, None)
    then = shown(kubeadm(config=CONFIG_TEXT, version="1.31.4", runtime="containerd"), "1.31.4")
    _, reason = refused(replace(node, facts={**node.facts, "last known": then, "compared with": "x"}), PULLS)
    assert 'evictionHard.memory.available: unknown, last known "200Mi" → "100Mi"; ' in reason


def test_an_edit_of_others_that_a_restart_would_put_in_force_is_refused() -> None:
    reference, reason = refused(edited(FOREIGN), PULLS)
    assert reference == "edited-not-loaded"
    assert reason == (
        f"{CONFIG} was edited and not loaded. Undo the edit, or allow it in the playbook with"
        " `accept: [{setting: maxPods, reason: …}]` (single values can be named, too)."
        " Compared with the running kubelet."
        " This restart would put into force: maxPods: 110 → 1"
    )


@pytest.mark.parametrize("name", ["maxPods", CONFIG])
def test_it_may_be_accepted_by_its_name_or_by_its_files(name: str) -> None:
    change, texts = proposed(edited(FOREIGN), PULLS, replace(POLICY, accepted={name: "ticket 7"}))
    assert "serializeImagePulls: false" in texts[CONFIG]
    assert "takes effect with this restart: maxPods: 110 → 1 (accepted: ticket 7)" in change.notes


def test_a_removed_value_is_an_edit_too() -> None:
    without = CONFIG_TEXT.replace("evictionHard:\n  memory.available: 200Mi   # more than the default\n", "")
    reason = refused(edited(without), PULLS)[1]
    assert 'evictionHard.memory.available: "200Mi" → "100Mi"' in reason


def test_without_a_restart_the_edit_is_left_alone_and_reported() -> None:
    left = decide(edited(FOREIGN), settings(serializeImagePulls=True))
    assert isinstance(left, ExcludedNode)
    assert left.standing is Standing.AS_WANTED
    assert left.reason.endswith("not in force until the kubelet restarts: maxPods: 110 → 1")


def test_a_file_equal_to_the_values_in_force_is_in_force_whenever_it_was_written() -> None:
    left = decide(edited(BY_HAND, BY_HAND), PULLS)
    assert isinstance(left, ExcludedNode)
    assert left.reason == "files and running kubelet already match"


def test_a_value_of_a_flag_is_not_from_the_file() -> None:
    flags = {"extra": "KUBELET_EXTRA_ARGS=--max-pods=50\n", "words": "--max-pods=50"}
    change, _ = proposed(edited(FOREIGN, **flags), PULLS)
    assert not any("maxPods" in note for note in change.notes)


def containerd(toml: str, *, late: bool) -> Snapshot:
    stale = (Stale(TOML, "containerd.service", edited=True, seconds=9),) if late else ()
    return replace(runtimes.node(Runtime.CONTAINERD, "1.7.24", regular(TOML, toml)), stale=stale)


def test_a_runtimes_file_that_was_not_loaded_needs_its_restart() -> None:
    """The values of the running containerd are unknown, so the playbook must name the file."""
    wanted = settings(imagePullProgressDeadline="3m")
    toml = 'version = 2\n[plugins."io.containerd.grpc.v1.cri"]\n  image_pull_progress_timeout = "3m"\n'
    policy = replace(POLICY, disruption=Disruption.RESTART_RUNTIME, accepted={TOML: ""})
    left = decide(containerd(toml, late=False), wanted, policy)
    assert isinstance(left, ExcludedNode)
    assert left.standing is Standing.AS_WANTED
    change, texts = proposed(containerd(toml, late=True), wanted, policy)
    assert (change.units, texts) == (("containerd.service",), {TOML: toml})
    assert refused(containerd(toml, late=True), wanted, replace(policy, accepted={}))[0] == "edited-not-loaded"


def test_an_edit_of_a_runtimes_file_is_ignored_without_a_restart_of_the_runtime() -> None:
    late = replace(containerd("version = 2\n", late=True))
    change, _ = proposed(late, PULLS)
    assert change.units == ("kubelet.service",)
