"""An operator's command on many nodes: bounded, recorded, and ended node by node."""

from __future__ import annotations

import queue
import shlex
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Protocol

from rollout.app.call import CallPorts
from rollout.app.node_access import NodeAccess
from rollout.app.ports import Nodes, Target, Zones
from rollout.core.model.inventory import Inventory
from rollout.core.model.playbook import Limits
from rollout.core.model.report import CommandResult, RemoteCommand, result_of
from rollout.core.run.at_once import AtOnce, at_once, may_start
from rollout.kubelet.agent.sudo import quiet

LOOK = 0.25
"""Seconds between two looks for a Ctrl-C."""

INTERRUPTED = 130
"""The exit code."""


class CommandPorts(CallPorts, Protocol):
    """The ports of a call that runs commands which are no part of a rollout."""

    @property
    def zones(self) -> Zones:
        """For the times of notes: a command may take a day, and the controller may be suspended meanwhile."""
        ...

    def command_nodes(self) -> Nodes:
        """Keeps little output of each node."""
        ...


@dataclass(frozen=True, slots=True)
class OperatorCommand:
    """A shell command, with the seconds that each node has for it; ``sudo``: as root on nodes that need sudo for it."""

    line: str
    seconds: float
    sudo: bool = False

    def on(self, *, through_sudo: bool) -> RemoteCommand:
        """For one node. Without sudo the login shell runs the line, as with ``ssh NODE LINE``."""
        if not (self.sudo and through_sudo):
            return RemoteCommand(self.line, b"", self.seconds)
        bare = shlex.join(("sh", "-c", self.line))
        return RemoteCommand(quiet(bare), b"", self.seconds, bare=bare)


def bounds_of(
    inventory: Inventory, names: Sequence[str], in_flight: int | None, limits: Limits | None = None
) -> AtOnce:
    """The default limits of a playbook, for these nodes."""
    nodes = [inventory.nodes[name] for name in names]
    return at_once(nodes, inventory.nodes.values(), limits or Limits(), in_flight)


@dataclass(slots=True)
class Commanded:
    """How far a command is: which nodes wait, which are busy, and the results of the others."""

    waiting: list[str]
    busy: set[str] = field(default_factory=set)
    results: list[CommandResult] = field(default_factory=list)


def run_on_all(
    access: NodeAccess,
    nodes: Nodes,
    command: Callable[[str], OperatorCommand],
    bounds: AtOnce,
    so_far: Commanded,
    *,
    stopping: Callable[[], bool],
    heard: Callable[[CommandResult], None],
) -> None:
    """Run each node's ``command`` on the waiting nodes of ``so_far``, which is kept up to date also when an exception ends this.

    Once ``stopping`` is true no more nodes are started, and those in flight finish. ``heard`` gets each result.
    """
    answers: queue.SimpleQueue[CommandResult | BaseException] = queue.SimpleQueue()

    def one(target: Target) -> None:
        try:
            answer = nodes.run(target, command(target.name).on(through_sudo=access.sudo[target.name]))
            nodes.release(target)
            answers.put(result_of(target.name, answer))
        except BaseException as error:  # noqa: BLE001 - a bug: raised again where results are awaited
            answers.put(error)

    pool = ThreadPoolExecutor(max(1, min(bounds.in_flight, len(so_far.waiting))), thread_name_prefix="command")
    try:
        while so_far.busy or (so_far.waiting and not stopping()):
            for name in () if stopping() else may_start(bounds, so_far.waiting, so_far.busy):
                so_far.waiting.remove(name)
                so_far.busy.add(name)
                pool.submit(one, access.targets[name])
            _take(answers, so_far, heard)
    finally:
        pool.shutdown(wait=False, cancel_futures=True)  # after a second Ctrl-C, do not wait for nodes that hang


def _take(
    answers: queue.SimpleQueue[CommandResult | BaseException],
    so_far: Commanded,
    heard: Callable[[CommandResult], None],
) -> None:
    """The next answer, if there is one soon."""
    try:
        answer = answers.get(timeout=LOOK)
    except queue.Empty:
        return
    if isinstance(answer, BaseException):
        raise answer
    so_far.busy.discard(answer.node)
    so_far.results.append(answer)
    heard(answer)


def told_once(asked: Callable[[], bool], tell: Callable[[str], None]) -> Callable[[], bool]:
    """``asked``, with a message when it becomes true."""
    told = False

    def stopping() -> bool:
        nonlocal told
        if asked() and not told:
            told = True
            tell("stopping: finishing nodes in flight first; interrupt again to stop at once")
        return told

    return stopping
