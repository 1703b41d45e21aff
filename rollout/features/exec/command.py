"""``exec`` and ``ssh``: an operator's own command on many nodes, and a shell on one."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass

import click

from rollout.adapters.interrupts import Interrupts
from rollout.app.node_worker import NodeAccess
from rollout.app.operator_commands import Commanded, OperatorCommand, bounds_of, run_on_all, shell_line
from rollout.app.ports import Journal, Note
from rollout.cli.options import reason_option, session_options
from rollout.cli.project import cluster_option
from rollout.cli.proposals import say
from rollout.cli.registry import registered
from rollout.cli.stopping import INTERRUPTED, told_once
from rollout.composition.operators import operator
from rollout.composition.wiring import COMMAND_OUTPUT, Session, new_run_id
from rollout.core.model.playbook import Limits
from rollout.core.model.report import CommandResult
from rollout.core.run.at_once import AtOnce
from rollout.core.text import documents, durations
from rollout.core.text.nodesets import fold, select
from rollout.core.text.terminal import counted, printable
from rollout.errors import UsageError
from rollout.features.exec.words import (
    CommandResultDocument,
    command_lines,
    given_up,
    not_started,
    recorded_end,
    recorded_start,
)

LONGEST = 24 * 3600.0
"""Seconds that one node may have for a command."""


@registered("Run a command on nodes within the limits of a run.", prints=(CommandResultDocument,), needs_output=False)
@click.command(name="exec")
@click.argument("nodeset")
@click.argument("command", nargs=-1, required=True)
@cluster_option
@click.option("--timeout", default="30s", show_default=True, help="Time for each node, connecting included.")
@click.option(
    "--in-flight",
    type=click.IntRange(1, Limits().in_flight),
    default=None,
    help=f"At most so many nodes at once (default: {Limits().in_flight}, and {Limits().per_rack} of each rack).",
)
@click.option("--sudo", is_flag=True, help="Run the command as root, through the node's sudo.")
@reason_option
@session_options
def exec_(
    session: Session, nodeset: str, command: tuple[str, ...], cluster: str, timeout: str, in_flight: int | None,
    sudo: bool,  # noqa: FBT001 - click's flag
) -> int:  # fmt: skip
    """Run a command on each node of NODESET: `rollout exec @rack12 --cluster rno -- uptime`.

    One COMMAND is a line for the node's shell; several words are a program and its arguments. Nodes with the same
    result are shown once. The journal records the command and the exit statuses.

    Example: `rollout exec @rack01 --cluster rno -- systemctl is-active kubelet`
    """
    wanted = OperatorCommand(_checked(shell_line(command)), _seconds(timeout), sudo)
    inventory = session.inventory_or_remembered(cluster)
    names = select(nodeset, inventory)
    access, bounds = session.access(inventory, names), bounds_of(inventory, names, in_flight)
    record = _Record(session.journal(), cluster, f"exec {new_run_id()}")
    if (holder := record.journal.holder(cluster)) and holder.alive:
        say(f"WARNING: run {holder.run} is at work on {cluster}; its nodes in flight are not counted here", err=True)
    record.note(
        recorded_start(record.name, names, wanted.line, sudo=sudo, seconds=wanted.seconds, reason=session.reason)
    )
    output = _Output(json=session.output == "json")
    return _ended(output, record, _run(session, access, wanted, bounds, output))


@dataclass(frozen=True, slots=True)
class _Record:
    """Where the start and the end of one command are recorded."""

    journal: Journal
    cluster: str
    name: str

    def note(self, text: str) -> None:
        self.journal.note(self.cluster, Note(time.time(), operator(), text))


@dataclass(frozen=True, slots=True)
class _Outcome:
    so_far: Commanded
    interrupted: bool


@dataclass(slots=True)
class _Output:
    """Standard output. If its reader is gone (``| head``), nodes and record go on without it."""

    json: bool
    gone: bool = False

    def heard(self, result: CommandResult) -> None:
        """A line of JSON at once. Text is printed at the end, folded."""
        if self.json:
            self.line(documents.line(CommandResultDocument(result)))

    def line(self, text: str) -> None:
        try:
            if not self.gone:
                click.echo(text)
        except BrokenPipeError:
            self.gone = True


def _run(session: Session, access: NodeAccess, wanted: OperatorCommand, bounds: AtOnce, output: _Output) -> _Outcome:
    interrupts = Interrupts()
    interrupts.install()
    so_far = Commanded(list(access.targets))
    nodes = session.command_nodes()
    try:
        run_on_all(
            access, nodes, lambda _: wanted, bounds, so_far, stopping=told_once(interrupts.asked), heard=output.heard
        )
    except KeyboardInterrupt:  # the second Ctrl-C
        return _Outcome(so_far, interrupted=True)
    nodes.close()
    return _Outcome(so_far, interrupted=interrupts.asked())


def _ended(output: _Output, record: _Record, outcome: _Outcome) -> int:
    """Print and record the results. The exit code."""
    so_far = outcome.so_far
    lost, left = [given_up(name) for name in sorted(so_far.busy)], so_far.waiting
    results = [*so_far.results, *lost]
    for result in (*lost, *map(not_started, left)):
        output.heard(result)
    for line in () if output.json else command_lines(results, left, COMMAND_OUTPUT):
        output.line(line)
    if outcome.interrupted:
        say(f"interrupted; {counted(len(left), 'node')} not started", err=True)
    record.note(recorded_end(record.name, results, left))
    if outcome.interrupted:
        return INTERRUPTED
    return 0 if all(result.status == 0 for result in results) else 4


def _checked(line: str) -> str:
    if not line.strip():
        raise UsageError("no-command", "the command is empty", hint="rollout exec NODESET --cluster NAME -- COMMAND")
    return line


def _seconds(text: str) -> float:
    try:
        seconds = durations.parse(text)
    except durations.DurationError as error:
        raise UsageError("bad-duration", f"--timeout {printable(text, 60)!r}: {error}") from None
    if not 0 < seconds <= LONGEST:
        raise UsageError("bad-duration", f"--timeout {printable(text, 60)!r}: it must be above 0 and at most 24h")
    return seconds


@registered("Open a shell on a node.")
@click.command()
@click.argument("node")
@cluster_option
@session_options
def ssh(session: Session, node: str, cluster: str) -> int:
    """Open a shell on NODE with the connection settings that rollout uses. Ends with the shell's exit status.

    Example: `rollout ssh tess-node-0001 --cluster rno`
    """
    if not sys.stdin.isatty():
        hint = f"`rollout exec {printable(node, 60)} --cluster {printable(cluster, 60)} -- COMMAND` needs no terminal"
        raise UsageError("no-terminal", "a shell needs a terminal as its input", hint=hint)
    inventory = session.inventory_or_remembered(cluster)
    name = _only_one(select(node, inventory))
    return session.interactive_shell(session.access(inventory, (name,)).targets[name])


def _only_one(names: Sequence[str]) -> str:
    if len(names) != 1:
        raise UsageError("not-one-node", f"{printable(fold(names), 160)} is {counted(len(names), 'node')}, not one")
    return names[0]
