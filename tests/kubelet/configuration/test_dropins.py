"""Drop-ins: three ways to merge, by minor, and the traps of each."""

from __future__ import annotations

import pytest

from rollout.kubelet import versions
from rollout.kubelet.configuration.drop_ins import in_order, merge_patch
from rollout.kubelet.configuration.outcome import File, Layer, MessageLevel, Sources
from rollout.kubelet.configuration.startup import outcome

from .starts import CONFIG, DROP_INS, HEAD, references, said, started

EVERY_WAY = ["1.28.3", "1.29.1", "1.31.1", "1.32.1", "1.36.3"]


def test_only_conf_files_are_read_and_folders_are_walked_in_order() -> None:
    found = in_order(["20.conf", "10.conf.bak", "a/5.conf", "10.conf", "a.conf", "x.yaml", "Z.conf", "a/b/.conf"])
    assert found == ("10.conf", "20.conf", "Z.conf", "a/5.conf", "a/b/.conf", "a.conf")


def test_merge_patch_is_that_of_rfc_7386() -> None:
    target = {"a": 1, "b": {"c": 1, "d": 2}, "e": [1, 2]}
    assert merge_patch(target, {"a": None, "b": {"c": None, "f": 3}, "e": [3], "g": {"h": None}}) == {
        "b": {"d": 2, "f": 3},
        "e": [3],
        "g": {},
    }


@pytest.mark.parametrize("version", EVERY_WAY)
def test_the_later_file_wins_over_the_earlier_over_the_base_and_flags_over_all(version: str) -> None:
    found = started(
        version, "maxPods: 10\npodsPerCore: 3\n", "--registry-burst=44", drop_ins=("maxPods: 20\n", "maxPods: 30\n")
    )
    assert (found.effective["maxPods"], found.effective["podsPerCore"], found.effective["registryBurst"]) == (30, 3, 44)
    assert found.origins["maxPods"].layer is Layer.DROP_IN
    assert found.origins["maxPods"].where == f"{DROP_INS}/20.conf"
    assert (found.origins["podsPerCore"].layer, found.origins["podsPerCore"].where) == (Layer.FILE, CONFIG)
    assert (found.origins["registryBurst"].layer, found.origins["registryBurst"].where) == (
        Layer.FLAG,
        "--registry-burst=44",
    )
    assert found.origins["port"].layer is Layer.DEFAULT


@pytest.mark.parametrize("version", EVERY_WAY)
def test_maps_gain_keys_and_lists_are_replaced(version: str) -> None:
    found = started(
        version,
        "clusterDNS: [10.0.0.1, 10.0.0.2]\nfeatureGates: {GracefulNodeShutdown: true}\n",
        drop_ins=("clusterDNS: [10.0.0.3]\nfeatureGates: {CPUManagerPolicyAlphaOptions: true}\n",),
    )
    assert found.effective["clusterDNS"] == ["10.0.0.3"]
    assert found.effective["featureGates"] == {"CPUManagerPolicyAlphaOptions": True, "GracefulNodeShutdown": True}


def test_in_1_28_the_defaults_of_a_drop_in_win_and_zeros_never_win() -> None:
    found = started(
        "1.28.3", "maxPods: 10\nfailSwapOn: false\n", drop_ins=("registryPullQPS: 0\nenableServer: false\n",)
    )
    effective = found.effective
    assert (effective["maxPods"], effective["failSwapOn"]) == (110, True)
    assert (effective["registryPullQPS"], effective["enableServer"]) == (5, True)
    assert found.origins["maxPods"].layer is Layer.DEFAULT


@pytest.mark.parametrize(("version", "pods"), [("1.29.1", 10), ("1.31.1", 10), ("1.32.1", 110), ("1.36.3", 110)])
def test_null_is_ignored_until_1_31_and_means_the_built_in_default_afterwards(version: str, pods: int) -> None:
    assert started(version, "maxPods: 10\n", drop_ins=("maxPods: null\n",)).effective["maxPods"] == pods


@pytest.mark.parametrize(
    ("version", "resolver"), [("1.28.3", "/b"), ("1.29.1", "/a"), ("1.31.1", "/a"), ("1.32.1", "/b")]
)
def test_resolvconf_has_another_name_inside_the_kubelet(version: str, resolver: str) -> None:
    found = started(version, "resolvConf: /a\n", drop_ins=("resolvConf: /b\n",))
    assert found.effective["resolvConf"] == resolver
    assert bool(said(found, MessageLevel.POLICY)) is (resolver == "/a")


@pytest.mark.parametrize("version", ["1.29.1", "1.36.3"])
def test_an_unknown_field_is_dropped_without_a_message_of_the_kubelet_but_rollout_reports_it(version: str) -> None:
    found = started(version, "", drop_ins=("serialiseImagePulls: false\n",))
    assert (found.starts, found.ignored, said(found, MessageLevel.WARNING)) == (True, (), [])
    message = found.messages[0]
    assert (message.reference, str(message.place)) == ("unknown-field", f"{DROP_INS}/10.conf:3:1")


