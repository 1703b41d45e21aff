"""A change as a whole: kubelet and runtime together, its effect on the node, and whether the playbook allows it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rollout.core.model.plan import ExcludedNode, Standing
from rollout.core.model.playbook import Disruption
from rollout.core.model.snapshot import FileState, Snapshot
from rollout.kubelet.changes.changes import Proposal, change_for
from rollout.kubelet.fields import known_minors
from rollout.kubelet.runtimes.description import Runtime
from tests.kubelet import nodes
from tests.kubelet.deciding import applied_twice_is_once, decide, pinned, proposed, refused
from tests.kubelet.nodes import CONFIG, CONFIG_TEXT, POLICY, kubeadm, regular, settings, with_command, with_file
from tests.kubelet.runtimes import nodes as runtimes

DEADLINE = settings(imagePullProgressDeadline="6m")
SERIAL = settings(serializeImagePulls=False)
DOWNLOADS = settings(maxConcurrentDownloads=5)


def containerd(version: str = "1.7.24") -> Snapshot:
    """A kubeadm node 1.29 over this containerd, with a config.toml of version 2."""
    return over(runtimes.node(Runtime.CONTAINERD, version, regular(runtimes.CONTAINERD, runtimes.V2)))


def over(found: Snapshot) -> Snapshot:
    """With the kubelet that the deb packages bring for it."""
    usual = kubeadm(version="1.29.3", runtime="containerd")
    return replace(
        found,
        files={**found.files, **usual.files},
        measurement=replace(found.measurement, process=usual.measurement.process),
    )


def test_a_change_of_containerds_file_restarts_containerd_and_not_the_kubelet() -> None:
    change, texts = proposed(containerd(), DEADLINE)
    assert list(texts) == [runtimes.CONTAINERD]
    assert change.units == ("containerd.service",)
    assert change.disruption is Disruption.RESTART_RUNTIME
    assert change.settle == 0.0
    assert change.effective == ()
    assert not any("after its restart" in note for note in change.notes)


def test_both_are_restarted_the_runtime_first() -> None:
    change, texts = proposed(containerd(), {**DEADLINE, **SERIAL})
    assert list(texts) == [runtimes.CONTAINERD, CONFIG]
    assert change.units == ("containerd.service", "kubelet.service")
    assert change.disruption is Disruption.RESTART_KUBELET
    assert change.settle == 20.0
    assert change.effective == (("serializeImagePulls", "false"),)


def test_a_class_above_the_playbooks_is_refused_with_the_cause() -> None:
    capped = replace(POLICY, disruption=Disruption.RESTART_RUNTIME)
    assert isinstance(decide(containerd(), DEADLINE, capped), Proposal)
    reference, reason = refused(containerd(), {**DEADLINE, **SERIAL}, capped)
    assert reference == "disruption-capped"
    assert "restarts containerd.service, restarts kubelet.service" in reason
    assert "serializeImagePulls: true → false (playbook image-pulls)" in reason
    none = replace(POLICY, disruption=Disruption.NONE)
    assert refused(containerd(), DEADLINE, none)[0] == "disruption-capped"


def test_the_effective_values_are_the_wanted_fields_as_configz_shows_them() -> None:
    wanted = settings(
        serializeImagePulls=False,
        runtimeRequestTimeout="180s",
        evictionHard={"memory.available": "1Gi"},
        registryPullQPS=5,
    )
    change, _ = proposed(kubeadm(), wanted)
    assert change.effective == (
        ("evictionHard", '{"memory.available":"1Gi"}'),
        ("registryPullQPS", "5"),
        ("runtimeRequestTimeout", '"3m0s"'),
        ("serializeImagePulls", "false"),
    )


def test_a_wanted_default_is_not_written_unless_pinned() -> None:
    wanted = settings(registryPullQPS=5, runtimeRequestTimeout="120s")
    got = decide(kubeadm(), wanted)
    assert isinstance(got, ExcludedNode)
    assert got.standing is Standing.AS_WANTED
    assert "registryPullQPS already has this value by default and is not written; `pin: true` writes it" in got.reason
    _, texts = proposed(kubeadm(), pinned(wanted))
    assert texts == {CONFIG: f"{CONFIG_TEXT}registryPullQPS: 5\nruntimeRequestTimeout: 120s\n"}


def test_the_wanted_default_deadline_of_dockershim_needs_no_change() -> None:
    got = decide(kubeadm(), settings(imagePullProgressDeadline="60s"))
    assert isinstance(got, ExcludedNode)
    assert got.standing is Standing.AS_WANTED
    assert proposed(kubeadm(), pinned(settings(imagePullProgressDeadline="60s")))[0].files
    found = kubeadm(
        extra="KUBELET_EXTRA_ARGS=--image-pull-progress-deadline=3m\n", words="--image-pull-progress-deadline=3m"
    )
    assert proposed(found, settings(imagePullProgressDeadline="60s"))[0].files


def test_side_effects_of_a_default_are_reported() -> None:
    config = CONFIG_TEXT.replace("serializeImagePulls: true\n", "")
    change, _ = proposed(
        kubeadm(version="1.31.4", runtime="containerd", config=config), settings(maxParallelImagePulls=5)
    )
    assert "side effect: serializeImagePulls: true → false" in change.notes


def test_a_map_that_replaces_a_default_names_what_is_lost() -> None:
    found = kubeadm(
        version="1.34.1",
        runtime="containerd",
        config=CONFIG_TEXT.partition("# pulls")[0] + "kind: KubeletConfiguration\n",
    )
    change, _ = proposed(found, settings(evictionHard={"memory.available": "1Gi", "nodefs.available": "10%"}))
    lost = [note for note in change.notes if note.startswith("side effect: ")]
    assert lost == [
        'side effect: evictionHard.imagefs.available: "15%" → not set',
        'side effect: evictionHard.imagefs.inodesFree: "5%" → not set',
        'side effect: evictionHard.nodefs.inodesFree: "5%" → not set',
    ]
    (reason,) = change.files[0].reasons
    assert reason.startswith('evictionHard: not set → {"memory.available": "1Gi", "nodefs.available": "10%"} (')


@pytest.mark.parametrize(
    ("config", "wanted", "said"),
    [
        (CONFIG_TEXT, {"maxParallelImagePulls": 5}, "maxParallelImagePulls cannot be larger than 1"),
        (CONFIG_TEXT, {"imageGCLowThresholdPercent": 90}, "must be less than imageGCHighThresholdPercent"),
        (CONFIG_TEXT, {"featureGates": {"NoSuchGate": True}}, "NoSuchGate"),
    ],
)
def test_a_setting_that_stops_the_kubelet_is_refused_with_the_kubelets_error(
    config: str, wanted: dict[str, object], said: str
) -> None:
    found = kubeadm(version="1.31.4", runtime="containerd", config=config)
    reference, reason = refused(found, settings(**wanted))  # type: ignore[arg-type]
    assert reference == "kubelet-would-not-start"
    assert said in reason


@pytest.mark.parametrize(
    ("name", "text", "reference"),
    [
        ("cpu_manager_state", '{"policyName":"none","defaultCpuSet":"","checksum":1}', ""),
        ("cpu_manager_state", '{"policyName":"static","defaultCpuSet":"0-3","checksum":1}', "policy-state-conflict"),
        ("memory_manager_state", '{"policyName":"Static","checksum":1}', "policy-state-conflict"),
        ("memory_manager_state", '{"policyName":"None","checksum":1}', ""),
        ("cpu_manager_state", "", "policy-state-unreadable"),
        ("cpu_manager_state", '{"policyName"', "policy-state-unreadable"),
    ],
)
def test_a_policy_that_differs_from_the_kubelets_state_file_is_refused(name: str, text: str, reference: str) -> None:
    found = with_file(kubeadm(), regular(f"/var/lib/kubelet/{name}", text))
    if not reference:
        assert isinstance(decide(found, SERIAL), Proposal)
        return
    assert refused(found, SERIAL)[0] == reference
    elsewhere = with_file(found, FileState(f"/var/lib/kubelet/{name}", "absent"))
    assert isinstance(decide(elsewhere, SERIAL), Proposal)


@pytest.mark.parametrize("minor", known_minors())
def test_every_known_minor(minor: int) -> None:
    """The same playbook is one edit of the node's file and in force, from the oldest kubelet to the newest."""
    wanted = settings(
        ("maxParallelImagePulls",), serializeImagePulls=False, registryPullQPS=20, maxParallelImagePulls=5
    )
    found = kubeadm(version=f"1.{minor}.0", runtime="containerd")
    change, texts = proposed(found, wanted)
    parallel = "maxParallelImagePulls: 5\n" if minor >= 27 else ""
    serial = CONFIG_TEXT.replace("serializeImagePulls: true", "serializeImagePulls: false")
    assert texts == {CONFIG: f"{serial}{parallel}registryPullQPS: 20\n"}
    assert dict(change.effective)["serializeImagePulls"] == "false"
    assert ("maxParallelImagePulls" in dict(change.effective)) is (minor >= 27)
    applied_twice_is_once(found, wanted)


