"""What the agent reports of a node's container runtimes, and of what its kubelet reads in addition to the usual files."""

from __future__ import annotations

import os

import pytest

from rollout.core.model.snapshot import Process, Snapshot
from tests.agent.node import Node

pytestmark = pytest.mark.process

CONTAINERD = "/etc/containerd/config.toml"


def snapshot(node: Node) -> Snapshot:
    found = node.snapshot()
    assert isinstance(found, Snapshot), found
    return found


def told(node: Node) -> set[str]:
    """Paths that exist, by the snapshot."""
    return {path for path, file in snapshot(node).files.items() if file.kind != "absent"}


def kubelet_runs(node: Node, *words: str) -> None:
    node.write("/proc/100/cmdline", "".join(f"{word}\0" for word in ("kubelet", *words)).encode())


# ------------------------------------------------------------------------------------------------------------ services


def test_a_node_without_a_runtime_of_a_known_name_has_no_services(node: Node) -> None:
    measured = snapshot(node).measurement
    assert (measured.services, measured.unit is not None) == ({}, True)


def test_each_installed_runtime_is_reported_with_its_process(node: Node) -> None:
    node.serve("docker.service", "/usr/bin/dockerd", "-H", "fd://", pid=300)
    node.serve("cri-docker.service", "/usr/bin/cri-dockerd", "--image-pull-progress-deadline=5m", pid=400)
    services = snapshot(node).measurement.services
    assert set(services) == {"docker.service", "cri-docker.service"}
    docker = services["docker.service"]
    assert docker.process == Process(300, ("/usr/bin/dockerd", "-H", "fd://"))
    assert set(docker.unit.properties) == {
        *("LoadState", "ActiveState", "SubState", "MainPID", "NRestarts", "FragmentPath", "DropInPaths"),
        *("UnitFileState", "NeedDaemonReload", "RestartUSec", "TimeoutStopUSec", "ExecMainStartTimestampMonotonic"),
        *("KillMode", "ControlGroup"),
    }
    deadline = services["cri-docker.service"].process
    assert deadline is not None
    assert deadline.command_line[1] == "--image-pull-progress-deadline=5m"


def test_a_runtime_that_is_dead_has_no_process(node: Node) -> None:
    node.write("/usr/lib/systemd/system/crio.service", b"")
    node.standin("crio.service.300.auto-restart")
    service = snapshot(node).measurement.services["crio.service"]
    assert (service.unit.properties["SubState"], service.process) == ("auto-restart", None)


def test_runtimes_do_not_change_what_is_reported_of_the_kubelet(node: Node) -> None:
    node.serve("containerd.service", "containerd")
    measured = snapshot(node).measurement
    assert measured.unit is not None
    assert (measured.unit.name, measured.unit.properties["MainPID"]) == ("kubelet.service", "100")
    assert measured.process is not None
    assert measured.process.pid == 100


def test_status_and_verify_measure_them_too(node: Node) -> None:
    node.serve("crio.service", "crio")
    assert set(node.verify().measurement.services) == {"crio.service"}


# --------------------------------------------------------------------------------------------------------------- files


def test_unit_files_drop_ins_and_environment_files_with_their_content(node: Node) -> None:
    node.serve("docker.service", "dockerd")
    for path in ("/etc/systemd/system/docker.service", "/etc/systemd/system/docker.service.d/proxy.conf", "/etc/env"):
        node.write(path, path.encode())
    node.standin(
        "unit.docker.service",
        "dropins=/etc/systemd/system/docker.service.d/proxy.conf environment='/etc/env (ignore_errors=no)'\n",
    )
    files = snapshot(node).files
    for path in ("/etc/systemd/system/docker.service", "/etc/systemd/system/docker.service.d/proxy.conf", "/etc/env"):
        assert files[path].content == path.encode()
    assert files["/etc/systemd/system/docker.service.d/90-rollout.conf"].kind == "absent"


