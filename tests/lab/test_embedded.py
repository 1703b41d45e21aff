"""RKE2 in the lab: the arguments that its configuration makes, and a child that comes and goes with its unit."""

from __future__ import annotations

import pytest

from rollout.lab import embedded
from rollout.lab.machine import LabMachine
from tests.lab.trees import MemoryTree, NotingHost, kubeadm

OWN = f"--config-dir={embedded.DROP_INS}"


def rke2(version: str = "v1.33.4") -> MemoryTree:
    return kubeadm(version, "rke2", runtime="containerd")


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({}, ("--max-pods=150",)),
        ({"50.yaml": "kubelet-arg: [v=2]\n"}, ("--v=2",)),
        ({"50.yaml": "kubelet-arg+: v=2\n", "99.yml": "kubelet-arg+: [max-pods=9]\n"}, ("--max-pods=150", "--max-pods=9", "--v=2")),
        ({"50.yaml": "kubelet-arg: [node-labels+=a=b]\n"}, ("--node-labels=", "--node-labels=a=b")),
        ({"50.txt": "kubelet-arg: [v=2]\n"}, ("--max-pods=150",)),
    ],
)  # fmt: skip
def test_arguments(files: dict[str, str], expected: tuple[str, ...]) -> None:
    tree = rke2()
    for name, text in files.items():
        tree.write(f"{embedded.CONFIG}.d/{name}", text)
    words = embedded.arguments(tree, 33)
    names = {word.partition("=")[0] for word in expected}
    assert tuple(word for word in words if word.partition("=")[0] in names) == expected
    assert OWN in words


def test_before_drop_ins_its_defaults_are_flags() -> None:
    words = embedded.arguments(rke2("v1.28.15"), 28)
    assert "--serialize-image-pulls=false" in words
    assert OWN not in words


def test_the_kubelet_is_a_child_and_its_lines_are_in_a_file() -> None:
    host = NotingHost()
    machine = LabMachine("1.33.4", rke2(), host)
    machine.booted(100.0)
    service = machine.services[embedded.UNIT]
    assert host.processes[service.pid] == ("/usr/bin/rke2", "agent")
    assert host.processes[service.child][0] == embedded.KUBELET
    assert any(f"{service.child:7}" in line for _, line in host.logged)
    machine.stop(embedded.UNIT, 101.0)
    assert host.processes == {}


def test_a_kubelet_that_cannot_start_leaves_its_unit_active() -> None:
    tree, host = rke2(), NotingHost()
    tree.write(f"{embedded.CONFIG}.d/50.yaml", "kubelet-arg: [no-such-flag=1]\n")
    machine = LabMachine("1.33.4", tree, host)
    machine.booted(100.0)
    service = machine.services[embedded.UNIT]
    assert list(host.processes) == [service.pid]
    assert service.start.status is None