def newer(version: str = "1.99.1") -> Snapshot:
    return replace(kubeadm(version="1.36.0", runtime="containerd"), kubelet_version=version)


def test_a_kubelet_newer_than_the_table_must_be_treated_as_a_known_minor() -> None:
    reference, reason = refused(newer(), SERIAL)
    assert reference == "kubelet-version-unknown"
    assert "--assume-kubelet" in reason
    got = change_for(newer(), SERIAL, POLICY, nodes.node(), assumed=36)
    assert isinstance(got, Proposal)
    assert got.label.startswith("kubelet 1.99.1 (treated as 1.36), ")


def test_only_unknown_newer_kubelets_are_treated_as_another_minor() -> None:
    old = replace(kubeadm(), kubelet_version="1.19.3")
    for found in (kubeadm(), old):
        assert change_for(found, SERIAL, POLICY, nodes.node(), assumed=36) == decide(found, SERIAL)


def test_an_unknown_runtime_supports_fields_but_no_intents() -> None:
    words = "--container-runtime=remote --container-runtime-endpoint=unix:///run/frakti.sock"
    command = ("/usr/local/bin/kubelet", f"--config={CONFIG}", *words.split())
    unit = regular(nodes.FRAGMENT, f"[Service]\nExecStart={' '.join(command)}\n")
    found = with_command(with_file(nodes.plain(version="1.23.17"), unit), *command)
    assert isinstance(decide(found, SERIAL), Proposal)
    reference, reason = refused(found, DEADLINE)
    assert reference == "runtime-unknown"
    assert "runtime" in reason
