"""Every external program of the agent, ended in every way: killed, not started, out of room, read-only.

Whatever a program does, every file of the node is old or new once its guard has run, and no reason is reported that is not
the case. The table of programs is complete: a change that starts another one fails here.
"""

from __future__ import annotations

import itertools
import shutil
import subprocess
from pathlib import Path

import pytest

from benchmarks.programs import FORKED, programs
from rollout.core.model.report import Outcome, Report
from rollout.core.run.events import Trigger, trigger_of
from rollout.kubelet.agent import agent_call
from rollout.kubelet.agent.agent_call import ApplyOrder
from tests.agent.node import CONFIG, NEW, OLD, PATIENCE, SHELLS, Node, order
from tests.sampling import sample

pytestmark = pytest.mark.process

ENDS = {
    "killed": "kill -9 $$",
    "not started": "exit 126",
    "missing": "exit 127",
    "no room": 'echo "$0: error writing: No space left on device" >&2; exit 1',
    "read-only": 'echo "$0: cannot create: Read-only file system" >&2; exit 1',
    "I/O error": 'echo "$0: error reading: Input/output error" >&2; exit 1',
}
TOOLS = (
    "base64", "cat", "chmod", "cp", "flock", "grep", "ln", "mkdir", "mv", "readlink", "rm", "rmdir", "sha256sum", "stat", "sync",
    "systemctl", "systemd-run",
)  # fmt: skip
ELSEWHERE = {
    "dd",
    "gzip",
    "logger",
    "sh",
    "sleep",
    "timeout",
    "bash",
    "curl",
    "kubelet",
    "journalctl",
    "tail",
    "sed",
    "ls",
    "lsattr",
    "tr",
}
"""Of the conversation and of looks that change nothing; `timeout` starts the others."""
VERBS = ("apply", "confirm", "revert", "guard", "boot")
CALLS = (1, 2, 3)
CASES = list(itertools.product(TOOLS, ENDS, VERBS, CALLS))
UNTRUE = {
    "drifted",
    "foreign-bytes",
    "not-as-ordered",
    "torn-program",
    "machine-id-changed",
    "frozen",
    "fenced",
    "claimed",
    "kubelet-changed",
}
"""Reasons that are never the case here."""
TRUE_FOR = {"no-room": {"no room"}, "read-only": {"read-only"}}
"""Reasons that only these ends are. `not-durable`, with its reason, is for any end of a sync."""


def fails(node: Node, tool: str, end: str, call: int) -> None:
    """At this call from now on ``tool`` ends so, once."""
    path, count = node.bin / tool, node.at("/run/standin/count")
    real = shutil.which(tool, path=str(node.bin)) or shutil.which(tool) or f"/usr/bin/{tool}"
    if path.exists():
        real = str(path.rename(path.with_suffix(".real")))
    count.write_text("")
    path.write_text(
        f'#!/bin/sh\nprintf . >>{count}\nread -r calls <{count}\n[ "${{#calls}}" != {call} ] || {{ {ENDS[end]}; }}\nexec {real} "$@"\n'
    )
    path.chmod(0o755)


@pytest.mark.parametrize(
    ("tool", "end", "verb", "call"),
    sample("ends of programs", CASES, 24),
    ids=lambda value: str(value).replace(" ", "-"),
)
def test_whatever_a_program_does_files_are_whole_and_reasons_are_true(
    tmp_path: Path, tool: str, end: str, verb: str, call: int
) -> None:
    node = Node.make(tmp_path, sample(f"{tool}/{end}/{verb}/{call}", SHELLS, 1)[0])
    if verb != "apply":
        assert node.apply().healthy
    if verb == "revert":
        assert node.confirm().outcome is Outcome.DONE
    if verb == "boot":
        node.reboot()
    fails(node, tool, end, call)
    if verb in ("guard", "boot"):
        failed = node.trigger(verb) != 0
        timer = node.at("/run/standin/rollout-guard-t1.timer").exists()
        assert not failed or verb == "guard" or timer or tool == "systemd-run", "a boot unit that fails leaves a guard"
    else:
        report = getattr(node, verb)()
        assert report.reference not in UNTRUE, report
        assert end in TRUE_FOR.get(report.reference, {end}), report
        assert tool == "sync" or report.reference != "not-durable", report
        assert _is_whole(node) or node.receipt()["state"] in ("armed", "reverting"), report
    for _ in range(3):  # systemd runs it again until it succeeds
        if node.trigger("guard") == 0:
            break
    assert node.files() in (dict(OLD), dict(NEW))
    if node.receipt().get("state") == "reverting":
        found = node.status("t1")
        assert trigger_of(found) is Trigger.STUCK, found
        assert (tool, found.reference) == ("sync", "not-durable"), found


