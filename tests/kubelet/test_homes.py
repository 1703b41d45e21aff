"""Intents: their valid values, their homes by kubelet and runtime, and the messages where there is no home."""

from __future__ import annotations

import pytest

from rollout.core.model.inventory import Level
from rollout.core.model.settings import IfUnsupported, Setting, Value
from rollout.kubelet import homes, versions
from rollout.kubelet.homes import OWN_VALUES, InFlag, InRuntime, NoHome, Skipped, own_values_for_many, shared_own_values
from rollout.kubelet.intents import DEADLINE, DEADLINE_FLAG, DOWNLOADS, INTENTS, MIRRORS
from rollout.kubelet.runtimes.description import Runtime, RuntimeVersion, parse


def at(setting: Setting, kubelet: str, runtime: Runtime, printed: str = "") -> object:
    return homes.home(setting, versions.known(kubelet), runtime, parse(printed))


@pytest.mark.parametrize(
    ("printed", "number", "text"),
    [
        ("containerd github.com/containerd/containerd v1.7.24 88bf19b2105c", (1, 7, 24), "1.7.24"),
        ("containerd containerd.io 1.6.39 ab12", (1, 6, 39), "1.6.39"),
        ("containerd github.com/containerd/containerd/v2 v2.3.0-rc.1 ab12", (2, 3, 0), "2.3.0-rc.1"),
        ("containerd github.com/containerd/containerd 1.7.12 ", (1, 7, 12), "1.7.12"),
        ("containerd github.com/containerd/containerd 1.7.24~ds1-6+b2 1.7.24", (1, 7, 24), "1.7.24~ds1-6+b2"),
        ("crio version 1.30.14", (1, 30, 14), "1.30.14"),
        ("cri-dockerd 0.3.15 (c1c566e)", (0, 3, 15), "0.3.15"),
        ("Docker version 24.0.7, build afdd53b", (24, 0, 7), "24.0.7"),
    ],
)
def test_versions_as_runtimes_print_them(printed: str, number: tuple[int, int, int], text: str) -> None:
    found = parse(printed)
    assert found is not None
    assert (found.number, found.text) == (number, text)


@pytest.mark.parametrize("printed", ["", "containerd", "containerd 1.7", "crio version unknown"])
def test_unreadable_versions(printed: str) -> None:
    assert parse(printed) is None


def test_the_home_of_an_intent_depends_on_the_runtime_not_on_the_kubelet() -> None:
    for kubelet in ("1.20.15", "1.23.17", "1.24.0", "1.36.3"):
        assert at(Setting(DEADLINE, "5m"), kubelet, Runtime.CONTAINERD, "v1.7.24") == InRuntime(DEADLINE, "5m")
        assert at(Setting(DEADLINE, "5m"), kubelet, Runtime.CRI_DOCKERD) == InRuntime(DEADLINE, "5m")
    assert at(Setting(DEADLINE, "5m"), "1.23.17", Runtime.DOCKERSHIM) == InFlag(DEADLINE_FLAG, "5m", "duration")
    assert at(Setting(DOWNLOADS, 6), "1.23.17", Runtime.DOCKERSHIM) == InRuntime(DOWNLOADS, 6)


def test_the_kubelets_flag_under_its_own_name_is_set_on_the_kubelet() -> None:
    flag = Setting(DEADLINE_FLAG, "5m")
    assert at(flag, "1.23.17", Runtime.DOCKERSHIM) == InFlag(DEADLINE_FLAG, "5m", "duration")
    gone = at(flag, "1.24.0", Runtime.CONTAINERD, "v2.1.0")
    assert isinstance(gone, NoHome)
    assert gone.reason.startswith(f"{DEADLINE_FLAG} was removed in 1.24; this kubelet would not start")
    deaf = at(flag, "1.23.17", Runtime.CRIO, "1.23.0")
    assert isinstance(deaf, NoHome)
    assert "only dockershim uses it" in deaf.reason


@pytest.mark.parametrize(
    ("runtime", "printed", "reference"),
    [
        (Runtime.UNKNOWN, "v1.7.0", "runtime-unknown"),
        (Runtime.CONTAINERD, "", "runtime-version-unknown"),
        (Runtime.CONTAINERD, "v3.0.0", "runtime-version-unknown"),
        (Runtime.CRIO, "", "runtime-version-unknown"),
        (Runtime.CONTAINERD, "v1.6.39", "setting-unsupported"),
        (Runtime.CRIO, "1.29.1", "setting-unsupported"),
    ],
)
def test_without_a_home_the_node_is_refused_or_the_setting_skipped(
    runtime: Runtime, printed: str, reference: str
) -> None:
    found = at(Setting(DEADLINE, "5m"), "1.29.3", runtime, printed)
    assert isinstance(found, NoHome)
    assert found.reference == reference
    skipped = at(Setting(DEADLINE, "5m", IfUnsupported.SKIP), "1.29.3", runtime, printed)
    assert skipped == Skipped(f"{DEADLINE} skipped: {found.reason.removeprefix(f'{DEADLINE}: ')}")


