"""Options that several commands share."""

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Callable, Iterable
from enum import Flag, auto
from functools import partial, wraps
from pathlib import Path
from typing import Any

import click

from rollout.cli.project import output_option, project_here, project_option
from rollout.cli.proposals import carried, is_for_programs, proposals_here
from rollout.composition.files import read_password, usable_password
from rollout.composition.wiring import Session, shared_journal
from rollout.core.model.freeze import MOST_WHY
from rollout.core.model.playbook import Share
from rollout.core.text.terminal import hanging, printable
from rollout.errors import UsageError
from rollout.features.regions.client.dask_engine import DaskEngine
from rollout.kubelet.agent.sudo import Secret

# Lines for people.


def echo_lines(lines: Iterable[str]) -> None:
    """Print lines for people. On a terminal long ones are wrapped and indented; a pipe and a file get them whole."""
    lines, err = map(carried, lines), is_for_programs()
    if not err and sys.stdout.isatty():
        width = shutil.get_terminal_size().columns
        lines = (part for line in lines for part in hanging(line, width))
    click.echo("\n".join(lines), err=err)


# The sudo password of the nodes: typed, or from a private file. Never an argument, never the environment.


sudo_options = (
    click.option("--ask-sudo-password", is_flag=True, help="Ask once for the sudo password of the nodes."),
    click.option(
        "--sudo-password-file",
        type=click.Path(path_type=Path),
        default=None,
        help="Read the sudo password from a file that only you can read, or a pipe such as <(pass show sudo).",
    ),
)


def given_password(file: Path | None, *, ask: bool) -> Secret | None:
    """The password that the two options select; ``None`` without either. Raises ``UsageError``."""
    if ask and file is not None:
        raise UsageError("two-passwords", "use --ask-sudo-password or --sudo-password-file, not both")
    if file is not None:
        return read_password(file)
    return usable_password(_typed(), "the typed text") if ask else None


def _typed() -> str:
    if not sys.stdin.isatty():
        hint = "use --sudo-password-file when not interactive"
        raise UsageError("no-terminal", "--ask-sudo-password needs a terminal", hint=hint)
    return str(click.prompt("sudo password", hide_input=True, err=True))


AddOption = Callable[[Callable[..., Any]], Callable[..., Any]]


class SessionNeeds(Flag):
    """What a command needs of a session. It has the options of these, and no others."""

    STATE = auto()
    JOURNAL = auto()
    WAY = auto()
    SUDO = auto()
    WORKERS = auto()
    API = auto()
    RECORD = STATE | JOURNAL
    ALL = RECORD | WAY | SUDO | WORKERS | API


_OPTIONS: tuple[tuple[SessionNeeds, AddOption], ...] = (
    (SessionNeeds.WAY, project_option("ssh_config")),
    (SessionNeeds.WAY, click.option("--accept-new", is_flag=True, help="Trust and store unknown host keys.")),
    *((SessionNeeds.SUDO, option) for option in sudo_options),
    (SessionNeeds.WORKERS, project_option("engine")),
    (SessionNeeds.WORKERS, project_option("scheduler", metavar="ADDRESS")),
    (SessionNeeds.WORKERS, project_option("certificates")),
    (SessionNeeds.API, project_option("kubeconfig")),
    (SessionNeeds.STATE, project_option("state")),
    (SessionNeeds.JOURNAL, project_option("journal", metavar="URL")),
)


class PercentOption(click.ParamType[Share]):
    """A share such as ``20%``. A bare number meant per cent, while it means nodes in a playbook: this version refuses it."""

    name = "N%"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Share:
        if isinstance(value, Share):
            return value
        number = str(value).removesuffix("%").rstrip()
        if not (number.isascii() and number.isdigit() and 1 <= int(number[:4]) <= 100):
            self.fail(f"{printable(str(value), 40)!r} is not a share from 1% to 100%", param, ctx)
        if not str(value).endswith("%"):
            self.fail(f"write {number}%: a bare number means nodes in a playbook, and meant per cent here", param, ctx)
        return Share(percent=float(number))


