"""``rollout check``: every mistake in the files, with its place."""

from __future__ import annotations

import os
from dataclasses import dataclass
from operator import not_
from pathlib import Path
from typing import Annotated

import click

from rollout.app.check import CheckResult
from rollout.app.check_kubelet import assumed_kubelet, verdicts
from rollout.cli.check_kubelet import KubeletCheckDocument, flags_of, tell
from rollout.cli.errors import MISTAKE
from rollout.cli.project import output_option, project_here, project_option
from rollout.cli.proposals import say
from rollout.cli.registry import registered
from rollout.composition.checking import check_project, kubelet_files
from rollout.composition.plan_files import saved_fleet
from rollout.core.model.inventory import Inventory
from rollout.core.model.playbook import Policy
from rollout.core.text import documents
from rollout.core.text.documents import Inline, PrintedKey, Shown
from rollout.core.text.terminal import counted, printable
from rollout.errors import InputError, Problem, UsageError

_LONGEST_LINE = 1000


_INVENTORY = Shown("An inventory, and how many nodes it has.", ("cluster", PrintedKey("nodes", write=len, kind=int)))


def _names(playbooks: tuple[Policy, ...]) -> tuple[str, ...]:
    return tuple(playbook.name for playbook in playbooks)


_CHECKED = Shown(
    "",
    (
        PrintedKey("problems", "ok", write=not_, kind=bool), PrintedKey("problems", kind=tuple[Annotated[Problem, MISTAKE], ...]),
        PrintedKey("inventories", kind=tuple[Annotated[Inventory, _INVENTORY], ...]), PrintedKey("playbooks", write=_names),
        "templates", "not_asked", "shared",
    ),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class CheckDocument:
    """Every mistake, and the files without any."""

    checked: Inline[Annotated[CheckResult, _CHECKED]]


@registered("Check inventories, playbooks, templates and ssh_config.", prints=(CheckDocument, KubeletCheckDocument))
@click.command()
@output_option
@project_option("ssh_config")
@click.option(
    "--snapshot",
    type=click.Path(path_type=Path),
    default=None,
    help="Check with the nodes of this snapshot instead of model nodes.",
)
@click.option("--kubelet-config", multiple=True, metavar="FILE...", help="Check these kubelet configurations instead.")
@click.option("--kubelet", default="", metavar="VERSION", help="The version of the kubelet that would read them.")
@click.option("--config-dir", default="", metavar="DIR", help="The kubelet's folder of drop-ins.")
@click.option("--flags", default="", metavar="'...'", help="The kubelet's other flags, as one text.")
@click.argument("files", nargs=-1, metavar="")
@click.pass_context
def check(
    context: click.Context,
    /,
    output: str,
    ssh_config: Path | None,
    snapshot: Path | None,
    kubelet_config: tuple[str, ...],
    files: tuple[str, ...],
    **kubelet: str,
) -> None:
    """Check inventories, playbooks, templates and the SSH access that ssh_config defines. Reads no node.

    With --kubelet-config: whether a kubelet would start with the file, what it would ignore, what would be in force.

    Example: `rollout check`
    """
    if kubelet_config:
        flags = flags_of(kubelet["flags"])
        assumed = assumed_kubelet(kubelet_files, kubelet["kubelet"], kubelet["config_dir"], flags, os.environ)
        context.exit(tell(verdicts(kubelet_files, (*kubelet_config, *files), assumed), output))
    if files or any(kubelet.values()):
        raise UsageError(
            "no-kubelet-config", "these options describe a kubelet's file, but --kubelet-config is missing"
        )
    fleet = saved_fleet(snapshot) if snapshot else None
    checked = check_project(project_here(), ssh_config, fleet)
    if output == "json":
        click.echo(documents.page(CheckDocument(checked)))
    else:
        _print(checked)
    if checked.problems:
        context.exit(InputError.exit_code)


def _print(checked: CheckResult) -> None:
    for note in checked.not_asked:
        say(printable(str(note), _LONGEST_LINE), err=True)
    for shared in checked.shared:
        say(printable(f"warning: {shared}", _LONGEST_LINE), err=True)
    for problem in checked.problems:
        say(printable(str(problem), _LONGEST_LINE), err=True)
    if checked.problems:
        say(counted(len(checked.problems), "mistake"), err=True)
        return
    parts = [
        *(f"{inventory.cluster} ({counted(len(inventory.nodes), 'node')})" for inventory in checked.inventories),
        counted(len(checked.playbooks), "playbook"),
        counted(len(checked.templates), "template"),
    ]
    say(f"ok: {', '.join(parts)}")
