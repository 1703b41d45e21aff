"""Which files changed after the start of the process that reads them at its start. The agent's own links do not count."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from textwrap import dedent

import pytest

from rollout.core.model.snapshot import Snapshot
from tests.agent.node import CONFIG, FLAGS, Node, order
from tests.controllers import until

pytestmark = pytest.mark.process

JSON = "/etc/docker/daemon.json"
STEP = 0.1  # seconds: more than the 50 ms that a process gets to read its files


@dataclass
class Times:
    """When the kubelet of a node started, by the clock of file times; a node of these tests has no time of its own."""

    node: Node
    began: float

    def stale(self, set_forth: float = 0.0) -> dict[str, tuple[str, bool]]:
        """Path → (its reader, whether it was edited), read now. The clock was set forward by this many seconds since the start."""
        with self.node.on_real_time():
            age = time.time() - self.began
            self.node.standin(
                "unit", f"started={round((self.node.now() - age + set_forth) * 1e6)}\n{dated(self.began)}"
            )
            found = self.node.snapshot()
        assert isinstance(found, Snapshot)
        return {entry.path: (entry.unit, entry.edited) for entry in found.stale}


def dated(at: float) -> str:
    """As systemd records it, by the clock of then."""
    return f"dated='{datetime.fromtimestamp(at, UTC):%a %Y-%m-%d %H:%M:%S} UTC'\n"


def wait_in(program: Path) -> None:
    """It runs as on a busy node: it has to wait for the processor before and after its work."""
    program.write_text(
        f'#!/bin/sh\n/usr/bin/sleep {2 * STEP}\n/usr/bin/{program.name} "$@"\nstatus=$?\n/usr/bin/sleep {2 * STEP}\nexit $status\n'
    )
    program.chmod(0o755)


@pytest.fixture
def kubelet(node: Node) -> Times:
    """It started after all files were written, and some time has passed since."""
    began = time.time()
    until(lambda: time.time() > began + STEP, 60, "time passes")
    return Times(node, began)


def test_nothing_is_stale_under_a_kubelet_that_started_after_its_files(kubelet: Times) -> None:
    assert kubelet.stale() == {}


def test_a_busy_node_does_not_make_a_file_stale(node: Node) -> None:
    """The node's two clocks were read by two programs, and the second one had to wait: 1 of 100 nodes was refused."""
    node.write(CONFIG, b"written right before the start\n")
    kubelet = Times(node, time.time())
    for name in ("date", "stat"):
        wait_in(node.bin / name)
    assert kubelet.stale() == {}


def test_a_file_that_changed_before_systemd_noted_the_start_is_stale(kubelet: Times) -> None:
    """On a busy machine systemd notes a start up to half a second late: the process may have read the file before it changed. The kernel notes it in time."""
    node = kubelet.node
    with node.on_real_time():
        ticks = round((node.now() - (time.time() - kubelet.began)) * 100)
    node.write("/proc/100/stat", f"100 (kubelet) S 1 {'0 ' * 17}{ticks} 0 0\n".encode())
    with node.at(CONFIG).open("ab") as file:
        file.write(b"# by hand\n")
    changed = time.time()
    until(lambda: time.time() > changed + STEP, 60, "time passes")
    assert Times(node, time.time()).stale() == {CONFIG: ("kubelet.service", True)}


def test_a_time_of_files_that_is_some_ticks_old_does_not_make_a_file_stale(node: Node) -> None:
    """The kernel dates files by its last tick, which a virtual processor may have missed."""
    node.write(CONFIG, b"written right before the start\n")
    kubelet = Times(node, time.time())
    once = node.root / "was-late"
    late = f"""\
        #!/bin/sh
        case $4 in
          /proc/self/fd/1) [ -e {once} ] || {{ : >{once}; echo "${{3%% *}} $(date -d '1 second ago' +%s.%N)"; exit; }} ;;
        esac
        exec /usr/bin/stat "$@"
        """
    (node.bin / "stat").write_text(dedent(late))
    (node.bin / "stat").chmod(0o755)
    assert kubelet.stale() == {}
    assert once.exists()


