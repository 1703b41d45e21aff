"""A setting on one node: every layer that sets it, and the one that wins."""

from __future__ import annotations

from dataclasses import replace

from rollout.core.model.settings import Value
from rollout.core.model.snapshot import FileState, Snapshot, Stale
from rollout.core.model.surroundings import Listing, Manifests, NodeSurroundings
from rollout.features.explain.rules import OnNode, agrees, on_node
from rollout.features.explain.words.explanation import ConfigzAnswer, ExplanationDocument, OnNodePart, on_node_lines
from rollout.kubelet import versions
from rollout.kubelet.configuration.outcome import Layer
from rollout.kubelet.explained.explanation import explain
from rollout.kubelet.node import sources
from tests.documents import as_printed
from tests.kubelet.nodes import CONFIG, CONFIG_TEXT, kubeadm, node, regular, with_file

DROP_INS = "/etc/kubernetes/kubelet.conf.d"


def here(snapshot: Snapshot, name: str) -> OnNode:
    version = versions.known(snapshot.kubelet_version)
    return on_node(sources.find(snapshot, version, node(snapshot.node)), explain(name))


def layers(found_: OnNode) -> list[tuple[Layer, Value]]:
    return [(each.layer, each.value) for each in found_.layers]


def with_drop_ins(snapshot: Snapshot, **texts: str) -> Snapshot:
    snapshot = with_file(snapshot, FileState(DROP_INS, "directory"))
    for name, text in texts.items():
        head = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"
        snapshot = with_file(snapshot, regular(f"{DROP_INS}/{name}.conf", head + text))
    return snapshot


def with_flags(version: str, flags: str, config: str = CONFIG_TEXT) -> Snapshot:
    return kubeadm(
        version=version, runtime="containerd", extra=f"KUBELET_EXTRA_ARGS={flags}\n", words=flags, config=config
    )


def test_a_default_wins_without_other_layers() -> None:
    found_ = here(kubeadm(version="1.33.4", runtime="containerd"), "registryPullQPS")
    assert (found_.value, layers(found_)) == (5, [(Layer.DEFAULT, 5)])
    assert found_.layers[0].wins


def test_a_default_that_depends_on_a_gate_follows_the_gates_of_the_file() -> None:
    name, by_default = "imagePullCredentialsVerificationPolicy", "NeverVerifyPreloadedImages"
    on = here(kubeadm(version="1.36.1", runtime="containerd"), name)
    assert (on.value, layers(on)) == (by_default, [(Layer.DEFAULT, by_default)])
    text = f"{CONFIG_TEXT}featureGates: {{KubeletEnsureSecretPulledImages: false}}\n"
    off = here(kubeadm(version="1.36.1", runtime="containerd", config=text), name)
    assert (off.value, layers(off)) == (None, [(Layer.DEFAULT, None)])


def test_the_file_overrides_the_default_and_a_flag_overrides_the_file() -> None:
    snapshot = with_flags("1.33.4", "--max-pods=20", f"{CONFIG_TEXT}maxPods: 60\n")
    found_ = here(snapshot, "maxPods")
    assert (found_.value, layers(found_)) == (20, [(Layer.DEFAULT, 110), (Layer.FILE, 60), (Layer.FLAG, "20")])
    assert [each.where for each in found_.layers] == [
        "",
        CONFIG,
        "--max-pods, KUBELET_EXTRA_ARGS in /etc/default/kubelet",
    ]
    assert [each.wins for each in found_.layers] == [False, False, True]


def test_drop_ins_are_between_file_and_flags_in_the_order_of_their_names() -> None:
    snapshot = with_flags("1.33.4", f"--config-dir={DROP_INS}", f"{CONFIG_TEXT}maxPods: 60\n")
    found_ = here(with_drop_ins(snapshot, b="maxPods: 80\n", a="maxPods: 70\n"), "maxPods")
    assert layers(found_)[2:] == [(Layer.DROP_IN, 70), (Layer.DROP_IN, 80)]
    assert (found_.value, found_.layers[-1].where) == (80, f"{DROP_INS}/b.conf")


