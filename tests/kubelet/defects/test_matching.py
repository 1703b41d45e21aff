"""Known defects on a node: by version, by values before and after a change, by occasion, by pods; and what is unknown."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rollout.core.model.snapshot import Snapshot
from rollout.kubelet import node_values
from rollout.kubelet.changes.changes import Proposal, proposal
from rollout.kubelet.defects.matching import DefectStanding, FoundDefect, number_of, on_node, with_pods
from rollout.kubelet.defects.rows import PodKind, of_project
from rollout.kubelet.defects.words import on_plan
from rollout.kubelet.homes import check_accepted
from rollout.kubelet.node import sources
from rollout.kubelet.runtimes.description import Runtime
from rollout.kubelet.versions import known as version
from tests.kubelet.deciding import decide, refused
from tests.kubelet.nodes import CONFIG_TEXT, POLICY, kubeadm, regular, settings
from tests.kubelet.nodes import node as inventory_node
from tests.kubelet.runtimes.nodes import CONTAINERD, V3, node, wanted
from tests.kubelet.runtimes.test_crio import crio

PARALLEL = settings(serializeImagePulls=False, maxParallelImagePulls=40)
PANICS = "kubelet-parallel-pulls-above-31"
ZERO = V3.replace("snapshotter = 'overlayfs'", "snapshotter = 'overlayfs'\n    image_pull_progress_timeout = '0s'")


def found(snapshot: Snapshot, **values: object) -> dict[str, FoundDefect]:
    got = decide(snapshot, settings(**(values or {"maxPods": 50})))  # type: ignore[arg-type]
    assert isinstance(got, Proposal), got
    return {each.defect.id: each for each in got.defects}


def standing(snapshot: Snapshot, name: str, **values: object) -> DefectStanding | None:
    here = found(snapshot, **values).get(name)
    return here.standing if here else None


def test_a_change_that_would_stop_the_kubelet_is_refused_unless_accepted() -> None:
    here = kubeadm(version="1.35.4", runtime="containerd")
    reference, reason = refused(here, PARALLEL)
    assert reference == "known-defect"
    assert reason.startswith("kubelet 1.35.4: the kubelet panics when it syncs a pod")
    assert f"`accept: [{PANICS}]` in the playbook allows it" in reason
    assert isinstance(decide(here, PARALLEL, replace(POLICY, accepted={PANICS: "tested"})), Proposal)
    assert check_accepted([PANICS], "p") == ()


@pytest.mark.parametrize(("kubelet", "pulls"), [("1.34.9", 40), ("1.37.0", 40), ("1.35.4", 31)])
def test_another_patch_or_another_value_is_not_refused(kubelet: str, pulls: int) -> None:
    wanted_here = settings(serializeImagePulls=False, maxParallelImagePulls=pulls)
    assert isinstance(decide(kubeadm(version=kubelet, runtime="containerd"), wanted_here), Proposal)


def test_a_node_that_has_the_defect_already_is_not_refused_for_it() -> None:
    text = CONFIG_TEXT.replace("serializeImagePulls: true", "serializeImagePulls: false\nmaxParallelImagePulls: 40")
    assert standing(kubeadm(version="1.35.4", runtime="containerd", config=text), PANICS) is DefectStanding.KEPT


def test_a_defect_that_the_change_ends() -> None:
    text = CONFIG_TEXT.replace("serializeImagePulls: true", "serializeImagePulls: false\nmaxParallelImagePulls: 40")
    here = kubeadm(version="1.35.4", runtime="containerd", config=text)
    assert standing(here, PANICS, maxParallelImagePulls=5) is DefectStanding.ENDED


def test_runtimes_that_1_38_refuses_are_said_from_1_31_on() -> None:
    name = "containerd-too-old-for-1-38"
    for kubelet, containerd, said in (
        ("1.37.0", "1.7.27", True),
        ("1.30.4", "1.7.27", False),
        ("1.37.0", "2.0.5", False),
    ):
        assert (name in found(node(Runtime.CONTAINERD, containerd, kubelet=kubelet))) is said


def test_the_runtimes_own_file_decides() -> None:
    zero = node(Runtime.CONTAINERD, "2.1.4", regular(CONTAINERD, ZERO), kubelet="1.33.1")
    assert standing(zero, "containerd-zero-deadline") is DefectStanding.KEPT
    usual = node(Runtime.CONTAINERD, "2.1.4", regular(CONTAINERD, V3), kubelet="1.33.1")
    assert standing(usual, "containerd-zero-deadline") is None
    locally = ZERO.replace("'0s'", "'0s'\n    use_local_image_pull = true")
    local = node(Runtime.CONTAINERD, "2.1.4", regular(CONTAINERD, locally), kubelet="1.33.1")
    assert standing(local, "containerd-zero-deadline") is None
    old = node(Runtime.CONTAINERD, "2.0.5", regular(CONTAINERD, ZERO), kubelet="1.33.1")
    assert standing(old, "containerd-zero-deadline") is None


def test_an_intent_that_ends_a_defect_of_the_runtime() -> None:
    zero = node(Runtime.CONTAINERD, "2.1.4", regular(CONTAINERD, ZERO), kubelet="1.33.1")
    got = decide(zero, wanted(imagePullProgressDeadline="5m"))
    assert isinstance(got, Proposal), got
    assert {each.defect.id: each.standing for each in got.defects}["containerd-zero-deadline"] is DefectStanding.ENDED


def test_what_was_not_read_is_possible_and_named() -> None:
    here = replace(kubeadm(version="1.33.1", runtime="containerd"), runtimes={"containerd": "containerd x v2.1.4 c"})
    each = found(here)["containerd-zero-deadline"]
    assert (each.standing, each.unread) == (
        DefectStanding.POSSIBLE,
        ("runtime:image_pull_progress_timeout", "runtime:local_pull"),
    )
    unnamed = replace(here, runtimes={})
    assert "version" in found(unnamed)["containerd-resolve-deadlock"].unread


def test_a_runtime_that_the_kubelet_does_not_use_has_no_defects_here() -> None:
    here = replace(
        kubeadm(version="1.23.17", runtime="cri-dockerd"),
        runtimes={"cri-dockerd": "cri-dockerd 0.3.4 (e)", "containerd": "v1.6.1"},
    )
    names = set(found(here))
    assert "cri-dockerd-extraction-cut" in names
    assert not {name for name in names if name.startswith("containerd-")}


def test_crios_deadline_is_read_from_its_files() -> None:
    assert standing(crio(version="1.32.1"), "crio-short-progress-default") is DefectStanding.KEPT
    assert standing(crio(version="1.31.1"), "crio-fixed-progress-limit") is DefectStanding.KEPT
    assert standing(crio(version="1.30.10"), "crio-fixed-progress-limit") is DefectStanding.KEPT
    for other in ("1.29.13", "1.30.11"):
        assert standing(crio(version=other), "crio-fixed-progress-limit") is not DefectStanding.KEPT
    assert standing(crio(version="1.32.5"), "crio-short-progress-default") is None


def test_an_occasion_comes_with_the_change() -> None:
    here = kubeadm(version="1.35.2", runtime="containerd")
    each = found(here)["kubelet-sidecar-never-restarts"]
    assert each.standing is DefectStanding.TRIGGERED
    assert with_pods((each,), {PodKind.SIDECAR: True}) == (each,)
    assert with_pods((each,), {PodKind.SIDECAR: False}) == ()
    (unsure,) = with_pods((each,), {})
    assert (unsure.standing, unsure.unread) == (DefectStanding.POSSIBLE, ("pods of the kind sidecar",))
    assert standing(kubeadm(version="1.35.4", runtime="containerd"), "kubelet-sidecar-never-restarts") is None


def test_rows_of_a_project_warn_and_never_refuse() -> None:
    own = of_project(
        '[our-pods-hang]\ncomponent = "kubelet"\nversions = [["1.20.0", "open"]]\nstops = "kubelet"\n'
        'when = { maxPods = { below = 60 } }\neffect = "pods hang"\nsource = "ticket"\n'
    )
    got = proposal(kubeadm(), settings(maxPods=50), POLICY, inventory_node(), None, own)
    assert isinstance(got, Proposal), got
    (ours,) = [each for each in got.defects if each.defect.own]
    assert ours.standing is DefectStanding.TRIGGERED


def test_a_node_as_it_is() -> None:
    here = kubeadm(version="1.35.2", runtime="containerd")
    fit = sources.find(here, version("1.35.2"), inventory_node())
    names = {each.defect.id for each in on_node(here, Runtime.CONTAINERD, node_values.now(fit))}
    assert "kubelet-sidecar-never-restarts" in names
    assert PANICS not in names


def test_a_plan_says_a_line_for_each_that_it_triggers_and_a_few_words_of_the_others() -> None:
    here = kubeadm(version="1.35.0", runtime="containerd")
    lines = list(
        on_plan(
            with_pods(
                tuple(found(here).values()), {PodKind.SIDECAR: True, PodKind.DEVICES: False, PodKind.PROBED: True}
            )
        )
    )
    (triggered,) = [text for reference, text in lines if reference == "known-defect"]
    assert triggered.startswith("kubelet 1.35.0: after a restart of the kubelet, containers of pods with a sidecar")
    assert triggered.endswith(
        "; remedy: upgrade to 1.35.4, or recreate such pods afterwards; kubernetes PR 137885 (release notes 1.35.4); `rollout explain kubelet-sidecar-never-restarts`"
    )
    kept = [text for reference, text in lines if reference == "known-defects-kept"]
    assert {"kubelet-dollar-in-environment stays", "kubelet-verbosity-ignored stays"} <= set(kept)


def test_the_deadline_inside_the_kubelet_has_its_default() -> None:
    """Incident 1: the default of 1 min ended pulls with a layer that took longer to verify."""
    assert standing(kubeadm(), "dockershim-verify-cut") is DefectStanding.KEPT
    assert standing(kubeadm(), "dockershim-verify-cut", imagePullProgressDeadline="5m") is DefectStanding.ENDED


def test_versions_as_nodes_print_them() -> None:
    assert [number_of(text) for text in ("1.35.4-eks-1234", "20.10.24", "")] == [(1, 35, 4), (20, 10, 24), None]


@pytest.mark.parametrize(
    ("text", "known"), [('KUBELET_KUBEADM_ARGS=""\n', True), ('KUBELET_KUBEADM_ARGS="--v=2"\n', False)]
)
def test_kubeadms_empty_file_of_flags_is_seen(text: str, known: bool) -> None:
    here = kubeadm(version="1.35.0", runtime="containerd")
    fit = sources.find(here, version("1.35.0"), inventory_node())
    changed = replace(
        fit, snapshot=replace(here, files={**here.files, "/var/lib/kubelet/kubeadm-flags.env": regular("f", text)})
    )
    names = {each.defect.id for each in on_node(changed.snapshot, Runtime.CONTAINERD, node_values.now(changed))}
    assert ("kubeadm-empty-flags" in names) is known
