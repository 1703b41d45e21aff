"""What a snapshot has of the node around its kubelet: control groups, sockets, free space, swap, kernel settings, manifests, devices."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from rollout.core.model.snapshot import Snapshot
from rollout.core.model.surroundings import Listing, Manifests, NodeSurroundings, Swap, UnitProcesses
from rollout.kubelet.agent import agent_call
from rollout.kubelet.agent.agent_answer import parse_snapshot
from tests.agent.node import PROGRAM, Node

pytestmark = pytest.mark.process

UNIX = "Num       RefCount Protocol Flags    Type St Inode Path\n"
GROUPS = Path("sys/fs/cgroup")
MANIFESTS = "/etc/kubernetes/manifests"


def read(node: Node) -> Snapshot:
    call = agent_call.snapshot(PROGRAM, unit="kubelet.service", healthz_port=10248, sudo=False, deadline=60)
    found = parse_snapshot("n1", node.run(call))
    assert isinstance(found, Snapshot), found
    return found


def around(node: Node) -> NodeSurroundings:
    found = read(node).surroundings
    assert found is not None
    return found


def groups(node: Node, *paths: str) -> None:
    for path in paths:
        (node.root / GROUPS / path).mkdir(parents=True)


def kubelet(node: Node, *words: str) -> None:
    node.write("/proc/100/cmdline", "".join(f"{word}\0" for word in ("kubelet", *words)).encode())


@contextmanager
def listening(node: Node, *paths: str) -> Iterator[None]:
    """Sockets are there, and the kernel shows that a process listens."""
    made = []
    lines = []
    for path in paths:
        node.at(path).parent.mkdir(parents=True, exist_ok=True)
        made.append(socket.socket(socket.AF_UNIX))
        folder = os.open(node.at(path).parent, os.O_RDONLY)
        made[-1].bind(f"/proc/self/fd/{folder}/{Path(path).name}")  # a path may be longer than an address
        os.close(folder)
        lines.append(f"0000000000000000: 00000002 00000000 00010000 0001 01 45 {path}\n")
    node.write("/proc/net/unix", "".join((UNIX, *lines)).encode())
    try:
        yield
    finally:
        for each in made:
            each.close()


def test_a_node_that_shows_nothing_leaves_all_of_it_unknown(node: Node) -> None:
    (node.root / "proc/net/unix").unlink(missing_ok=True)
    found = around(node)
    assert found.kubelet_root == "/var/lib/kubelet"
    assert (found.cgroups, found.sockets, found.devices, found.swaps, found.inhibit_delay, found.processes) == (
        None,
    ) * 6
    assert found.sysctls == {}
    assert found.manifests == (Manifests(MANIFESTS, Listing()),)


def test_control_groups_of_v2_but_none_of_pods(node: Node) -> None:
    groups(
        node, "system.slice/a-b.slice", "system.slice/x.service", "kubepods.slice/kubepods-pod1.slice", "odd\\x2d.slice"
    )
    node.write("/sys/fs/cgroup/cgroup.controllers", b"cpu\n")
    found = around(node)
    assert found.cgroups == Listing(("/kubepods.slice", "/system.slice", "/system.slice/a-b.slice"))
    assert found.cgroup_driver == "systemd"


def test_a_control_group_of_v1_is_in_every_hierarchy(node: Node) -> None:
    """A kubelet sets limits in each of them; ``system.slice`` of systemd has no cpuset."""
    for hierarchy in ("systemd", "cpu", "memory"):
        groups(node, *(f"{hierarchy}/{name}" for name in ("system.slice", "kubepods")))
    groups(node, "cpuset/kubepods")
    assert around(node).cgroups == Listing(("/kubepods",))


def test_a_long_list_is_cut_off_and_says_so(node: Node) -> None:
    groups(node, *(f"g{number:04d}" for number in range(300)))
    node.write("/sys/fs/cgroup/cgroup.controllers", b"cpu\n")
    found = around(node).cgroups
    assert found is not None
    assert (len(found.names), found.whole) == (256, False)


def test_sockets_that_a_process_listens_at_in_this_mount_namespace(node: Node) -> None:
    with listening(node, "/run/containerd/containerd.sock", "/run/shim/s/1234"):
        table = node.read("/proc/net/unix") or b""
        absent = b"0000000000000000: 00000002 00000000 00010000 0001 01 45 /run/of-a-pod.sock\n"
        connected = b"0000000000000000: 00000003 00000000 00000000 0001 03 46 /run/containerd/containerd.sock\n"
        node.write("/proc/net/unix", table + absent + connected)
        found = around(node)
    assert found.sockets == Listing(("/run/containerd/containerd.sock",))
    assert found.has_socket("/run/of-a-pod.sock") is False


def test_swap_in_use_and_none(node: Node) -> None:
    head = b"Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n"
    node.write("/proc/swaps", head)
    assert around(node).swaps == ()
    node.write(
        "/proc/swaps", head + b"/dev/vda2            partition\t1000\t\t10\t\t-2\n/a\\040b       file\t\t5\t\t0\t\t-3\n"
    )
    assert around(node).swaps == (Swap("/dev/vda2", "partition", 1000, 10), Swap("other", "file", 5, 0))


def test_kernel_settings_that_are_numbers(node: Node) -> None:
    node.write("/proc/sys/vm/overcommit_memory", b"1\n")
    node.write("/proc/sys/kernel/panic", b"-1\n")
    node.write("/proc/sys/kernel/keys/root_maxkeys", b"1000000\n")
    node.write("/proc/sys/kernel/panic_on_oops", b"$(id)\n")
    assert around(node).sysctls == {
        "vm.overcommit_memory": "1",
        "kernel.panic": "-1",
        "kernel.keys.root_maxkeys": "1000000",
    }


def test_a_kernel_setting_is_read_whole_from_the_kernel_itself(node: Node) -> None:
    """Behind its first byte the kernel shows none: a shell's ``read`` gets one digit."""
    name = "kernel/keys/root_maxkeys"
    node.at(f"/proc/sys/{name}").parent.mkdir(parents=True)
    node.at(f"/proc/sys/{name}").symlink_to(f"/proc/sys/{name}")
    assert around(node).sysctls == {"kernel.keys.root_maxkeys": Path(f"/proc/sys/{name}").read_text().strip()}


