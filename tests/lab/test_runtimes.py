"""The lab's container runtimes: how they start, what a SIGHUP does to them, and pulls in flight."""

from __future__ import annotations

import pytest

from rollout.core.model.report import RemoteAnswer
from rollout.core.model.snapshot import Snapshot
from rollout.kubelet.agent import agent_call
from rollout.kubelet.agent.agent_answer import parse_snapshot
from rollout.kubelet.runtimes.containerd.stand_in import INGEST
from rollout.kubelet.runtimes.dockerd.stand_in import TMP as DOCKERS_TMP
from rollout.lab import layouts, pulls, runtimes, systemctl
from rollout.lab.machine import KUBELET, LabMachine
from tests.agent.node import PROGRAM
from tests.lab.labs import Lab
from tests.lab.test_layouts import KINDS, spec
from tests.lab.trees import MemoryTree, NotingHost, kubeadm, running

CONTAINERD, DOCKER, CRI_DOCKERD, CRIO = "containerd.service", "docker.service", "cri-docker.service", "crio.service"
TOML, JSON, CRIO_DROP_IN = "/etc/containerd/config.toml", "/etc/docker/daemon.json", "/etc/crio/crio.conf.d/99.conf"


def node(runtime: str, version: str = "v1.28.1") -> tuple[LabMachine, MemoryTree, NotingHost]:
    tree, host = kubeadm(version, runtime=runtime), NotingHost()
    return running(tree, host, version.lstrip("v")), tree, host


def call(machine: LabMachine, line: str, now: float) -> int:
    machine.advance(now)
    return systemctl.answer(machine, tuple(line.split()), now).status


def journal(machine: LabMachine) -> list[str]:
    return [line.text for line in machine.journal]


# -------------------------------------------------------------------------------------------------------------- starting


@pytest.mark.parametrize(("minor", "runtime", "version"), KINDS)
def test_every_runtime_of_the_lab_starts_with_its_own_files(minor: int, runtime: str, version: str) -> None:
    made = spec(minor, runtime, version, "kubeadm-deb")
    tree = MemoryTree()
    for path, text in layouts.files(made, 10).items():
        tree.write(path, text)
    host = NotingHost()
    machine = running(tree, host, made.version)
    names = {words[0].rpartition("/")[2] for words in host.processes.values()}
    assert names == {"kubelet"} | set(layouts.programs(made)) - {"kubelet", "docker"} | (
        {"dockerd"} if "docker" in layouts.programs(made) else set()
    )
    assert [service for service in machine.services.values() if service.start.status is not None] == []


@pytest.mark.parametrize(
    ("unit", "path", "content", "starts"),
    [
        (CONTAINERD, TOML, "version = 2\n", True),
        (CONTAINERD, TOML, "version = 4\n", False),
        (CONTAINERD, TOML, 'version = "2"\n', False),
        (CONTAINERD, TOML, "version = 2\n[plugins\n", False),
        (CONTAINERD, TOML, "[plugins.a]\nimage_pull_progress_timeout = 5\n", False),
        (CONTAINERD, TOML, '[plugins.a]\nimage_pull_progress_timeout = "5m"\nunknown = 1\n', True),
        (CONTAINERD, TOML, '[plugins.a]\nmax_concurrent_downloads = "3"\n', False),
        (CONTAINERD, TOML, 'imports = ["/etc/containerd/none.toml"]\n', False),
        (CONTAINERD, TOML, 'imports = ["/etc/containerd/conf.d/*.toml"]\n', True),
        (CRIO, CRIO_DROP_IN, '[crio.image]\npull_progress_timeout = "30s"\n', True),
        (CRIO, CRIO_DROP_IN, '[crio.image]\npull_progress_timeout = "30"\n', False),
        (CRIO, CRIO_DROP_IN, "[crio.image]\npull_progress_timeout = 30\n", False),
        (CRIO, CRIO_DROP_IN, "[crio.image\n", False),
        (DOCKER, JSON, '{"max-concurrent-downloads": 10}', True),
        (DOCKER, JSON, '{"max-concurrent-downloads": "10"}', False),
        (DOCKER, JSON, '{"max-concurrent-download": 10}', False),
        (DOCKER, JSON, '{"hosts": []', False),
        (DOCKER, JSON, "[]", False),
    ],
)
def test_errors_that_end_a_runtime(unit: str, path: str, content: str, starts: bool) -> None:
    tree = MemoryTree()
    tree.write(path, content)
    assert (runtimes.start(unit, "", ("/usr/bin/x",), tree).status is None) == starts


@pytest.mark.parametrize(
    ("flags", "starts"),
    [
        (("--image-pull-progress-deadline=5m",), True),
        (("--image-pull-progress-deadline", "5min"), False),
        (("--container-runtime-endpoint", "fd://"), True),
        (("--image-pull-progress=5m",), False),
    ],
)
def test_flags_of_cri_dockerd(flags: tuple[str, ...], starts: bool) -> None:
    assert (runtimes.start(CRI_DOCKERD, "", ("cri-dockerd", *flags), MemoryTree()).status is None) == starts


