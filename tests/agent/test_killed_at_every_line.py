"""Killed at every line: whatever is left, the guard or the boot unit makes every file exactly old or exactly new.

Each kill is a real SIGKILL of the real program, under a real shell. Then either time passes (the guard runs, and systemd
runs it again if it fails) or the power comes back (the boot unit runs).

Lines between which the agent asks the kernel for nothing are one instant: there is one kill for them (``instants``). Kills that leave
the same node and the same answer have the same end: it is judged once for each way of going on (``left``).
"""

from __future__ import annotations

import os
import select
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from rollout.core.model.report import Outcome, RemoteAnswer, RemoteCommand
from rollout.core.model.snapshot import ReceiptState, Token
from rollout.kubelet.agent import agent_call
from rollout.kubelet.agent.agent_call import Claim
from tests.agent.instants import instants
from tests.agent.instrument import Moment, instrumented, moments
from tests.agent.left import left
from tests.agent.node import NEW, OLD, PATIENCE, PROGRAM, Node, killed, order
from tests.sampling import sample

pytestmark = pytest.mark.process

KILLABLE = instrumented(PROGRAM)
CHANGE = order(units=("containerd.service", "kubelet.service"), hangups=("docker.service",))
FIRST = Claim(1, "run-1")
STRIKES = 14
"""Kills in each scene; at night one at every instant (``instants``)."""


@dataclass(frozen=True)
class Scene:
    """A verb to be killed, and how to prepare its node."""

    prepare: Callable[[Node], object]
    command: RemoteCommand


def _ready(node: Node) -> None:
    node.serve("containerd.service", "containerd", pid=300)
    node.serve("docker.service", "dockerd", pid=400)


def _armed(node: Node) -> None:
    _ready(node)
    assert node.apply(CHANGE).healthy


def _confirmed(node: Node) -> None:
    _armed(node)
    assert node.confirm().outcome is Outcome.DONE


def _voided(node: Node) -> None:
    """Its transaction is confirmed, and another one of the run was given up."""
    _confirmed(node)
    command = agent_call.status(PROGRAM, tx="t9", claim=FIRST, void=True, sudo=False, deadline=60)
    assert node.report("status", command).voided == "t9"


TRIES = 4
"""For a moment that is not reached: loops that wait have more rounds in one run than in another."""

SCENES = {
    "apply": Scene(_ready, agent_call.apply(KILLABLE, CHANGE, sudo=False, deadline=60)),
    "confirm": Scene(
        _armed, agent_call.confirm(KILLABLE, tx="t1", run="run-1", counter=1, keep=3, sudo=False, deadline=60)
    ),
    "revert": Scene(_armed, agent_call.revert(KILLABLE, tx="t1", run="run-1", counter=1, sudo=False, deadline=60)),
    "cleanup": Scene(_voided, agent_call.cleanup(KILLABLE, run="run-1", counter=1, sudo=False, deadline=60)),
    "forget": Scene(_confirmed, agent_call.forget(KILLABLE, run="run-1", counter=1, sudo=False, deadline=60)),
    "void": Scene(
        _ready,
        agent_call.status(KILLABLE, tx="t1", claim=FIRST, void=True, sudo=False, deadline=60),
    ),
    "revert of confirmed": Scene(
        _confirmed, agent_call.revert(KILLABLE, tx="t1", run="run-1", counter=1, sudo=False, deadline=60)
    ),
}


def chosen(node: Node, command: RemoteCommand, folder: Path) -> list[Moment]:
    """When to kill: at every line passed, but once for those between which nothing on the node can have changed."""
    found, passed = instants(folder, lambda before, extra: node.run(command, before=before, extra=extra))
    assert passed / 20 < len(found) < passed
    return found


@dataclass
class Kills:
    """Of one scene on one node. What follows a kill depends on what it has left, and on what was said: the same is judged once."""

    base: Node
    folder: Path
    scene: str
    judged: set[tuple[str, bytes, bool]] = field(default_factory=set)
    killed: int = 0

    def strike(self, number: int, moment: Moment) -> None:
        """Kill at this moment, let the node repair itself, and check. Of two kills in a row one is followed by a reboot."""
        folder = self.folder / str(number)
        what = f"{self.scene}, {self.base.shell}, killed at {moment}"
        for _ in range(TRIES):
            node = self.base.copy(folder)
            with alive() as (held, ended):
                answer = node.run(SCENES[self.scene].command, extra=moment.kill(folder), pass_fds=(held,))
                settled = ended()
            if killed(answer):
                break
            assert b"end " in answer.stdout, what  # the path was shorter this time: a loop that waits had fewer rounds
            shutil.rmtree(folder)
        else:
            return
        self.killed += 1
        reboots = number % 2 == 1
        same = (left(node), answer.stdout, reboots)
        if not settled or same not in self.judged:
            recover(node, self.scene, what, reboots=reboots, said=answer.stdout)
        if settled:
            self.judged.add(same)
        shutil.rmtree(folder)


