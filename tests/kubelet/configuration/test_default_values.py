"""The defaults of a kubelet, by minor."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from rollout.core.model.settings import Value
from rollout.kubelet import fields
from rollout.kubelet.configuration import defaulting, feature_gates, schema
from rollout.kubelet.configuration.defaulting import GatedDefault
from rollout.kubelet.configuration.schema import ROOT, Form, WhenShown

from .starts import said, started

MINORS = fields.known_minors()


@pytest.mark.parametrize(
    ("name", "minor", "value"),
    [
        ("maxPods", 20, 110),
        ("registryBurst", 36, 10),
        ("runtimeRequestTimeout", 20, "2m0s"),
        ("streamingConnectionIdleTimeout", 20, "4h0m0s"),
        ("eventRecordQPS", 26, 5),
        ("eventRecordQPS", 27, 50),
        ("memoryThrottlingFactor", 26, 0.8),
        ("memoryThrottlingFactor", 27, 0.9),
        ("contentType", 24, "application/vnd.kubernetes.protobuf"),
        ("failCgroupV1", 34, False),
        ("failCgroupV1", 35, True),
        ("memorySwap", 22, {}),
        ("shutdownGracePeriod", 20, "0s"),
        ("enforceNodeAllocatable", 20, ["pods"]),
        ("authentication", 36, {"x509": {}, "webhook": {"enabled": True, "cacheTTL": "2m0s"}, "anonymous": {"enabled": False}}),
        ("logging", 22, {"format": "text"}),
        ("logging", 23, {"format": "text", "flushFrequency": 5_000_000_000, "verbosity": 0, "options": {"json": {"infoBufferSize": "0"}}}),
        ("kind", 36, "KubeletConfiguration"),
    ],
)  # fmt: skip
def test_a_default(name: str, minor: int, value: Value) -> None:
    assert defaulting.defaults(minor)[name] == value


def test_memory_is_not_throttled_by_default_from_1_37_on() -> None:
    assert "memoryThrottlingFactor" in defaulting.defaults(36)
    assert "memoryThrottlingFactor" not in defaulting.defaults(37)


def test_thresholds_of_eviction() -> None:
    before, after = (defaulting.defaults(minor)["evictionHard"] for minor in (29, 30))
    assert isinstance(before, dict)
    assert after == {**before, "imagefs.inodesFree": "5%"}


@pytest.mark.parametrize("minor", MINORS)
def test_every_default_fits_its_field(minor: int) -> None:
    fits(defaulting.defaults(minor), ROOT, minor)
    fits(defaulting.legacy(minor), ROOT, minor)


TAKES: Mapping[Form, type | tuple[type, ...]] = {
    Form.BOOL: bool, Form.STRING: str, Form.INT32: int, Form.INT64: int, Form.UINT32: int, Form.FLOAT64: float, Form.DURATION: str,
    Form.NANOSECONDS: int, Form.DURATION_OR_NANOSECONDS: (str, int), Form.QUANTITY: str, Form.TIME: str, Form.OBJECT: dict,
    Form.LIST: list, Form.MAP: dict,
}  # fmt: skip


def fits(values: Mapping[str, Value], type_name: str, minor: int) -> None:
    types = schema.fields_of(type_name, minor)
    for name, value in values.items():
        kind = types[name]
        assert kind.shown is not WhenShown.NEVER
        assert isinstance(value, TAKES[kind.form]), name
        assert kind.form is Form.BOOL or not isinstance(value, bool), name
        if isinstance(value, dict) and kind.form is Form.OBJECT:
            fits(value, kind.type_name, minor)


@pytest.mark.parametrize("minor", MINORS)
def test_every_field_that_is_always_shown_has_a_default(minor: int) -> None:
    complete(defaulting.defaults(minor), ROOT, minor)


def complete(values: Mapping[str, Value], type_name: str, minor: int) -> None:
    for name, kind in schema.fields_of(type_name, minor).items():
        value = values.get(name)
        assert kind.shown is not WhenShown.ALWAYS or name in values, f"{type_name}.{name}"
        if isinstance(value, dict) and kind.form is Form.OBJECT:
            complete(value, kind.type_name, minor)


@pytest.mark.parametrize("minor", MINORS)
def test_a_kubelet_without_a_file_is_open(minor: int) -> None:
    legacy, given = defaulting.legacy(minor), defaulting.defaults(minor)
    differs = {name for name in given.keys() | legacy.keys() if given.get(name) != legacy.get(name)}
    assert differs == {"authentication", "authorization", "readOnlyPort"} | ({"evictionHard"} if minor >= 26 else set())
    assert legacy["readOnlyPort"] == 10255
    assert isinstance(legacy["authorization"], dict)
    assert legacy["authorization"]["mode"] == "AlwaysAllow"


def test_defaults_that_depend_on_gates() -> None:
    restart = GatedDefault(("crashLoopBackOff", "maxContainerRestartPeriod"), "KubeletCrashLoopBackOffMax", "5m0s")
    assert defaulting.gated(31) == ()
    assert defaulting.gated(32) == (restart,)
    assert [one.path for one in defaulting.gated(33)] == [restart.path, ("imagePullCredentialsVerificationPolicy",)]


PULLS, RESTARTS = "KubeletEnsureSecretPulledImages", "KubeletCrashLoopBackOffMax"
POLICY = {"imagePullCredentialsVerificationPolicy": "NeverVerifyPreloadedImages"}


@pytest.mark.parametrize("drop_ins", [None, ("maxPods: 5\n",)])
@pytest.mark.parametrize(
    ("version", "gate", "values"),
    [
        ("1.34.1", f"{PULLS}=true", POLICY),
        ("1.35.1", f"{PULLS}=false", {}),
        ("1.34.1", f"{RESTARTS}=true", {"crashLoopBackOff": {"maxContainerRestartPeriod": "5m0s"}}),
        ("1.35.1", f"{RESTARTS}=false", {"crashLoopBackOff": {}}),
    ],
)
def test_a_gate_of_the_flags_decides_on_a_default_of_the_file(
    version: str, gate: str, values: Mapping[str, Value], drop_ins: tuple[str, ...] | None
) -> None:
    found = started(version, "", f"--feature-gates={gate}", drop_ins=drop_ins)
    shown = ("imagePullCredentialsVerificationPolicy", "crashLoopBackOff")
    plain = started(version, "").effective
    assert found.starts
    name = shown[0] if gate.startswith(PULLS) else shown[1]
    assert found.effective.get(name) == values.get(name) != plain.get(name)


@pytest.mark.parametrize("word", ["true", "false"])
def test_all_beta_of_the_flags_is_not_set_again_by_the_file(word: str) -> None:
    other = "false" if word == "true" else "true"
    found = started("1.36.1", f"featureGates: {{AllBeta: {other}}}\n", f"--feature-gates=AllBeta={word}")
    assert found.starts is True
    assert ("imagePullCredentialsVerificationPolicy" in found.effective) is (word == "true")


def test_without_a_file_the_defaults_are_older_than_the_flags() -> None:
    found = started("1.34.1", None, f"--feature-gates={RESTARTS}=true")
    assert "is enabled, CrashLoopBackOff.MaxContainerRestartPeriod must be set" in said(found)[0]
    assert "must not be set if" in said(started("1.35.1", None, f"--feature-gates={PULLS}=false"))[0]
    assert started("1.35.1", None, f"--feature-gates={PULLS}=false", drop_ins=("maxPods: 5\n",)).starts is False


@pytest.mark.parametrize("minor", MINORS)
def test_the_gates_of_gated_defaults_are_known(minor: int) -> None:
    assert {one.gate for one in defaulting.gated(minor)} <= feature_gates.known_gates(minor).keys()


def test_an_unknown_minor() -> None:
    assert defaulting.defaults(19) == defaulting.defaults(38) == {}