@pytest.mark.parametrize(
    "line", ["staticPodPath: /data/pods", "staticPodPath: '/data/pods'  # ours", '"staticPodPath": "/data/pods/",']
)
def test_manifests_where_the_kubelets_file_or_its_flag_has_them(node: Node, line: str) -> None:
    node.write("/var/lib/kubelet/config.yaml", f"kind: x\n{line}\n".encode())
    kubelet(node, "--config=/var/lib/kubelet/config.yaml", "--pod-manifest-path=/flag/pods")
    for path in (
        f"{MANIFESTS}/etcd.yaml",
        f"{MANIFESTS}/.hidden",
        "/data/pods/a.yaml",
        "/flag/pods/b.yaml",
        "/flag/pods/c/d.yaml",
    ):
        node.write(path, b"")
    assert around(node).manifests == (
        Manifests("/flag/pods", Listing(("b.yaml",))),
        Manifests("/data/pods", Listing(("a.yaml",))),
        Manifests(MANIFESTS, Listing(("etcd.yaml",))),
    )


def test_devices_of_nvidia(node: Node) -> None:
    (node.root / "dev").mkdir()
    assert around(node).devices == Listing()
    node.write("/dev/nvidia0", b"")
    node.write("/dev/sda", b"")
    assert around(node).devices == Listing(("/dev/nvidia0",))


@pytest.mark.parametrize("path", ["/run/nvidia/driver/dev/nvidia0", "/proc/driver/nvidia/gpus/0000:3b:00.0"])
def test_devices_of_nvidias_driver_in_a_container(node: Node, path: str) -> None:
    (node.root / "dev").mkdir()
    node.write(path, b"")
    assert around(node).devices == Listing((path,))


