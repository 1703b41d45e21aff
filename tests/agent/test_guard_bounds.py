"""Whatever hangs, a guard ends by its receipt's limit, and what can be taken back is."""

from __future__ import annotations

import ctypes
import os
import re
import signal
import struct
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.agent.node import NEW, OLD, Node, order

BRIEF = 11
"""Seconds from now to the limit: a second more than what a node that was frozen past its limit is told by."""
SPARE = 30
"""Seconds between the limit and the end of it all: a step past the limit gets one, and one to die."""


@pytest.fixture
def brief(tmp_path: Path) -> Node:
    """Armed long ago: its guard fires now, and its limit is near."""
    node = Node.make(tmp_path, "dash")
    assert node.apply(order()).healthy
    now = round(float(Path("/proc/uptime").read_text().split()[0]) * 1000)
    for receipt in (node.tx() / "receipt", *(node.tx() / "next").iterdir()):
        receipt.write_text(re.sub(r"limit=\d+", f"limit={now + BRIEF * 1000}", receipt.read_text()))
    return node


def hang(node: Node, tool: str, *, on: str, command: str = "sleep 60") -> None:
    """A tool that ignores TERM and never ends, when its words match."""
    path = node.bin / tool
    real = f'exec /usr/bin/{tool} "$@"'
    if path.exists():
        path.rename(path.with_suffix(".real"))
        real = f'exec {path.with_suffix(".real")} "$@"'
    path.write_text(f"#!/bin/sh\ncase \"$*\" in {on}) trap '' TERM; {command}; {command} ;; esac\n{real}\n")
    path.chmod(0o755)


def fires(node: Node) -> tuple[int, float]:
    """Its exit status, and how long it took."""
    begin = time.monotonic()
    return node.trigger("guard"), time.monotonic() - begin


def test_a_receipt_says_when_all_must_have_ended(tmp_path: Path) -> None:
    node = Node.make(tmp_path, "dash")
    before = float(Path("/proc/uptime").read_text().split()[0])
    assert node.apply(order(guard=120)).healthy
    receipt = node.receipt()
    assert before * 1000 <= int(receipt["limit"]) - 270_000 <= int(receipt["deadline"]) - 120_000 + 1
    assert int(receipt["limit"]) - int(receipt["deadline"]) == 150_000


def test_a_systemd_that_hangs_delays_no_file_and_ends_at_the_limit(brief: Node) -> None:
    hang(brief, "systemctl", on="*")
    status, took = fires(brief)
    assert brief.files() == OLD
    assert took < BRIEF + SPARE
    assert (status, brief.receipt()["state"]) == (0, "reverted")


def test_a_restart_that_hung_once_is_asked_for_again(brief: Node) -> None:
    """The first call to systemd never returns; the second is heard."""
    mark = brief.at("/run/standin/hung")
    command = f"[ ! -e {mark} ] || exec {brief.bin}/systemctl.real restart kubelet.service; true >{mark}; sleep 60"
    hang(brief, "systemctl", on="restart*", command=command)
    before = brief.calls().count("restart kubelet.service")
    hanging = brief.bin / "timeout"
    hanging.write_text(
        '#!/bin/sh\ncase "$*" in "-k 1 "*" systemctl restart"*) shift 3; exec /usr/bin/timeout -k 1 3 "$@" ;; esac\nexec /usr/bin/timeout "$@"\n'
    )
    hanging.chmod(0o755)
    status, took = fires(brief)
    assert (status, brief.receipt()["state"], brief.files()) == (0, "reverted", OLD)
    assert brief.calls().count("restart kubelet.service") == before + 1
    assert took < BRIEF + SPARE


def test_a_rename_that_hangs_ends_at_the_limit_and_is_begun_again(brief: Node) -> None:
    hang(brief, "mv", on="*/old.1*")
    status, took = fires(brief)
    assert status == 1, "systemd runs it again after 5 s"
    assert took < BRIEF + SPARE
    assert brief.receipt()["state"] == "reverting"
    (brief.bin / "mv").unlink()
    assert fires(brief)[0] == 0
    assert (brief.receipt()["state"], brief.files()) == ("reverted", OLD)


