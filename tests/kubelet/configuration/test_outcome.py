"""The outcome as a whole: the values in force, their origins, and that it is computed once."""

from __future__ import annotations

import pytest

from rollout.kubelet.configuration.defaulting import defaults, gated
from rollout.kubelet.configuration.feature_gates import known_gates
from rollout.kubelet.configuration.outcome import Layer, MessageLevel, Origin
from rollout.kubelet.configuration.startup import UnknownMinorError, is_known

from .starts import CONFIG, references, started, worse

MINORS = [minor for minor in range(20, 38) if defaults(minor) and known_gates(minor)]


@pytest.mark.parametrize("minor", MINORS)
def test_a_file_that_sets_nothing_gives_the_defaults(minor: int) -> None:
    found = started(f"1.{minor}.1", "")
    assert (found.starts, found.ignored, worse(found)) == (True, (), [])
    by_gates = {rule.path[0] for rule in gated(minor)}
    plain = {name: value for name, value in defaults(minor).items() if name not in by_gates}
    assert {name: found.effective[name] for name in plain} == plain
    assert set(found.origins.values()) == {Origin(Layer.DEFAULT)}
    assert set(found.origins) == set(found.effective)


@pytest.mark.parametrize("minor", MINORS)
def test_a_kubelet_without_anything_starts(minor: int) -> None:
    assert started(f"1.{minor}.1").starts


@pytest.mark.parametrize("minor", [19, 38])
def test_other_minors_are_refused(minor: int) -> None:
    assert not is_known(minor)
    with pytest.raises(UnknownMinorError, match=f"1.{minor}"):
        started(f"1.{minor}.1", "")


@pytest.mark.parametrize(
    ("version", "gates", "policy"),
    [
        ("1.34.1", "", None),
        ("1.34.1", "featureGates: {KubeletEnsureSecretPulledImages: true}\n", "NeverVerifyPreloadedImages"),
        ("1.35.1", "", "NeverVerifyPreloadedImages"),
        ("1.35.1", "featureGates: {KubeletEnsureSecretPulledImages: false}\n", None),
    ],
)
def test_some_defaults_depend_on_a_gate(version: str, gates: str, policy: str | None) -> None:
    assert started(version, gates).effective.get("imagePullCredentialsVerificationPolicy") == policy


def test_the_self_made_certificate_is_shown() -> None:
    assert started("1.20.2", "").effective["tlsCertFile"] == "/var/lib/kubelet/pki/kubelet.crt"
    assert started("1.20.2", "", "--cert-dir=/pki").effective["tlsPrivateKeyFile"] == "/pki/kubelet.key"
    assert started("1.36.1", "", "--cert-dir=").effective["tlsPrivateKeyFile"] == "kubelet.key"
    assert started("1.36.1", "", "--cert-dir=/pki//a/").effective["tlsPrivateKeyFile"] == "/pki/a/kubelet.key"
    assert "tlsCertFile" not in started("1.20.2", "serverTLSBootstrap: true\n").effective


def test_reserved_cpus_replace_reserved_cpu() -> None:
    written = "reservedSystemCPUs: 0-2,8\nkubeReserved: {cpu: 100m, memory: 100Mi}\n"
    both = started("1.20.2", written + "systemReserved: {cpu: 200m}\n").effective
    assert (both["kubeReserved"], both["systemReserved"]) == ({"memory": "100Mi"}, {"cpu": "4"})
    assert "systemReserved" not in started("1.20.2", written).effective


def test_parallel_pulls_turn_serialized_pulls_off() -> None:
    assert started("1.27.1", "maxParallelImagePulls: 5\n").effective["serializeImagePulls"] is False
    assert started("1.27.1", "maxParallelImagePulls: 1\n").effective["serializeImagePulls"] is True


def test_default_thresholds_can_be_kept() -> None:
    written = "evictionHard: {memory.available: 1Gi}\n"
    assert started("1.36.3", written).effective["evictionHard"] == {"memory.available": "1Gi"}
    kept = started("1.36.3", written + "mergeDefaultEvictionSettings: true\n").effective["evictionHard"]
    assert kept == {**defaults(36)["evictionHard"], "memory.available": "1Gi"}  # type: ignore[dict-item]


def test_the_origins_of_fields() -> None:
    found = started("1.31.1", "maxPods: 5\nregistryBurst: 0\n", "--registry-qps=3")
    assert found.origins["maxPods"] == Origin(Layer.FILE, CONFIG)
    assert found.origins["registryBurst"] == Origin(Layer.DEFAULT)
    assert found.origins["registryPullQPS"] == Origin(Layer.FLAG, "--registry-qps=3")


@pytest.mark.parametrize("version", ["1.20.2", "1.28.1", "1.30.1", "1.36.3"])
@pytest.mark.parametrize("rest", ["---\nmaxPods: 6\n", "--- 5\n", "...\n---\n# why\n{}\n", "---\n[\n"])
def test_a_second_document_is_no_error_of_the_kubelet_and_a_mistake(version: str, rest: str) -> None:
    found = started(version, "maxPods: 5\n" + rest)
    assert found.starts
    assert found.effective["maxPods"] == 5
    assert references(found, MessageLevel.POLICY) == ["yaml-documents"]
    if version != "1.20.2":
        merged = started(version, "", drop_ins=("maxPods: 5\n" + rest,))
        assert references(merged, MessageLevel.POLICY) == ["yaml-documents"]


@pytest.mark.parametrize("rest", ["---\n", "...\n", "---\n# the end\n"])
def test_nothing_is_lost_after_the_first_document(rest: str) -> None:
    assert started("1.36.3", "maxPods: 5\n" + rest).messages == ()