def test_a_revert_takes_no_file_that_it_could_not_read_for_the_bytes_of_others(node: Node) -> None:
    assert node.apply().healthy
    assert node.confirm().outcome is Outcome.DONE
    fails(node, "sha256sum", "I/O error", 3)  # the first two are for the program: what the node has kept, and what runs
    report = node.revert()
    assert (report.outcome, report.reference) == (Outcome.REFUSED, "program-failed")
    assert "sha256sum could not read /" in report.message
    assert node.files() == NEW
    assert node.revert().outcome is Outcome.DONE
    assert node.files() == OLD


def _is_whole(node: Node) -> bool:
    return node.files() in (dict(OLD), dict(NEW))


@pytest.mark.skipif(shutil.which("strace") is None, reason="NOT TESTED: strace is missing (apt-get install strace)")
def test_the_table_has_every_program_of_a_change(tmp_path: Path) -> None:
    assert set(programs(tmp_path)) <= {*TOOLS, *ELSEWHERE, FORKED}


@pytest.mark.parametrize(
    ("tool", "end", "reference", "words"),
    [
        ("cp", "no room", "no-room", "No space left on device"),
        ("cp", "read-only", "read-only", "Read-only file system"),
        ("cp", "I/O error", "staging-failed", "Input/output error"),
        ("sha256sum", "missing", "program-failed", "sha256sum could not be started"),
        ("sha256sum", "killed", "program-failed", "sha256sum was killed"),
    ],
)
def test_the_first_step_that_fails_names_itself_and_its_error(
    node: Node, tool: str, end: str, reference: str, words: str
) -> None:
    fails(node, tool, end, 2 if tool == "sha256sum" else 1)  # the first one compares the program itself
    report: Report = node.apply()
    assert (report.outcome, report.reference) == (Outcome.REFUSED, reference)
    assert words in report.message
    assert tool in report.message
    assert (node.files(), node.strays()) == (OLD, [])


def test_a_sha256sum_that_ends_at_the_first_missing_file_sees_the_others(node: Node) -> None:
    """As that of uutils 0.0.30 does. One of the files of a change is new."""
    tool = node.bin / "sha256sum"
    tool.write_text(
        '#!/bin/sh\nfor name; do [ "$name" = -- ] || [ -e "$name" ] || exit 1; done\nexec /usr/bin/sha256sum "$@"\n'
    )
    tool.chmod(0o755)
    assert node.apply().healthy
    assert node.confirm().outcome is Outcome.DONE


def test_a_timeout_that_reports_its_end_as_125_is_one(node: Node) -> None:
    """uutils up to 0.2.2. The restart hung: it is requested again, without an end of a crash loop that is none."""
    tool = node.bin / "timeout"
    tool.rename(node.bin / "timeout.real")
    tool.write_text(f'#!/bin/sh\n{tool}.real "$@"\nstatus=$?\n[ "$status" != 124 ] || status=125\nexit "$status"\n')
    tool.chmod(0o755)
    report = node.apply(_hanging())
    assert "systemctl restart kubelet.service has not ended in time" in report.message
    assert "reset-failed kubelet.service" not in node.calls()
    assert node.files() == OLD