def test_a_flag_is_explained_as_the_field_that_it_sets() -> None:
    found_ = here(with_flags("1.33.4", "--max-pods=20"), "--max-pods")
    assert (found_.field, found_.value) == ("maxPods", 20)


def test_a_field_inside_a_field() -> None:
    found_ = here(with_flags("1.33.4", "--anonymous-auth=true"), "authentication.anonymous.enabled")
    assert (found_.value, layers(found_)[-1]) == (True, (Layer.FLAG, "true"))


def test_a_flag_without_a_field_is_given_or_not() -> None:
    assert not here(kubeadm(version="1.20.15"), "--image-pull-progress-deadline").layers
    given = kubeadm(
        extra="KUBELET_EXTRA_ARGS=--image-pull-progress-deadline=5m\n", words="--image-pull-progress-deadline=5m"
    )
    found_ = here(given, "--image-pull-progress-deadline")
    assert (found_.value, found_.layers[0].where) == (
        "5m",
        "--image-pull-progress-deadline, KUBELET_EXTRA_ARGS in /etc/default/kubelet",
    )


def test_the_home_of_an_intent_is_that_of_the_nodes_runtime() -> None:
    old = here(kubeadm(version="1.20.15"), "imagePullProgressDeadline")
    assert (old.home, layers(old)) == (
        "--image-pull-progress-deadline, in the kubelet's flags; default 1m0s",
        [(Layer.DEFAULT, "1m0s")],
    )
    new = kubeadm(version="1.33.4", runtime="containerd")
    new = replace(new, runtimes={"containerd": "containerd github.com/containerd/containerd v2.1.4 abc"})
    assert here(new, "imagePullProgressDeadline").home == (
        "image_pull_progress_timeout, in the CRI images table of /etc/containerd/config.toml; default 5m0s"
    )


def test_an_intent_without_a_home_gives_the_reason_once() -> None:
    found_ = here(kubeadm(version="1.20.15"), "registryMirrors")
    assert found_.home.startswith("nowhere: dockerd's registry-mirrors covers ")
    told = [line.strip() for line in on_node_lines(found_, ConfigzAnswer())][1:]
    assert told[0] == f"home on this node: {found_.home}"
    assert [line for line in told[1:] if "known defects" not in line] == []


def test_the_known_defects_of_the_nodes_versions_and_settings_are_listed() -> None:
    """Those about the setting with what they do, the others by their names; none of another patch or another value."""
    old = here(kubeadm(version="1.20.15"), "imagePullProgressDeadline")
    assert [each.defect.id for each in old.defects_of_setting] == ["dockershim-verify-cut"]
    told = list(on_node_lines(old, ConfigzAnswer()))
    assert any(
        line.startswith("  known defect here: kubelet 1.20.15: the progress deadline ends pulls") for line in told
    )
    (others,) = (line for line in told if "other known defects" in line)
    assert "dockershim-verify-cut" not in others

    def found_in(text: str, version: str = "1.35.4") -> set[str]:
        node_ = kubeadm(version=version, runtime="containerd", config=f"{CONFIG_TEXT}{text}")
        return {each.defect.id for each in here(node_, "maxParallelImagePulls").defects}

    many, name = "serializeImagePulls: false\nmaxParallelImagePulls: 40\n", "kubelet-parallel-pulls-above-31"
    assert name in found_in(many)
    assert name not in found_in(many.replace("40", "31"))
    assert name not in found_in(many, "1.34.4")
    document = as_printed(ExplanationDocument(explain("maxPods"), OnNodePart(old, ConfigzAnswer())))["onNode"]
    (cut,) = (each for each in document["knownDefects"] if each["id"] == "dockershim-verify-cut")
    assert (cut["of"], cut["versions"], cut["unread"]) == ("kubelet 1.20.15", "1.15.0 to before 1.24.0", [])


