"""How many programs the agent starts on a node in an apply, its confirm and the cleanup, in one conversation after the claim.

``strace`` follows the agent on a node in a folder, and each successful ``execve`` counts. Not counted: what a stand-in of the tests
starts, ``sleep``, and the second of the two programs that the stand-in of ``timeout`` is. The processes that the agent's shells fork are
counted beside them (``FORKED``): for programs but ``sleep``, and for subshells.
"""

from __future__ import annotations

import re
import shlex
import subprocess
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from rollout.core.model.report import RemoteCommand
from rollout.kubelet.agent import agent_call, conversation
from rollout.kubelet.agent.agent_call import Claim, PullsFound
from tests.agent.node import PROGRAM, Node, order

FORKED = "(forks)"
_LINE = re.compile(r"(?P<pid>\d+) +(?:<\.\.\. )?(?P<call>\w+)(?:\(| resumed>)(?P<rest>.*) = (?P<result>-?\d+)")


def programs(folder: Path) -> Mapping[str, int]:
    """Name of a program → how often it was started, and ``FORKED``: by the conversation's start and by each verb but the claim."""
    claim = agent_call.status(PROGRAM, claim=Claim(1, "run-1"), sudo=False, deadline=60)
    whole = replace(order(), pulls=PullsFound.REFUSE, measured=tuple(file.path for file in order().change.files))
    verbs = (
        agent_call.apply(PROGRAM, whole, sudo=False, deadline=60),
        agent_call.confirm(PROGRAM, tx="t1", run="run-1", counter=1, keep=3, sudo=False, deadline=60),
        agent_call.cleanup(PROGRAM, run="run-1", counter=1, sudo=False, deadline=60),
    )
    node, started = _conversation(folder / "all", (claim, *verbs))
    if node.receipt().get("state") != "confirmed":
        raise SystemExit("the agent did not confirm")
    claimed, nothing = _conversation(folder / "claim", (claim,))[1], _conversation(folder / "nothing", ())[1]
    return started - (claimed - nothing)


def _conversation(folder: Path, asked: Sequence[RemoteCommand]) -> tuple[Node, Counter[str]]:
    """A node after these verbs, and the programs that they and the start of the conversation started."""
    node = Node.make(folder, "sh")
    node.at("/proc/100/exe").symlink_to(node.bin / "kubelet")
    node.serve("containerd.service", "/usr/bin/containerd")
    node.control_group()
    frames = [conversation.frame(each.request, f"{at:064d}") for at, each in enumerate(asked) if each.request]
    trace = folder / "trace"
    words = ("strace", "-f", "-o", str(trace), "-e", "trace=execve,clone,clone3,fork,vfork")
    subprocess.run(
        [*words, str(node.bin / "sh"), *shlex.split(conversation.boot(PROGRAM))[1:]],
        input=conversation.opening(PROGRAM, conversation.ProgramForm.GZIP) + b"".join(frames),
        capture_output=True, env=node.env(), cwd="/", timeout=600, check=False,
    )  # fmt: skip
    return node, Counter(_started(trace.read_text(errors="replace"), str(node.bin)))


def _started(trace: str, standins: str) -> Iterator[str]:
    """The names of the programs that count, and ``FORKED`` for each process that a shell forks."""
    calls = list(_calls(trace))
    parents = {child: pid for pid, child, _ in calls if child}  # a child may run before its parent's call has ended
    inside: set[str] = set()
    waits: set[str] = set()
    timeouts: set[str] = set()
    asleep = {pid for pid, _, path in calls if path.endswith("/sleep")}
    for pid, child, path in calls:
        if child and child not in asleep and pid not in timeouts and not _below(pid, parents, inside):
            yield FORKED
        if not child and not _below(pid, parents, inside):
            name = path.rpartition("/")[2]
            timeouts |= {pid} if name == "timeout" else set()
            if path.startswith(standins) and name not in ("sh", "timeout"):
                inside.add(pid)
            if name not in ("sleep", "timeout") or (name == "timeout" and pid not in waits):
                yield name
            waits ^= {pid} if name == "timeout" else set()


def _calls(trace: str) -> Iterator[tuple[str, str, str]]:
    """Successful calls, in the order of their ends: the process, and its new child or the program that it has become."""
    begun: dict[str, str] = {}
    for line in trace.splitlines():
        if line.endswith("<unfinished ...>"):
            begun[line.partition(" ")[0]] = line
        found = _LINE.match(line)
        if found is None or int(found["result"]) < 0:
            continue
        pid = found["pid"]
        if found["call"] != "execve":
            yield pid, found["result"], ""
        elif path := re.search(r'execve\("([^"]*)"', begun.get(pid, "") if "resumed" in line else line):
            yield pid, "", path[1]


def _below(pid: str, parents: Mapping[str, str], those: set[str]) -> bool:
    while pid and pid not in those:
        pid = parents.get(pid, "")
    return bool(pid)
