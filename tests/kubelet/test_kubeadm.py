"""kubeadm's ConfigMap: its name by version and gate, and its text."""

from __future__ import annotations

import pytest

from rollout.kubelet.changes.splice import SpliceError
from rollout.kubelet.kubeadm import config_map_name, differences, with_fields

TEXT = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n# ours\nmaxPods: 110   # one /24\n"


@pytest.mark.parametrize(
    ("version", "gate", "name"),
    [
        ("v1.20.15", None, "kubelet-config-1.20"),
        ("v1.23.17", None, "kubelet-config-1.23"),
        ("v1.23.17", True, "kubelet-config"),
        ("v1.24.0", None, "kubelet-config"),
        ("v1.24.0", False, "kubelet-config-1.24"),
        ("v1.25.3", False, "kubelet-config"),
        ("v1.36.0-rc.1", None, "kubelet-config"),
    ],
)
def test_its_name(version: str, gate: bool | None, name: str) -> None:
    gates = "" if gate is None else f"featureGates: {{UnversionedKubeletConfigMap: {str(gate).lower()}}}\n"
    assert config_map_name(f"kind: ClusterConfiguration\nkubernetesVersion: {version}\n{gates}") == name


def test_a_version_that_is_none_is_refused() -> None:
    with pytest.raises(SpliceError, match="no kubernetesVersion"):
        config_map_name("kind: ClusterConfiguration\nkubernetesVersion: latest\n")


def test_its_text_keeps_every_other_byte() -> None:
    assert with_fields(TEXT, {"maxPods": 60}) == TEXT.replace("110", "60")
    with pytest.raises(SpliceError, match="not a KubeletConfiguration"):
        with_fields("kind: KubeProxyConfiguration\n", {"maxPods": 60})


def test_differences_are_told_by_field() -> None:
    assert differences(TEXT, TEXT.replace("110", "90")) == "maxPods: 110 → 90"
    assert differences(TEXT, f"{TEXT}\n") == "bytes, though not in the value of a field"
    assert differences(TEXT, "a: [").startswith("its form: ")
