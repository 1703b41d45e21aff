"""The table of fields and flags, the homes of settings, and their valid values."""

from __future__ import annotations

import pytest

from rollout.core.model.settings import IfUnsupported, Setting, Value
from rollout.kubelet import fields, homes, values, versions
from rollout.kubelet.changes import flag_changes
from rollout.kubelet.homes import InField, InFlag, NoHome, Skipped
from rollout.kubelet.intents import DEADLINE
from rollout.kubelet.runtimes.description import Runtime
from tests.kubelet.nodes import settings


def test_known_fields_by_minor() -> None:
    assert "maxParallelImagePulls" not in fields.known_fields(26)
    assert "maxParallelImagePulls" in fields.known_fields(27)
    assert "serializeImagePulls" in fields.known_fields(20)
    assert fields.field("serialiseImagePulls") is None


def test_known_flags_by_minor() -> None:
    assert "--image-pull-progress-deadline" in fields.known_flags(23)
    assert "--image-pull-progress-deadline" not in fields.known_flags(24)
    assert "--config-dir" not in fields.known_flags(27)
    assert "--config-dir" in fields.known_flags(28)
    assert fields.known_minors() == range(20, 38)


@pytest.mark.parametrize(
    ("text", "minor"),
    [("1.20.15", 20), ("v1.23.17-eks-0a1b", 23), ("Kubernetes v1.20.2", 20), ("1.36.3+k3s1", 36), ("1.24", 24)],
)
def test_versions(text: str, minor: int) -> None:
    assert versions.known(text).minor == minor
    assert versions.known(text).short == f"1.{minor}"


@pytest.mark.parametrize("text", ["", "2.0.0", "1.x", "1.20.15; rm", "kubelet"])
def test_texts_that_are_no_versions(text: str) -> None:
    assert versions.parse(text) is None
    with pytest.raises(ValueError, match="not a kubelet version"):
        versions.known(text)


def at(
    name: str, version: str, runtime: Runtime = Runtime.DOCKERSHIM, value: Value = "5m", *, skip: bool = False
) -> object:
    policy = IfUnsupported.SKIP if skip else IfUnsupported.REFUSE
    return homes.home(Setting(name, value, policy), versions.known(version), runtime)


def test_the_deadline_is_a_flag_on_dockershim_only() -> None:
    wanted = InFlag("--image-pull-progress-deadline", "5m", "duration")
    assert at(DEADLINE, "1.20.15") == wanted
    assert at("--image-pull-progress-deadline", "1.23.17") == wanted


def test_an_unknown_runtime_has_no_home_for_an_intent() -> None:
    found = at(DEADLINE, "1.23.17", Runtime.UNKNOWN)
    assert isinstance(found, NoHome)
    assert "yet" not in found.reason


@pytest.mark.parametrize(
    ("name", "version", "reason"),
    [
        (
            "maxParallelImagePulls",
            "1.20.15",
            "maxParallelImagePulls exists from 1.27; a kubelet 1.20 would ignore it with a warning",
        ),
        (
            "serializeImagePulls",
            "1.40.0",
            "serializeImagePulls was last seen in 1.37; a kubelet 1.40 would ignore it with a warning",
        ),
        ("--network-plugin", "1.24.0", "--network-plugin was removed in 1.24; this kubelet would not start"),
        ("--config-dir", "1.20.0", "--config-dir exists from 1.28; this kubelet would not start"),
        ("--nonsense", "1.20.0", "unknown setting --nonsense; the kubelet would not start"),
        ("nonsense", "1.20.0", "unknown setting nonsense"),
    ],
)
def test_a_setting_without_a_home_is_reported_with_the_consequence(name: str, version: str, reason: str) -> None:
    found = at(name, version)
    assert isinstance(found, NoHome)
    assert found.reason == reason
    assert at(name, version, skip=True) == Skipped(f"{name} skipped: {reason}")


def test_homes_of_fields_and_flags() -> None:
    assert at("maxParallelImagePulls", "1.27.0", value=5) == InField("maxParallelImagePulls", 5)
    flag = at("--registry-qps", "1.20.0", value=3)
    assert isinstance(flag, InFlag)
    assert flag.argument == "--registry-qps=3"


@pytest.mark.parametrize(
    ("name", "value", "reference", "words"),
    [
        ("serialiseImagePulls", False, "setting-unknown", "did you mean `serializeImagePulls`?"),
        ("MaxPods", 5, "setting-unknown", "did you mean `maxPods`?"),
        ("--serialise-image-pulls", False, "setting-unknown", "did you mean `--serialize-image-pulls`?"),
        ("imagePullProgressDeadlin", "5m", "setting-unknown", "did you mean `imagePullProgressDeadline`?"),
        (DEADLINE, "5", "setting-value", "a duration above 0"),
        (DEADLINE, "0s", "setting-value", "a duration above 0"),
        (DEADLINE, 300, "setting-value", "not 300"),
        ("serializeImagePulls", "false", "setting-value", 'true or false, not "false"'),
        ("maxParallelImagePulls", True, "setting-value", "a whole number, not true"),
        ("maxParallelImagePulls", 0, "setting-value", "between 1 and"),
        ("maxParallelImagePulls", 2**40, "setting-value", "a whole number"),
        ("runtimeRequestTimeout", 120, "setting-value", "a duration such as"),
        ("runtimeRequestTimeout", "2 m", "setting-value", "a duration such as"),
        ("clusterDNS", "10.0.0.1", "setting-value", "a list of texts"),
        ("evictionHard", {"memory.available": 5}, "setting-value", "a map of texts"),
        ("evictionHard", {"nodefs.available": "5%", "memory.available": 5}, "setting-value", 'a map of texts, not 5 for "memory.available"'),
        ("featureGates", {"A": True, "B": "x"}, "setting-value", 'a map of true or false, not "x" for "B"'),
        ("clusterDNS", ["10.0.0.1", 5], "setting-value", "a list of texts, not 5 as entry 2"),
        ("featureGates", {"A": "yes"}, "setting-value", "a map of true or false"),
        ("registryPullQPS", None, "setting-value", "not null"),
        ("--registry-qps", "three", "setting-value", "a whole number"),
        ("--node-labels", "a\nExecStartPre=/x", "setting-value", "a control character"),
        ("--cluster-domain", "a\tb", "setting-value", "a control character"),
        ("--node-labels", ["a"], "setting-value", "text or a number"),
        ("--config", "/x", "setting-not-ours", "which file rollout writes"),
        ("cpuManagerPolicy", "static", "setting-not-ours", "cpu_manager_state"),
    ],
)  # fmt: skip
def test_mistakes_in_settings(name: str, value: Value, reference: str, words: str) -> None:
    (problem,) = homes.check({name: Setting(name, value, source="playbook p")})
    assert problem.reference == reference
    assert words in str(problem)
    assert "playbook p" in str(problem)


