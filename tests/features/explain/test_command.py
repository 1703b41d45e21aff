"""`rollout explain` as typed."""

from __future__ import annotations

from pathlib import Path

import pytest

from rollout.cli.main import run
from rollout.kubelet.explained.explanation import every_name
from rollout.kubelet.explained.references import references
from tests.documents import only


def test_a_field_is_explained(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["explain", "registryPullQPS", "--kubelet", "v1.33.4"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "registryPullQPS  field, int32",
        "  How many pulls a second may begin; 0: no limit.",
        "  since 1.20 or before",
        "  known to kubelet 1.33",
        "  default: 5",
        "  home: a field of the --config file (and of drop-ins where --config-dir is set)",
        "  the same as: --registry-qps; the flag overrides the field",
        "  on change: restarts kubelet.service (restart-kubelet)",
        "  takes effect: in image pulls that begin later (pkg/kubelet/images/helpers.go)",
        "  it also changes: the load of registries",
        "  trap: a pull over the limit fails at once with `pull QPS exceeded`; it is not delayed, and the container backs off",
        "  trap: pulls that waited behind one that hung all start when it ends, and fail by this limit",
        "  source: pkg/kubelet/images/helpers.go (TryAccept)",
    ]


def test_a_flag_is_accepted_with_and_without_dashes(capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("--registry-qps", "registry-qps"):
        assert run(["explain", name, "-o", "json"]) == 0
        document = only(capsys.readouterr().out)
        assert (document["kind"], document["name"], document["twins"]) == (
            "Explanation",
            "--registry-qps",
            ["registryPullQPS"],
        )


def test_a_search_finds_names_first_then_texts(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["explain", "--search", "pullqps"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[1] == "  registryPullQPS: How many pulls a second may begin; 0: no limit."
    assert run(["explain", "--search", "DRIFT", "-o", "json"]) == 0
    topics = only(capsys.readouterr().out)["topics"]
    assert {topic["kind"] for topic in topics if topic["name"] == "drifted"} == {"reference"}
    for topic in topics:
        assert run(["explain", topic["name"].replace("NAME", "x")]) == 0, topic


def test_the_list_has_every_name(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["explain", "--list"]) == 0
    text = capsys.readouterr().out
    for name in (*every_name(), *references()):
        assert f"\n  {name}" in text


@pytest.mark.parametrize(
    ("words", "reference"),
    [
        ([], "what-to-explain"),
        (["maxPods", "--list"], "what-to-explain"),
        (["--search", "xyzzy"], "nothing-found"),
    ],
)
def test_one_thing_is_explained_or_listed(words: list[str], reference: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["explain", *words]) == 2
    assert f"[{reference}]" in capsys.readouterr().err


@pytest.mark.parametrize(
    "runtime",
    ["cri-dockerd-0.3.15", "cri-dockerd 0.3.15", "cri-dockerd:v0.3.15", "CRI-dockerd", "crio", "cri-o-1.32.4"],
)
def test_a_runtime_name_may_contain_a_dash(runtime: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["explain", "imagePullProgressDeadline", "--runtime", runtime, "-o", "json"]) == 0
    homes = only(capsys.readouterr().out)["homes"]
    assert {home["runtime"] for home in homes} == {"cri-dockerd" if "dockerd" in runtime else "CRI-O"}


@pytest.mark.parametrize(
    ("arguments", "reference"),
    [
        (["registryPullQps"], "setting-unknown"),
        (["maxPods", "--kubelet", "latest"], "kubelet-unknown"),
        (["maxPods", "--kubelet", "1.12"], "kubelet-unknown"),
        (["imagePullProgressDeadline", "--runtime", "rkt"], "runtime-unknown"),
    ],
)
def test_unknown_names_are_exit_code_2(
    arguments: list[str], reference: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["explain", *arguments]) == 2
    assert f"[{reference}]" in capsys.readouterr().err


def test_a_node_is_one_of_the_projects_cluster(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "inventories").mkdir()
    (tmp_path / "inventories/small.yaml").write_text("cluster: small\napiServer: v1.30.0\nnodes: {'n[1-2]': }\n")
    (tmp_path / "rollout.toml").write_text('cluster = "small"\n')
    assert run(["explain", "maxPods", "--node", "n3"]) == 2
    assert "small has no node `n3`" in capsys.readouterr().err
    assert run(["explain", "maxPods"]) == 0
    assert run(["explain", "maxPods", "--cluster", "small"]) == 2
    assert "[no-node]" in capsys.readouterr().err
