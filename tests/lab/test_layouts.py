"""The files of each kind of node let a kubelet of that version start without warnings."""

from __future__ import annotations

import re

import pytest

from rollout.adapters.files import FolderFiles
from rollout.app.load import load_cluster
from rollout.errors import UsageError
from rollout.kubelet.node import packaged
from rollout.lab import kubelet, layouts, runtimes
from rollout.lab.spec import NodeSpec
from rollout.lab.spec import node as lab_node
from tests.app.test_load import FakeSources
from tests.lab.trees import MemoryTree, NotingHost, running
from tests.places import ROOT

LAYOUTS = ("kubeadm-deb", "kubeadm-rpm", "plain")
WITH_DROP_INS = "kubeadm-dropin"
KINDS = [
    *((minor, "dockershim", "") for minor in range(20, 24)),
    *((minor, "cri-dockerd", "") for minor in (20, 23, 26)),
    *((minor, "containerd", "1.7.28") for minor in range(20, 36)),
    *((minor, "containerd", "2.1.4") for minor in range(31, 38)),
    *((minor, "cri-o", "1.34.1") for minor in range(24, 38)),
]


def spec(minor: int, runtime: str, version: str, layout: str) -> NodeSpec:
    labels = {"kubeletVersion": f"v1.{minor}.1", "containerRuntime": runtime, "layout": layout}
    return NodeSpec("n1", "n1", "127.64.0.1", {**labels, **({"containerRuntimeVersion": version} if version else {})})


@pytest.mark.parametrize("layout", [*LAYOUTS, WITH_DROP_INS])
@pytest.mark.parametrize(("minor", "runtime", "version"), KINDS)
def test_the_kubelet_starts_without_a_warning(minor: int, runtime: str, version: str, layout: str) -> None:
    node = spec(minor, runtime, version, layout)
    tree = MemoryTree(links={"/etc/systemd/system/multi-user.target.wants/kubelet.service": "x"})
    for path, text in layouts.files(node, 10).items():
        tree.write(path, text)
    host = NotingHost()
    running(tree, host, node.version)
    (arguments,) = [words for words in host.processes.values() if words[0].endswith("kubelet")]
    start = kubelet.start(node.version, arguments, tree)
    assert start.status is None, start.journal
    assert not [line for line in start.journal if "lenient" in line.lower()]


def test_drop_ins_exist_where_the_kubelet_needs_only_the_flag() -> None:
    def read(minor: int) -> bool:
        files = layouts.files(spec(minor, "containerd", "1.7.28", WITH_DROP_INS), 10)
        passed = any(f"--config-dir={packaged.CONFIG_DIR}" in text for text in files.values())
        assert passed == any(path.startswith(packaged.CONFIG_DIR) for path in files)
        return passed

    assert [minor for minor in range(20, 37) if read(minor)] == list(range(30, 37))


def test_the_socket_moves_from_the_flags_to_the_file_when_kubeadm_does_so() -> None:
    def parts(minor: int) -> tuple[str, str]:
        files = layouts.files(spec(minor, "cri-o", "1.34.1", "kubeadm-rpm"), 10)
        return files["/var/lib/kubelet/kubeadm-flags.env"], files["/var/lib/kubelet/config.yaml"]

    flags, config = parts(34)
    assert "--container-runtime-endpoint=unix:///var/run/crio/crio.sock" in flags
    assert 'containerRuntimeEndpoint: ""' in config
    flags, config = parts(35)
    assert flags == 'KUBELET_KUBEADM_ARGS=""\n'
    assert 'containerRuntimeEndpoint: "unix:///var/run/crio/crio.sock"' in config


@pytest.mark.parametrize(
    ("version", "line", "program"),
    [("1.7.28", "version = 2", "containerd v1.7.28"), ("2.1.4", "version = 3", "containerd/v2 v2.1.4")],
)
def test_containerd_reads_its_own_version_of_its_file(version: str, line: str, program: str) -> None:
    node = spec(34, "containerd", version, "kubeadm-deb")
    assert layouts.files(node, 10)["/etc/containerd/config.toml"].startswith(line)
    assert program in layouts.programs(node)["containerd"]


def test_the_second_cluster_matches_its_first_line() -> None:
    iad = load_cluster(FolderFiles(ROOT), FakeSources(), "iad")
    nodes = [NodeSpec(node.name, node.address, "", dict(node.labels)) for node in iad.nodes.values()]
    assert len(nodes) == 300
    assert {node.minor for node in nodes} == {33, 34, 35, 36}
    assert {(node.runtime, node.runtime_version) for node in nodes} == {
        ("containerd", "1.7.28"),
        ("containerd", "2.1.4"),
        ("cri-o", "1.34.1"),
    }
    assert {node.layout for node in nodes} == set(LAYOUTS)
    assert not [node.name for node in nodes if node.minor >= 36 and node.runtime_version.startswith("1.7")]
    assert {len(iad.nodesets[zone]) for zone in ("us-iad-1a", "us-iad-1b", "us-iad-1c")} == {91, 118}
    assert len(iad.nodesets["gpu"]) == 27


@pytest.mark.parametrize(
    ("labels", "served"),
    [
        ({"kubeletVersion": "v1.30.1", "containerRuntime": "crio"}, "cri-o"),
        ({"kubeletVersion": "1.22.17", "containerRuntime": "docker"}, "dockershim"),
        ({"kubeletVersion": "1.25.1", "containerRuntime": "docker"}, "cri-dockerd"),
        ({"kubeletVersion": "1.31"}, "containerd"),
        ({}, "containerd"),
    ],
)
def test_a_runtime_has_every_name_that_check_knows(labels: dict[str, str], served: str) -> None:
    found = lab_node("n1", "n1", "127.64.0.1", labels)
    assert found.runtime == served
    assert layouts.files(found, 10)
    assert runtimes.pull_tools(found.runtime)


@pytest.mark.parametrize(
    ("labels", "said"),
    [
        ({"kubeletVersion": "1.30", "containerRuntime": "rkt"}, "containerRuntime: rkt"),
        ({"kubeletVersion": "30"}, "kubeletVersion: 30"),
        ({"kubeletVersion": "latest"}, "kubeletVersion: latest"),
        ({"kubeletVersion": "v1.19.16"}, "kubeletVersion: v1.19.16"),
        ({"kubeletVersion": "v2.0.0"}, "kubeletVersion: v2.0.0"),
    ],
)
def test_a_node_that_the_lab_has_no_files_for_is_named(labels: dict[str, str], said: str) -> None:
    with pytest.raises(UsageError, match=re.escape(f"n1: the lab serves no node with the label {said}")):
        lab_node("n1", "n1", "127.64.0.1", labels)
