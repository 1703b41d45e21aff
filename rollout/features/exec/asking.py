"""Runs an operator's command on many nodes and records its start and its end, or opens a shell on one node."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from rollout.app.operator_commands import (
    INTERRUPTED,
    Commanded,
    CommandPorts,
    OperatorCommand,
    bounds_of,
    run_on_all,
    told_once,
)
from rollout.app.ports import Journal, Note, Target
from rollout.core.model.report import CommandResult
from rollout.core.text.nodesets import fold, select
from rollout.core.text.terminal import counted, printable
from rollout.errors import UsageError
from rollout.features.exec.words import given_up, not_started, recorded_end, recorded_start


class ExecPorts(CommandPorts, Protocol):
    """The ports of a call that runs an operator's own commands, or opens a shell."""

    def interactive_shell(self, target: Target) -> int:
        """The exit status of a login shell on a node, with this process's terminal. Raises ``RemoteError``."""
        ...


@dataclass(frozen=True, slots=True)
class CommandEnd:
    """``results``: of every node that was started. ``unstarted``: nodes that an interrupt left out."""

    results: tuple[CommandResult, ...]
    unstarted: tuple[str, ...]
    interrupted: bool

    @property
    def exit_code(self) -> int:
        if self.interrupted:
            return INTERRUPTED
        return 0 if all(result.status == 0 for result in self.results) else 4


class CommandObserver(Protocol):
    """Shows the operator what happens. Must not raise."""

    def warn(self, text: str) -> None: ...

    def confirm(self, cluster: str, what: str) -> None:
        """``UsageError`` ``not-confirmed``, and nothing is run."""
        ...

    def heard(self, result: CommandResult) -> None:
        """Of each node, as soon as it is known."""
        ...

    def ended(self, end: CommandEnd) -> None:
        """Called before the end is recorded: it is shown also if the journal is away by then."""
        ...


def run_command(
    call: ExecPorts,
    observer: CommandObserver,
    cluster: str,
    nodeset: str,
    command: OperatorCommand,
    in_flight: int | None,
) -> CommandEnd:
    """Run a command on each node of a nodeset. ``in_flight`` lowers the limit of a playbook; ``None``: it stays."""
    inventory = call.inventory_or_remembered(cluster)
    names = select(nodeset, inventory)
    access, bounds = call.access(inventory, names), bounds_of(inventory, names, in_flight)
    journal, name = call.journal(), f"exec {call.new_run_id()}"
    if (holder := journal.holder(cluster)) and holder.alive:
        observer.warn(f"WARNING: run {holder.run} is at work on {cluster}; its nodes in flight are not counted here")
    line = printable(command.line, 160)
    observer.confirm(cluster, f"`{line}` will run on {counted(len(names), 'node')} of {cluster}")
    start = recorded_start(name, names, command.line, sudo=command.sudo, seconds=command.seconds, reason=call.reason)
    _note(call, journal, cluster, start)
    interrupts = call.interruption()
    interrupts.install()
    so_far, nodes = Commanded(list(access.targets)), call.command_nodes()
    try:
        run_on_all(
            access, nodes, lambda _: command, bounds, so_far,
            stopping=told_once(interrupts.asked, observer.warn), heard=observer.heard,
        )  # fmt: skip
    except KeyboardInterrupt:  # the second Ctrl-C
        interrupted = True
    else:
        nodes.close()
        interrupted = interrupts.asked()
    lost = [given_up(node) for node in sorted(so_far.busy)]
    for result in (*lost, *map(not_started, so_far.waiting)):
        observer.heard(result)
    end = CommandEnd((*so_far.results, *lost), tuple(so_far.waiting), interrupted)
    observer.ended(end)
    _note(call, journal, cluster, recorded_end(name, end.results, end.unstarted))
    return end


def _note(call: CommandPorts, journal: Journal, cluster: str, text: str) -> None:
    journal.note(cluster, Note(call.zones.wall_seconds(), call.who, text))


def open_shell(call: ExecPorts, cluster: str, node: str) -> int:
    """The exit status of the shell. ``UsageError`` ``not-one-node``."""
    inventory = call.inventory_or_remembered(cluster)
    names = select(node, inventory)
    if len(names) != 1:
        raise UsageError("not-one-node", f"{printable(fold(names), 160)} is {counted(len(names), 'node')}, not one")
    return call.interactive_shell(call.access(inventory, names).targets[names[0]])


def shell_line(words: Sequence[str]) -> str:
    """One word is a shell command as it is; several are a program with its arguments."""
    return words[0] if len(words) == 1 else shlex.join(words)