def test_containerds_file_its_imports_and_theirs(node: Node) -> None:
    node.serve("containerd.service", "containerd")
    node.write(
        CONTAINERD,
        b'version = 2\nimports = ["/etc/more/*.toml", \'near.toml\'] # two\n[plugins]\n  path = "/etc/passwd"\n',
    )
    node.write("/etc/containerd/near.toml", b'imports = [\n  "/etc/deep/a.toml",\n  "/etc/deep/b.toml",\n]\n')
    paths = ("/etc/more/1.toml", "/etc/more/2.toml", "/etc/deep/a.toml", "/etc/containerd/conf.d/x.toml")
    for path in (*paths, "/etc/more/3.conf", "/etc/passwd"):
        node.write(path, b"version = 2\n")
    assert {path for path in told(node) if path.startswith(("/etc/containerd", "/etc/more", "/etc/deep"))} == {
        *paths,
        CONTAINERD,
        "/etc/containerd/near.toml",
    }
    assert "/etc/passwd" not in told(node)


def test_containerds_file_is_the_one_it_runs_with(node: Node) -> None:
    node.write("/opt/c.toml", b"version = 2\n")
    for words in (("-c", "/opt/c.toml"), ("--config", "/opt/c.toml"), ("--config=/opt/c.toml",)):
        node.serve("containerd.service", "containerd", *words)
        files = snapshot(node).files
        assert files["/opt/c.toml"].kind == "regular"
        assert CONTAINERD not in files


def test_registries_in_config_path_and_in_the_default_folders(node: Node) -> None:
    node.serve("containerd.service", "containerd")
    node.write(CONTAINERD, b'  config_path = "/etc/registries:/etc/containerd/certs.d"\n')
    hosts = ("/etc/registries/docker.io/hosts.toml", "/etc/containerd/certs.d/quay.io/hosts.toml")
    for path in hosts:
        node.write(path, b'server = "x"\n')
    files = snapshot(node).files
    assert [files[path].content for path in hosts] == [b'server = "x"\n'] * 2
    assert files["/etc/registries"].kind == "directory"
    assert files["/etc/docker/certs.d"].kind == "absent"


def test_a_registrys_folder_that_holds_certificates_only(node: Node) -> None:
    """Only certificates are read there; a hosts.toml beside them would change that."""
    node.serve("containerd.service", "containerd")
    node.write("/etc/containerd/certs.d/a.example/ca.crt", b"x")
    files = snapshot(node).files
    assert files["/etc/containerd/certs.d/a.example"].kind == "directory"
    assert "/etc/containerd/certs.d/a.example/hosts.toml" not in files


@pytest.mark.parametrize(
    "line", [b'imports = ["/etc/$(reboot)/*"]', b'imports = ["../../etc/x;y"]', b"imports = [", b"\xff"]
)
def test_imports_that_are_no_list_of_paths_do_no_harm(node: Node, line: bytes) -> None:
    node.serve("containerd.service", "containerd")
    node.write(CONTAINERD, line + b"\n")
    assert snapshot(node).files[CONTAINERD].content == line + b"\n"


def test_circular_imports_end(node: Node) -> None:
    node.serve("containerd.service", "containerd")
    node.write(CONTAINERD, b'imports = ["/etc/containerd/a.toml"]\n')
    node.write("/etc/containerd/a.toml", b'imports = ["/etc/containerd/config.toml"]\n')
    assert told(node) >= {CONTAINERD, "/etc/containerd/a.toml"}


def test_more_files_than_an_answer_may_contain(node: Node) -> None:
    node.serve("containerd.service", "containerd")
    for number in range(70):
        node.write(f"/etc/containerd/certs.d/r{number:02}/hosts.toml", b"x")
    found = snapshot(node)
    assert len([path for path in found.files if path.endswith("hosts.toml")]) == 64
    assert "hosts-truncated" in found.facts


def test_files_larger_than_a_line_are_sent_in_several_lines(node: Node) -> None:
    node.serve("containerd.service", "containerd")
    contents = {f"/etc/containerd/certs.d/r{number}/hosts.toml": bytes([number]) * 100_000 for number in range(5)}
    contents["/etc/containerd/certs.d/r9/hosts.toml"] = b"x" * 131_073
    for path, content in contents.items():
        node.write(path, content)
    files = snapshot(node).files
    large = contents.popitem()[0]
    assert {path: files[path].content for path in contents} == contents
    assert (files[large].size, files[large].content) == (131_073, None)


