"""``exec`` and ``ssh``: an operator's own command on many nodes, and a shell on one."""

from __future__ import annotations

import sys
from dataclasses import dataclass

import click

from rollout.app.operator_commands import OperatorCommand
from rollout.cli.options import reason_option, session_options, typed_confirmation, yes_option
from rollout.cli.project import cluster_option
from rollout.cli.proposals import say
from rollout.cli.registry import registered
from rollout.composition.wiring import COMMAND_OUTPUT, Session
from rollout.core.model.playbook import Limits
from rollout.core.model.report import CommandResult
from rollout.core.text import documents, durations
from rollout.core.text.terminal import counted, printable
from rollout.errors import UsageError
from rollout.features.exec.asking import CommandEnd, open_shell, run_command, shell_line
from rollout.features.exec.words import CommandResultDocument, command_lines

LONGEST = 24 * 3600.0
"""Seconds that one node may have for a command."""


@registered("Run a command on nodes within the limits of a run.", prints=(CommandResultDocument,), needs_output=False)
@click.command(name="exec")
@click.argument("nodeset")
@click.argument("command", nargs=-1, required=True)
@cluster_option
@click.option("--timeout", default="30s", show_default=True, help="Time limit for each node, with the connection.")
@click.option(
    "--in-flight",
    type=click.IntRange(1, Limits().in_flight),
    default=None,
    help=f"The most nodes at once (default: {Limits().in_flight}, and {Limits().per_rack} of each rack).",
)
@click.option("--sudo", is_flag=True, help="Run the command as root, through the node's sudo.")
@yes_option
@reason_option
@session_options
def exec_(
    session: Session, nodeset: str, command: tuple[str, ...], cluster: str, timeout: str, in_flight: int | None,
    sudo: bool, yes: bool,  # noqa: FBT001 - click's flags
) -> int:  # fmt: skip
    """Run a command on each node of NODESET: `rollout exec @rack12 --cluster rno -- uptime`.

    One COMMAND is a line for the node's shell; several words are a program and its arguments. Nodes with the same
    result are shown once. The journal records the command and the exit statuses.

    Example: `rollout exec @rack01 --cluster rno -- systemctl is-active kubelet`
    """
    wanted = OperatorCommand(_checked(shell_line(command)), _seconds(timeout), sudo)
    return run_command(
        session, _Output(json=session.output == "json", yes=yes), cluster, nodeset, wanted, in_flight
    ).exit_code


@dataclass(slots=True)
class _Output:
    """Standard output. If its reader is gone (``| head``), nodes and record go on without it."""

    json: bool
    yes: bool
    gone: bool = False

    def warn(self, text: str) -> None:
        say(text, err=True)

    def confirm(self, cluster: str, what: str) -> None:
        typed_confirmation(cluster, what, yes=self.yes)

    def heard(self, result: CommandResult) -> None:
        """A line of JSON at once. Text is printed at the end, folded."""
        if self.json:
            self._line(documents.line(CommandResultDocument(result)))

    def ended(self, end: CommandEnd) -> None:
        for line in () if self.json else command_lines(end.results, end.unstarted, COMMAND_OUTPUT):
            self._line(line)
        if end.interrupted:
            say(f"interrupted; {counted(len(end.unstarted), 'node')} not started", err=True)

    def _line(self, text: str) -> None:
        try:
            if not self.gone:
                click.echo(text)
        except BrokenPipeError:
            self.gone = True


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
    return open_shell(session, cluster, node)
