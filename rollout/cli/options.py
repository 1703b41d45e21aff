"""Options that several commands share."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any

import click

from rollout.cli.sudo_password import given_password, sudo_options
from rollout.cli.wiring import Session, shared_journal
from rollout.errors import UsageError

_SHARED: tuple[Callable[[Callable[..., Any]], Callable[..., Any]], ...] = (
    click.option(
        "--ssh-config",
        type=click.Path(path_type=Path),
        default=None,
        envvar="ROLLOUT_SSH_CONFIG",
        help="Instead of ~/.ssh/config.",
    ),
    click.option("--accept-new", is_flag=True, help="Trust and remember host keys that are not known yet."),
    *sudo_options,
    click.option("--kubeconfig", type=click.Path(), default="", help="For gates, instead of the inventory's."),
    click.option(
        "--state",
        type=click.Path(path_type=Path),
        default=Path(".rollout"),
        envvar="ROLLOUT_STATE",
        show_default=True,
        help="Folder of the journal.",
    ),
    click.option(
        "--journal",
        default="",
        metavar="URL",
        envvar="ROLLOUT_JOURNAL",
        help="A PostgreSQL that several machines share, instead: postgresql://user@host/database.",
    ),
    click.option("-o", "output", type=click.Choice(["text", "json"]), default="text", help="How to print it."),
)

yes_option = click.option("--yes", is_flag=True, help="Do not ask for the cluster's name.")
reason_option = click.option("--reason", default="", help="Why; goes into the journal.")


def given_limit(_context: click.Context, _parameter: click.Parameter, value: str | None) -> str:
    """An empty one is a mistake, such as a shell variable that is not set; it never means every node."""
    if value is not None and not value.strip():
        raise UsageError("empty-limit", "--limit is empty", hint="leave it out to mean every node")
    return value or ""


limit_option = click.option(
    "--limit", default=None, callback=given_limit, help="Only these nodes: '@rack12&@gpu!tess-node-0007'."
)


def session_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Adds the shared options and hands the command a ``Session`` as its first argument."""

    @wraps(command)
    def call(ssh_config: Path | None, accept_new: bool, state: Path, output: str, **rest: Any) -> Any:  # noqa: FBT001 (click)
        password = given_password(rest.pop("sudo_password_file"), ask=rest.pop("ask_sudo_password"))
        kubeconfig, journal = rest.pop("kubeconfig"), rest.pop("journal")
        session = Session(
            state, ssh_config, accept_new, output, rest.get("reason", ""), password, kubeconfig, shared_journal(journal)
        )
        rest.pop("reason", None)
        return command(session, **rest)

    decorated: Callable[..., Any] = call
    for add in _SHARED[::-1]:
        decorated = add(decorated)
    return decorated


def typed_confirmation(cluster: str, what: str, *, yes: bool) -> None:
    """The cluster's name, typed: the last chance to notice that it is the wrong one."""
    if yes:
        return
    if not sys.stdin.isatty():
        raise UsageError("not-confirmed", f"{what} needs a typed confirmation", hint="say --yes where nobody can type")
    typed = click.prompt(f"{what}. Type the cluster's name to go on", default="", show_default=False)
    if typed.strip() != cluster:
        raise UsageError("not-confirmed", f"{typed.strip()!r} is not {cluster!r}; nothing was done")