def test_room_of_the_kubelets_root_and_of_images(node: Node) -> None:
    node.serve("containerd.service", "containerd", "--root", "/data/c")
    for folder in ("/data/c", "/data/kubelet"):
        node.at(folder).mkdir(parents=True)
    node.write("/data/kubelet/cpu_manager_state", b'{"policyName":"static"}')
    kubelet(node, "--config=/var/lib/kubelet/config.yaml", "--root-dir=/data/kubelet/")
    snapshot = read(node)
    found = snapshot.surroundings
    assert found is not None
    assert [(room.of, room.path) for room in found.rooms] == [
        ("kubelet", "/data/kubelet"),
        ("containerd.service", "/data/c"),
    ]
    disk = os.statvfs(node.root)
    room = found.room("kubelet")
    assert room is not None
    assert room.size == disk.f_blocks * disk.f_frsize // 1024
    assert 0 < room.free <= room.size
    assert snapshot.facts["state-dir-fs"] == room.kind
    assert snapshot.files["/data/kubelet/cpu_manager_state"].content == b'{"policyName":"static"}'


@pytest.mark.parametrize(
    ("unit", "program", "path", "text", "folder"),
    [
        ("crio.service", "crio", "/etc/containers/storage.conf", '[storage]\nrunroot = "/x"\ngraphroot = "/data/i"\n', "/data/i"),
        ("crio.service", "crio", "/etc/crio/crio.conf.d/10.conf", '[crio]\nroot = "/data/i"\n# root = "/no"\n', "/data/i"),
        ("crio.service", "crio", "/etc/x", "", "/var/lib/containers/storage"),
        ("docker.service", "dockerd", "/etc/docker/daemon.json", '{"data-root": "/data/i"}', "/data/i"),
        ("containerd.service", "containerd", "/etc/x", "", "/var/lib/containerd"),
    ],
)  # fmt: skip
def test_images_are_where_the_runtimes_configuration_puts_them(
    node: Node, unit: str, program: str, path: str, text: str, folder: str
) -> None:
    node.serve(unit, program)
    node.write(path, text.encode())
    node.at(folder).mkdir(parents=True, exist_ok=True)
    room = around(node).room(unit)
    assert room is not None
    assert room.path == folder


def test_the_delay_of_a_logind_that_runs(node: Node) -> None:
    tool = node.bin / "busctl"
    tool.write_text('#!/bin/sh\necho "t 5000000"\n')
    tool.chmod(0o755)
    assert around(node).inhibit_delay is None
    mark = node.at("/run/systemd/units/invocation:systemd-logind.service")
    mark.parent.mkdir(parents=True)
    mark.symlink_to("0" * 32)
    assert around(node).inhibit_delay == 5.0
    tool.write_text('#!/bin/sh\necho "t 18446744073709551615"\n')
    assert around(node).inhibit_delay is None


def test_the_processes_in_the_control_group_of_a_runtime(node: Node) -> None:
    node.serve("containerd.service", "containerd", pid=300)
    groups(node, "system.slice/containerd.service/below")
    group = f"/{GROUPS}/system.slice/containerd.service"
    names = {300: "containerd", 301: "containerd-shim", 302: "containerd-shim", 303: "od d", 305: "conmon"}
    for pid, name in names.items():
        node.write(f"/proc/{pid}/comm", f"{name}\n".encode())
    node.write(f"{group}/cgroup.procs", b"300\n301\n303\n304\n305\n")
    node.write(f"{group}/below/cgroup.procs", b"302\n")
    snapshot = read(node)
    assert snapshot.surroundings is not None
    assert set(snapshot.surroundings.processes or ()) == {
        UnitProcesses("containerd.service", name, count)
        for name, count in (("containerd", 1), ("containerd-shim", 2), ("other", 1), ("conmon", 1))
    }
    assert snapshot.measurement.services["containerd.service"].unit.properties["KillMode"] == "process"


def test_a_status_tells_the_static_pods_and_the_unit_of_the_kubelet_if_it_is_asked_for_roles(node: Node) -> None:
    node.write("/etc/kubernetes/manifests/kube-apiserver.yaml", b"kind: Pod\n")
    told = node.status(roles=True)
    assert told.static_pods == (Manifests("/etc/kubernetes/manifests", Listing(("kube-apiserver.yaml",))),)
    assert told.kubelet_unit == "kubelet.service"
    assert (node.status().static_pods, node.status().kubelet_unit) == ((), "")
