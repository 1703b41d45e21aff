"""`rollout diagnose pod` as typed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rollout.cli.main import run
from tests.documents import only

POD = """\
apiVersion: v1
kind: Pod
metadata: {name: krds-0, namespace: shop}
spec:
  terminationGracePeriodSeconds: 5
  containers:
  - name: krds
    lifecycle: {preStop: {sleep: {seconds: 3}}}
  - name: agent
    lifecycle: {preStop: {exec: {command: [sh, -c, sleep 3; drain]}}}
"""


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("pod.yaml").write_text(POD)


def test_each_range_of_kubelets(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["diagnose", "pod", "pod.yaml"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "pod shop/krds-0: terminationGracePeriodSeconds 5",
        "  kubelet up to 1.21: at most 7 s, 2 s more than the grace period",
        "       5 s  the preStop hook of agent may use all of the grace period",
        "       2 s  every container gets at least 2 s",
        "  kubelet 1.22 to 1.27: at most 10 s, 5 s more than the grace period",
        "       5 s  the preStop hook of agent may use all of the grace period",
        "       5 s  the whole grace period again: the hook is not deducted",
        "  kubelet 1.28: at most 7 s, 2 s more than the grace period",
        "       5 s  the preStop hook of agent may use all of the grace period",
        "       2 s  every container gets at least 2 s",
        "  kubelet 1.29 and later: at most 7 s, 2 s more than the grace period",
        "       5 s  the preStop hook of agent may use all of the grace period",
        "       2 s  every container gets at least 2 s",
        "  Not counted: unmounting and network teardown, until the pod leaves the API.",
    ]


def test_one_kubelet_a_limit_and_an_upgrade(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["diagnose", "pod", "pod.yaml", "--kubelet", "v1.27.3", "--within", "8s"]) == 0
    out = capsys.readouterr().out.splitlines()
    assert out[1] == "  kubelet 1.22 to 1.27: at most 10 s, 5 s more than the grace period, over the limit of 8 s"
    assert out[4] == (
        "  kubelet 1.28: at most 7 s, 2 s more than the grace period, within the limit of 8 s; an upgrade makes it 3 s shorter"
    )


def test_the_kubelet_of_the_second_incident_is_older_than_every_table(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["diagnose", "pod", "pod.yaml", "--kubelet", "1.13.2", "-o", "json"]) == 0
    document = only(capsys.readouterr().out)
    assert document["budgets"][0] == {
        "kubelets": "up to 1.21",
        "seconds": 7,
        "withinLimit": None,
        "parts": [
            {"seconds": 5, "rule": "the preStop hook of agent may use all of the grace period"},
            {"seconds": 2, "rule": "every container gets at least 2 s"},
        ],
    }


def test_a_workload_with_a_sidecar(capsys: pytest.CaptureFixture[str]) -> None:
    sidecar = {"name": "proxy", "restartPolicy": "Always"}
    template = {"spec": {"initContainers": [sidecar], "containers": [{"name": "web"}]}}
    Path("web.json").write_text(
        json.dumps({"kind": "Deployment", "metadata": {"name": "web"}, "spec": {"template": template}})
    )
    assert run(["diagnose", "pod", "web.json", "--kubelet", "1.33"]) == 0
    assert capsys.readouterr().out.splitlines()[:2] == [
        "pod default/web: terminationGracePeriodSeconds 30",
        "  kubelet 1.29 and later: at most 32 s, 2 s more than the grace period",
    ]


@pytest.mark.parametrize(
    ("content", "arguments", "reference"),
    [
        (POD, ["--kubelet", "new"], "kubelet-unknown"),
        (POD, ["--within", "8"], "bad-limit"),
        ("kind: Pod\n", [], "bad-pod"),
        ("- 1\n", [], "bad-pod"),
        ("spec: {terminationGracePeriodSeconds: soon}\n", [], "bad-pod"),
        ("spec: {a: [}\n", [], "yaml-syntax"),
    ],
)
def test_bad_input_is_exit_code_2(
    content: str, arguments: list[str], reference: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("pod.yaml").write_text(content)
    assert run(["diagnose", "pod", "pod.yaml", *arguments]) == 2
    assert f"[{reference}" in capsys.readouterr().err


def test_a_pod_of_a_cluster_needs_a_kubeconfig_and_a_name(capsys: pytest.CaptureFixture[str]) -> None:
    Path("inventories").mkdir()
    Path("inventories/rno.yaml").write_text("cluster: rno\napiServer: v1.33.0\nnodes:\n  n1: {}\n")
    assert run(["diagnose", "pod", "shop/krds-0", "--cluster", "rno"]) == 2
    assert "[no-kubeconfig" in capsys.readouterr().err
    assert run(["diagnose", "pod", "pod.yaml", "--cluster", "rno"]) == 2
    assert "[bad-pod-name" in capsys.readouterr().err


@pytest.mark.parametrize(
    "document",
    [
        "kind: CronJob\nspec: {jobTemplate: {spec: {template: {spec: {terminationGracePeriodSeconds: 600, containers: [{name: a}]}}}}}\n",
        "kind: Service\nspec: {ports: []}\n",
        "kind: Deployment\nspec: {template: {spec: {}}}\n",
        "kind: Deployment\nspec: {template: {metadata: {name: a}}}\n",
    ],
)
def test_what_has_no_containers_is_no_pod_with_the_default_time(
    document: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("other.yaml").write_text(document)
    assert run(["diagnose", "pod", "other.yaml"]) == 2
    assert "[bad-pod]" in capsys.readouterr().err
