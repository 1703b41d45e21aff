"""How an error is printed: lines for people, or a document for programs that asked for JSON. Both go to standard error."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Annotated

import click

from rollout.cli.proposals import Proposals
from rollout.composition.project import project_at
from rollout.core.reading.project_file import PROJECT_KEYS
from rollout.core.text import documents
from rollout.core.text.documents import Shown
from rollout.core.text.terminal import printable, printable_lines
from rollout.errors import InputError, Problem, RolloutError

MISTAKE = Shown(
    "A mistake; without a place in a file the first three are ``None``.",
    ("place.file", "place.line", "place.column", "reference", "message", "hint"),
)


@dataclass(frozen=True, slots=True)
class ErrorDocument:
    """Why a command ended with ``exit_code`` without its result. ``node`` and ``stage``: where it failed; ``""``: nowhere in particular."""

    exit_code: int
    node: str
    stage: str
    problems: tuple[Annotated[Problem, MISTAKE], ...]


def show_error(error: RolloutError, proposals: Proposals) -> None:
    """The message, and on a terminal the commands that explain it."""
    alone = Problem(error.reference, error.message, hint=error.hint)
    problems = error.problems if isinstance(error, InputError) else (alone,)
    if wants_json(proposals.arguments):
        _show_document(ErrorDocument(error.exit_code, error.node, error.stage, problems))
        return
    for line in str(error).splitlines():
        click.echo(proposals.carried(f"error: {printable(line, 1000)}"), err=True)
    if sys.stderr.isatty():
        more = import_module("rollout.kubelet.explained.references").where_to_read_more
        for command in more([each.reference for each in problems]):
            click.echo(proposals.carried(f"more: {command}"), err=True)


def show_usage_error(error: click.ClickException, proposals: Proposals) -> None:
    """What click found wrong with the command line, with its reference."""
    if type(error).__name__ == "NoArgsIsHelpError":
        error.show()
        return
    reference = usage_reference(error)
    hint = OPTIONS_FOLLOW if reference == "no-such-option" and _is_before_command(error) else ""
    if wants_json(proposals.arguments):
        message = printable(error.format_message(), 1000)
        _show_document(ErrorDocument(error.exit_code, "", "", (Problem(reference, message, hint=hint),)))
        return
    shown = io.StringIO()
    error.show(shown)
    text = "\n".join(printable_lines(shown.getvalue().rstrip("\n"), 4000))  # it repeats arguments
    click.echo(f"{text}{f' ({hint})' if hint else ''} [{reference}]", err=True)


OPTIONS_FOLLOW = "options follow the command: `rollout plan -o json`"


def _is_before_command(error: click.ClickException) -> bool:
    return isinstance(error, click.UsageError) and error.ctx is not None and error.ctx.parent is None


_BY_CLASS = {
    "NoSuchOption": "no-such-option",
    "NoSuchCommand": "no-such-command",
    "BadOptionUsage": "option-misused",
    "BadParameter": "bad-value",
    "FileError": "file-unusable",
}
"""Class of click → reference. By their names: not every version of click that rollout runs with has each."""


def usage_reference(error: click.ClickException) -> str:
    if isinstance(error, click.MissingParameter):
        is_option = isinstance(error.param, click.Option)
        return "missing-option" if is_option else "missing-argument"
    return _BY_CLASS.get(type(error).__name__, "bad-usage")


def wants_json(arguments: Sequence[str]) -> bool:
    """Whether programs read the output: by the words of the command line, the variable or ``rollout.toml``. The words may be wrong otherwise."""
    own = list(arguments[: arguments.index("--")] if "--" in arguments else arguments)
    for at, word in enumerate(own):
        if word in ("-o", "--output"):
            return own[at + 1 : at + 2] == ["json"]
        if word.startswith(("--output=", "-o")):
            return word in ("--output=json", "-ojson")
    key = PROJECT_KEYS["output"]
    if given := os.environ.get(key.variable):
        return given == "json"
    with suppress(RolloutError):  # of a file that cannot be read: the error is about it
        values = project_at(Path()).values
        return key.name in values and values[key.name].value == "json"
    return False


def _show_document(document: ErrorDocument) -> None:
    click.echo(documents.line(document), err=True)
