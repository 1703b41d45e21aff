"""A fake of the port ``Nodes``: agents that keep a claim and one receipt in memory and use the agent's protocol.

A test may replace an agent's answer (``says``), and sees which node got which request.
"""

from __future__ import annotations

import base64
import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from rollout.app.node_access import NodeAccess
from rollout.app.ports import Target
from rollout.core.model.report import RemoteAnswer, RemoteCommand
from rollout.core.model.snapshot import digest

CONFIG = "/var/lib/kubelet/config.yaml"
MACHINE = "0" * 32
NEW = b"maxPods: 120\n"
SILENT = RemoteAnswer(None, b"", b"", started=False, reference="connect-timeout", message="no answer in 10 s")
_COMMAND_LINE = base64.b64encode(f"/usr/bin/kubelet\0--config={CONFIG}\0".encode()).decode()


def answer(verb: str, *lines: str) -> RemoteAnswer:
    """A complete answer to a verb."""
    return RemoteAnswer(0, "".join(f"{line}\n" for line in (*lines, f"end {verb}")).encode(), b"", started=True)


def well(**changes: str) -> tuple[str, ...]:
    """The lines of a running, healthy kubelet, some of them replaced (``""``: left out)."""
    lines = {
        "active": "unit kubelet.service ActiveState active",
        "sub": "unit kubelet.service SubState running",
        "pid": "unit kubelet.service MainPID 7",
        "restarts": "unit kubelet.service NRestarts 0",
        "pause": "unit kubelet.service RestartUSec 10s",
        "process": f"process 7 {_COMMAND_LINE}",
        "healthz": "healthz ok",
        "lenient": "lenient 0",
    }
    return tuple(line for line in (lines | changes).values() if line)


def receipt(tx: str, state: str, run: str = "", word: str = "history") -> str:
    run = run or tx.rpartition("-")[0]
    return f"{word} tx={tx} run={run} counter=1 seq=1 state={state} cause=- left=20 finished=1 kubelet=-"


def holds(content: bytes, path: str = CONFIG) -> str:
    """A regular file in the agent's listing."""
    return f"file regular 644 0:0 {len(content)} {digest(content)} {path} -"


@dataclass
class _Agent:
    tx: str = ""
    state: str = ""
    claim: str = "0 - ended"


def _is_held_by_another(agent: _Agent, said: Mapping[str, str]) -> bool:
    _, run, state = agent.claim.split(" ")
    return state == "live" and run != said["run"] and "force" not in said


@dataclass
class Agents:
    """``says``: (node, verb) → its answer. ``asked``: (node, the verb's words). ``released``: nodes after ``release``."""

    says: dict[tuple[str, str], RemoteAnswer] = field(default_factory=dict)
    asked: list[tuple[str, Mapping[str, str]]] = field(default_factory=list)
    released: list[str] = field(default_factory=list)
    agents: dict[str, _Agent] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def run(self, target: Target, command: RemoteCommand) -> RemoteAnswer:
        assert command.request is not None
        verb, *words = command.request.words.split()
        said = dict(word.split("=", 1) for word in words)
        with self.lock:
            self.asked.append((target.name, {"verb": verb, "sudo": str(bool(command.bare)), **said}))
            agent = self.agents.setdefault(target.name, _Agent())
            if (target.name, verb) in self.says:
                return self.says[target.name, verb]
            return answer(verb, *self._lines(agent, verb, said))

    def _lines(self, agent: _Agent, verb: str, said: Mapping[str, str]) -> Iterable[str]:
        if verb == "status":
            if "claim" in said and _is_held_by_another(agent, said):
                yield f"refused claimed {agent.claim}"
            elif "claim" in said:
                agent.claim = f"{said['counter']} {said['run']} live"
            yield f"token {agent.claim}"
            yield from well() if "measure" in said else ()
            if "void" in said and agent.tx != said["tx"]:
                yield f"voided {said['tx']}"
            yield holds(NEW if agent.state in ("armed", "confirmed") else b"")
        elif verb == "cleanup":
            agent.claim = agent.claim.replace("live", "ended")
        elif verb in _BECOMES:
            agent.tx, agent.state = said["tx"], _BECOMES[verb]
        if agent.tx:
            yield receipt(agent.tx, agent.state)
        if agent.tx and agent.tx == said.get("tx"):
            yield receipt(agent.tx, agent.state, word="receipt").replace(
                "cause=-", "cause=asked" if verb == "revert" else "cause=-"
            )

    def release(self, target: Target) -> None:
        with self.lock:
            self.released.append(target.name)

    def close(self) -> None: ...

    def verbs(self, node: str) -> list[str]:
        return [words["verb"] for name, words in self.asked if name == node]


_BECOMES = {"apply": "armed", "confirm": "confirmed", "revert": "reverted"}


def access_to(*names: str, sudo: bool = False) -> NodeAccess:
    return NodeAccess("program", {name: Target(name, name) for name in names}, dict.fromkeys(names, sudo))