def test_versions_are_compared_as_numbers() -> None:
    assert RuntimeVersion(1, 7, 9) < RuntimeVersion(1, 7, 10) < RuntimeVersion(2, 0, 0)


GOOD: list[tuple[str, Value]] = [
    (DEADLINE, "5m"),
    (DEADLINE_FLAG, "1m30s"),
    (DOWNLOADS, 1),
    (MIRRORS, {"docker.io": ["https://mirror.example"]}),
    (MIRRORS, {"registry.example:5000": ["http://10.0.0.1:5000/v2/proxy", "https://[fd00::1]:443"]}),
]
BAD: list[tuple[str, Value]] = [
    (DEADLINE, "0s"),
    (DEADLINE, "-1m"),
    (DEADLINE, 300),
    (DEADLINE_FLAG, "5 minutes"),
    (DOWNLOADS, 0),
    (DOWNLOADS, -1),
    (DOWNLOADS, True),
    (DOWNLOADS, "6"),
    (DOWNLOADS, 2**31),
    (MIRRORS, {}),
    (MIRRORS, ["https://mirror.example"]),
    (MIRRORS, {"docker.io": []}),
    (MIRRORS, {"docker.io": "https://mirror.example"}),
    (MIRRORS, {"docker.io": ["mirror.example"]}),
    (MIRRORS, {"docker.io": ["https://user:secret@mirror.example"]}),
    (MIRRORS, {"docker.io": ["https://mirror.example?x=1"]}),
    (MIRRORS, {"docker.io": ['https://mirror.example"]\n[x']}),
    (MIRRORS, {"docker.io": ["https://m.example", "https://m.example/"]}),
    (MIRRORS, {"https://docker.io": ["https://m.example"]}),
    (MIRRORS, {"../etc": ["https://m.example"]}),
    (MIRRORS, {"..": ["https://m.example"]}),
]


@pytest.mark.parametrize(("name", "value"), GOOD)
def test_valid_values(name: str, value: Value) -> None:
    assert homes.check({name: Setting(name, value)}) == ()


@pytest.mark.parametrize(("name", "value"), BAD)
def test_invalid_values(name: str, value: Value) -> None:
    (problem,) = homes.check({name: Setting(name, value, source="playbook p")})
    assert problem.reference == "setting-value"
    assert name in problem.message
    assert problem.message.endswith("(playbook p)")
    assert "secret" not in problem.message


def test_a_misspelt_intent_has_a_suggestion() -> None:
    for name in INTENTS:
        (problem,) = homes.check({name[:-1]: Setting(name[:-1], "5m")})
        assert name in problem.hint


# Values that can be right on one node only are refused for several, by plan and by check.


def said(value: str, name: str = "--node-ip") -> dict[str, Setting]:
    return {name: Setting(name, value, source="settings")}


@pytest.mark.parametrize("name", OWN_VALUES)
def test_one_value_for_several_nodes_is_a_mistake(name: str) -> None:
    found = shared_own_values(dict.fromkeys(("n1", "n2", "n3"), said("a", name)), ("n1", "n2"))
    assert [problem.reference for problem in found] == ["one-nodes-own"]
    assert f"{name} has one value for 2 nodes: n[1-2] (settings)" in found[0].message


def test_one_value_for_each_node_is_no_mistake() -> None:
    assert shared_own_values({"n1": said("a"), "n2": said("b"), "n3": {}}, ("n1", "n2", "n3")) == ()


def test_one_value_for_the_only_selected_node_is_no_mistake() -> None:
    assert shared_own_values(dict.fromkeys(("n1", "n2"), said("a")), ("n1",)) == ()


@pytest.mark.parametrize(("nodes", "mistakes"), [(None, 1), (frozenset({"n1", "n2"}), 1), (frozenset({"n1"}), 0)])
def test_a_level_of_the_inventory(nodes: frozenset[str] | None, mistakes: int) -> None:
    assert len(own_values_for_many(Level("g", nodes, said("a")))) == mistakes