yes_option = click.option("--yes", is_flag=True, help="Do not ask for confirmation.")


def given_reason(_context: click.Context, _parameter: click.Parameter, value: str) -> str:
    """One line, shortened: it is printed with every status of the run, and stored on nodes by a freeze."""
    return printable(value, MOST_WHY)


reason_option = click.option("--reason", default="", callback=given_reason, help="Reason to record in the journal.")


def given_limit(_context: click.Context, _parameter: click.Parameter, value: str | None) -> str:
    """An empty limit is a mistake, such as an unset shell variable. It never means every node."""
    if value is not None and not value.strip():
        raise UsageError("empty-limit", "--limit is empty", hint="omit it to select every node")
    return value or ""


limit_option = click.option(
    "--limit", default=None, callback=given_limit, help="Only these nodes: '@rack12&@gpu!tess-node-0007'."
)


_POD_NAME = re.compile(r"[a-z0-9][a-z0-9-]*/[a-z0-9][a-z0-9.-]*")


def pod_name(text: str) -> str:
    """``text``, if it is NAMESPACE/NAME; else ``UsageError``."""
    if not _POD_NAME.fullmatch(text):
        raise UsageError(
            "bad-pod-name", f"--pod {printable(text, 60)!r} is not NAMESPACE/NAME", hint="such as shop/web-0"
        )
    return text


def session_options(
    command: Callable[..., Any], output: AddOption = output_option, needs: SessionNeeds = SessionNeeds.ALL
) -> Callable[..., Any]:
    """Adds the shared options and passes a ``Session`` to the command as its first argument. ``output``: its ``-o``."""

    @wraps(command)
    def call(output: str, **rest: Any) -> Any:
        given = {name: rest.pop(name) for name in _NAMES if name in rest}
        password = given_password(given.get("sudo_password_file"), ask=given.get("ask_sudo_password", False))
        proposals = proposals_here()
        session = Session(
            given["state"], given.get("ssh_config"), given.get("accept_new", False), output, rest.pop("reason", ""), password,
            given.get("kubeconfig", ""), shared_journal(given.get("journal", "")), project_here().folder,
            engine=_given_engine(given.get("engine", ""), given.get("scheduler", ""), given.get("certificates")),
            carried=proposals.carried if proposals is not None else str,
        )  # fmt: skip
        return command(session, **rest)

    decorated: Callable[..., Any] = call
    for add in (output, *(option for part, option in reversed(_OPTIONS) if part in needs)):
        decorated = add(decorated)
    return decorated


record_options = partial(session_options, needs=SessionNeeds.RECORD)
"""Of a command that reads and writes the journal, and reaches no node."""
_NAMES = (
    "ssh_config", "accept_new", "ask_sudo_password", "sudo_password_file", "engine", "scheduler", "certificates",
    "kubeconfig", "state", "journal",
)  # fmt: skip


def _given_engine(engine: str, scheduler: str, certificates: Path | None) -> DaskEngine | None:
    """``None``: this process reaches the nodes."""
    if engine != "dask":
        return None
    if not scheduler:
        raise UsageError("no-scheduler", "--engine dask needs --scheduler ADDRESS", hint="such as tls://host:8786")
    return DaskEngine(scheduler, certificates)


def typed_confirmation(cluster: str, what: str, *, yes: bool) -> None:
    """The operator types the cluster's name: the last chance to notice a wrong cluster."""
    if yes:
        return
    if not sys.stdin.isatty():
        raise UsageError("not-confirmed", f"confirmation required: {what}", hint="use --yes when not interactive")
    question = f"{what}. Type the cluster's name to continue"
    typed = click.prompt(question, default="", show_default=False, err=is_for_programs())
    if typed.strip() != cluster:
        raise UsageError("not-confirmed", f"{typed.strip()!r} is not {cluster!r}; nothing was done")
