"""Confirm, revert and guard: two at once, one of them stopped at each of its steps. One restart, one outcome.

The first one is stopped (SIGSTOP) at a line. Lines between which it has asked the kernel for nothing are one instant for the
other, and one of them is tried (``instants``). It continues as soon as the other waits for its lock, or has ended.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

from rollout.core.model.report import RemoteCommand
from rollout.kubelet.agent import agent_call
from tests.agent.instants import instants
from tests.agent.instrument import Moment, instrumented
from tests.agent.node import NEW, OLD, PATIENCE, PROGRAM, Node, order
from tests.controllers import until
from tests.sampling import sample

pytestmark = [
    pytest.mark.process,
    pytest.mark.skipif(shutil.which("strace") is None, reason="NOT TESTED: strace is missing (apt-get install strace)"),
]

STOPPABLE = instrumented(PROGRAM)
TOKEN = {"tx": "t1", "run": "run-1", "counter": 1, "sudo": False, "deadline": 60}
CONFIRM = agent_call.confirm(STOPPABLE, keep=3, **TOKEN)  # type: ignore[arg-type]  # the words of a verb
REVERT = agent_call.revert(STOPPABLE, **TOKEN)  # type: ignore[arg-type]
STEPS = 5
"""The number of steps of the first one that are tried; at night every one."""


@dataclass(frozen=True)
class Party:
    """A verb of the controller, or what a trigger runs."""

    name: str
    command: RemoteCommand | None = None

    def begin(self, node: Node, *before: str, **environment: str) -> subprocess.Popen[bytes]:
        """``before``: the words of a program that runs it."""
        words = ["-c", f"exec {self.command.line}"] if self.command else [str(node.tx() / "agent"), self.name, "t1"]
        process = subprocess.Popen(
            [*before, str(node.bin / "sh"), *words],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=node.env(environment),
            cwd="/",
        )
        assert process.stdin is not None
        process.stdin.write(self.command.stdin if self.command else b"")
        process.stdin.close()
        process.stdin = None
        return process


PARTIES = {
    "confirm": Party("confirm", CONFIRM),
    "revert": Party("revert", REVERT),
    "guard": Party("guard"),
    "watch": Party("watch"),
    "boot": Party("boot"),
}
RACES = [
    ("confirm", "guard", "in time"),
    ("confirm", "guard", "too late"),
    ("guard", "confirm", "in time"),
    ("guard", "confirm", "too late"),
    ("revert", "guard", "in time"),
    ("guard", "revert", "in time"),
    ("guard", "watch", "too late"),
    ("watch", "guard", "too late"),
    ("boot", "guard", "too late"),
    ("guard", "boot", "too late"),
]


def _children(pid: int) -> list[int]:
    try:
        return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


def _shells(pid: int) -> list[int]:
    """The process and all below it: a verb runs below its conversation."""
    return [pid, *(each for child in _children(pid) for each in _shells(child))]


def _stopped(process: subprocess.Popen[bytes]) -> list[int]:
    found = []
    for pid in _shells(process.pid):
        with suppress(OSError):
            if Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][:1] == "T":
                found.append(pid)
    return found


def _waits_for_the_lock(process: subprocess.Popen[bytes], node: Node) -> bool:
    """It has the lock's file open, and another process is recorded as its holder."""
    holder = node.at("/var/lib/rollout/holder").read_text().split()[0]
    return any(_naps_before_the_lock(pid, node) and holder != str(pid) for pid in _shells(process.pid))


def _naps_before_the_lock(pid: int, node: Node) -> bool:
    try:
        opened = Path(f"/proc/{pid}/fd/9").readlink() == node.at("/var/lib/rollout/lock")
        naps = [Path(f"/proc/{child}/comm").read_text().strip() == "sleep" for child in _children(pid)]
    except OSError:
        return False
    return opened and any(naps)


def _has_gone_on(process: subprocess.Popen[bytes]) -> bool:
    """To its end."""
    if process.poll() is None:
        for pid in _stopped(process):
            os.kill(pid, signal.SIGCONT)
    return process.poll() is not None


def expired(node: Node) -> None:
    """Its deadline has passed, and the process beside the timer may act too."""
    for receipt in (node.tx() / "receipt", *(node.tx() / "next").iterdir()):
        receipt.write_text(re.sub(r"deadline=\d+", "deadline=1", receipt.read_text()))


def ways(node: Node, first: Party, folder: Path) -> list[Moment]:
    """The steps of the first one when it is alone, of which something around it may tell."""
    found, passed = instants(folder, lambda before, extra: first.begin(node, *before, **extra).communicate())
    assert passed / 20 < len(found) < passed, "most lines ask for nothing"
    return found


def race(node: Node, first: Party, second: Party, at: Moment) -> tuple[bytes, bytes]:
    """The output of both."""
    one = first.begin(node, **at.stop(node.root.parent))
    until(lambda: one.poll() is not None or bool(_stopped(one)), PATIENCE, "it is stopped, or has ended")
    other = second.begin(node)
    until(
        lambda: one.poll() is not None or other.poll() is not None or _waits_for_the_lock(other, node),
        PATIENCE,
        "one has ended, or the other waits",
    )
    until(lambda: _has_gone_on(one), PATIENCE, "it ends")
    return one.communicate(timeout=PATIENCE)[0], other.communicate(timeout=PATIENCE)[0]


@pytest.mark.parametrize(("first", "second", "when"), RACES, ids=[", ".join(race) for race in RACES])
def test_two_at_once(tmp_path: Path, first: str, second: str, when: str) -> None:
    base = Node.make(tmp_path / "base", "dash")
    base.program = STOPPABLE
    assert base.apply(order()).healthy
    if when == "too late":
        expired(base)
    steps = ways(base.copy(tmp_path / "alone"), PARTIES[first], tmp_path)
    outcomes = set()
    for number, at in enumerate(sample(f"{first}, {second}, {when}", steps, STEPS)):
        node = base.copy(tmp_path / str(number))
        before = node.calls()
        said = b"".join(race(node, PARTIES[first], PARTIES[second], at))
        state = node.receipt()["state"]
        outcomes.add(state)
        restarts = [
            call
            for call in node.calls()[len(before) :]
            if call in ("restart kubelet.service", "--no-block restart kubelet.service")
        ]
        what = (at, state, restarts, said)
        assert state in ("confirmed", "reverted"), what
        assert node.files() == (NEW if state == "confirmed" else OLD), what
        assert len(restarts) == (state == "reverted"), what
        assert (b"state=confirmed" in said) <= (state == "confirmed" or b"state=reverted" in said), what
        assert node.cleanup().leftovers == (), what
        assert node.strays() == [], what
        shutil.rmtree(node.root.parent)
    if when == "too late" and "confirm" in (first, second):
        assert outcomes == {"reverted"}