@pytest.mark.parametrize(
    ("does", "words"),
    [
        ("exit 5", "failed with status 5"),
        ("exit 127", "could not be started"),
        ("kill -9 $$", "was killed"),
        ("exec hangs", "has not ended in time"),
    ],
)
@pytest.mark.parametrize(
    "call", ["restart kubelet.service", "daemon-reload", "kill -s HUP --kill-who=main docker.service"]
)
def test_a_report_of_a_change_and_of_its_revert_name_the_end_of_the_program(
    node: Node, call: str, does: str, words: str
) -> None:
    node.serve("docker.service", "dockerd", pid=400)
    tool = node.bin / "systemctl"
    tool.rename(node.bin / "systemctl.real")
    tool.write_text(f'#!/bin/sh\ncase "$*" in "{call}") {does} ;; esac\nexec {tool}.real "$@"\n')
    tool.chmod(0o755)
    change = order(hangups=("docker.service",))
    answer = node.run(agent_call.apply(node.program, change, sudo=False, deadline=60)).stdout.decode()
    named = call.replace("-s HUP --kill-who=main", "--signal=HUP")
    assert f"healthy no systemctl {named} {words}\n" in answer
    if "HUP" not in call:
        assert f"-failed systemctl {named} {words}\n" in answer, "the revert's"
    assert "or hung" not in answer
    assert node.files() == OLD


def _hanging() -> ApplyOrder:
    return order(new={CONFIG: b"HANGING\n"}, guard=6)


# -------------------------------------------------------------------------------------------------- no process for it

FORKS = "clone,clone3,fork,vfork"
STARTS = 5
"""Forks that fail in each test; at night each of them."""


def traced(node: Node, words: list[str], stdin: bytes, trace: Path, *options: str) -> None:
    strace = ["strace", "-f", "-o", str(trace), "-e", f"trace={FORKS}", *options]
    subprocess.run(
        [*strace, *words], input=stdin, capture_output=True, env=node.env(), cwd="/", timeout=PATIENCE, check=False
    )


def forks(trace: Path) -> int:
    """How often the first process of the trace started another one."""
    first, *lines = trace.read_text().splitlines()
    return sum(line.split()[0] == first.split()[0] and "resumed" not in line for line in [first, *lines])


@pytest.mark.skipif(shutil.which("strace") is None, reason="NOT TESTED: strace is missing (apt-get install strace)")
@pytest.mark.parametrize(
    ("verb", "shell"),
    [
        (verb, shell)
        for verb in ("guard", "boot", "confirm", "revert")
        for shell in sample(f"shell of {verb}", ["dash", "busybox"], 1)  # bash itself waits 15 s for a process
    ],
)
def test_a_fork_that_fails_is_never_a_lost_write(tmp_path: Path, verb: str, shell: str) -> None:
    """At each fork of the verb's own shell, EAGAIN for it and the next two. Then there are processes again."""
    begin = Node.make(tmp_path / "begin", shell)
    assert begin.apply().healthy
    if verb == "boot":
        begin.reboot()

    def strike(node: Node, trace: Path, *options: str) -> None:
        if verb in ("guard", "boot"):
            after = node.after_boot() if verb == "boot" else []
            traced(node, [str(node.bin / "sh"), str(node.tx() / "agent"), verb, "t1"], b"", trace, *options)
            node.ends(
                after
            )  # strace counts the forks of each process anew: with those of its children, no attempt would succeed
            return
        call = getattr(agent_call, verb)
        words = {
            "tx": "t1",
            "run": "run-1",
            "counter": 1,
            "sudo": False,
            "deadline": 60,
            **({"keep": 3} if verb == "confirm" else {}),
        }
        command = call(node.program, **words)
        traced(node, [str(node.bin / "sh"), "-c", command.line], command.stdin, trace, *options)

    strike(begin.copy(tmp_path / "whole"), tmp_path / "trace")
    for at in sample(f"forks of {verb} in {shell}", range(1, forks(tmp_path / "trace") + 40), STARTS):
        node = begin.copy(tmp_path / str(at))
        strike(node, tmp_path / "struck", "-e", f"inject={FORKS}:error=EAGAIN:when={at}..{at + 2}")
        if verb == "boot" and node.receipt()["state"] != "reverted":
            assert node.at("/run/standin/rollout-guard-t1.timer").exists(), (at, "a trigger of this boot")
        found = node.status("t1")
        assert found.reference in ("", "not-restarted"), (at, found)  # its systemctl was not started either
        for _ in range(3):
            if node.trigger("guard") == 0:
                break
        assert (node.receipt()["state"], node.files()) in (("reverted", dict(OLD)), ("confirmed", dict(NEW))), at
        assert node.status("t1").reference == "", at