def test_containerd_1_does_not_read_version_3_and_imports_are_read() -> None:
    tree = MemoryTree()
    tree.write(TOML, "version = 3\n")
    assert runtimes.start(CONTAINERD, "1.7.28", ("containerd",), tree).status == 1
    assert runtimes.start(CONTAINERD, "2.1.4", ("containerd",), tree).status is None
    tree.write(TOML, 'imports = ["conf.d/*.toml"]\n')
    tree.write("/etc/containerd/conf.d/a.toml", "version =\n")
    assert runtimes.start(CONTAINERD, "2.1.4", ("containerd",), tree).status == 1


def test_a_restart_reports_a_runtime_that_does_not_start_and_it_is_retried() -> None:
    machine, tree, _ = node("containerd")
    before = tree.read(TOML) or b""
    tree.write(TOML, "version =\n")
    assert call(machine, "restart containerd", 200) == 1
    assert call(machine, "is-active containerd", 201) == 3
    assert call(machine, "is-active kubelet", 201) == 0
    tree.write(TOML, before.decode())
    assert call(machine, "is-active containerd", 210) == 0, "by itself, after its RestartSec"
    assert any("failed to load TOML" in text for text in journal(machine))


# ---------------------------------------------------------------------------------------------------------------- SIGHUP


def test_docker_reads_its_file_again_at_a_sighup_or_keeps_the_old_settings() -> None:
    machine, tree, _ = node("cri-dockerd")
    pid = machine.services[DOCKER].pid
    assert call(machine, f"kill -s HUP --kill-who=main {DOCKER}", 200) == 0
    assert "Reloaded configuration" in journal(machine)[-1]
    tree.write(JSON, "{")
    assert call(machine, f"kill -s HUP --kill-who=main {DOCKER}", 201) == 0
    assert "unable to configure the Docker daemon" in journal(machine)[-1]
    assert machine.services[DOCKER].pid == pid


def test_a_process_without_a_sighup_handler_dies_of_it() -> None:
    machine, _, _ = node("containerd")
    assert call(machine, f"kill -s HUP --kill-who=main {CONTAINERD}", 200) == 0
    assert call(machine, "is-active containerd", 200.1) == 3
    assert call(machine, "is-active containerd", 206) == 0
    assert call(machine, f"kill -s HUP --kill-who=main {DOCKER}", 207) == 1, "not there"
    assert call(machine, f"kill -s USR1 {CONTAINERD}", 208) == 1, "not in the lab"


# --------------------------------------------------------------------------------------------------------- pulls in flight


@pytest.mark.parametrize(
    ("runtime", "layer", "says"),
    [
        ("containerd", INGEST, True),
        ("cri-o", "", True),
        ("cri-dockerd", DOCKERS_TMP, True),
        ("dockershim", DOCKERS_TMP, False),
    ],
)
def test_a_pull_is_visible_where_the_runtime_shows_it_until_it_has_ended(runtime: str, layer: str, says: bool) -> None:
    machine, _, host = node(runtime, "v1.23.17")
    machine.pull(200)
    assert [path.startswith(layer) for path in host.layers] == ([True] if layer else [])
    assert any(pulls.IMAGE in text for text in journal(machine)) == says
    machine.end_pull(201)
    assert host.layers == set()
    before = len(machine.journal)
    machine.end_pull(202)
    assert len(machine.journal) == before, "it ends once"


@pytest.mark.parametrize("unit", [KUBELET, CONTAINERD])
def test_a_restart_cancels_it(unit: str) -> None:
    machine, _, host = node("containerd")
    machine.pull(200)
    call(machine, f"restart {unit}", 201)
    assert (machine.pulling, host.layers) == (False, set())


def test_a_node_without_a_running_kubelet_pulls_nothing() -> None:
    machine, _, host = node("containerd")
    call(machine, "stop kubelet", 200)
    machine.pull(201)
    assert (machine.pulling, host.layers) == (False, set())


# ------------------------------------------------------------------------------------------------- as the agent sees them


def read(lab: Lab, name: str) -> Snapshot:
    command = agent_call.snapshot(PROGRAM, unit=KUBELET, sudo=False, deadline=30)
    done = lab.ssh(name, command.line, command.stdin)
    found = parse_snapshot(name, RemoteAnswer(done.returncode, done.stdout, done.stderr, started=True))
    assert isinstance(found, Snapshot), found
    return found


@pytest.mark.process
@pytest.mark.parametrize(
    ("name", "services", "path"),
    [
        ("lab-03", {DOCKER, CONTAINERD}, JSON),
        ("lab-04", {DOCKER, CONTAINERD, CRI_DOCKERD}, JSON),
        ("lab-05", {CONTAINERD}, TOML),
    ],
)
def test_a_snapshot_of_each_kind(lab: Lab, name: str, services: set[str], path: str) -> None:
    found = read(lab, name)
    assert set(found.measurement.services) == services
    assert all(service.process for service in found.measurement.services.values())
    assert found.files[path].kind == "regular"
    assert (found.measurement.pulls, found.facts["cgroup"]) == ((), "v1")


@pytest.mark.process
@pytest.mark.parametrize(("name", "image"), [("lab-03", "(unnamed)"), ("lab-04", pulls.IMAGE), ("lab-05", pulls.IMAGE)])
def test_the_agent_sees_the_fault_until_it_ends(lab: Lab, name: str, image: str) -> None:
    lab.fault(name, "pulling")
    assert read(lab, name).measurement.pulls == (image,)
    lab.clear(name)
    assert read(lab, name).measurement.pulls == ()