@contextmanager
def alive() -> Iterator[tuple[int, Callable[[], bool]]]:
    """A descriptor for a program, and whether it and all that it has started have ended."""
    ours, theirs = os.pipe()

    def ended() -> bool:
        os.close(theirs)
        return bool(select.select([ours], [], [], 0)[0])

    try:
        yield theirs, ended
    finally:
        os.close(ours)


def recover(node: Node, scene: str, what: str, *, reboots: bool, said: bytes) -> None:
    """What the node does alone, and then the checks."""
    if scene == "cleanup":
        check_cleaned(node, what)
        return
    if scene == "void":
        check_voided(node, what, said=b"voided t1" in said)
        return
    if reboots:
        node.reboot()
        assert node.trigger("boot") == 0, what
    elif node.receipt() and node.at("/run/standin/rollout-guard-t1.timer").exists():
        assert node.trigger("guard") == 0, what
    check(node, scene, what)


def check(node: Node, scene: str, what: str) -> None:
    if scene == "forget":
        check_forgotten(node, what)
        return
    report = node.status("t1")
    state = report.receipt.state if report.receipt else None
    if state in (ReceiptState.ARMED, ReceiptState.REVERTING):  # no guard was left to act, only the controller's revert
        assert scene == "revert of confirmed" or node.files() == OLD, what
        assert node.revert().outcome is Outcome.DONE, what
        state = ReceiptState.REVERTED
    expected = NEW if state is ReceiptState.CONFIRMED else OLD
    assert node.files() == expected, (what, state)
    assert scene != "apply" or state in (None, ReceiptState.REVERTED), what
    cleanup = node.cleanup()
    assert (cleanup.outcome, cleanup.leftovers) == (Outcome.DONE, ()), (what, cleanup)
    assert node.strays() == [], what


def check_voided(node: Node, what: str, *, said: bool) -> None:
    """What was said to be void is. Otherwise a late apply of it may arm the node, and the next read finds its receipt."""
    if said:
        assert node.apply(CHANGE).reference == "voided", what
    again = node.run(SCENES["void"].command)
    assert b"voided t1\n" in again.stdout, (what, again)
    assert node.apply(CHANGE).reference == "voided", what
    assert (node.files(), node.receipt(), node.strays()) == (OLD, {}, []), what


def check_cleaned(node: Node, what: str) -> None:
    """What was given up stays refused at every moment: as void, or by the end of the token. A repeated cleanup removes all remains."""
    assert node.apply(order("t9")).reference in ("voided", "ended-here"), what
    report = node.cleanup()
    assert (report.outcome, report.leftovers) == (Outcome.DONE, ()), (what, report)
    assert node.apply(order("t9")).reference == "ended-here", what
    assert not list(node.at("/var/lib/rollout").glob("void*")), what
    assert (node.files(), node.strays()) == (NEW, []), what


def check_forgotten(node: Node, what: str) -> None:
    """All of the state is there, or none; a cleanup or another forget removes all remains."""
    state, aside = node.at("/var/lib/rollout"), node.at("/var/lib/rollout.forgotten")
    assert node.files() == NEW, what
    assert state.exists() or node.receipt() == {}, what
    if state.exists():
        assert (node.receipt()["state"], node.status().token) == ("confirmed", Token(1, "run-1", live=True)), what
    again = node.cleanup if state.exists() and aside.exists() else node.forget
    report = again()
    assert (report.outcome, report.leftovers) == (Outcome.DONE, ()), (what, report)
    assert not aside.exists(), what
    assert node.forget().leftovers == (), what
    assert not state.exists(), what
    assert node.strays() == [], what


