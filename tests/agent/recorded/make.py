"""Records the trees: ``python -m tests.agent.recorded.make``, in a clone that has all commits. Older agents do not change, so only new commits need it."""

from __future__ import annotations

import subprocess
import tarfile
import tempfile
from pathlib import Path

from rollout.adapters.agent_program import RUNTIMES, joined, part
from rollout.core.model.report import Outcome
from tests.agent.node import Node
from tests.agent.recorded.trees import COMMITS, HERE, STATES, archive, said_root, same_kubelet
from tests.places import ROOT


def program(commit: str) -> str:
    """The agent of that commit: in parts, or in one file as before them. The part of runtimes is today's."""
    try:
        return joined(lambda name: part(name) if name == RUNTIMES else _file(commit, name))
    except subprocess.CalledProcessError:
        return _file(commit, "agent.sh")


def _file(commit: str, name: str) -> str:
    words = ["git", "-C", str(ROOT), "show", f"{commit}:rollout/agent/{name}"]
    return subprocess.run(words, capture_output=True, text=True, check=True).stdout


def node(folder: Path, commit: str) -> Node:
    """One with the agent of that commit, and a systemd of its time: boot units were wanted by multi-user.target."""
    made = Node.make(folder, "dash")
    made.program = program(commit)
    systemctl = made.bin / "systemctl"
    systemctl.write_text(systemctl.read_text().replace("basic.target.wants", "multi-user.target.wants"))
    made.at("/etc/systemd/system/multi-user.target.wants").mkdir()
    same_kubelet(made)
    return made


def bring(made: Node, state: str) -> None:
    """``half-confirmed`` and ``reverting``: the agent was killed as soon as the receipt had that state."""
    did = [made.apply()]
    if state == "confirmed":
        did.append(made.confirm())
    elif state == "reverted":
        did.append(made.revert())
    elif state != "armed":
        (made.tx() / "next" / {"half-confirmed": "confirmed", "reverting": "reverting-guard"}[state]).rename(
            made.tx() / "receipt"
        )
    if any(report.outcome is not Outcome.DONE for report in did):
        raise LookupError(did)


def record(commit: str) -> None:
    with tempfile.TemporaryDirectory() as folder, tarfile.open(archive(commit), "w:xz") as trees:
        for state in STATES:
            made = node(Path(folder) / state, commit)
            bring(made, state)
            said_root(made.root, str(made.root), HERE)
            trees.add(made.root, state, filter=nobodys)


def nobodys(member: tarfile.TarInfo) -> tarfile.TarInfo:
    """Owned by root, so that the user who records makes no difference."""
    member.uid = member.gid = 0
    member.uname = member.gname = "root"
    return member


if __name__ == "__main__":
    for each in COMMITS:
        record(each)