def test_good_settings() -> None:
    good = settings(
        imagePullProgressDeadline="5m", serializeImagePulls=False, maxParallelImagePulls=5, evictionHard={"memory.available": "5%"},
        tlsCipherSuites=["a"], __registry_qps=3, __node_labels="a=b", memoryThrottlingFactor=0.5, registerWithTaints=[{"key": "a"}],
        tlsCurvePreferences=[1], staticPodURLHeader={"a": ["b"]}, podPidsLimit=-1, authentication={}, clusterDomain="x",
    )  # fmt: skip
    assert homes.check(good) == ()


def test_settings_that_contradict_each_other() -> None:
    (problem,) = homes.check(settings(maxParallelImagePulls=5, serializeImagePulls=True))
    assert problem.reference == "setting-contradiction"
    (problem,) = homes.check(settings(imageGCHighThresholdPercent=70, imageGCLowThresholdPercent=75))
    assert "must be less than" in problem.message
    (problem,) = homes.check(settings(serializeImagePulls=True, __serialize_image_pulls=True))
    assert problem.reference == "setting-twice"
    (problem,) = homes.check(settings(imagePullProgressDeadline="5m", __image_pull_progress_deadline="5m"))
    assert problem.reference == "setting-twice"


@pytest.mark.parametrize(
    ("path", "old", "new", "same"),
    [
        (("runtimeRequestTimeout",), "2m", "2m0s", True),
        (("authentication", "webhook", "cacheTTL"), "120s", "2m", True),
        (("evictionSoftGracePeriod", "memory.available"), "60s", "1m", True),
        (("clusterDomain",), "60s", "1m", False),
        (("maxPods",), 1, True, False),
        (("maxPods",), None, 5, False),
        (("runtimeRequestTimeout",), "rubbish", "2m", False),
        ((), 1, 1, True),
    ],
)
def test_equal_values(path: tuple[str, ...], old: Value, new: Value, same: bool) -> None:
    assert values.same(path, old, new) is same


@pytest.mark.parametrize(
    ("kind", "old", "new", "same"),
    [
        ("duration", "300s", "5m", True), ("duration", "5", "5", False), ("bool", "T", "true", True), ("bool", "0", "true", False),
        ("bool", "maybe", "maybe", False), ("int32", "05", "5", True), ("int32", "five", "five", False), ("string", "a", "a", True),
    ],
)  # fmt: skip
def test_equal_values_of_a_flag(kind: str, old: str, new: str, same: bool) -> None:
    assert values.same_flag(kind, old, new) is same


@pytest.mark.parametrize(
    ("name", "value", "words", "shadow"),
    [
        ("serializeImagePulls", False, ("--serialize-image-pulls=true",), "--serialize-image-pulls=true"),
        ("serializeImagePulls", False, ("--serialize-image-pulls=f",), ""),
        ("serializeImagePulls", False, ("--v=2",), ""),
        ("runtimeRequestTimeout", "2m", ("--runtime-request-timeout=120s",), ""),
        ("clusterDNS", ["10.0.0.1", "10.0.0.2"], ("--cluster-dns=10.0.0.1,10.0.0.2",), ""),
        ("clusterDNS", ["10.0.0.1"], ("--cluster-dns", "10.0.0.9"), "--cluster-dns=10.0.0.9"),
        ("featureGates", {"A": True}, ("--feature-gates=A=false,B=true",), "--feature-gates=A=false,B=true"),
        ("featureGates", {"C": True}, ("--feature-gates=A=false,B=true",), ""),
        ("evictionHard", {"memory.available": "1Gi"}, ("--eviction-hard=memory.available<1Gi",), "--eviction-hard=memory.available<1Gi"),
        ("authentication", {"anonymous": {"enabled": False}}, ("--anonymous-auth=true",), "--anonymous-auth=true"),
        ("authentication", {"webhook": {"enabled": True}}, ("--anonymous-auth=true",), ""),
    ],
)  # fmt: skip
def test_flags_that_override_the_file(name: str, value: Value, words: tuple[str, ...], shadow: str) -> None:
    found = flag_changes.shadows(name, value, words)
    assert [f"{each.flag}={each.value}" for each in found] == ([shadow] if shadow else [])