def test_configz_is_compared_with_the_computed_value() -> None:
    found_ = here(kubeadm(version="1.33.4", runtime="containerd"), "registryPullQPS")
    assert agrees(found_, {"registryPullQPS": 5})
    assert not agrees(found_, {"registryPullQPS": 20})


def test_the_text_and_the_document() -> None:
    found_ = here(with_flags("1.33.4", "--max-pods=20", f"{CONFIG_TEXT}maxPods: 60\n"), "maxPods")
    assert [
        line for line in on_node_lines(found_, ConfigzAnswer(110, agrees=False)) if "known defects" not in line
    ] == [
        "on tess-node-0001, kubelet 1.33.4, containerd 1.6.36",
        "  in force: 20",
        "    default: 110",
        f"    file: 60 ({CONFIG})",
        "    flag: 20 (--max-pods, KUBELET_EXTRA_ARGS in /etc/default/kubelet), wins",
        "  /configz: 110, which differs from the computed value: was the kubelet restarted since?",
    ]
    part = OnNodePart(found_, ConfigzAnswer(not_asked="no kubeconfig is named"))
    document = as_printed(ExplanationDocument(explain("maxPods"), part))["onNode"]
    assert document["configz"] == {"value": None, "agrees": None, "notAsked": "no kubeconfig is named"}
    assert document["layers"][-1] == {
        "layer": "flag", "where": "--max-pods, KUBELET_EXTRA_ARGS in /etc/default/kubelet", "value": "20", "wins": True,
    }  # fmt: skip


def test_a_node_with_static_pods_of_the_control_plane_is_told_to_be_of_it() -> None:
    etcd = NodeSurroundings(manifests=(Manifests("/etc/kubernetes/manifests", Listing(("etcd.yaml",))),))
    found = here(replace(kubeadm(config=CONFIG_TEXT), surroundings=etcd), "maxPods")
    assert found.control_plane == "it has etcd.yaml in /etc/kubernetes/manifests"
    assert list(on_node_lines(found, ConfigzAnswer()))[1] == (
        "  a node of the control plane, although the inventory does not say so: it has etcd.yaml in /etc/kubernetes/manifests"
    )
    assert not here(kubeadm(config=CONFIG_TEXT), "maxPods").control_plane


def test_edited_but_not_loaded_values_are_distinguished_from_values_in_force() -> None:
    node = with_flags("1.33.4", "--max-pods=20", f"{CONFIG_TEXT}registryPullQPS: 60\n")
    stale = (Stale(CONFIG, "kubelet.service", edited=True, seconds=5),)
    found_ = here(replace(node, stale=stale), "registryPullQPS")
    assert list(on_node_lines(found_, ConfigzAnswer(not_asked="no")))[1:3] == [
        "  not in force until a restart: registryPullQPS: unknown → 60",
        "  in the files: 60",
    ]
    part = OnNodePart(found_, ConfigzAnswer())
    document = as_printed(ExplanationDocument(explain("maxPods"), part))["onNode"]
    assert document["notLoaded"] == ["registryPullQPS: unknown → 60"]
    assert here(replace(node, stale=stale), "maxPods").late == ()


def test_a_flag_that_the_running_kubelet_does_not_have_is_not_in_force() -> None:
    node = kubeadm(version="1.33.4", runtime="containerd", extra="KUBELET_EXTRA_ARGS=--max-pods=20\n")
    assert here(node, "maxPods").late == ("--max-pods: not set → 20",)
    assert here(node, "--max-pods").late == ("--max-pods: not set → 20",)


def test_an_intent_in_a_file_that_its_runtime_has_not_loaded() -> None:
    node = kubeadm(version="1.33.4", runtime="containerd")
    node = replace(node, stale=(Stale("/etc/containerd/config.toml", "containerd.service", edited=False, seconds=5),))
    late = here(node, "imagePullProgressDeadline").late
    assert late == ("/etc/containerd/config.toml (replaced after containerd.service started)",)
