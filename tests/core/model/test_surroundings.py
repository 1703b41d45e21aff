"""What is known of a node's control groups and sockets, and what is not."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rollout.core.model.surroundings import Listing, NodeSurroundings, Room

V2 = NodeSurroundings(
    cgroups=Listing(("/kubepods.slice", "/kubepods.slice/kubepods-besteffort.slice", "/system.slice", "/system.slice/a-b.slice")),
    sockets=Listing(("/run/a.sock", "/var/run/b.sock")),
)  # fmt: skip


@pytest.mark.parametrize(
    ("path", "known"),
    [
        ("/", True),
        ("/system.slice", True),
        ("/system.slice/", True),
        ("/kube.slice", False),
        ("/kube.slice/kubelet.service", False),  # nothing exists below what is absent
        ("/system.slice/a-b.slice", True),
        ("/system.slice/a-c.slice", False),
        ("/system.slice/containerd.service", None),  # services are not listed
        ("/system.slice/a-b.slice/a-b-c.slice", None),  # nor what is deeper
        ("/kubepods.slice/kubepods-pod1.slice", None),  # nor pods
        ("/kube reserved", None),  # nor names outside the alphabet
    ],
)
def test_a_control_group_exists_or_not_or_is_unknown(path: str, known: bool | None) -> None:
    assert V2.has_cgroup(path) is known
    assert NodeSurroundings().has_cgroup(path) is None


def test_a_list_that_was_cut_off_has_no_absent_names() -> None:
    cut = replace(V2, cgroups=Listing(("/system.slice",), whole=False), sockets=Listing((), whole=False))
    assert (cut.has_cgroup("/system.slice"), cut.has_cgroup("/kube.slice")) == (True, None)
    assert cut.has_socket("/run/a.sock") is None


def test_a_socket_has_two_names() -> None:
    found = {
        path: V2.has_socket(path) for path in ("/run/a.sock", "/var/run/a.sock", "/run/b.sock", "/run/c.sock", "/run/d")
    }
    assert list(found.values()) == [True, True, True, False, None]
    assert NodeSurroundings().has_socket("/run/a.sock") is None


@pytest.mark.parametrize(
    ("names", "driver"),
    [
        (("/kubepods.slice",), "systemd"),
        (("/kubepods",), "cgroupfs"),
        (("/kubepods", "/kubepods.slice"), ""),  # one is of an earlier configuration
        ((), ""),
    ],
)
def test_the_driver_is_the_one_that_made_the_group_of_all_pods(names: tuple[str, ...], driver: str) -> None:
    assert NodeSurroundings(cgroups=Listing(names)).cgroup_driver == driver
    assert NodeSurroundings(cgroups=Listing(names, whole=False)).cgroup_driver == ""
    assert NodeSurroundings().cgroup_driver == ""


def test_room_is_of_the_kubelet_or_of_a_runtime() -> None:
    room = Room("kubelet", "/var/lib/kubelet", "xfs", 10, 5, 0, 0)
    assert NodeSurroundings(rooms=(room,)).room("kubelet") == room
    assert NodeSurroundings(rooms=(room,)).room("containerd.service") is None
