"""Whatever hangs, a guard ends by its receipt's limit, and reverts everything that it can."""

from __future__ import annotations

import ctypes
import os
import re
import signal
import struct
import subprocess
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from rollout.core.run.events import Trigger, trigger_of
from tests.agent.node import CONFIG, NEW, OLD, PATIENCE, SHELLS, Node, order
from tests.controllers import until

pytestmark = pytest.mark.process

BRIEF = 11
"""Seconds from now to the limit: one second above the threshold for a node that was frozen past its limit."""
SPARE = 30
"""Seconds between the limit and the end: a step past the limit gets one second, and one more to be killed."""


@pytest.fixture
def brief(tmp_path: Path) -> Node:
    """Armed long ago: its guard fires now, and its limit is near."""
    node = Node.make(tmp_path, "dash")
    assert node.apply(order()).healthy
    now = round(node.now() * 1000)
    for receipt in (node.tx() / "receipt", *(node.tx() / "next").iterdir()):
        receipt.write_text(re.sub(r"limit=\d+", f"limit={now + BRIEF * 1000}", receipt.read_text()))
    return node


def hang(node: Node, tool: str, *, on: str, command: str = "hangs") -> None:
    """A tool that ignores TERM and never ends, when its words match."""
    path = node.bin / tool
    real = f'exec /usr/bin/{tool} "$@"'
    if path.exists():
        path.rename(path.with_suffix(".real"))
        real = f'exec {path.with_suffix(".real")} "$@"'
    path.write_text(f"#!/bin/sh\ncase \"$*\" in {on}) trap '' TERM; {command}; {command} ;; esac\n{real}\n")
    path.chmod(0o755)


def fires(node: Node) -> tuple[int, float]:
    """Its exit status, and how long it took by the node's clock."""
    begin = node.now()
    return node.trigger("guard"), node.now() - begin


def test_a_receipt_contains_the_limit(tmp_path: Path) -> None:
    node = Node.make(tmp_path, "dash")
    before = round(node.now() * 1000)
    assert node.apply(order(guard=120)).healthy
    receipt = node.receipt()
    assert 0 <= int(receipt["deadline"]) - 120_000 - before < 1000, "the node's clock moves while a step waits"
    assert int(receipt["limit"]) - int(receipt["deadline"]) == 150_000


def test_a_systemd_that_hangs_delays_no_file_and_ends_at_the_limit(brief: Node) -> None:
    """A restart that was not seen is no revert: the process may still have the new files. systemd runs the guard again after 5 s."""
    hang(brief, "systemctl", on="*")
    status, took = fires(brief)
    assert brief.files() == OLD
    assert took < BRIEF + SPARE
    assert (status, brief.receipt()["state"]) == (1, "reverting")
    told = brief.status("t1")
    assert (told.reference, trigger_of(told)) == ("not-restarted", Trigger.STUCK)
    (brief.bin / "systemctl").unlink()
    (brief.bin / "systemctl.real").rename(brief.bin / "systemctl")
    before = brief.calls().count("restart kubelet.service")
    assert fires(brief)[0] == 0
    assert brief.calls().count("restart kubelet.service") == before + 1
    assert trigger_of(brief.status("t1")) is Trigger.REVERTED_BY_GUARD


def test_a_restart_that_hung_once_is_requested_again(tmp_path: Path) -> None:
    """The first call to systemd never returns; the second one does."""
    node = Node.make(tmp_path, "dash")
    assert node.apply(order()).healthy
    limit = int(node.receipt()["limit"]) / 1000
    mark = node.at("/run/standin/hung")
    command = f"[ ! -e {mark} ] || exec {node.bin}/systemctl.real restart kubelet.service; true >{mark}; hangs"
    hang(node, "systemctl", on="restart*", command=command)
    before = node.calls().count("restart kubelet.service")
    status, took = fires(node)
    assert (status, node.receipt()["state"], node.files()) == (0, "reverted", OLD)
    assert node.calls().count("restart kubelet.service") == before + 1
    assert (took > 10, node.now() < limit) == (True, True), "as long as a restart may take, but no longer"


def test_a_rename_that_hangs_ends_at_the_limit_and_is_repeated(brief: Node) -> None:
    hang(brief, "mv", on="*/old.1*")
    status, took = fires(brief)
    assert status == 1, "systemd runs it again after 5 s"
    assert took < BRIEF + SPARE
    assert brief.receipt()["state"] == "reverting"
    (brief.bin / "mv").unlink()
    assert fires(brief)[0] == 0
    assert (brief.receipt()["state"], brief.files()) == ("reverted", OLD)


