"""A node with --config-dir: our drop-in, and its effect in each minor."""

from __future__ import annotations

import pytest

from rollout.core.model.settings import Setting
from rollout.core.model.snapshot import FileState, Snapshot
from tests.kubelet.deciding import applied_twice_is_once, proposed, refused
from tests.kubelet.nodes import (
    CONFIG,
    CONFIG_DIR,
    CONFIG_TEXT,
    DEB,
    kubeadm,
    regular,
    settings,
    with_command,
    with_config_dir,
    with_file,
)

KIND = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"
OURS = f"{CONFIG_DIR}/99-rollout.conf"
UNSET = CONFIG_TEXT.replace("serializeImagePulls: true\n", "")
ALLOWED = {"config-dir-alpha": "set"}
PULLS = settings(maxParallelImagePulls=5)


def node(version: str, config: str = UNSET, **drop_ins: str) -> Snapshot:
    """``ten="…"`` is ``10-ten.conf``."""
    facts = ALLOWED if version < "1.30" else {}
    named = {f"10-{name}.conf": text for name, text in drop_ins.items()}
    return with_config_dir(kubeadm(version=version, runtime="containerd", config=config), named, **facts)


@pytest.mark.parametrize("version", ["1.30.1", "1.31.4", "1.32.0", "1.34.2"])
def test_the_drop_in_is_ours_and_the_nodes_own_file_stays(version: str) -> None:
    found = node(version)
    change, texts = proposed(found, settings(registryPullQPS=20))
    assert list(texts) == [OURS]
    assert texts[OURS].startswith("# Written by rollout")
    assert texts[OURS].endswith(f"{KIND}registryPullQPS: 20\n")
    assert change.files[0].before is None
    assert change.files[0].reasons == ("registryPullQPS: not set → 20 (playbook image-pulls)",)
    assert not change.reload
    assert change.config_path == CONFIG
    assert change.effective == (("registryPullQPS", "20"),)


def test_a_reason_has_the_value_of_the_file_that_the_drop_in_overrides() -> None:
    found = node("1.34.1", site=f"{KIND}maxPods: 77\n")
    change, _ = proposed(found, settings(maxPods=60, evictionHard={"memory.available": "1Gi"}, clusterDNS=["10.0.0.9"]))
    assert change.files[0].reasons == (
        'clusterDNS: ["10.96.0.10"] → ["10.0.0.9"] (playbook image-pulls)',
        'evictionHard: {"memory.available": "200Mi"} → {"memory.available": "1Gi"} (playbook image-pulls)',
        "maxPods: 77 → 60 (playbook image-pulls)",
    )


@pytest.mark.parametrize("version", ["1.30.1", "1.31.4", "1.32.0", "1.34.2"])
def test_serialize_image_pulls_is_always_written_with_max_parallel_image_pulls(version: str) -> None:
    change, texts = proposed(node(version), PULLS)
    assert "maxParallelImagePulls: 5\nserializeImagePulls: false\n" in texts[OURS]
    assert change.files[0].reasons[1] == (
        "serializeImagePulls: not set → false (required by maxParallelImagePulls in a drop-in)"
    )
    applied_twice_is_once(node(version), PULLS)


def test_it_is_refused_over_a_written_true() -> None:
    reference, reason = refused(node("1.33.1", CONFIG_TEXT), PULLS)
    assert reference == "kubelet-would-not-start"
    assert "maxParallelImagePulls cannot be larger than 1" in reason


def test_our_own_earlier_drop_in_is_merged() -> None:
    found = with_file(
        node("1.33.1"),
        regular(OURS, f"{KIND}# mine\nregistryPullQPS: 3\nregistryBurst: 20\n"),
    )
    _, texts = proposed(found, settings(registryPullQPS=20))
    assert texts == {OURS: f"{KIND}# mine\nregistryPullQPS: 20\nregistryBurst: 20\n"}


