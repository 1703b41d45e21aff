"""A node's whole life with rollout on its disk, traced.

It is claimed; a change is refused after its staging; one is reverted by its guard; one is confirmed and reverted later;
one is confirmed, and the others are pruned; then all is forgotten. It is frozen, unfrozen and forgotten again. At last it is claimed,
and told of a transaction that it never got: a later apply of that one is refused. A cleanup ends each run.
The sync of a confirm is killed, and so is one of a revert: what they were for is written again.
"""

from __future__ import annotations

import re
import shutil
from dataclasses import dataclass
from pathlib import Path

import pytest

from rollout.core.model.freeze import NodeFreeze
from rollout.core.model.report import RemoteAnswer
from rollout.kubelet.agent import agent_call
from rollout.kubelet.agent.agent_call import Claim
from tests.agent import traces
from tests.agent.node import CONFIG, FLAGS, NEW, OLD, PROGRAM, Node, order
from tests.agent.page_cache import Disk
from tests.agent.traces import Step

_FLUSH = re.compile(r"(?<=[ {])durable_flush (?=[\"$])")
CALLS_OF_FLUSH = len(_FLUSH.findall(PROGRAM))


@dataclass(frozen=True)
class Story:
    """``start`` is the node's root before the first step."""

    node: Node
    start: Path
    steps: tuple[Step, ...]
    flushes: frozenset[int]
    """Which of the program's calls of ``durable_flush`` were passed."""

    def disk(self) -> Disk:
        return Disk.of(self.start, "etc", "var")


def lived(folder: Path, shell: str, *, elsewhere: bool) -> Story:
    """``elsewhere``: no hard link reaches the targets, as if they were on other file systems."""
    node = Node.make(folder, shell)
    _kill_some_syncs(node)
    if elsewhere:
        tool = node.bin / "ln"
        tool.write_text('#!/bin/sh\ncase "$*" in -s*) exec /usr/bin/ln "$@" ;; esac\nexit 1\n')
        tool.chmod(0o755)
    start = folder / "start"
    shutil.copytree(node.root, start, symlinks=True)
    steps: list[Step] = []
    node.program, node.environment["ROLLOUT_FLUSHES"] = _told(PROGRAM), str(folder / "flushes")

    def done(traced: tuple[RemoteAnswer, list[Step]]) -> None:
        answer, found = traced
        steps.append(Step("begin"))
        assert b"refused" not in answer.stdout or b"guard-not-proven" in answer.stdout, answer
        steps.extend(found)

    def verb(name: str, **words: object) -> None:
        call = getattr(agent_call, name)(node.program, **words, sudo=False, deadline=60)
        done(traces.run(node, call, folder))

    def apply(tx: str, *paths: str, counter: int = 1) -> None:
        change = order(tx, f"run-{counter}", counter, new={path: NEW[path] for path in paths or NEW})
        done(traces.run(node, agent_call.apply(node.program, change, sudo=False, deadline=60), folder))

    token: dict[str, object] = {"run": "run-1", "counter": 1}
    verb("status", claim=Claim(1, "run-1"))
    node.standin("no-timer")
    apply("t0", CONFIG, FLAGS)
    node.at("/run/standin/no-timer").unlink()
    apply("t1")
    done(traces.trigger(node, "guard", folder))
    apply("t2")
    verb("confirm", tx="t2", keep=3, **token)
    node.standin("killed", "*/lib/kubelet")
    verb("revert", tx="t2", **token)
    done(traces.trigger(node, "guard", folder, "t2"))
    assert node.files() == OLD
    verb("cleanup", **token)
    token = {"run": "run-2", "counter": 2}
    apply("t3", counter=2)
    node.standin("killed", "*/tx/t3")
    verb("confirm", tx="t3", keep=0, **token)  # all others go
    assert node.files() == NEW
    verb("cleanup", **token)
    verb("forget", **token)
    for counter, name in enumerate(("freeze", "unfreeze"), 3):  # the first one makes the state anew
        mark = NodeFreeze(counter, f"f-{counter}", "ann", "year end")
        done(traces.run(node, getattr(agent_call, name)(node.program, mark, sudo=False, deadline=60), folder))
    verb("forget", **token)
    verb("status", claim=Claim(5, "run-5"), tx="t4", void=True)
    verb("cleanup", run="run-5", counter=5)
    flushes = frozenset(map(int, (folder / "flushes").read_text().split()))
    return Story(node, start, tuple(steps), flushes)


def _kill_some_syncs(node: Node) -> None:
    """The real sync; once, it is killed for a name like the pattern in ``run/standin/killed``."""
    marked = node.at("/run/standin/killed")
    tool = node.bin / "sync"
    tool.write_text(
        f"#!/bin/sh\nread -r pattern 2>/dev/null <{marked}\nfor name; do\n  case $name in\n"
        f'    $pattern) rm {marked}; kill -9 $$ ;;\n  esac\ndone\nexec /usr/bin/sync "$@"\n'
    )
    tool.chmod(0o755)


def _told(program: str) -> str:
    """The program, changed so that it records which of its calls of ``durable_flush`` it passes."""
    numbers = iter(range(1_000))
    return _FLUSH.sub(lambda _: f'echo {next(numbers)} >>"$ROLLOUT_FLUSHES"; durable_flush ', program)


class Stories:
    """Each is made once, at the first request."""

    def __init__(self, folders: pytest.TempPathFactory) -> None:
        self._folders = folders
        self._told: dict[tuple[str, bool], Story] = {}

    def of(self, shell: str, *, elsewhere: bool) -> Story:
        key = (shell, elsewhere)
        if key not in self._told:
            self._told[key] = lived(self._folders.mktemp("life"), shell, elsewhere=elsewhere)
        return self._told[key]