def test_a_slow_revert_by_another_verb_is_left_alone(tmp_path: Path) -> None:
    """The kubelet takes longer to stop than a guard waits for another holder: it is restarted once."""
    node = Node.make(tmp_path, "dash")
    assert node.apply(order()).healthy
    slow = node.bin / "systemctl"
    slow.rename(node.bin / "systemctl.real")
    stopped = node.at("/run/standin/stopped")
    waits = f"while [ ! -e {stopped} ] && kill -0 $PPID; do /usr/bin/sleep 0.02; done"
    slow.write_text(f'#!/bin/sh\ncase $1 in restart) {waits} ;; esac\nexec {node.bin}/systemctl.real "$@"\n')
    slow.chmod(0o755)
    before = node.calls().count("restart kubelet.service")
    with node.at_work("guard") as first:
        until(lambda: node.receipt().get("state") == "reverting", PATIENCE, "it reverts")
        expire(node)
        with node.at_work("watch") as second:
            node.tire_who_waits()
            node.pass_time_for_who_waits()
            ended = (first.poll(), second.poll())
            stopped.touch()
            assert ended == (None, None), "neither is killed or gives up"
            assert first.wait(PATIENCE) == 0
            assert second.wait(PATIENCE) == 0
    assert (node.receipt()["state"], node.files()) == ("reverted", OLD)
    assert node.calls().count("restart kubelet.service") == before + 1


def expire(node: Node) -> None:
    """Let the process beside the timer act at once."""
    for receipt in (node.tx() / "receipt", *(node.tx() / "next").iterdir()):
        text = re.sub(r"deadline=\d+", "deadline=1", receipt.read_text())
        (node.tx() / "x").write_text(text)
        (node.tx() / "x").rename(receipt)


# ------------------------------------------------------------------------------------------------- stuck in the kernel


@contextmanager
def stuck_in_the_kernel() -> Iterator[Path]:
    """A file system that takes every request and answers none: a process that asks cannot be killed until it is unmounted."""
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
        libc.umount2(str(folder).encode(), 1)  # MNT_FORCE: every request ends with an error
        os.close(device)
        reader.join(10)
        libc.umount2(str(folder).encode(), 2)  # MNT_DETACH
        folder.rmdir()


def _swallow(device: int) -> None:
    """Does the handshake of a FUSE server; then reads all requests."""
    try:
        while True:
            question = os.read(device, 1 << 17)
            _, what, unique = struct.unpack_from("<IIQ", question)
            if what == 26:  # FUSE_INIT
                hello = struct.pack("<IIIIHHI", 7, 31, 65536, 0, 16, 12, 65536) + bytes(40)
                os.write(device, struct.pack("<IiQ", 16 + len(hello), 0, unique) + hello)
    except OSError:
        return


@pytest.mark.root  # mounting
@pytest.mark.parametrize(("called", "gives_way"), [("sync", True), ("mv", False)])
def test_a_child_that_hangs_in_the_kernel(tmp_path: Path, called: str, gives_way: bool) -> None:
    """A guard does not wait for one that cannot change a file. A rename could still take effect, so the lock stays held until it ends."""
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
            with node.at_work("guard") as guard:
                node.tire_who_waits()
                if not gives_way:
                    until(
                        lambda: _condition(held.pid) == "T",
                        PATIENCE,
                        "it is stopped, and the guard waits for its child",
                    )
                    node.pass_time_for_who_waits()
                    node.pass_time(6)
                status = guard.wait(PATIENCE)
            assert (status, node.files()) == ((0, OLD) if gives_way else (1, NEW))
            if gives_way:
                assert held.wait(PATIENCE) == -signal.SIGKILL
                return
            held.send_signal(signal.SIGKILL)
    assert node.trigger("guard") == 0
    assert node.files() == OLD


def _until_stuck(parent: int) -> None:
    until(
        lambda: any(map(_waits_for_fuse, _children(parent))),
        PATIENCE,
        "its child has sent its request, and waits for the answer",
    )


def _condition(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0]


def _children(parent: int) -> list[str]:
    return Path(f"/proc/{parent}/task/{parent}/children").read_text().split()


def _waits_for_fuse(pid: str) -> bool:
    return Path(f"/proc/{pid}/wchan").read_text().startswith("request_wait_answer")


# ------------------------------------------------------------------------------------ the controller waits for the answer


@pytest.mark.parametrize("shell", SHELLS)
def test_a_failed_apply_checks_the_old_files_no_longer_than_the_controller_waits(tmp_path: Path, shell: str) -> None:
    """The old kubelet never gets healthy either. Without a bound of its own the check would use the revert's 150 s."""
    node = Node.make(tmp_path, shell)
    node.write(CONFIG, b"SICK\n")
    begin = node.now()
    report = node.apply(order(old={**OLD, CONFIG: b"SICK\n"}, new={**NEW, CONFIG: b"BROKEN\n"}))
    assert report.healthy is False
    assert node.receipt()["state"] == "reverted"
    assert node.now() - begin < 20 + 10


def test_the_process_beside_the_timer_waits_before_it_parses_the_program(tmp_path: Path) -> None:
    """Most of them are stopped while they wait; to parse all of the program would cost each change as much as three more programs."""
    node = Node.make(tmp_path, "dash")
    assert node.apply(order()).healthy
    agent = node.tx() / "agent"
    beginning, _, _ = agent.read_text().partition("\nS=$R/")
    agent.write_text(beginning + "\n")
    deadline = int(node.receipt()["deadline"]) / 1000
    assert node.now() < deadline
    assert node.trigger("watch") == 0
    assert node.receipt()["state"] == "armed", "the rest of the program is not there"
    assert deadline + 10 <= node.now() < deadline + 12