@pytest.mark.skipif(shutil.which("strace") is None, reason="NOT TESTED: strace is missing (apt-get install strace)")
@pytest.mark.parametrize("scene", SCENES)
def test_killed_at_every_line(node: Node, tmp_path: Path, scene: str) -> None:
    SCENES[scene].prepare(node)
    all_of_them = chosen(node.copy(tmp_path / "traced"), SCENES[scene].command, tmp_path)
    assert len(all_of_them) > 50
    kills = Kills(node, tmp_path, scene)
    drawn = sample(f"killed in {scene} under {node.shell}", all_of_them, STRIKES)
    for number, moment in enumerate(drawn):
        kills.strike(number, moment)
    assert kills.killed > len(drawn) / 2


def voided(node: Node, claim: Claim = FIRST, program: str = PROGRAM, **extra: str) -> RemoteAnswer:
    """A read of this claim that voids t1."""
    return node.run(agent_call.status(program, tx="t1", claim=claim, void=True, sudo=False, deadline=60), extra=extra)


def lines_of(*functions: str) -> set[str]:
    """The numbers of the lines of these functions of the program."""
    lines = PROGRAM.splitlines()
    found: set[str] = set()
    for name in functions:
        first = next(index for index, line in enumerate(lines) if line.startswith(f"{name}() {{"))
        found |= {str(number) for number in range(first + 1, lines.index("}", first) + 2)}
    return found


@pytest.mark.parametrize("claim", [FIRST, Claim(2, "run-1"), Claim(2, "run-2", force=True)], ids=str)
def test_a_void_that_was_told_outlasts_a_claim_that_is_killed_at_any_line(
    node: Node, tmp_path: Path, claim: Claim
) -> None:
    """The claim repeats the void, or its newer token fences what the void refused. The voided apply comes late."""
    assert b"voided t1\n" in voided(node).stdout
    traced = node.copy(tmp_path / "traced")
    voided(traced, claim, KILLABLE, ROLLOUT_TRACE=str(tmp_path / "trace"))
    telling = lines_of(
        "status_claim_locked", "lock_write_token", "lock_put_token", "status_forget_voids", "drop", "status_make_void"
    )
    passed = moments(tmp_path / "trace")
    told = [number for number, moment in enumerate(passed) if moment.line in telling]
    assert len(told) > (7 if claim == FIRST else 20)
    for number in [*told, told[-1] + 1]:
        moment, folder = passed[number], tmp_path / str(number)
        one = node.copy(folder)
        assert killed(voided(one, claim, KILLABLE, **moment.kill(folder))), moment
        assert one.apply().reference in ("voided", "fenced"), moment
        assert (one.files(), one.receipt()) == (OLD, {}), moment


def test_a_boot_verb_that_is_killed_at_any_line_leaves_a_guard_in_this_boot(node: Node, tmp_path: Path) -> None:
    """systemd then runs what the unit has for that, and the guard that this leaves. No controller is needed, and no other boot."""
    node.program = KILLABLE
    _armed(node)
    node.reboot()

    def boot(one: Node, **extra: str) -> int:
        after = one.after_boot()
        words = [str(one.bin / "sh"), str(one.tx() / "agent"), "boot"]
        status = subprocess.run(
            words, env=one.env(extra), capture_output=True, timeout=PATIENCE, check=False
        ).returncode
        one.ends(after)
        return status

    traced = node.copy(tmp_path / "traced")
    assert boot(traced, ROLLOUT_TRACE=str(tmp_path / "trace")) == 0
    assert not traced.at("/run/standin/rollout-guard-t1.timer").exists()
    passed = moments(tmp_path / "trace")
    assert len(passed) > 100
    between = sample(f"killed in boot under {node.shell}", passed[1:-2], STRIKES)
    for number, moment in enumerate([passed[0], *between, passed[-2]]):
        folder = tmp_path / str(number)
        one = node.copy(folder)
        status = boot(one, **moment.kill(folder))
        if one.at("/run/standin/rollout-guard-t1.timer").exists():
            assert one.trigger("guard") == 0, moment
        assert (one.receipt()["state"], one.files()) == ("reverted", OLD), (moment, status)
        assert (one.cleanup().leftovers, one.strays()) == ((), []), moment
        shutil.rmtree(folder)


def test_the_killable_program_is_the_program(node: Node) -> None:
    """Without a kill it does the same as the original."""
    node.program = KILLABLE
    assert node.apply().healthy
    assert node.files() == NEW
    assert node.confirm().outcome is Outcome.DONE