def test_who_takes_back_is_left_to_it_though_it_takes_long(tmp_path: Path) -> None:
    """The kubelet takes longer to stop than a guard waits for anybody else: it is restarted once."""
    node = Node.make(tmp_path, "dash")
    assert node.apply(order()).healthy
    slow = node.bin / "systemctl"
    slow.rename(node.bin / "systemctl.real")
    slow.write_text(f'#!/bin/sh\ncase $1 in restart) sleep 14 ;; esac\nexec {node.bin}/systemctl.real "$@"\n')
    slow.chmod(0o755)
    before = node.calls().count("restart kubelet.service")
    with subprocess.Popen([str(node.bin / "sh"), str(node.tx() / "agent"), "guard", "t1"], env=node.env()) as first:
        while node.receipt().get("state") != "reverting":
            time.sleep(0.01)
        expire(node)
        assert node.trigger("watch") == 0
        assert first.wait(30) == 0
    assert (node.receipt()["state"], node.files()) == ("reverted", OLD)
    assert node.calls().count("restart kubelet.service") == before + 1


def expire(node: Node) -> None:
    """The process beside the timer need not wait for its time."""
    for receipt in (node.tx() / "receipt", *(node.tx() / "next").iterdir()):
        text = re.sub(r"deadline=\d+", "deadline=1", receipt.read_text())
        (node.tx() / "x").write_text(text)
        (node.tx() / "x").rename(receipt)


# ------------------------------------------------------------------------------------------------- stuck in the kernel


@contextmanager
def stuck_in_the_kernel() -> Iterator[Path]:
    """A file system that takes every question and answers none: who asks cannot be killed until it is gone."""
    folder = Path(tempfile.mkdtemp())
    device = os.open("/dev/fuse", os.O_RDWR)
    libc = ctypes.CDLL(None, use_errno=True)
    options = f"fd={device},rootmode=40000,user_id=0,group_id=0"
    if libc.mount(b"stuck", str(folder).encode(), b"fuse", 0, options.encode()):
        os.close(device)
        pytest.skip(f"NOT TESTED: no FUSE here ({os.strerror(ctypes.get_errno())})")
    reader = threading.Thread(target=_swallow, args=(device,), daemon=True)
    reader.start()
    try:
        yield folder
    finally:
        libc.umount2(str(folder).encode(), 1)  # MNT_FORCE: every question ends with an error
        os.close(device)
        reader.join(10)
        libc.umount2(str(folder).encode(), 2)  # MNT_DETACH
        folder.rmdir()


def _swallow(device: int) -> None:
    """Says hello as a FUSE server must; then reads whatever comes."""
    try:
        while True:
            question = os.read(device, 1 << 17)
            _, what, unique = struct.unpack_from("<IIQ", question)
            if what == 26:  # FUSE_INIT
                hello = struct.pack("<IIIIHHI", 7, 31, 65536, 0, 16, 12, 65536) + bytes(40)
                os.write(device, struct.pack("<IiQ", 16 + len(hello), 0, unique) + hello)
    except OSError:
        return


@pytest.mark.skipif(os.geteuid() != 0, reason="NOT TESTED: mounting needs root")
@pytest.mark.parametrize(("called", "gives_way"), [("sync", True), ("mv", False)])
def test_a_child_that_the_kernel_does_not_let_go_of(tmp_path: Path, called: str, gives_way: bool) -> None:
    """One that cannot change a file any more is not waited for; a rename could still land, so the lock stays held until it ended."""
    node = Node.make(tmp_path, "dash")
    assert node.apply(order()).healthy
    lock, holder = node.at("/var/lib/rollout/lock"), node.at("/var/lib/rollout/holder")
    with stuck_in_the_kernel() as folder:
        tool = tmp_path / called
        tool.symlink_to("/usr/bin/stat")
        with subprocess.Popen(["sh", "-c", f"exec 9>>{lock}; flock 9; {tool} {folder}/x 9>&- & wait"]) as held:
            _until_stuck(held.pid)
            started = Path(f"/proc/{held.pid}/stat").read_text().rpartition(") ")[2].split()[19]
            holder.write_text(f"{held.pid} {started}\n")
            status = node.trigger("guard")
            assert (status, node.files()) == ((0, OLD) if gives_way else (1, NEW))
            if gives_way:
                assert held.wait() == -signal.SIGKILL
                return
            held.send_signal(signal.SIGKILL)
    assert node.trigger("guard") == 0
    assert node.files() == OLD


def _until_stuck(parent: int) -> None:
    """Its child has asked, and waits for the answer."""
    deadline = time.monotonic() + 20
    while not any(_waits_for_fuse(child) for child in _children(parent)):
        assert time.monotonic() < deadline
        time.sleep(0.01)


def _children(parent: int) -> list[str]:
    return Path(f"/proc/{parent}/task/{parent}/children").read_text().split()


def _waits_for_fuse(pid: str) -> bool:
    return Path(f"/proc/{pid}/wchan").read_text().startswith("request_wait_answer")