def test_an_edited_file_is_stale(kubelet: Times) -> None:
    with kubelet.node.at(CONFIG).open("ab") as file:
        file.write(b"# by hand\n")
    assert kubelet.stale() == {CONFIG: ("kubelet.service", True)}


def test_a_replaced_file_with_preserved_times_is_stale(kubelet: Times) -> None:
    """As ``rsync -a`` and ``cp -p`` do."""
    target = kubelet.node.at(CONFIG)
    fresh = target.with_name("fresh")
    fresh.write_bytes(b"other: bytes\n")
    os.utime(fresh, (kubelet.began - 1000, kubelet.began - 1000))
    fresh.rename(target)
    assert kubelet.stale() == {CONFIG: ("kubelet.service", False)}


def test_a_time_in_the_future_alone_is_no_edit(node: Node) -> None:
    os.utime(node.at(CONFIG), (time.time() + 10_000, time.time() + 10_000))
    began = time.time()
    until(lambda: time.time() > began + STEP, 60, "time passes")
    assert Times(node, began).stale() == {}


def test_an_edit_is_still_reported_after_the_clock_was_set_forward(kubelet: Times) -> None:
    with kubelet.node.at(FLAGS).open("ab") as file:
        file.write(b"\n")
    assert FLAGS in kubelet.stale(set_forth=3600)


@pytest.mark.parametrize("trouble", ["no-timer", "disabled"])
def test_an_apply_that_was_refused_leaves_nothing_stale(kubelet: Times, trouble: str) -> None:
    """Its hard links change the targets' ctime. After a second one a later edit is still reported."""
    node = kubelet.node
    node.standin(trouble)
    for tx in ("t1", "t2"):
        assert node.apply(order(tx=tx)).reference == "guard-not-proven"
        assert kubelet.stale() == {}
    node.at(CONFIG).chmod(0o600)
    assert kubelet.stale() == {CONFIG: ("kubelet.service", False)}


def test_an_apply_that_was_refused_hides_no_edit(kubelet: Times) -> None:
    node = kubelet.node
    content = node.at(CONFIG).read_bytes()
    node.at(CONFIG).write_bytes(content)
    node.standin("no-timer")
    assert node.apply().reference == "guard-not-proven"
    assert kubelet.stale() == {CONFIG: ("kubelet.service", True)}


def test_a_runtimes_files_are_compared_with_its_own_process(kubelet: Times) -> None:
    node = kubelet.node
    node.serve("containerd.service", "/usr/bin/containerd")
    node.write("/etc/containerd/config.toml", b"version = 2\n")
    with node.on_real_time():
        node.standin("unit.containerd.service", f"started={round(node.now() * 1e6)}\n")
    assert kubelet.stale() == {}, "it has just started"
    node.standin("unit.containerd.service", "started=1000\n")
    assert kubelet.stale() == {"/etc/containerd/config.toml": ("containerd.service", True)}


def test_files_that_a_sighup_made_it_read_are_not_stale(kubelet: Times) -> None:
    node = kubelet.node
    node.write(JSON, b"{}\n")
    node.serve("docker.service", "/usr/bin/dockerd")
    node.standin("unit.docker.service", "started=1000\n")
    assert kubelet.stale() == {JSON: ("docker.service", True)}, "somebody wrote it"
    wanted = order(
        old={JSON: b"{}\n"}, new={JSON: b'{"max-concurrent-downloads": 10}\n'}, units=(), hangups=("docker.service",)
    )
    assert node.apply(wanted).healthy
    assert kubelet.stale() == {}
    node.confirm()
    assert kubelet.stale() == {}
    node.revert()
    assert node.read(JSON) == b"{}\n"
    assert kubelet.stale() == {}
    node.write(JSON, b"{ }\n")
    assert kubelet.stale() == {JSON: ("docker.service", True)}
