"""How many programs a change starts on a node: each costs a node more than all of the shell's own work between two of them."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
from collections import Counter
from pathlib import Path

import pytest

from rollout.core.model.report import RemoteCommand
from rollout.kubelet.agent import agent_call, conversation
from rollout.kubelet.agent.agent_call import Claim
from tests.agent.node import NEW, PATIENCE, PROGRAM, Node, order
from tests.agent.traces import whole

pytestmark = [
    pytest.mark.process,
    pytest.mark.skipif(shutil.which("strace") is None, reason="NOT TESTED: strace is missing (apt-get install strace)"),
]

MOST = 80
"""For three files, one of them new in a new folder, a reload and a restart: apply, confirm and cleanup after the claim."""


def started(node: Node, verbs: list[RemoteCommand]) -> Counter[str]:
    """The programs that one conversation starts; not those that stand-ins start."""
    frames = [conversation.frame(verb.request, f"{number:064}") for number, verb in enumerate(verbs) if verb.request]
    trace = node.root.parent / "programs"
    strace = ["strace", "-f", "--seccomp-bpf", "-o", str(trace), "-e", "trace=execve,clone,clone3,fork,vfork"]
    words = [str(node.bin / "sh"), *shlex.split(conversation.boot(PROGRAM))[1:]]
    done = subprocess.run(
        [*strace, *words],
        input=conversation.opening(PROGRAM, packed=True) + b"".join(frames),
        capture_output=True,
        env=node.env(),
        cwd="/",
        timeout=PATIENCE,
        check=True,
    )
    assert b"refused" not in done.stdout, done.stdout
    return _counted(trace, str(node.bin))


def _counted(trace: Path, standins: str) -> Counter[str]:
    lines = list(whole(trace.read_text()))
    forks = (re.match(r"(\d+) +(?:clone3?|v?fork)\(.*= (\d+)$", line) for line in lines)
    parents = {found[2]: found[1] for found in forks if found}
    inside: set[str] = set()
    """Processes of stand-ins. That of `timeout` becomes the real one, which starts a program of the agent."""
    counts: Counter[str] = Counter()
    for line in lines:
        found = re.match(r'(\d+) +execve\("([^"]+/([^"/]+))".* = 0$', line)
        if found is None:
            continue
        pid, path, name = found.groups()
        if path == "/usr/bin/timeout" or any(each in inside for each in _line_of(pid, parents)):
            continue
        counts[name] += 1
        if path.startswith(standins) and name not in ("sh", "timeout"):
            inside.add(pid)
    return counts


def _line_of(pid: str, parents: dict[str, str]) -> list[str]:
    """The process, its parent, and so on."""
    line = [pid]
    while line[-1] in parents:
        line.append(parents[line[-1]])
    return line


def test_a_change_starts_few_programs(node: Node) -> None:
    node.at("/proc/100/exe").symlink_to(node.bin / "kubelet")
    token = {"run": "run-1", "counter": 1}
    claim = agent_call.status(PROGRAM, claim=Claim(1, "run-1"), sudo=False, deadline=60)
    change = [
        agent_call.apply(PROGRAM, order(), sudo=False, deadline=60),
        agent_call.confirm(PROGRAM, tx="t1", keep=3, **token, sudo=False, deadline=60),  # type: ignore[arg-type]  # the words of a verb
        agent_call.cleanup(PROGRAM, **token, sudo=False, deadline=60),  # type: ignore[arg-type]
    ]
    before = started(node.copy(node.root.parent / "claimed"), [claim])
    programs = started(node, [claim, *change]) - before
    assert node.files() == NEW
    assert node.receipt()["state"] == "confirmed"
    del programs["sleep"]
    assert programs["sync"] == 6, "five of the change, and one that shows that it takes names"
    assert programs.total() <= MOST, programs