def test_a_kubelet_1_28_merges_no_zero_value_so_its_own_file_is_changed() -> None:
    _, texts = proposed(node("1.28.4", CONFIG_TEXT), settings(serializeImagePulls=False))
    assert list(texts) == [CONFIG]
    _, texts = proposed(node("1.29.4", CONFIG_TEXT), settings(serializeImagePulls=False))
    assert list(texts) == [OURS]


@pytest.mark.parametrize("version", ["1.28.4", "1.29.4"])
def test_without_its_environment_variable_the_kubelet_would_not_start(version: str) -> None:
    found = with_config_dir(kubeadm(version=version, runtime="containerd"), {})
    reference, reason = refused(found, settings(registryPullQPS=20))
    assert reference == "config-not-understood"
    assert "KUBELET_CONFIG_DROPIN_DIR_ALPHA" in reason


@pytest.mark.parametrize(
    ("drop_ins", "wanted"),
    [
        ({"99-zz.conf": f"{KIND}registryPullQPS: 7\n"}, settings(registryPullQPS=20)),
        ({"zz/10-more.conf": f"{KIND}registryPullQPS: 7\n"}, settings(registryPullQPS=20)),
    ],
)
def test_a_later_drop_in_overrides_ours(drop_ins: dict[str, str], wanted: dict[str, Setting]) -> None:
    found = with_config_dir(kubeadm(version="1.33.1", runtime="containerd"), drop_ins)
    reference, reason = refused(found, wanted)
    assert reference == "setting-without-effect"
    (name,) = drop_ins
    assert f"{CONFIG_DIR}/{name}" in reason


def test_our_drop_in_overrides_an_earlier_one() -> None:
    found = node("1.33.1", ten=f"{KIND}registryPullQPS: 7\n")
    _, texts = proposed(found, settings(registryPullQPS=20))
    assert list(texts) == [OURS]


@pytest.mark.parametrize(("value", "drop_ins"), [(7, {"ten": f"{KIND}registryPullQPS: 7\n"}), (5, {})])
def test_a_value_in_force_by_a_drop_in_or_by_default_needs_no_change(value: int, drop_ins: dict[str, str]) -> None:
    found = node("1.33.1", **drop_ins)
    change, _ = proposed(found, settings(registryPullQPS=value, registryBurst=30))
    assert [file.reasons for file in change.files] == [("registryBurst: not set → 30 (playbook image-pulls)",)]


def test_a_flag_that_overrides_it_is_refused() -> None:
    found = node("1.33.1")
    command = found.measurement.process.command_line  # type: ignore[union-attr]
    text = f"KUBELET_EXTRA_ARGS=--config-dir={CONFIG_DIR} --registry-qps=3\n"
    found = with_command(with_file(found, regular(DEB, text)), *command, "--registry-qps=3")
    reference, reason = refused(found, settings(registryPullQPS=20))
    assert reference == "flag-shadows-field"
    assert f"--registry-qps=3 (KUBELET_EXTRA_ARGS in {DEB}) overrides registryPullQPS in {OURS}" in reason


@pytest.mark.parametrize(
    ("state", "facts"),
    [
        (FileState(CONFIG_DIR, "absent"), {}),
        (FileState(CONFIG_DIR, "symlink"), {}),
        (FileState(CONFIG_DIR, "directory"), {"config-dir-truncated": "only 64 files in 1 folders are told"}),
    ],
)
def test_a_directory_that_is_not_completely_known(state: FileState, facts: dict[str, str]) -> None:
    found = with_file(with_config_dir(kubeadm(version="1.33.1", runtime="containerd"), {}, **facts), state)
    assert refused(found, settings(registryPullQPS=20))[0] == "config-dir-not-understood"


def test_config_dir_itself_is_never_added() -> None:
    change, texts = proposed(kubeadm(version="1.33.1", runtime="containerd"), settings(registryPullQPS=20))
    assert list(texts) == [CONFIG]
    assert not any("config-dir" in text for text in texts.values())
    assert change.arguments == (f"--config={CONFIG}",)