def test_a_kubelet_1_28_warns_of_an_unknown_field_in_a_drop_in() -> None:
    assert started("1.28.3", "", drop_ins=("foo: 1\n",)).ignored == ("foo",)


@pytest.mark.parametrize("version", EVERY_WAY)
def test_an_empty_drop_in_and_one_without_kind_are_fatal(version: str) -> None:
    for content in ("", "maxPods: 5\n"):
        found = started(version, HEAD, drop_ins=(content,), bare=True)
        assert not found.starts
        walking = f'failed to merge kubelet configs: failed to walk through kubelet dropin directory "{DROP_INS}": '
        assert said(found)[0].startswith(f"{walking}failed to load kubelet dropin file, path: {DROP_INS}/10.conf, ")


def test_a_key_written_twice_is_fatal_from_1_29_on() -> None:
    assert started("1.28.3", "", drop_ins=("maxPods: 5\nmaxPods: 6\n",)).starts
    assert references(started("1.29.1", "", drop_ins=("maxPods: 5\nmaxPods: 6\n",)), MessageLevel.FATAL) == [
        "duplicate-key"
    ]


def test_kind_and_version_must_be_right_from_1_32_on() -> None:
    other = "apiVersion: kubelet.config.k8s.io/v2\nkind: KubeletConfiguration\nmaxPods: 5\n"
    assert started("1.31.1", HEAD, drop_ins=(other,), bare=True).effective["maxPods"] == 5
    found = started("1.32.1", HEAD, drop_ins=(other,), bare=True)
    assert "unknown apiVersion/kind: kubelet.config.k8s.io/v2, Kind=KubeletConfiguration" in said(found)[0]
    without = started("1.32.1", HEAD, drop_ins=("kind: KubeletConfiguration\n",), bare=True)
    assert said(without)[0].endswith("unknown apiVersion/kind: /, Kind=KubeletConfiguration")


def test_the_trap_of_parallel_pulls() -> None:
    """The base has its defaults before the merge, so serializeImagePulls counts as written there."""
    assert started("1.36.3", "maxParallelImagePulls: 5\n").starts
    found = started("1.36.3", "", drop_ins=("maxParallelImagePulls: 5\n",))
    assert "unless SerializeImagePulls (--serialize-image-pulls) is set to false" in said(found)[0]
    assert started("1.36.3", "", drop_ins=("maxParallelImagePulls: 5\nserializeImagePulls: false\n",)).starts


def test_the_trap_of_the_empty_list() -> None:
    """From 1.32 on any --config-dir, even an empty one, writes the base out again, and empty lists get lost."""
    written = "enforceNodeAllocatable: []\n"
    assert "enforceNodeAllocatable" not in started("1.36.3", written).effective
    assert "enforceNodeAllocatable" not in started("1.31.1", written, drop_ins=()).effective
    found = started("1.36.3", written, drop_ins=())
    assert found.effective["enforceNodeAllocatable"] == ["pods"]
    assert found.origins["enforceNodeAllocatable"].layer is Layer.DEFAULT


def test_1_28_and_1_29_require_a_variable() -> None:
    config, drop_in = File(CONFIG, HEAD.encode()), File(f"{DROP_INS}/10.conf", HEAD.encode())
    for version, starts in (("1.28.3", False), ("1.29.1", False), ("1.30.1", True)):
        assert outcome(versions.known(version), Sources(config=config, drop_ins=(drop_in,))).starts is starts


def test_before_1_28_the_flag_is_unknown() -> None:
    assert said(started("1.27.1", "", drop_ins=())) == ["failed to parse kubelet flag: unknown flag: --config-dir"]


def test_a_wrong_type_is_found_in_its_drop_in() -> None:
    found = started("1.36.3", "", drop_ins=("maxPods: 5\n", "maxPods: many\n"))
    assert "cannot unmarshal string" in said(found)[0]
    assert str(found.messages[0].place) == f"{DROP_INS}/20.conf:3:1"


def test_drop_ins_without_a_file_override_the_legacy_defaults() -> None:
    found = started("1.36.3", None, drop_ins=("maxPods: 5\n",))
    assert (found.effective["maxPods"], found.effective["readOnlyPort"]) == (5, 10255)


@pytest.mark.parametrize("version", ["1.29.1", "1.31.1", "1.36.1"])
def test_an_error_of_yaml_in_a_drop_in_has_no_step_of_decoding(version: str) -> None:
    found = started(version, "", drop_ins=("maxPods: [\n",))
    assert f"path: {DROP_INS}/10.conf, error: yaml: " in said(found)[0]