def test_crio_and_docker(node: Node) -> None:
    node.serve("crio.service", "crio")
    node.serve("docker.service", "dockerd", "--config-file=/etc/d.json", pid=400)
    paths = {"/etc/crio/crio.conf", "/etc/crio/crio.conf.d/10-crio.conf", "/etc/d.json"}
    for path in paths:
        node.write(path, b"x")
    files = snapshot(node).files
    assert all(files[path].kind == "regular" for path in paths)
    assert files["/etc/crio/crio.conf.d"].kind == "directory"
    assert files["/etc/crio/crio.conf.d/99-rollout.conf"].kind == "absent"


def test_the_kubelets_drop_ins_including_those_in_sub_folders(node: Node) -> None:
    kubelet_runs(node, "--config=/var/lib/kubelet/config.yaml", "--config-dir", "/etc/kubernetes/kubelet.conf.d")
    folder = "/etc/kubernetes/kubelet.conf.d"
    paths = {f"{folder}/10-a.conf", f"{folder}/.hidden.conf", f"{folder}/sub/20-b.conf"}
    for path in (*paths, f"{folder}/readme.md", f"{folder}/c.yaml"):
        node.write(path, b"x")
    found = snapshot(node)
    assert {path for path in found.files if path.startswith(folder)} == {*paths, folder}
    assert found.files[folder].kind == "directory"
    assert "config-dir-alpha" not in found.facts
    node.write("/proc/100/environ", b"HOME=/\0KUBELET_CONFIG_DROPIN_DIR_ALPHA=yes\0")
    assert "config-dir-alpha" in snapshot(node).facts


def test_a_kubelet_with_more_drop_ins_than_are_reported(node: Node) -> None:
    kubelet_runs(node, "--config-dir=/etc/d")
    for number in range(64):
        node.write(f"/etc/d/{number:02}.conf", b"x")
    assert "config-dir-truncated" not in snapshot(node).facts
    node.write("/etc/d/99.conf", b"x")
    found = snapshot(node)
    assert len([path for path in found.files if path.startswith("/etc/d/")]) == 64
    assert "config-dir-truncated" in found.facts


@pytest.mark.parametrize("name", ["10 odd.conf", "10-\udcff.conf", "10-\n.conf", "10-$x.conf"])
def test_a_file_with_a_name_outside_the_alphabet_is_reported(node: Node, name: str) -> None:
    """The kubelet reads it like any other; a plan must know that there is one."""
    kubelet_runs(node, "--config-dir=/etc/d")
    node.write("/etc/d/00-plain.conf", b"x")
    assert "odd-names" not in snapshot(node).facts
    node.write(f"/etc/d/{name}", b"x")
    assert snapshot(node).facts["odd-names"].startswith("1 /etc/d/10")


def test_the_state_files_of_the_cpu_and_memory_managers(node: Node) -> None:
    state = b'{"policyName":"none","defaultCpuSet":"","checksum":1353318690}'
    node.write("/var/lib/kubelet/cpu_manager_state", state)
    files = snapshot(node).files
    assert files["/var/lib/kubelet/cpu_manager_state"].content == state
    assert files["/var/lib/kubelet/memory_manager_state"].kind == "absent"


# --------------------------------------------------------------------------------------------------------------- facts


def test_the_version_of_cgroups(node: Node) -> None:
    assert "cgroup" not in snapshot(node).facts
    node.at("/sys/fs/cgroup").mkdir(parents=True)
    assert snapshot(node).facts["cgroup"] == "v1"
    node.write("/sys/fs/cgroup/cgroup.controllers", b"cpu\n")
    assert snapshot(node).facts["cgroup"] == "v2"


def test_when_kubeadm_last_rewrote_the_kubelets_file(node: Node) -> None:
    assert "kubeadm-upgraded" not in snapshot(node).facts
    copies = [f"/etc/kubernetes/tmp/kubeadm-kubelet-config{name}/config.yaml" for name in ("1", "-2026-11-01-10-00-00")]
    for seconds, path in zip((1_700_000_000, 1_800_000_000), copies, strict=True):
        node.write(path, b"old\n")
        os.utime(node.at(path), (seconds, seconds))
    assert snapshot(node).facts["kubeadm-upgraded"] == f"1800000000 {copies[1]}"
    assert node.verify().facts["kubeadm-upgraded"] == f"1800000000 {copies[1]}"
