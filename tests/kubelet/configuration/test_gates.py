"""Feature gates by minor: registered, stage, default, lock, and what they need."""

from __future__ import annotations

import pytest

from rollout.kubelet import fields
from rollout.kubelet.configuration import feature_gates
from rollout.kubelet.configuration.feature_gates import ALL_ALPHA, ALL_BETA, FeatureGate, Stage

MINORS = fields.known_minors()


@pytest.mark.parametrize(
    ("name", "minor", "stage", "default", "locked"),
    [
        ("GracefulNodeShutdown", 20, Stage.ALPHA, False, False),
        ("GracefulNodeShutdown", 21, Stage.BETA, True, False),
        ("DynamicKubeletConfig", 21, Stage.BETA, True, False),
        ("DynamicKubeletConfig", 22, Stage.DEPRECATED, False, False),
        ("CustomCPUCFSQuotaPeriod", 20, Stage.ALPHA, False, False),  # its name in Go is another: CPUCFSQuotaPeriod
        ("SupportPodPidsLimit", 20, Stage.GA, True, True),
        ("VolumeSubpath", 20, Stage.GA, True, False),  # general, and still can be switched off
        ("CSIMigration", 24, Stage.BETA, True, False),
        ("CSIMigration", 25, Stage.GA, True, True),
        ("NodeLogQuery", 35, Stage.BETA, False, False),
        ("NodeLogQuery", 36, Stage.GA, True, True),
        ("KubeletEnsureSecretPulledImages", 34, Stage.ALPHA, False, False),
        ("KubeletEnsureSecretPulledImages", 35, Stage.BETA, True, False),
        ("ContextualLogging", 24, Stage.ALPHA, False, False),  # component-base's
        ("ContextualLogging", 30, Stage.BETA, True, False),
        ("ComponentSLIs", 27, Stage.BETA, True, False),
        ("MemoryQoS", 36, Stage.ALPHA, False, False),
        ("MemoryQoS", 37, Stage.BETA, True, False),
        ("NodeDeclaredFeatures", 37, Stage.GA, True, True),  # kube-scheduler's
        ("DefaultPodSysctls", 37, Stage.ALPHA, False, False),
        ("WatchListClient", 30, Stage.BETA, False, False),  # client-go's
        ("APIServerTracing", 27, Stage.BETA, True, False),  # the API server's library is in a kubelet too
    ],
)  # fmt: skip
def test_a_gate_in_a_minor(name: str, minor: int, stage: Stage, default: bool, locked: bool) -> None:
    assert feature_gates.known_gates(minor)[name] == FeatureGate(name, stage, default, locked)
    assert feature_gates.default(name, minor) is default


@pytest.mark.parametrize(
    ("name", "last_without", "first_without"),
    [
        ("MemoryManager", 20, 36),
        ("ImageMaximumGCAge", 28, None),
        ("TopologyManager", None, 29),
        ("CPUManager", None, 33),
    ],
)
def test_a_gate_exists_in_some_minors_only(name: str, last_without: int | None, first_without: int | None) -> None:
    expected = [
        minor
        for minor in MINORS
        if (last_without is None or minor > last_without) and (first_without is None or minor < first_without)
    ]
    assert [minor for minor in MINORS if name in feature_gates.known_gates(minor)] == expected


@pytest.mark.parametrize("minor", MINORS)
def test_all_alpha_and_all_beta_always_exist_and_are_off(minor: int) -> None:
    assert feature_gates.known_gates(minor)[ALL_ALPHA] == FeatureGate(
        ALL_ALPHA, Stage.ALPHA, default=False, locked=False
    )
    assert feature_gates.known_gates(minor)[ALL_BETA] == FeatureGate(ALL_BETA, Stage.BETA, default=False, locked=False)


@pytest.mark.parametrize("minor", MINORS)
def test_only_stable_or_deprecated_gates_are_locked_and_no_alpha_gate_is_on(minor: int) -> None:
    odd = {"WindowsHostNetwork"}  # alpha and on in Kubernetes itself, 1.26 to 1.32
    for gate in feature_gates.known_gates(minor).values():
        assert not gate.locked or gate.stage in {Stage.GA, Stage.DEPRECATED}, gate
        assert gate.stage is not Stage.ALPHA or not gate.default or gate.name in odd, gate


@pytest.mark.parametrize("minor", MINORS)
def test_gates_of_a_fork_are_unknown(minor: int) -> None:
    assert not {"RouteExternalCertificate", "MinimumKubeletVersion"} & feature_gates.known_gates(minor).keys()


def test_the_gates_that_a_gate_needs() -> None:
    assert feature_gates.required("DRAAdminAccess", 34) == ()
    assert feature_gates.required("DRAAdminAccess", 35) == ("DynamicResourceAllocation",)
    assert feature_gates.required("AllAlpha", 36) == ()


@pytest.mark.parametrize("minor", MINORS)
def test_defaults_need_nothing_that_is_off(minor: int) -> None:
    known = feature_gates.known_gates(minor)
    for name, gate in known.items():
        if gate.default:
            assert all(known[other].default for other in feature_gates.required(name, minor)), name


def test_the_gates_of_each_minor_are_certain_and_those_of_others_are_not() -> None:
    assert all(map(feature_gates.certain, MINORS))
    assert not feature_gates.certain(38)


def test_the_gates_of_1_37_are_those_of_its_code_freeze() -> None:
    """Removed ones end a kubelet, new ones are known, and GA does not mean locked."""
    known = feature_gates.known_gates(37)
    assert {"NodeSwap", "KubeletTracing", "TopologyManagerPolicyOptions", "PodsAPI", "KubeProxyIPVS"} <= known.keys()
    assert not {"SidecarContainers", "AnyVolumeDataSource", "JobSuccessPolicy"} & known.keys()
    assert (known["SELinuxMount"].default, known["SELinuxMount"].locked) == (True, False)
    assert known["HostnameOverride"].locked


def test_an_unknown_gate_or_minor() -> None:
    assert feature_gates.known_gates(19) == {}
    assert feature_gates.known_gates(38) == {}
    with pytest.raises(KeyError):
        feature_gates.default("NoSuchGate", 30)
