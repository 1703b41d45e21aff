"""A reboot leaves all files of a change as they are. If only some would survive, the node is refused before it is armed."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from rollout.core.model.report import Outcome
from tests.agent.node import FLAGS, NEW, OLD, Node

pytestmark = pytest.mark.process

ROOT_DISK = "29 1 254:0 / / rw - ext4 /dev/vda rw\n"


@pytest.fixture
def elsewhere(tmp_path: Path) -> Iterator[Path]:
    """A folder on another device than the node's own."""
    other = Path(tempfile.mkdtemp(dir="/dev/shm"))
    if other.stat().st_dev == tmp_path.stat().st_dev:
        pytest.skip("/dev/shm is not another file system here")
    yield other
    shutil.rmtree(other)


@pytest.fixture
def etc(node: Node, elsewhere: Path) -> Node:
    """/etc of this node is on another device than its state."""
    shutil.copytree(node.at("/etc"), elsewhere / "etc", symlinks=True)
    shutil.rmtree(node.at("/etc"))
    node.at("/etc").symlink_to(elsewhere / "etc")
    return node


@pytest.mark.parametrize(
    "mount",
    [
        "/etc rw - ext4 /dev/vdb rw",
        "/etc rw shared:7 - xfs /dev/mapper/etc rw",
        "/etc rw - overlay overlay rw,lowerdir=/usr/etc,upperdir=/var/etc/upper,workdir=/var/etc/work",
    ],
)
def test_another_disk_is_accepted(etc: Node, mount: str) -> None:
    etc.at("/var/etc/upper").mkdir(parents=True)
    etc.write("/proc/self/mountinfo", f"{ROOT_DISK}30 29 0:40 / {mount}\n".encode())
    assert etc.apply().healthy
    assert etc.files() == NEW


@pytest.mark.parametrize(
    ("mount", "said"),
    [
        ("/etc rw - tmpfs tmpfs rw", "/etc/systemd/system is on tmpfs"),
        ("/etc rw - ext4 /dev/zram1 rw", "is on ext4 of /dev/zram1"),
        ("/etc rw - overlay o rw,lowerdir=/usr/etc,upperdir=/run/up,workdir=/run/work", "/run/up is on tmpfs"),
        ("/etc rw - overlay o rw,lowerdir=/usr/etc,upperdir=/gone/up", "upper directory cannot be seen"),
        ("/etc rw - overlay o rw,lowerdir=/usr/etc", "is on overlay"),
        ("/etc rw - fuse.what what rw", "is on fuse.what"),
    ],
)
def test_a_volatile_target_is_refused_before_arming(etc: Node, mount: str, said: str) -> None:
    etc.at("/run/up").mkdir(parents=True)
    table = f"{ROOT_DISK}25 29 0:30 / /run rw - tmpfs tmpfs rw\n30 29 0:40 / {mount}\n"
    etc.write("/proc/self/mountinfo", table.encode())
    report = etc.apply()
    assert (report.outcome, report.reference) == (Outcome.REFUSED, "not-as-persistent")
    assert said in report.message
    assert (etc.files(), etc.receipt()) == (OLD, {})


def test_the_last_mount_at_a_place_counts(etc: Node) -> None:
    table = f"{ROOT_DISK}30 29 0:40 / /etc rw - ext4 /dev/vdb rw\n31 30 0:41 / /etc rw - tmpfs tmpfs rw\n"
    etc.write("/proc/self/mountinfo", table.encode())
    assert etc.apply().reference == "not-as-persistent"


def test_a_state_on_a_volatile_overlay_is_refused(node: Node) -> None:
    """A live image: one overlay over all, with its upper directory in memory."""
    node.at("/run/up").mkdir(parents=True)
    table = "29 1 0:20 / / rw - overlay o rw,lowerdir=/ro,upperdir=/run/up\n25 29 0:30 / /run rw - tmpfs tmpfs rw\n"
    node.write("/proc/self/mountinfo", table.encode())
    report = node.apply()
    assert (report.outcome, report.reference) == (Outcome.REFUSED, "state-not-persistent")
    assert node.read(FLAGS) == OLD[FLAGS]
